"""Which statements of a PostgreSQL server did most between two looks at pg_stat_statements, as snapshots.

The view has thousands of rows that hardly change, so only those are kept that did most by time, I/O, WAL or temporary
files since the look before. A count begins at 0 when its statement comes among them, because what it did before that is
in no snapshot; the importer takes a statement that a snapshot lacks for one that did nothing.
"""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.core.io.outputs import open_to_append
from leadline.formats.statements import normalised, shown_name, statement_name

if TYPE_CHECKING:
    import psycopg

FILE_NAME = "pg_stat_statements.csv"
COUNTS = ("calls", "total_exec_time", "rows", "shared_blks_read", "blk_read_time", "temp_blks_written", "wal_bytes")
BEGINNING = re.compile(("now,queryid,query," + ",".join(COUNTS) + "\n").encode())
TOP = 50
_READ_CHARACTERS = 1024
# Names of other versions. Source: PostgreSQL documentation, pg_stat_statements, 9.4 to 18.
_NAMES = {
    "total_exec_time": ("total_exec_time", "total_time"),
    "blk_read_time": ("shared_blk_read_time", "blk_read_time"),
}
# By what statements are chosen: time, I/O, WAL, temporary files.
_BY = tuple(COUNTS.index(name) for name in ("total_exec_time", "shared_blks_read", "wal_bytes", "temp_blks_written"))
_SCHEMA = """
select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'pg_stat_statements'
"""
_TOTALS = """
select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00', queryid, {counts}
from {schema}.pg_stat_statements(false) where queryid is not null group by queryid
"""
_TEXTS = "select queryid, left(query, {characters}) from {schema}.pg_stat_statements where queryid = any(%s)"

_Counts = tuple[float, ...]


class StatementSnapshots:
    """Appends snapshots of the busiest statements to a CSV file.

    Args:
        schema: that the extension is in, quoted.
        texts: keep the texts of statements without literals; else the verb and the first table.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], path: Path, schema: str, *, every_s: float, texts: bool
    ) -> None:
        self._connection = connection
        self._path = path
        self._schema = schema
        self._every_s = every_s
        self._texts = texts
        self._query = ""
        self._next = 0.0
        self._totals: dict[int, _Counts] | None = None
        self._moment = ""
        self._written: dict[int, _Counts] = {}
        self._names: dict[int, str] = {}

    def sample(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Append a snapshot where it is time for one; the first look is only compared with.

        Raises:
            psycopg.Error: the connection is lost, or this user may not read the view.
            OSError: the file cannot be written.
        """
        if clock() < self._next:
            return
        self._next = clock() + self._every_s
        moment, totals = self._look()
        before, self._totals = self._totals, totals
        began, self._moment = self._moment, moment
        if before is not None and totals:
            self._append(began, moment, risen(before, totals))

    def _look(self) -> tuple[str, dict[int, _Counts]]:
        """The time of the server, and what each statement has counted."""
        if not self._query:
            probe = f"select * from {self._schema}.pg_stat_statements(false) limit 0"
            there = {column.name for column in self._connection.execute(probe.encode()).description or ()}
            sums = []
            for name in COUNTS:
                column = next((one for one in _NAMES.get(name, (name,)) if one in there), None)
                sums.append("0" if column is None else f"sum({column})::float8")
            self._query = _TOTALS.format(schema=self._schema, counts=", ".join(sums))
        rows = self._connection.execute(self._query.encode()).fetchall()
        return rows[0][0] if rows else "", {row[1]: tuple(row[2:]) for row in rows}

    def _append(self, began: str, moment: str, steps: dict[int, _Counts]) -> None:
        chosen = busiest(steps) or list(self._written)
        if not chosen:
            return
        self._learn(chosen)
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        is_first = not self._written
        if is_first:
            rows.writerow(("now", "queryid", "query", *COUNTS))
            rows.writerows((began, one, self._names[one], *("0" for _ in COUNTS)) for one in chosen)
        nothing = (0.0,) * len(COUNTS)
        known = self._written
        self._written = {
            one: tuple(a + b for a, b in zip(known.get(one, nothing), steps.get(one, nothing), strict=True))
            for one in chosen
        }
        for one, counts in self._written.items():
            rows.writerow((moment, one, self._names[one], *(f"{count:.15g}" for count in counts)))
        with open_to_append(self._path, BEGINNING) as stream:
            stream.write(text.getvalue().encode())

    def _learn(self, chosen: list[int]) -> None:
        """Ask for the texts of statements that were not asked for before."""
        unknown = [one for one in chosen if one not in self._names]
        if unknown:
            query = _TEXTS.format(schema=self._schema, characters=_READ_CHARACTERS).encode()
            for one, text in self._connection.execute(query, (unknown,)).fetchall():
                self._names[one] = normalised(text or "") if self._texts else shown_name(statement_name(text or ""))
        for one in unknown:
            self._names.setdefault(one, "?")  # it has left the view meanwhile


def snapshots_of(
    connection: psycopg.Connection[Any], folder: Path, *, every_s: float, texts: bool
) -> StatementSnapshots | None:
    """The snapshots of a server; None where the database has no such extension."""
    row = connection.execute(_SCHEMA.encode()).fetchone()
    if row is None:
        return None
    return StatementSnapshots(connection, folder / FILE_NAME, row[0], every_s=every_s, texts=texts)


def risen(before: dict[int, _Counts], after: dict[int, _Counts]) -> dict[int, _Counts]:
    """What each statement counted between two looks; one that fell was reset between them.

    >>> risen({1: (5.0, 2.0)}, {1: (7.0, 2.0), 2: (1.0, 1.0)})
    {1: (2.0, 0.0), 2: (1.0, 1.0)}
    """
    steps = {}
    for one, counts in after.items():
        old = before.get(one, (0.0,) * len(counts))
        is_reset = any(a < b for a, b in zip(counts, old, strict=True))
        steps[one] = counts if is_reset else tuple(a - b for a, b in zip(counts, old, strict=True))
    return steps


def busiest(steps: dict[int, _Counts]) -> list[int]:
    """The statements that did most, by each of time, I/O, WAL and temporary files."""
    chosen: dict[int, None] = {}
    for place in _BY:
        worked = [one for one, counts in steps.items() if counts[place] > 0]
        chosen |= dict.fromkeys(sorted(worked, key=lambda one: -steps[one][place])[:TOP])
    return list(chosen)
