"""Facts of entities beside VictoriaMetrics, which has numbers only: a SQLite file in the folder of the watch."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from leadline.core.io.private import private_file, private_folder
from leadline.core.model.errors import ToolError
from leadline.stores._facts import StoredFact, facts_of

FILE = "facts.sqlite"
_SCHEMA = """
create table if not exists fact (
    address text not null, entity text not null, setting text not null, value text not null, source text not null,
    guessed integer not null, changed_ns integer not null, primary key (address, entity, setting)
) without rowid
"""


class FactsFile:
    """The facts that belong to the samples of one address.

    Raises:
        ToolError: the file cannot be used.
    """

    def __init__(self, folder: Path, address: str, *, read_only: bool) -> None:
        self._path, self._address = folder / FILE, address
        self._lock = threading.Lock()
        self._base: sqlite3.Connection | None = None
        if read_only and not self._path.is_file():
            return
        with self._reported():
            if not read_only:
                private_folder(folder)
                private_file(self._path)
            self._base = sqlite3.connect(self._path, timeout=30.0, isolation_level=None, check_same_thread=False)
            if read_only:
                self._base.execute("pragma query_only = on")
            else:
                self._base.execute("pragma journal_mode = wal")
                self._base.execute(_SCHEMA)

    def close(self) -> None:
        """Give up the file."""
        with self._lock:
            if self._base is not None:
                self._base.close()
                self._base = None

    def all(self) -> list[StoredFact]:
        """The last value of each setting; none where there is no file."""
        with self._lock, self._reported():
            if self._base is None:
                return []
            query = "select entity, setting, value, source, guessed, changed_ns from fact where address = ?"
            rows = self._base.execute(query, (self._address,)).fetchall()
        return facts_of(rows)

    def keep(self, facts: Sequence[StoredFact]) -> None:
        """Keep facts; they are on the disk when this returns."""
        with self._lock, self._reported():
            if self._base is None or not facts:
                return
            rows = [(self._address, entity, name, json.dumps(value), *rest) for entity, name, value, *rest in facts]
            self._base.execute("begin immediate")
            try:
                self._base.executemany("insert or replace into fact values (?, ?, ?, ?, ?, ?, ?)", rows)
                self._base.execute("commit")
            except BaseException:
                self._base.execute("rollback")
                raise

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise ToolError(
                str(self._path),
                found=f"cannot be used ({getattr(error, 'strerror', None) or error})",
                expected="a file that takes and gives back facts of entities",
                advice="Free space there, or check its rights; samples are in VictoriaMetrics and unchanged.",
            ) from error
