"""Samples of the sessions of a database at work, many times a second, in a thread of their own."""

from __future__ import annotations

import csv
import io
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from leadline.core.io.outputs import open_to_append
from leadline.core.model.errors import ToolError
from leadline.formats.statements import normalised, statement_name

COLUMNS = (
    *("now", "pid", "datname", "backend_type", "state", "wait_event_type", "wait_event", "query_id"),
    *("xact_age_s", "query_age_s", "blocked_by", "query"),
    *("leader_pid", "state_age_s", "relation", "usename", "client_addr", "application", "statement_text"),
)
FLUSH_S = 1.0  # a killed recorder loses no more than this
BLOCKERS_MAX = 3  # Judgement: who is at the head of a queue is found from the first of each
READ_CHARACTERS = 1024  # of a statement; the table is named near its beginning
_OF_STATEMENT = COLUMNS.index("query") + 1
_Cells = tuple[object, ...]


class SessionSource(Protocol):
    """A connection that says who is at work.

    Attributes:
        tool: what people call the server.
        errors: what its client raises when the connection is lost.
    """

    tool: str
    errors: tuple[type[Exception], ...]

    def rows(self) -> Iterable[Sequence[object]]:
        """A sample: rows in the order of `COLUMNS`, the statement in full and no text beside it."""

    def close(self) -> None:
        """Give up the connection."""


def beginning(more: Sequence[str] = ()) -> re.Pattern[bytes]:
    """What a recording begins with; ``more`` are columns after the usual ones."""
    return re.compile(",".join((*COLUMNS, *more)).encode() + b"\n")


class Schedule:
    """Beats at multiples of an interval since the start; a beat that is already over is skipped and counted."""

    def __init__(self, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.skipped_count = 0
        self.every_s = every_s
        self._clock = clock
        self._began = clock()
        self._beat = 0

    def wait_s(self) -> float:
        """Choose the next beat and return the seconds until it."""
        passed = self._clock() - self._began
        following = max(self._beat + 1, int(passed / self.every_s) + 1)
        self.skipped_count += following - self._beat - 1
        self._beat = following
        return self._began + following * self.every_s - self._clock()


def _is_cut(path: Path) -> bool:
    """Whether the last row of a file has no end: its recorder was killed while it wrote."""
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as stream:
        stream.seek(-1, io.SEEK_END)
        return stream.read() != b"\n"


class SessionRows:
    """Samples as CSV text, short where rows repeat themselves.

    Of a long list of blockers the first are kept and the others counted (``101 102 103 +76``): eighty sessions behind
    one another would write three thousand process ids per sample. The statement, its id and its text are written when a
    session is first seen and when they change, and so are its user, address and application; empty cells stand for
    those of the same pid in the sample before.

    Args:
        texts: keep the texts of statements without their literals, and the name that an application gives itself: both
            are free text and may hold a secret.
        whole: write every row in full, so that it can be read without those before it.
        more: columns of this server alone, whose cells come after the others and are always written.
    """

    def __init__(self, *, texts: bool = False, whole: bool = False, more: Sequence[str] = ()) -> None:
        self.more = tuple(more)
        self._texts = texts
        self._whole = whole
        self._text = io.StringIO()
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._before: dict[object, tuple[_Cells, _Cells]] = {}

    def begin(self, *, after_cut_row: bool) -> None:
        """Add the header; a row that was cut by a kill is ended first."""
        if after_cut_row:
            self._text.write("\n")
        self._rows.writerow((*COLUMNS, *self.more))

    def add(self, rows: Iterable[Sequence[object]]) -> None:
        """Add a sample: rows in the order of `COLUMNS`, the statement in full and no text beside it."""
        seen: dict[object, tuple[_Cells, _Cells]] = {}
        for row in rows:
            now, pid, *cells, query_id, xact_age_s, query_age_s, blockers, query = row[:_OF_STATEMENT]
            leader_pid, state_age_s, relation, user, address, application, *rest = row[_OF_STATEMENT:]
            client = (user, address, application if self._texts else None)
            work = (None, "", "") if pid is None else self._work(query_id, query)
            seen[pid] = (work, client)
            if self._whole:
                seen.clear()
            work_before, client_before = self._before.get(pid, (None, None))
            shown = (None, "", "") if work_before == work else work
            shown_client = [None] * len(client) if client_before == client else client
            blocked_by = capped(str(blockers)) if blockers else blockers
            ages = (xact_age_s, query_age_s)
            more = (leader_pid, state_age_s, relation, *shown_client, shown[2], *rest)
            self._rows.writerow([now, pid, *cells, shown[0], *ages, blocked_by, shown[1], *more])
        self._before = seen

    def _work(self, query_id: object, query: object) -> _Cells:
        """The id, name and text of a statement."""
        text = str(query or "")
        return query_id, statement_name(text), normalised(text) if self._texts else ""

    def take(self) -> bytes:
        """Return the text added since the last call."""
        data = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return data


def capped(blockers: str) -> str:
    """The first process ids of a list, and how many there are beside them.

    >>> capped("7 8"), capped("7 8 9 10 11")
    ('7 8', '7 8 9 +2')
    """
    pids = blockers.split(" ")
    over = len(pids) - BLOCKERS_MAX
    return " ".join([*pids[:BLOCKERS_MAX], f"+{over}"]) if over > 0 else blockers


class SessionSampler:
    """Appends the sessions at work to a CSV file until it is closed; the first error ends it and is kept.

    Args:
        rows: keeps them short; its header is written first.
    """

    def __init__(self, source: SessionSource, path: Path, every_s: float, rows: SessionRows) -> None:
        self.error: Exception | None = None
        self.sample_count = 0
        self._source = source
        self._stream = open_to_append(path, beginning(rows.more))
        self._rows = rows
        self._rows.begin(after_cut_row=_is_cut(path))
        self._flushed = time.monotonic()
        self._over = threading.Event()
        self.schedule = Schedule(every_s)
        self._thread = threading.Thread(target=self._work, name="leadline-sessions", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what ended the sampling, if anything did.

        Raises:
            ToolError: the connection is lost, or the file cannot be written.
        """
        if self.error is not None:
            reason = str(self.error).splitlines()[0][:120] if str(self.error) else "no reason"
            raise ToolError(
                self._source.tool,
                found=f"the sampling of active sessions broke off ({reason})",
                expected="a server that goes on answering and space to write to",
                advice="What was sampled until then is kept.",
            ) from self.error

    def close(self) -> list[str]:
        """End the thread, write what is left, and return notes on samples that were skipped."""
        self._over.set()
        self._thread.join(10.0)
        self._source.close()
        self._stream.close()
        skipped = self.schedule.skipped_count
        if not skipped:
            return []
        return [f"active sessions: {skipped} samples came too late and were skipped, {self.sample_count} were taken"]

    def _work(self) -> None:
        errors: tuple[type[Exception], ...] = (*self._source.errors, OSError)
        try:
            while True:
                self._sample()
                if self._over.wait(max(self.schedule.wait_s(), 0.0)):
                    break
        except errors as error:
            self.error = error
        try:
            self._flush()
        except OSError as error:
            self.error = self.error or error

    def _sample(self) -> None:
        self._rows.add(self._source.rows())
        self.sample_count += 1
        if time.monotonic() - self._flushed >= FLUSH_S - self.schedule.every_s:
            self._flush()

    def _flush(self) -> None:
        self._stream.write(self._rows.take())
        self._flushed = time.monotonic()
