"""Read a recording that somebody pasted: what is around it is taken off, each command's output is read by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.app.read.damage import left_out_count
from leadline.app.read.dress import Piece, Undressed, undressed
from leadline.app.read.stamped import without_stamps
from leadline.core.io.source import Source, is_text
from leadline.core.model.capture import Capture, SourceInfo, Warn
from leadline.core.model.errors import InputError
from leadline.core.model.units import several
from leadline.core.system.leftovers import scratch_folder

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request

PASTE_BYTES_MAX = 64 << 20  # Judgement: an hour of a collector's file; larger ones are written by programs
# Documents and scripts of a folder show examples of recordings; one that is named may be somebody's notes.
_WRITTEN = (".md", ".rst", ".html", ".htm", ".sh", ".py", ".yaml", ".yml", ".ipynb")
Reader = Callable[[Source, "Request"], Capture | None]


def is_written(source: Source) -> bool:
    """Whether a file is a document or a script of a folder: what looks like a recording in it is an example."""
    return not source.named and source.name.casefold().endswith(_WRITTEN)


def may_be_dressed(source: Source) -> tuple[bool, bool]:
    """Whether a file may be a paste, and whether it certainly is one, by its beginning."""
    is_structured = not source.named and source.name.casefold().endswith(".json")
    if is_written(source) or is_structured or not is_text(source.head) or source.path.stat().st_size > PASTE_BYTES_MAX:
        return False, False
    bare = undressed(source.head_text)
    return (
        bare is not None or without_stamps(source.head_text) is not None,
        bare is not None and bare.is_sure,
    )


def read_paste(source: Source, request: Request, read: Reader) -> Capture | None:
    """The recordings in a file in dress as one capture, whose sources say what was taken off; None where there is none.

    Args:
        source: the file.
        request: what is wanted.
        read: reads one output; None where nobody knows it.

    Raises:
        InputError: none of the outputs is sound; the error of the first.
    """
    text = source.text()
    bare = undressed(text) or Undressed((Piece(text),), ())
    captures: list[Capture] = []
    damage: list[InputError] = []
    unknown_count = 0
    with scratch_folder("pasted") as folder:
        for number, piece in enumerate(bare.pieces, start=1):
            name = source.name if len(bare.pieces) == 1 else f"{source.name}, part {number}"
            written = Source(name, folder / str(number), named=False, command=piece.command)
            try:
                capture = _read_piece(written, piece, request, read, source.mtime_ns)
            except InputError as error:
                damage.append(error)
                continue
            if capture is None:
                unknown_count += 1
            else:
                captures.append(capture)
    if not captures:
        if damage:
            raise damage[0]
        return None
    notes = [f"pasted: {', '.join(bare.taken_off)} taken off"] if bare.taken_off else []
    notes += [f"left out: {error.where}: {error.found}" for error in damage]
    if unknown_count:
        notes.append(f"left out: {several(unknown_count, 'output')} that no importer knows")
    return Capture.merged([_noted(captures[0], notes), *captures[1:]])


def _read_piece(source: Source, piece: Piece, request: Request, read: Reader, mtime_ns: int) -> Capture | None:
    """The capture of one output, written where the source says; None where nobody knows it.

    Lines of time between blocks may be the tool's own, or stand in its way.

    Raises:
        InputError: it is damaged.
    """
    stamped = without_stamps(piece.text)
    if stamped is not None:
        whole = _written(source, piece.text, mtime_ns)
        with suppress(InputError):
            capture = read(whole, request)
            if capture is not None and not left_out_count(capture):
                return capture
    notes: list[str] = []
    if stamped is not None:
        notes.append("times are those of the lines before each block")
        if stamped.since_boot_count:
            notes.append(f"left out: {stamped.since_boot_count} reports that are averages since boot")
        if stamped.timezone is not None and request.timezone is None:
            request = replace(request, timezone=stamped.timezone)
    capture = read(_written(source, piece.text if stamped is None else stamped.text, mtime_ns), request)
    if capture is not None and stamped is not None and stamped.unknown_zone:
        capture.sources[:1] = [_of_zone(one, stamped.unknown_zone) for one in capture.sources[:1]]
    return None if capture is None else _noted(capture, notes)


def _of_zone(source: SourceInfo, zone: str) -> SourceInfo:
    """What an importer says of times without a zone, said of times whose zone is not known."""
    message = f"{zone} may mean several time zones: times were taken as UTC; --timezone sets it"
    warnings = (replace(one, message=message) if one.code == "no-zone" else one for one in source.warnings)
    return replace(source, warnings=tuple(warnings))


def _written(source: Source, text: str, mtime_ns: int) -> Source:
    """A file that holds a text, of the source's name and time."""
    source.path.write_text(text, encoding="utf-8")
    os.utime(source.path, ns=(mtime_ns, mtime_ns))
    return replace(source)  # another one: a source remembers how its file begins


def _noted(capture: Capture, notes: list[str]) -> Capture:
    """A capture whose first source says some more."""
    warnings = tuple(Warn("pasted", note) for note in notes)
    capture.sources[:1] = [replace(one, warnings=(*one.warnings, *warnings)) for one in capture.sources[:1]]
    return capture
