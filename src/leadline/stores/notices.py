"""Notices on their way, on disk: each is sent at least once, and not again once its receiver has taken it.

A notice is written before anybody tries to send it, and that it was taken is written as soon as it was; a kill between
the two sends it again. What a receiver does not take is tried again after 10 s, 1 min, 5 min, 15 min and every hour,
and given up after a day. A receiver gets a limited number of notices an hour; what is over it becomes one notice.

Judgement: the steps and the day; a receiver that failed pauses for all its notices for at most a minute, so that one
that is back is noticed soon, and one that is down costs one try a minute.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leadline.core.contracts.notifier import Notice, NoticeState
from leadline.core.io.private import private_file, private_folder
from leadline.core.model.errors import InputError, ToolError
from leadline.core.model.vocabulary import Severity
from leadline.core.system.secret import scrubbed

HOURLY_MAX = 20
_NS_PER_S = 1_000_000_000
HOUR_NS = 3600 * _NS_PER_S
STEPS_NS = tuple(seconds * _NS_PER_S for seconds in (10, 60, 300, 900, 3600))
PAUSE_NS_MAX = 60 * _NS_PER_S
GIVEN_UP_NS = 24 * HOUR_NS
TRIES_MIN = 8  # before one is given up: a clock that jumps by a day, or a machine that was off, gives up nothing
ROUND_MAX = 100  # notices of one receiver that are due at once: one that was down long is no burden for the others
KEPT_NS = 7 * 24 * HOUR_NS  # of what is over
ERROR_LENGTH_MAX = 500
SUMMARY_LINES_MAX = 30
_SCHEMA = """
create table if not exists notice (
    id integer primary key autoincrement, incident text not null, document text not null
);
create table if not exists delivery (
    id integer primary key autoincrement, notice integer not null, receiver text not null,
    state text not null default 'waiting', is_summary integer not null default 0, summary integer,
    tries integer not null default 0, next_ns integer not null default 0, first_failed_ns integer, ended_ns integer,
    error text not null default ''
);
create index if not exists delivery_by_state on delivery (state, receiver, ended_ns);
create table if not exists receiver (
    name text primary key, failures integer not null default 0, next_ns integer not null default 0,
    sent integer not null default 0, given_up integer not null default 0, error text not null default ''
) without rowid;
"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notice that is due at one receiver.

    Attributes:
        id: for `NoticeQueue.sent` and `NoticeQueue.failed`.
        tries: how often it has failed.
    """

    id: int
    receiver: str
    notice: Notice
    tries: int


@dataclass(frozen=True, slots=True)
class ReceiverState:
    """How a receiver fares, since the queue began.

    Attributes:
        waiting_count: notices that are still to be sent.
        sent_count: notices it has taken; one that sums up others counts once.
        given_up_count: notices that it did not take within a day.
        error: why the last try failed; empty when the last one did not.
    """

    waiting_count: int = 0
    sent_count: int = 0
    given_up_count: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Waiting:
    id: int
    receiver: str
    incident: str
    is_summary: bool
    next_ns: int


class NoticeQueue:
    """The notices of one folder.

    Args:
        folder: where the queue is kept.
        hourly_max: by receiver, how many notices it gets within an hour, the rest summed up in one; None for no limit,
            as a program such as Alertmanager needs it, which would miss the ends of incidents. Others get `HOURLY_MAX`.
    """

    def __init__(self, folder: Path, hourly_max: Mapping[str, int | None] | None = None) -> None:
        self.folder = folder.absolute()
        self._hourly_max = dict(hourly_max or {})

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        path = self.folder / "notices.sqlite"
        try:
            private_file(private_folder(self.folder) / path.name)  # SQLite gives its other files the same mode
            with closing(sqlite3.connect(path, timeout=30.0, isolation_level=None)) as base:
                base.execute("pragma journal_mode = wal")
                base.execute("pragma synchronous = full")
                if not base.execute("select 1 from sqlite_master where name = 'receiver'").fetchone():
                    base.executescript(_SCHEMA)
                base.execute("begin immediate")
                try:
                    yield base
                except BaseException:
                    base.execute("rollback")
                    raise
                base.execute("commit")
        except (OSError, sqlite3.OperationalError) as error:
            raise ToolError(
                str(path),
                found=f"cannot be used ({error})",
                expected="a file that notices can be kept in",
                advice="Make room there, or name another folder.",
            ) from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                str(path),
                found=f"damaged ({error})",
                expected="notices kept by Leadline",
                advice="Move it away; notices that waited in it are lost, their incidents are not.",
            ) from error

    def put(self, notice: Notice, receivers: Sequence[str]) -> tuple[int, ...]:
        """Keep a notice for receivers, and return the id of each delivery; it is on the disk then.

        Known secrets are blotted out of it, and letters that no receiver could be sent.
        """
        if not receivers:
            return ()
        with self._open() as base:
            number = _put_notice(base, notice)
            return tuple(_put_delivery(base, number, name) for name in dict.fromkeys(receivers))

    def due(self, now_ns: int) -> tuple[Delivery, ...]:
        """What is to be sent now, each receiver's in the order it was put; over its limit, summed up.

        Notices of one incident keep their order: a later one waits until the one before was taken or given up.
        """
        with self._open() as base:
            paused = {name: next_ns for name, next_ns in base.execute("select name, next_ns from receiver")}
            waiting: dict[str, list[_Waiting]] = {}
            for row in base.execute(
                "select d.id, d.receiver, n.incident, d.is_summary, d.next_ns from delivery d "
                "join notice n on n.id = d.notice where d.state = 'waiting' order by d.id"
            ):
                waiting.setdefault(row[1], []).append(_Waiting(row[0], row[1], row[2], bool(row[3]), row[4]))
            chosen: list[int] = []
            for name, rows in waiting.items():
                if _is_over(paused.get(name, 0), now_ns):
                    chosen += _within_limit(
                        base, _in_order(rows, now_ns), self._hourly_max.get(name, HOURLY_MAX), now_ns
                    )
            return tuple(_delivery(base, number) for number in chosen)

    def sent(self, delivery: int, now_ns: int) -> None:
        """A receiver has taken a notice: it is not sent to it again."""
        with self._open() as base:
            row = base.execute(
                "select receiver from delivery where id = ? and state = 'waiting'", (delivery,)
            ).fetchone()
            if row is None:
                return
            base.execute(
                "update delivery set state = 'sent', ended_ns = ?, error = '' where id = ?", (now_ns, delivery)
            )
            base.execute(
                "insert into receiver (name, sent) values (?, 1) on conflict (name) do update set "
                "sent = sent + 1, failures = 0, next_ns = 0, error = ''",
                row,
            )
            _forget(base, now_ns)

    def failed(self, delivery: int, error: str, now_ns: int) -> None:
        """A receiver has not taken a notice: it is tried again later, or given up after a day."""
        words = scrubbed(" ".join(error.split()))[:ERROR_LENGTH_MAX]
        with self._open() as base:
            query = "select receiver, tries, first_failed_ns from delivery where id = ? and state = 'waiting'"
            row = base.execute(query, (delivery,)).fetchone()
            if row is None:
                return
            name, tries, first_ns = row[0], row[1] + 1, now_ns if row[2] is None else row[2]
            is_given_up = tries >= TRIES_MIN and now_ns - first_ns >= GIVEN_UP_NS
            base.execute(
                "update delivery set state = ?, tries = ?, first_failed_ns = ?, next_ns = ?, ended_ns = ?, error = ? "
                "where id = ?",
                (
                    "given-up" if is_given_up else "waiting",
                    tries,
                    first_ns,
                    now_ns + _step_ns(tries),
                    now_ns if is_given_up else None,
                    words,
                    delivery,
                ),
            )
            (failures,) = base.execute("select failures from receiver where name = ?", (name,)).fetchone() or (0,)
            pause_ns = min(PAUSE_NS_MAX, _step_ns(failures + 1))
            base.execute(
                "insert into receiver (name, failures, next_ns, given_up, error) values (?, 1, ?, ?, ?) "
                "on conflict (name) do update set failures = failures + 1, next_ns = excluded.next_ns, "
                "given_up = given_up + excluded.given_up, error = excluded.error",
                (name, now_ns + pause_ns, int(is_given_up), words),
            )

    def states(self) -> dict[str, ReceiverState]:
        """How each receiver fares that a notice was ever for, by name."""
        with self._open() as base:
            waiting = dict(
                base.execute(
                    "select receiver, count(*) from delivery where state = 'waiting' group by receiver"
                ).fetchall()
            )
            known = {
                name: (sent, given_up, error)
                for name, sent, given_up, error in base.execute("select name, sent, given_up, error from receiver")
            }
        return {
            name: ReceiverState(waiting.get(name, 0), *known.get(name, (0, 0, "")))
            for name in sorted({*waiting, *known})
        }


def _step_ns(tries: int) -> int:
    return STEPS_NS[min(tries, len(STEPS_NS)) - 1]


def _is_over(next_ns: int, now_ns: int) -> bool:
    """Whether a time to wait for is past; one further away than any step was set before the clock went back."""
    return next_ns <= now_ns or next_ns > now_ns + STEPS_NS[-1]


def _in_order(rows: list[_Waiting], now_ns: int) -> list[_Waiting]:
    """Of one receiver's, those that are due and have none of the same incident before them that is not."""
    due, blocked = [], set()
    for row in rows:
        if row.incident not in blocked and _is_over(row.next_ns, now_ns):
            due.append(row)
        else:
            blocked.add(row.incident)
    return due


