"""Sessions of PostgreSQL in the rows of pg_stat_activity, whatever its version and whichever columns were asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from leadline.formats.stamps import YEARS
from leadline.formats.statements import UNKNOWN, shown_name, statement_name

NAN = float("nan")
# Columns of pg_stat_activity; procpid, waiting and current_query are those before 9.2 and 9.6.
ACTIVITY = frozenset(
    "datid datname pid procpid leader_pid usesysid usename application_name client_addr client_hostname client_port "
    "backend_start xact_start query_start state_change waiting wait_event_type wait_event state backend_xid "
    "backend_xmin query_id query current_query backend_type".split()
)
_MOMENTS = ("xact_start", "query_start", "state_change")
_NOW = ("now", "clock_timestamp", "current_timestamp", "statement_timestamp", "ts", "sampled_at")
_AGE = re.compile(
    r"(?:(-?\d{1,6}) years? ?)?(?:(-?\d{1,6}) mons? ?)?(?:(-?\d{1,6}) days? ?)?"
    r"(-?)(?:(\d{1,9}):(\d\d):(\d\d(?:\.\d{1,9})?))?"
)
_DAYS = (365.25, 30.0, 1.0)
_IDLE = re.compile(r"<IDLE>( in transaction)?(?: \(aborted\))?", re.IGNORECASE)
_ZONE = re.compile(r"([+-]\d\d)$")


@dataclass(frozen=True, slots=True)
class PrintedSession:
    """A session of one row; ages are seconds, NaN where they are not printed.

    Attributes:
        state: ``active``, ``idle``, ``idle in transaction`` ...; empty where it cannot be known.
        event: what it waits for, ``class:event``; empty for none, None where waits were not asked for.
        transaction_s: at least as long its transaction has been open.
        state_s: how long it has been in its state.
        statement: verb and first table.
    """

    pid: str
    state: str
    event: str | None
    is_client: bool
    is_asking: bool
    transaction_s: float
    state_s: float
    statement: str
    application: str

    @property
    def is_idle_in_transaction(self) -> bool:
        """Whether it holds a transaction open and runs nothing."""
        return self.state.startswith("idle in transaction")

    @property
    def waits_for_lock(self) -> bool:
        """Whether it waits for a lock of a row or a table."""
        return self.event is not None and self.event.startswith("Lock")


def moment_of(text: str) -> datetime | None:
    """A time as the server prints it with ``DateStyle = ISO``; None for an empty cell.

    Raises:
        ValueError: it is another text.
    """
    if not text:
        return None
    moment = datetime.fromisoformat(_ZONE.sub(r"\1:00", text))
    if moment.year not in YEARS:
        raise ValueError(text)
    return moment


def utc(moment: datetime) -> datetime:
    """A moment with a zone, so that it can be compared; one without is taken as UTC."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def seconds_of(text: str) -> float:
    """An interval as the server prints it, in seconds; NaN for another text.

    >>> seconds_of("1 day 16:33:19.5"), seconds_of("-00:00:01")
    (145999.5, -1.0)
    """
    match = _AGE.fullmatch(text.strip())
    if match is None or not match[0]:
        return NAN
    days = sum(float(count or 0) * length for count, length in zip(match.groups()[:3], _DAYS, strict=True))
    clock = sum(float(match[place] or 0) * length for place, length in ((5, 3600.0), (6, 60.0), (7, 1.0)))
    return days * 86400.0 + (-clock if match[4] else clock)


def latest_of(cells: Mapping[str, str]) -> tuple[datetime | None, bool]:
    """The latest moment of a row and whether it is that of the snapshot, not only one before it.

    Raises:
        ValueError: a time is none.
    """
    for name in _NOW:
        moment = moment_of(cells.get(name, ""))
        if moment is not None:
            return moment, True
    moments = [moment for name in _MOMENTS if (moment := moment_of(cells.get(name, ""))) is not None]
    return max(moments, key=utc, default=None), False


def session_of(cells: Mapping[str, str], now: datetime | None) -> PrintedSession:
    """The session of a row in a snapshot of a time.

    Raises:
        ValueError: a cell is not what its column holds.
    """
    pid = cells.get("pid") or cells.get("procpid", "")
    if pid and not pid.isdigit():
        message = f"{pid[:20]!r} is no process id"
        raise ValueError(message)
    query = cells.get("query", cells.get("current_query", ""))
    state = _state(cells, query)
    ages = {
        name: seconds_of(text) for name, text in cells.items() if name not in ACTIVITY and text[:1] in "-0123456789"
    }
    ages = {name: age for name, age in ages.items() if age >= 0 and not _is_of_backend(name)}
    moments = {name: moment_of(cells.get(name, "")) for name in _MOMENTS}
    since = {name: max((utc(now) - utc(at)) / timedelta(seconds=1), 0.0) for name, at in moments.items() if now and at}
    # A statement begins after its transaction, so any age is one that the transaction has at least.
    is_in_transaction = state.startswith("idle in transaction") or state == "active"
    lengths = [*ages.values(), *since.values()] if is_in_transaction else []
    of_state = [*(age for name, age in ages.items() if re.search("state|idle|wait", name))]
    of_state += [since[name] for name in ("state_change", "query_start") if name in since][:1]
    of_state += [age for name, age in ages.items() if not re.search("xact|transaction|tx", name)]
    backend = cells.get("backend_type")
    is_worker = query.startswith("autovacuum:") or (not state and not cells.get("usename") and "usename" in cells)
    return PrintedSession(
        pid=pid,
        state=state,
        event=_event(cells),
        is_client=backend == "client backend" if backend else not is_worker,
        is_asking="pg_stat_activity" in query,
        transaction_s=max(lengths, default=NAN),
        state_s=of_state[0] if of_state else NAN,
        statement=UNKNOWN if not query or _IDLE.fullmatch(query) else shown_name(statement_name(query)),
        application=cells.get("application_name", ""),
    )


def _is_of_backend(name: str) -> bool:
    return re.search("backend|connect|client|session", name) is not None


def _state(cells: Mapping[str, str], query: str) -> str:
    if "state" in cells:
        return cells["state"]
    idle = _IDLE.match(query)
    if idle is not None:
        return "idle in transaction" if idle[1] else "idle"
    return "active" if "current_query" in cells and query and not query.startswith("<") else ""


def _event(cells: Mapping[str, str]) -> str | None:
    if "wait_event_type" in cells or "wait_event" in cells:
        kind, event = cells.get("wait_event_type", ""), cells.get("wait_event", "")
        return ":".join(part for part in (kind, event) if part)
    if "waiting" in cells:  # before 9.6: for a lock, or not
        return "Lock" if cells["waiting"] in {"t", "true"} else ""
    return None
