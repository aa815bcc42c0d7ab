"""Runs on disk: a row of SQLite each, and a folder for the tool's own files.

A run is written before its load starts and again after each round, so that what was measured survives whatever ends
it. A run whose process is gone without having ended is *interrupted*.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from leadline.core.io.private import private_file, private_folder, tighten_below
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import Round, Run
from leadline.core.statistics.steady import SteadyState
from leadline.core.system.leftovers import user_folder
from leadline.core.system.opened import printable

VERSION = 1
_SCHEMA = """
create table if not exists run (
    id text primary key, name text not null, state text not null, tool text not null, target text not null,
    started text not null, process integer, document text not null
) without rowid;
create table if not exists baseline (name text not null, run text not null, primary key (name, run)) without rowid;
"""


class RunStore:
    """The runs of one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or user_folder()).absolute()  # tools run in folders of their own

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            # SQLite gives its other files the same mode.
            kept = private_file(private_folder(self.folder) / "runs.sqlite")
            if (self.folder / "runs").is_dir():
                private_folder(self.folder / "runs")
            with closing(sqlite3.connect(kept, timeout=30.0)) as base:
                base.execute("pragma journal_mode = wal")
                base.execute("pragma synchronous = full")
                base.executescript(_SCHEMA)
                _take_marks(base)
                with base:
                    yield base
        except (OSError, sqlite3.OperationalError) as error:
            raise ToolError(
                str(self.folder),
                found=f"cannot be used ({error})",
                expected="a folder runs can be kept in",
                advice="Set LEADLINE_HOME to another folder.",
            ) from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                str(self.folder / "runs.sqlite"),
                found=f"damaged ({error})",
                expected="runs kept by Leadline",
                advice="Restore it from a backup, or set LEADLINE_HOME to another folder.",
            ) from error

    def files_of(self, run: str) -> Path:
        """The folder of a run's own files, made where it is missing."""
        private_folder(self.folder)
        private_folder(self.folder / "runs")
        return private_folder(self.folder / "runs" / run)

    def save(self, run: Run, *, running: bool = False) -> None:
        """Write a run as it is now; ``running`` marks it as worked on by this process."""
        process = os.getpid() if running else None
        row = (run.id, run.name, run.state, run.tool, printable(run.target), run.started, process)
        with self._open() as base:
            base.execute("insert or replace into run values (?, ?, ?, ?, ?, ?, ?, ?)", (*row, json.dumps(_plain(run))))
        if not running:
            tighten_below(self.folder / "runs" / run.id)

    def list(self) -> list[Run]:
        """Every run, oldest first, without its rounds."""
        with self._open() as base:
            rows = base.execute("select document, process from run order by started, id").fetchall()
        return [replace(_seen(_run(json.loads(text)), process), rounds=()) for text, process in rows]

    def get(self, name: str) -> Run:
        """The run with that id, its unique beginning, the name of a baseline of one run, or ``last``.

        Raises:
            UsageError: there is none, or several are meant.
        """
        with self._open() as base:
            marked = base.execute("select run from baseline where name = ?", (name,)).fetchall()
            if len(marked) > 1:
                raise UsageError(
                    f"run {name}",
                    found=f"a baseline of {len(marked)} runs",
                    expected="one run",
                    advice=f"One of {', '.join(run for (run,) in marked)}.",
                )
            wanted = marked[0][0] if marked else name
            if name == "last":
                rows = base.execute(
                    "select document, process from run order by started desc, id desc limit 1"
                ).fetchall()
            else:
                pattern = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
                same = base.execute("select document, process from run where id = ?", (wanted,)).fetchall()
                query = "select document, process from run where id like ? escape '\\'"
                rows = same or base.execute(query, (pattern,)).fetchall()
        if len(rows) != 1:
            raise UsageError(
                f"run {name}",
                found="no such run" if not rows else f"{len(rows)} runs begin so",
                expected="a run's id, or enough of it",
                advice="`leadline runs list` shows them.",
            )
        return _seen(_run(json.loads(rows[0][0])), rows[0][1])

    def beginning(self, start: str) -> tuple[Run, ...]:
        """Every run whose id begins so, with its rounds, oldest first."""
        with self._open() as base:
            query = "select document, process from run where substr(id, 1, ?) = ? order by started, id"
            rows = base.execute(query, (len(start), start)).fetchall()
        return tuple(_seen(_run(json.loads(text)), process) for text, process in rows)

    def alike(self, run: Run) -> tuple[Run, ...]:
        """Whole runs of the same tool on the same target, oldest first, with their rounds."""
        query = "select document from run where tool = ? and target = ? and state = 'done' order by started, id"
        with self._open() as base:
            rows = base.execute(query, (run.tool, printable(run.target))).fetchall()
        return tuple(_run(json.loads(text)) for (text,) in rows)

    def mark(self, name: str, runs: Sequence[str]) -> None:
        """Keep runs as the baseline of that name, instead of what it was; none forgets it."""
        with self._open() as base:
            base.execute("delete from baseline where name = ?", (name,))
            base.executemany("insert into baseline values (?, ?)", [(name, run) for run in runs])

    def marks(self) -> dict[str, tuple[str, ...]]:
        """Return the baselines: name -> ids of the runs, oldest first."""
        baselines: dict[str, tuple[str, ...]] = {}
        with self._open() as base:
            for name, run in base.execute("select name, run from baseline order by name, run"):
                baselines[name] = (*baselines.get(name, ()), run)
        return baselines

    def remove(self, run: str) -> None:
        """Forget a run and its files."""
        with self._open() as base:
            base.execute("delete from run where id = ?", (run,))
            base.execute("delete from baseline where run = ?", (run,))
        shutil.rmtree(self.folder / "runs" / run, ignore_errors=True)


