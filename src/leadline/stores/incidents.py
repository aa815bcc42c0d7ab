"""Incidents that a watch opened, what people said of them, maintenance windows and known changes: rows of SQLite.

A row is there when the call that wrote it returns, whatever happens then. One process writes; any number read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from leadline.core.io.private import private_file, private_folder
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.model.incident import Change
from leadline.core.model.vocabulary import Severity

FILE = "incidents.sqlite"
_SCHEMA = """
create table if not exists incident (
    id text primary key, opened_ns integer not null, seen_ns integer not null, closed_ns integer, document text not null
) without rowid;
create index if not exists incident_opened on incident (opened_ns);
create table if not exists remark (
    incident text not null, time_ns integer not null, author text not null, text text not null, takes integer not null
);
create table if not exists maintenance (
    id integer primary key, pattern text not null, start_ns integer not null, end_ns integer not null, why text not null
);
create table if not exists marker (
    time_ns integer not null, kind text not null, entity text not null, text text not null,
    primary key (time_ns, kind, entity, text)
) without rowid;
create table if not exists heard (
    incident text not null, receiver text not null, is_open integer not null, severity integer not null,
    cause text not null, primary key (incident, receiver)
) without rowid;
"""


@dataclass(frozen=True, slots=True)
class Remark:
    """What somebody said of an incident; ``takes`` where he took it on himself."""

    time_ns: int
    author: str
    text: str
    takes: bool = False


@dataclass(frozen=True, slots=True)
class LiveIncident:
    """An incident of the watch, from its opening on.

    Attributes:
        id: time of its opening and a number, such as ``20261126-140503-1``.
        opened_ns: when it began to be bad, UTC nanoseconds.
        seen_ns: when it was bad the last time.
        closed_ns: when it was over; None while it is open.
        severity: the highest so far.
        cause: the rule that names the first cause, or why there is none.
        entity: what the cause is about.
        title: the answer in one line.
        text: the first screen of the answer.
        rules: of all findings that belong to it, the first cause first.
        places: entities that it touches, for what joins it.
        was_felt: users felt it; else a limit was passed.
        symptoms: what users felt, as it was last seen: what must go back before it is over.
        reopened_count: how often it came back after it was closed.
        capture: its own recording; empty until it is written.
        remarks: what people said.
    """

    id: str
    opened_ns: int
    seen_ns: int
    closed_ns: int | None
    severity: Severity
    cause: str
    entity: str
    title: str
    text: str
    rules: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    was_felt: bool = False
    symptoms: tuple[Change, ...] = ()
    reopened_count: int = 0
    capture: str = ""
    remarks: tuple[Remark, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it goes on."""
        return self.closed_ns is None

    @property
    def taken_by(self) -> str:
        """Who took it on himself; empty for nobody."""
        return next((remark.author for remark in reversed(self.remarks) if remark.takes), "")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        plain = {**asdict(self), "symptoms": [one.to_dict() for one in self.symptoms]}
        return {**plain, "severity": self.severity.name.lower(), "taken_by": self.taken_by}


