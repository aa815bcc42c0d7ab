"""Use case: files, folders and archives become one capture on one time line."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import cast

from leadline.core.capture import Capture
from leadline.core.discovery import load_units
from leadline.core.errors import InputError, LeadlineError
from leadline.core.importer import Importer, Request
from leadline.core.resolve import resolve
from leadline.core.source import Source, open_sources

SURE_ENOUGH = 20  # below this an importer's guess is not worth an error message about the file's contents

Progress = Callable[[int, int, str], None]  # done, total, name of the file at hand


@dataclass(slots=True)
class Imported:
    """A capture, and what is not in it: files of folders or archives that nobody recognised or that are damaged.

    A file the user named himself is never left out: it is read, or its error ends the import.
    """

    capture: Capture
    unrecognised: list[str] = field(default_factory=list)
    left_out: list[LeadlineError] = field(default_factory=list)


def recognise(source: Source, importers: dict[str, ModuleType]) -> tuple[str, Importer] | None:
    """The importer that is surest about a file, or None when none is sure enough."""
    scores = {name: cast("Importer", module).sniff(source) for name, module in importers.items()}
    best = max(scores, key=lambda name: scores[name], default=None)
    if best is None or scores[best] < SURE_ENOUGH:
        return None
    return best, cast("Importer", importers[best])


def import_paths(
    paths: Sequence[Path],
    request: Request | None = None,
    *,
    clock_offsets: dict[str, float] | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Read recordings.

    Args:
        paths: files, folders, archives; also captures saved by Leadline.
        request: what is wanted; everything by default.
        clock_offsets: seconds to add to the times of a source, by its name or file name.
        progress: called before each file and once at the end.

    Raises:
        InputError: a path is missing or damaged, a named file is no recording, or nothing was recognised at all.
        LimitError: an archive unpacks to more than the documented limits.
    """
    importers = load_units("importer")
    offsets = clock_offsets or {}
    captures: list[Capture] = []
    unrecognised: list[str] = []
    left_out: list[LeadlineError] = []
    with open_sources(list(paths)) as sources, _no_gc():
        for done, source in enumerate(sources):
            if progress is not None:
                progress(done, len(sources), source.name)
            known = recognise(source, importers)
            if known is None:
                if source.named:
                    raise not_recognised(source, importers)
                unrecognised.append(source.name)
                continue
            try:
                capture = known[1].read(source, request or Request())
            except LeadlineError as error:
                if source.named:
                    raise
                left_out.append(error)
                continue
            captures.append(capture.shifted(_offset(source.name, offsets)) if offsets else capture)
        if progress is not None:
            progress(len(sources), len(sources), "")
    if not captures and left_out:
        raise left_out[0]
    if not captures:
        raise InputError(
            ", ".join(str(path) for path in paths),
            found="no file that is a known recording",
            expected="recordings of the tools `leadline explain importers` lists",
            advice="Name the files themselves to see why each is not recognised.",
        )
    return Imported(resolve(Capture.merged(captures)), unrecognised, left_out)


def not_recognised(source: Source, importers: dict[str, ModuleType]) -> InputError:
    """The error for a file nobody can read, saying what it looks like."""
    return InputError(
        source.name,
        found=source.beginning(),
        expected=f"a recording of one of {len(importers)} kinds",
        advice="`leadline explain importers` lists them and the commands that record them.",
    )


def _offset(name: str, offsets: dict[str, float]) -> float:
    return offsets.get(name, offsets.get(Path(name).name, 0.0))


@contextmanager
def _no_gc() -> Iterator[None]:
    """Importers build many long-lived objects; collecting while they do costs time and frees nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
