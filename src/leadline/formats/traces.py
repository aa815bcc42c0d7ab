"""Files of I/O traces: which belong together, and what one trace holds."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline._core import (
    CoreError,
    Trace,
    TraceProfile,
    TraceRequests,
    trace_characterise,
    trace_format,
    trace_requests,
)
from leadline.core.io.pipes import as_file
from leadline.core.model.errors import InputError, UsageError

SAMPLE_KEYS = 16384  # Judgement: pages held per disk; working set within 1 %, less than 2 MiB of memory
REQUESTS_MAX = 50_000_000  # Judgement: some 2 GB of memory
# blktrace writes a file per CPU, fio a log per job; the number stands at the end.
_PART = {
    "blktrace": re.compile(r"(?P<stem>.*\.blktrace)\.\d+(\.gz)?$"),
    "fio-lat-log": re.compile(r"(?P<stem>.*_c?lat)\.\d+\.log$"),
}

Step = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """The files of one trace: one, or those of all CPUs or jobs."""

    name: str
    format: str
    paths: tuple[Path, ...]

    @property
    def size_bytes(self) -> int:
        """What is to be read."""
        return sum(path.stat().st_size for path in self.paths)

    @property
    def native(self) -> list[tuple[str | os.PathLike[str], str]]:
        """As the reader takes them."""
        return [(path, str(path)) for path in self.paths]


def as_input_error(error: CoreError) -> InputError:
    """The reader's error with its four parts."""
    return InputError(error.where, found=error.found, expected=error.expected, advice=error.advice)


def find_traces(paths: Sequence[Path]) -> tuple[list[TraceFiles], list[str]]:
    """The traces among files and folders, and what in the folders is none.

    Raises:
        InputError: a file that was named is no trace, or there is no trace at all.
    """
    groups: dict[tuple[str, str], list[Path]] = {}
    passed: list[str] = []
    for path in map(as_file, paths):
        named = not path.is_dir()
        for file in [path] if named else sorted(entry for entry in path.iterdir() if entry.is_file()):
            try:
                known = trace_format(file, str(file))
            except CoreError as error:
                if named:
                    raise as_input_error(error) from error
                passed.append(str(file))
                continue
            part = _PART[known].fullmatch(str(file)) if known in _PART else None
            groups.setdefault((known, part["stem"] if part else str(file)), []).append(file)
    if not groups:
        raise InputError(
            str(paths[0]) if paths else "no path",
            found="no I/O trace",
            expected="vscsiStats, blktrace, blkparse, fio iolog, CSV of MSR, Alibaba or Tencent",
            advice="docs/guides/traces.md shows how to record each.",
        )
    return [TraceFiles(stem, known, tuple(files)) for (known, stem), files in groups.items()], passed


def read_trace(files: TraceFiles, *, classes_of: int | None = None, step: Step | None = None) -> Trace:
    """Characterise a trace per disk, or one disk's classes of requests.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return trace_characterise(files.native, SAMPLE_KEYS, classes_of, bytes_step(files, step))
    except CoreError as error:
        raise as_input_error(error) from error


def read_requests(files: TraceFiles, disk: str | None = None, step: Step | None = None) -> TraceRequests:
    """Every request of the disk of that name, or of the only one.

    Raises:
        InputError: it cannot be read, has no such disk, or too many requests.
    """
    try:
        return trace_requests(files.native, disk, REQUESTS_MAX, bytes_step(files, step))
    except CoreError as error:
        raise as_input_error(error) from error


def bytes_step(files: TraceFiles, step: Step | None) -> Callable[[int], None] | None:
    """Progress in bytes as progress of a whole."""
    if step is None:
        return None
    total = files.size_bytes
    return lambda done: step(done, total, files.name)


def choose_disk(trace: Trace, disk: str | None) -> tuple[int, TraceProfile]:
    """The disk of that name, or the only one, with its index.

    Raises:
        UsageError: there is none of that name, or none was named and there are several.
        InputError: the trace has no request.
    """
    names = [profile.name for profile in trace.profiles]
    if not names:
        raise InputError(
            "the trace", found="no read or write", expected="at least one", advice="Record while there is load."
        )
    if disk is None and len(names) == 1:
        return 0, trace.profiles[0]
    if disk not in names:
        raise UsageError(
            "--disk",
            found=f"{'no disk was named' if disk is None else f'no disk {disk}'}",
            expected=f"one of {', '.join(names[:8])}",
            advice="`leadline trace characterise` lists the disks of a trace.",
        )
    index = names.index(disk)
    return index, trace.profiles[index]