@dataclass(frozen=True, slots=True)
class Heard:
    """The last that a receiver was told of an incident: whether it went on, how severe it was, what its cause was."""

    is_open: bool
    severity: Severity
    cause: str


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A time in which nobody is told of incidents on entities that a pattern names."""

    pattern: str
    start_ns: int
    end_ns: int
    why: str = ""
    id: int = field(default=0, compare=False)

    def covers(self, entity: str, time_ns: int) -> bool:
        """Whether an entity, as it is written, is under maintenance at a time."""
        return self.start_ns <= time_ns < self.end_ns and fnmatchcase(entity.casefold(), self.pattern.casefold())


@dataclass(frozen=True, slots=True)
class Marker:
    """A change that is known to have happened: a vMotion, a snapshot, a setting, a deployment."""

    time_ns: int
    kind: str
    entity: str
    text: str


@dataclass(eq=False)
class IncidentStore:
    """The incidents of one folder."""

    folder: Path
    _is_made: bool = False

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        path = self.folder / FILE
        try:
            if not self._is_made:
                private_file(private_folder(self.folder) / FILE)
            with closing(sqlite3.connect(path, timeout=30.0)) as base:
                if not self._is_made:
                    base.execute("pragma journal_mode = wal")
                    base.executescript(_SCHEMA)
                    self._is_made = True
                base.execute("pragma synchronous = full")
                with base:
                    yield base
        except (OSError, sqlite3.OperationalError) as error:
            raise ToolError(
                str(path),
                found=f"cannot be used ({error})",
                expected="a folder that incidents can be kept in",
                advice="Free some space, or name another folder for the store.",
            ) from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                str(path),
                found=f"damaged ({error})",
                expected="incidents kept by Leadline",
                advice="Restore it from a backup, or move it away: the watch begins a new one.",
            ) from error

    def save(self, *incidents: LiveIncident) -> None:
        """Write incidents as they are now, all or none; of one that is named twice the last. Remarks have `remark`."""
        rows = [(one.id, one.opened_ns, one.seen_ns, one.closed_ns, json.dumps(_plain(one))) for one in incidents]
        with self._open() as base:
            base.executemany("insert or replace into incident values (?, ?, ?, ?, ?)", rows)

    def open_ones(self) -> list[LiveIncident]:
        """The incidents that go on, oldest first."""
        return self._where("closed_ns is null")

    def between(self, start_ns: int, end_ns: int) -> list[LiveIncident]:
        """The incidents that were open at some time of a span, oldest first."""
        return self._where("opened_ns < ? and coalesce(closed_ns, seen_ns) >= ?", end_ns, start_ns)

    def get(self, name: str) -> LiveIncident:
        """The incident with that id, its unique end or beginning, or ``last``.

        Raises:
            UsageError: there is none, or several are meant.
        """
        if name == "last":
            some = self._where("true")[-1:]
        else:
            every = self._where("true")
            some = [one for one in every if one.id == name] or [
                one for one in every if one.id.startswith(name) or one.id.endswith(name)
            ]
        if len(some) != 1:
            raise UsageError(
                f"incident {name}",
                found="no such incident" if not some else f"{len(some)} incidents",
                expected="an id, its beginning or end, or last",
                advice="`leadline watch incidents` lists them.",
            )
        return some[0]

    def remark(self, incident: str, remark: Remark) -> None:
        """Add what somebody says of an incident."""
        with self._open() as base:
            row = (incident, remark.time_ns, remark.author, remark.text, int(remark.takes))
            base.execute("insert into remark values (?, ?, ?, ?, ?)", row)

    def hear(self, incident: str, news: Mapping[str, Heard]) -> None:
        """Keep the last that receivers, by name, were told of an incident."""
        rows = [(incident, name, int(one.is_open), int(one.severity), one.cause) for name, one in news.items()]
        with self._open() as base:
            base.executemany("insert or replace into heard values (?, ?, ?, ?, ?)", rows)

    def heard(self, incident: str) -> dict[str, Heard]:
        """The last that each receiver was told of an incident."""
        with self._open() as base:
            query = "select receiver, is_open, severity, cause from heard where incident = ?"
            rows = base.execute(query, (incident,)).fetchall()
        return {name: Heard(bool(is_open), Severity(severity), cause) for name, is_open, severity, cause in rows}

    def heard_as_open(self, receivers: Iterable[str]) -> list[LiveIncident]:
        """The incidents of which one of these receivers last heard that they go on, oldest first."""
        names = sorted(receivers)
        marks = ", ".join("?" * len(names))
        return self._where(f"id in (select incident from heard where is_open and receiver in ({marks}))", *names)

    def add_maintenance(self, window: Maintenance) -> int:
        """Keep a maintenance window; its number."""
        with self._open() as base:
            row = (window.pattern, window.start_ns, window.end_ns, window.why)
            added = base.execute("insert into maintenance (pattern, start_ns, end_ns, why) values (?, ?, ?, ?)", row)
            return int(added.lastrowid or 0)

    def end_maintenance(self, number: int, time_ns: int) -> None:
        """End a maintenance window now."""
        with self._open() as base:
            base.execute("update maintenance set end_ns = min(end_ns, ?) where id = ?", (time_ns, number))

    def maintenance(self, since_ns: int = 0) -> list[Maintenance]:
        """The maintenance windows that end after a time."""
        with self._open() as base:
            rows = base.execute(
                "select pattern, start_ns, end_ns, why, id from maintenance where end_ns > ? order by start_ns",
                (since_ns,),
            ).fetchall()
        return [Maintenance(*row) for row in rows]

    def mark(self, marker: Marker) -> None:
        """Keep a change that is known to have happened, once."""
        with self._open() as base:
            row = (marker.time_ns, marker.kind, marker.entity, marker.text)
            base.execute("insert or ignore into marker values (?, ?, ?, ?)", row)

    def markers(self, start_ns: int, end_ns: int) -> list[Marker]:
        """The changes of a span, in order of time."""
        with self._open() as base:
            rows = base.execute(
                "select time_ns, kind, entity, text from marker where time_ns >= ? and time_ns < ? order by time_ns",
                (start_ns, end_ns),
            ).fetchall()
        return [Marker(*row) for row in rows]

    def _where(self, condition: str, *values: int | str) -> list[LiveIncident]:
        with self._open() as base:
            rows = base.execute(
                f"select document from incident where {condition} order by opened_ns, id", values
            ).fetchall()
            remarks: dict[str, list[Remark]] = {}
            for incident, time_ns, author, text, takes in base.execute(
                "select incident, time_ns, author, text, takes from remark order by time_ns"
            ):
                remarks.setdefault(incident, []).append(Remark(time_ns, author, text, bool(takes)))
        incidents = [_incident(json.loads(document)) for (document,) in rows]
        return [replace(one, remarks=tuple(remarks.get(one.id, ()))) for one in incidents]


def _plain(incident: LiveIncident) -> dict[str, Any]:
    plain = asdict(incident)
    del plain["remarks"]
    return {**plain, "severity": int(incident.severity), "symptoms": [one.to_dict() for one in incident.symptoms]}


def _incident(plain: dict[str, Any]) -> LiveIncident:
    known = {name: plain[name] for name in LiveIncident.__dataclass_fields__ if name in plain}
    known["severity"] = Severity(known["severity"])
    for name in ("rules", "places"):
        known[name] = tuple(known.get(name, ()))
    known["symptoms"] = tuple(Change.from_dict(one) for one in known.get("symptoms", ()))
    return LiveIncident(**known)
