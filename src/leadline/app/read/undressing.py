"""Read a recording that somebody pasted: what is around it is taken off, and each command's output is read by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.app.read.dress import Piece, Undressed, undressed
from leadline.app.read.stamped import without_stamps
from leadline.core.io.source import Source, is_text
from leadline.core.model.capture import Capture, Warn
from leadline.core.model.errors import LeadlineError
from leadline.core.system.leftovers import scratch_folder

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request

PASTE_BYTES_MAX = 64 << 20  # Judgement: what people paste; larger files are written by programs
Reader = Callable[[Source, "Request"], Capture | None]


def is_dressed(source: Source) -> bool:
    """Whether a file is a paste beyond doubt, by its beginning."""
    if not is_text(source.head) or source.path.stat().st_size > PASTE_BYTES_MAX:
        return False
    bare = undressed(source.head_text)
    return (bare is not None and bare.is_certain) or without_stamps(source.head_text) is not None


def read_paste(source: Source, request: Request, read: Reader) -> Capture | None:
    """The recordings in a paste as one capture; None where there is none.

    Args:
        source: the file.
        request: what is wanted.
        read: reads one output; None where nobody knows it.
    """
    if not is_text(source.head) or source.path.stat().st_size > PASTE_BYTES_MAX:
        return None
    text = source.text()
    bare = undressed(text)
    if bare is None:
        bare = Undressed((Piece(text),), (), is_certain=False)
    captures: list[Capture] = []
    with scratch_folder("pasted") as folder:
        for number, piece in enumerate(bare.pieces, start=1):
            name = source.name if len(bare.pieces) == 1 else f"{source.name}, part {number}"
            capture = _read_piece(Source(name, folder / str(number), named=False), piece, request, read, source.mtime_ns)
            if capture is not None:
                captures.append(_noted(capture, bare.taken_off))
    return Capture.merged(captures) if captures else None


def _read_piece(source: Source, piece: Piece, request: Request, read: Reader, mtime_ns: int) -> Capture | None:
    """The capture of one output; None where nobody knows it or it is damaged."""
    import os  # noqa: PLC0415

    stamped = without_stamps(piece.text)
    notes: list[str] = []
    text = piece.text
    if stamped is not None:
        text = stamped.text
        notes.append("times are those of the lines before each block")
        if stamped.since_boot_count:
            notes.append(f"left out: {stamped.since_boot_count} reports that are averages since boot")
        if stamped.timezone is not None and request.timezone is None:
            request = replace(request, timezone=stamped.timezone)
    source.path.write_text(text, encoding="utf-8")
    os.utime(source.path, ns=(mtime_ns, mtime_ns))
    try:
        capture = read(source, request)
    except LeadlineError:
        return None
    return None if capture is None else _noted(capture, (), notes)


def _noted(capture: Capture, taken_off: tuple[str, ...], notes: list[str] | None = None) -> Capture:
    """A capture whose sources say what was taken off."""
    messages = [f"pasted: {', '.join(taken_off)} taken off"] if taken_off else []
    warnings = tuple(Warn("pasted", message) for message in (*messages, *(notes or ())))
    capture.sources[:] = [replace(one, warnings=(*one.warnings, *warnings)) for one in capture.sources]
    return capture