def _take_marks(base: sqlite3.Connection) -> None:
    """Baselines of one run, as they were kept in a table of their own before they could be of several."""
    if base.execute("select 1 from sqlite_master where type = 'table' and name = 'mark'").fetchone():
        with base:
            base.execute("insert or ignore into baseline select name, run from mark")
            base.execute("drop table mark")


def _seen(run: Run, process: int | None) -> Run:
    if run.state == "running" and (process is None or not Path(f"/proc/{process}").exists()):
        return replace(run, state="interrupted")
    return run


def document(run: Run) -> dict[str, Any]:
    """A run as plain data; histograms are lists of bounds and counts."""
    return _plain(run)


def _plain(run: Run) -> dict[str, Any]:
    fields = {name: getattr(run, name) for name in Run.__dataclass_fields__}
    return {
        "version": VERSION,
        **fields,
        "warm_up": None if run.warm_up is None else asdict(run.warm_up),
        "rounds": [
            {
                "label": part.label,
                "results": [_plain_result(result) for result in part.results],
                "ticks": [[t.elapsed_s, t.per_s, t.bytes_per_s, t.p99_ms] for t in part.ticks],
            }
            for part in run.rounds
        ],
    }


def _plain_result(result: Result) -> dict[str, Any]:
    plain = {name: getattr(result, name) for name in Result.__dataclass_fields__ if name != "operations"}
    return {**plain, "operations": [_plain_operation(operation) for operation in result.operations]}


def _plain_operation(operation: Operation) -> dict[str, Any]:
    plain = {name: getattr(operation, name) for name in Operation.__dataclass_fields__ if name != "histogram"}
    histogram = operation.histogram
    if histogram is not None:
        plain["histogram"] = {
            "lower": histogram.lower.tolist(),
            "upper": histogram.upper.tolist(),
            "counts": histogram.counts.tolist(),
            "unit": histogram.unit,
        }
    return plain


def _run(plain: dict[str, Any]) -> Run:
    fields = {name: plain[name] for name in Run.__dataclass_fields__}
    fields["warm_up"] = None if plain["warm_up"] is None else SteadyState(**plain["warm_up"])
    fields["commands"] = tuple(tuple(words) for words in plain["commands"])
    fields["notes"] = tuple(plain["notes"])
    fields["rounds"] = tuple(
        Round(
            part["label"],
            tuple(_result(result) for result in part["results"]),
            tuple(Tick(*values) for values in part["ticks"]),
        )
        for part in plain["rounds"]
    )
    return Run(**fields)


def _result(plain: dict[str, Any]) -> Result:
    return Result(**{**plain, "operations": tuple(_operation(operation) for operation in plain["operations"])})


def _operation(plain: dict[str, Any]) -> Operation:
    columns = plain.get("histogram")
    histogram = None
    if columns is not None:
        lower, upper = (np.asarray(columns[key], dtype=np.float64) for key in ("lower", "upper"))
        histogram = Histogram(lower, upper, np.asarray(columns["counts"], dtype=np.int64), columns["unit"])
    return Operation(**{**plain, "histogram": histogram})