def _within_limit(base: sqlite3.Connection, rows: list[_Waiting], hourly_max: int | None, now_ns: int) -> list[int]:
    """Ids to send to a receiver; where there is no room for all, the last of the room is one that sums up the rest."""
    if hourly_max is None or not rows:
        return [row.id for row in rows[:ROUND_MAX]]
    query = "select count(*) from delivery where state = 'sent' and receiver = ? and ended_ns > ? and ended_ns <= ?"
    (sent_count,) = base.execute(query, (rows[0].receiver, now_ns - HOUR_NS, now_ns)).fetchone()
    room = hourly_max - sent_count
    if len(rows) <= room:
        return [row.id for row in rows[:ROUND_MAX]]
    if room <= 0:
        return []
    room = min(room, ROUND_MAX)
    alone, rest = rows[: room - 1], rows[room - 1 :]
    return [*(row.id for row in alone), _sum_up(base, rows[0].receiver, rest, now_ns)]


def _put_notice(base: sqlite3.Connection, notice: Notice) -> int:
    fields: dict[str, Any] = asdict(notice)
    plain = {key: _sendable(value) if isinstance(value, str) else value for key, value in fields.items()}
    row = (plain["incident"], json.dumps(plain))
    return _row_id(base.execute("insert into notice (incident, document) values (?, ?)", row))


