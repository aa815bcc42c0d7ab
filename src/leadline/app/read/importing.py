"""Use case: files, folders and archives become one capture on one time line."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from leadline.app.read.damage import left_out_count, read_sound
from leadline.app.read.joining import joined
from leadline.app.read.opening import open_sources, unreadable
from leadline.app.read.refusing import Nearby, refusal
from leadline.app.read.resolve import resolve
from leadline.app.read.undressing import Reader, is_written, may_be_dressed, read_paste
from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.importer import Importer, Request
from leadline.core.contracts.unit_index import unit_index
from leadline.core.io.source import Source, is_text, shown_name
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError, LeadlineError
from leadline.core.system.leftovers import scratch_folder

# Names of files in the commands that record; shorter ones are names of anything.
_ENDINGS = r"(?:csv|txt|log|json|bin|cpf|xlsx|influx|parquet)"
_RECORDED = re.compile(rf"\b(\w[\w-]{{2,40}})\.{_ENDINGS}\b")
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


def importers_for(source: Source) -> dict[str, ModuleType]:
    """The importers that may be able to read a file: one of their marks is in it, or they have none."""
    return {name: load_unit("importer", name) for name in importer_names(source)}


def importer_names(source: Source) -> list[str]:
    """The names of the importers that may be able to read a file."""
    return list(_names_by_marks(source.head_uncut))


@lru_cache(maxsize=4)  # of one file it is asked several times
def _names_by_marks(text: str) -> tuple[str, ...]:
    head = text.lower()
    marks_by_name = {name: known["marks"] for name, known in _known().items()}
    return tuple(name for name, marks in marks_by_name.items() if not marks or any(mark in head for mark in marks))


@cache
def _known() -> dict[str, dict[str, Any]]:
    """What is known of each importer without importing it: its marks, tool, command that records, names of columns."""

    def describe(module: ModuleType) -> dict[str, Any]:
        meta = cast("Importer", module).META
        return {
            "marks": list(meta.marks),
            "tool": meta.tool,
            "record": meta.record,
            "names": list(meta.fields),
            "joins": meta.joins,
        }

    return unit_index("importer", describe)


def _joins(source: Source) -> str:
    """The importer that reads several such files as one recording; empty where none does."""
    known = _known()
    candidates = {name for name in importer_names(source) if known[name]["joins"]}
    if not candidates:
        return ""
    best = recognise(source, importers_for(source))
    return best[0] if best is not None and best[0] in candidates else ""


def _nearby() -> dict[str, Nearby]:
    return {name: Nearby(one["tool"], one["record"], frozenset(one["names"])) for name, one in _known().items()}


def empty_recording(source: Source) -> InputError | None:
    """The error for a file without contents that has the name of a recording; None for every other file."""
    if source.head.strip():
        return None
    name = Path(source.name.rpartition("!")[2]).name.casefold()
    for known in _known().values():
        stems = "|".join(re.escape(stem) for stem in _RECORDED.findall(known["record"]))
        if stems and re.fullmatch(rf"(?:{stems})(?:[-_].*)?\.{_ENDINGS}(?:\..*)?", name):
            return InputError(
                source.name,
                found=source.beginning(),
                expected=f"a recording of {known['tool']}",
                advice=f"Record it again: {known['record']}",
            )
    return None


def recognise(source: Source, importers: dict[str, ModuleType]) -> tuple[str, Importer] | None:
    """The importer that is surest about a file, or None when none is sure enough."""
    scores = {name: cast("Importer", module).sniff(source) for name, module in importers.items()}
    best = max(scores, key=lambda name: scores[name], default=None)
    if best is None or scores[best] < SURE_ENOUGH:
        return None
    return best, cast("Importer", importers[best])


def is_recording(path: Path) -> bool:
    """Whether a file would be read as a recording when its folder is named."""
    source = Source(str(path), path, named=False)
    return recognise(source, importers_for(source)) is not None


def import_paths(
    paths: Sequence[Path],
    request: Request | None = None,
    *,
    clock_offsets: dict[str, float] | None = None,
    progress: Progress | None = None,
    else_all: bool = False,
) -> Imported:
    """Read recordings.

    Args:
        paths: files, folders, archives; also captures saved by Leadline.
        request: what is wanted; everything by default.
        clock_offsets: seconds to add to the times of a source, by its name or file name.
        progress: called before each file and once at the end.
        else_all: read every series where none of the wanted metrics is in any file, so that it can be said what is.

    Raises:
        InputError: a path is missing or damaged, a named file is no recording, or nothing was recognised at all.
        LimitError: an archive unpacks to more than the documented limits.
    """
    offsets = {shown_name(name): seconds for name, seconds in (clock_offsets or {}).items()}
    asked = request or Request()
    with open_sources(paths) as opened, scratch_folder("joined") as folder, no_gc():
        sources = joined(opened.sources, _joins, folder)
        captures, unrecognised, damaged = _read_all(sources, asked, offsets, progress)
        if else_all and asked.metrics is not None and not any(c.groups or c.results for c in captures):
            everything = replace(asked, metrics=None)
            captures, unrecognised, damaged = _read_all(sources, everything, offsets, progress)
        captures, copies = _without_copies(captures)
        left_out = [*opened.left_out, *damaged, *copies]
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


def _without_copies(captures: list[Capture]) -> tuple[list[Capture], list[LeadlineError]]:
    """Captures of which none is there twice, as a folder and its archive are; and what is said of those left out."""
    kept: list[Capture] = []
    copies: list[LeadlineError] = []
    known: dict[tuple[object, ...], list[Capture]] = {}
    for capture in captures:
        same = next((other for other in known.get(_outline(capture), ()) if _holds_the_same(capture, other)), None)
        if same is None or not (capture.groups or capture.results):
            known.setdefault(_outline(capture), []).append(capture)
            kept.append(capture)
        else:
            original = f"the same recording as {same.sources[0].name}"
            where = capture.sources[0].name
            copies.append(InputError(where, found=original, expected="each recording once", advice="It counts once."))
    return kept, copies


def _outline(capture: Capture) -> tuple[object, ...]:
    """What two copies of one recording have in common, cheap to compare."""
    sources = tuple((one.importer, one.start_ns, one.end_ns, one.series_count) for one in capture.sources)
    first = next((group for group in capture.groups if group.entities), None)
    samples = None if first is None else (first.metric, tuple(first.entities), first.one(0).tobytes())
    return (sources, len(capture.groups), len(capture.results), samples)


def _holds_the_same(one: Capture, other: Capture) -> bool:
    """Whether two captures hold the same samples of the same entities."""
    pairs = zip(one.groups, other.groups, strict=True)
    groups = all(
        a.metric == b.metric
        and list(a.entities) == list(b.entities)
        and np.array_equal(a.times_ns, b.times_ns)
        and np.array_equal(a.values, b.values, equal_nan=True)
        for a, b in pairs
    )
    return groups and all(
        (a.tool, a.job, a.start_ns, a.duration_s) == (b.tool, b.job, b.start_ns, b.duration_s)
        and [operation.latency_ms for operation in a.operations] == [operation.latency_ms for operation in b.operations]
        for a, b in zip(one.results, other.results, strict=True)
    )


def _read_all(
    sources: Sequence[Source], request: Request, offsets: dict[str, float], progress: Progress | None
) -> tuple[list[Capture], list[str], list[LeadlineError]]:
    """Captures of files, names of those that nobody recognised, and errors of those that are damaged.

    Raises:
        LeadlineError: a file the user named cannot be read.
    """
    captures: list[Capture] = []
    unrecognised: list[str] = []
    damaged: list[LeadlineError] = []
    for done, source in enumerate(sources):
        if progress is not None:
            progress(done, len(sources), source.name)
        try:
            capture = _read(source, request)
        except LeadlineError as error:
            if source.named:
                raise
            damaged.append(error)
            continue
        if capture is None:
            unrecognised.append(source.name)
            continue
        captures.append(capture.shifted(_offset(source.name, offsets)) if offsets else capture)
    if progress is not None:
        progress(len(sources), len(sources), "")
    return captures, unrecognised, damaged


def _read(source: Source, request: Request) -> Capture | None:
    """The capture of a file; None when it is of a folder or archive and no importer knows it.

    Raises:
        LeadlineError: it is damaged, was named and is not known, or does not fit into memory.
    """
    try:
        capture = _read_text(source, request)
        if capture is not None:
            return capture
        if request.map_file is not None and is_text(source.head):
            from leadline.formats.mapped.reading import read_mapped  # noqa: PLC0415 - pydantic, for those who need it

            return read_mapped(source, request, request.map_file)
    except (OSError, MemoryError, RecursionError) as error:
        raise unreadable(source.name, error) from error
    except LeadlineError:
        raise
    except Exception as error:
        if source.named:
            raise
        raise InputError(
            source.name,
            found=f"a fault in Leadline's own reader ({type(error).__name__})",
            expected="a capture or a clear error",
            advice="Name the file itself to get a report for the developers.",
        ) from error
    empty = empty_recording(source)
    if empty is not None:
        raise empty
    if source.named:
        raise refusal(source, _nearby())
    return None


def _read_text(source: Source, request: Request) -> Capture | None:
    """The capture of a file, as it is or without what somebody put around it; None where no importer knows it.

    Raises:
        LeadlineError: it is damaged, whichever way it is read.
    """
    is_dressed, is_surely = may_be_dressed(source)
    undressed = partial(read_paste, read=_sound)
    damage: InputError | None = None
    for way in (undressed, _recognised) if is_surely else (_recognised,):
        try:
            capture = way(source, request)
        except InputError as error:
            damage = error
            continue
        if capture is not None:
            return capture
    ways = [] if damage is None or is_written(source) else [partial(read_sound, read=_recognised, refusal=damage)]
    if is_dressed and not is_surely:
        ways.append(undressed)
    return _with_least_left_out(source, request, ways, damage)


def _with_least_left_out(
    source: Source, request: Request, ways: Sequence[Reader], damage: InputError | None
) -> Capture | None:
    """What is sound in a file, read as it is or undressed, whichever leaves out less; None where nobody knows it.

    Raises:
        LeadlineError: nothing is sound; the error of the first way.
    """
    captures: list[Capture] = []
    for way in ways:
        try:
            capture = way(source, request)
        except InputError as error:
            damage = damage or error
            continue
        if capture is not None:
            captures.append(capture)
    if captures:
        return min(captures, key=left_out_count)
    if damage is not None:
        raise damage
    return None


def _sound(source: Source, request: Request) -> Capture | None:
    """The capture of what is sound in one output; None where no importer knows it.

    Raises:
        LeadlineError: nothing is.
    """
    try:
        return _recognised(source, request)
    except InputError as error:
        return read_sound(source, request, _recognised, error)


def _recognised(source: Source, request: Request) -> Capture | None:
    """The capture of a file; None where no importer knows it.

    Raises:
        LeadlineError: it is damaged.
    """
    known = recognise(source, importers_for(source))
    return None if known is None else capture_of(known[1], source, request)


def capture_of(importer: Importer, source: Source, request: Request) -> Capture:
    """What an importer reads of a file. Sums of numbers that no tool prints, as in a damaged file, may be infinite.

    Raises:
        LeadlineError: the file is damaged.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return importer.read(source, request)


def _offset(name: str, offsets: dict[str, float]) -> float:
    return offsets.get(name, offsets.get(Path(name).name, 0.0))


@contextmanager
def no_gc() -> Iterator[None]:
    """Importers build many long-lived objects; collecting while they do costs time and frees nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