def _sendable(text: str) -> str:
    """A text without known secrets, and with ? for bytes of a file's name that are no UTF-8."""
    return scrubbed(text).encode("utf-8", errors="replace").decode("utf-8")


def _put_delivery(base: sqlite3.Connection, notice: int, receiver: str, *, is_summary: bool = False) -> int:
    row = (notice, receiver, int(is_summary))
    return _row_id(base.execute("insert into delivery (notice, receiver, is_summary) values (?, ?, ?)", row))


def _row_id(cursor: sqlite3.Cursor) -> int:
    return int(cursor.lastrowid or 0)


def _notice(text: str) -> Notice:
    plain = json.loads(text)
    return Notice(**{**plain, "state": NoticeState(plain["state"]), "severity": Severity(plain["severity"])})


def _delivery(base: sqlite3.Connection, number: int) -> Delivery:
    query = "select d.receiver, n.document, d.tries from delivery d join notice n on n.id = d.notice where d.id = ?"
    receiver, text, tries = base.execute(query, (number,)).fetchone()
    return Delivery(number, receiver, _notice(text), tries)


def _sum_up(base: sqlite3.Connection, receiver: str, rows: list[_Waiting], now_ns: int) -> int:
    """Put one notice in the place of several; one that sums up others already gives its place to them, too."""
    members = [row.id for row in rows if not row.is_summary]
    for row in rows:
        if row.is_summary:
            members += [number for (number,) in base.execute("select id from delivery where summary = ?", (row.id,))]
    members.sort()
    query = "select n.document from delivery d join notice n on n.id = d.notice where d.id = ?"
    notices = [_notice(base.execute(query, (number,)).fetchone()[0]) for number in members]
    summary = _put_delivery(base, _put_notice(base, _summary(notices, members[0])), receiver, is_summary=True)
    query = "update delivery set state = 'summed', ended_ns = ?, summary = ? where id = ?"
    base.executemany(query, [(now_ns, summary, number) for number in members])
    base.executemany(query, [(now_ns, None, row.id) for row in rows if row.is_summary])
    return summary


def _summary(notices: list[Notice], first: int) -> Notice:
    """One notice for several, in the order they were put: how many incidents, and the last word about each."""
    last = {notice.incident: notice for notice in notices}
    worst_first = sorted(last.values(), key=lambda notice: (notice.state is NoticeState.CLOSED, -notice.severity))
    lines = [f"{notice.severity.label:<8} {notice.state.value:<8} {notice.title}"[:80] for notice in worst_first]
    more = [f"and {len(lines) - SUMMARY_LINES_MAX} more"] if len(lines) > SUMMARY_LINES_MAX else []
    opened_ns = min(notice.opened_ns for notice in notices)
    count = len(last)
    return Notice(
        incident=f"further-{first}",
        state=NoticeState.OPENED,
        severity=max(notice.severity for notice in worst_first),
        entity=worst_first[0].entity if count == 1 else f"{len({notice.entity for notice in notices})} entities",
        cause="",
        title=f"{count} further incident{'s' if count > 1 else ''}",
        text="\n".join(
            ["More notices than may be sent in an hour; these are summed up:", *lines[:SUMMARY_LINES_MAX], *more]
        ),
        opened_ns=opened_ns,
        link=worst_first[0].link if count == 1 else "",
    )


def _forget(base: sqlite3.Connection, now_ns: int) -> None:
    """Remove what has been over for a week; counts are kept."""
    deleted = base.execute("delete from delivery where state != 'waiting' and ended_ns < ?", (now_ns - KEPT_NS,))
    if deleted.rowcount:
        base.execute("delete from notice where id not in (select notice from delivery)")
