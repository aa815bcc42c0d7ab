"""Recordings that come through a pipe: standard input, a FIFO, ``<(command)``.

What arrives is written to a file first, because importers look at a recording more than once. A pipe into which nobody
writes ends with an error instead of waiting for ever.
"""

from __future__ import annotations

import atexit
import os
import select
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from leadline.core.model.errors import InputError, LimitError
from leadline.core.system.leftovers import scratch_folder
from leadline.core.system.portable import NO_WAIT, PLAIN_BYTES

STANDARD_INPUT = Path("-")
WRITER_PATIENCE_S = 10.0  # Judgement: whoever is to write has opened the pipe by then
FIRST_PATIENCE_S = 60.0  # Judgement: a command that asks for a password, or looks for its data, needs so long
NEXT_PATIENCE_S = 900.0  # Judgement: three times the longest interval of the recorders we know
UNPACKED_BYTES_MAX = 64 * 1024**3  # Judgement: ten times the largest esxtop recording we know of
_PIECE_BYTES = 1 << 20
_KEPT = ExitStack()  # folders that last until Leadline ends
atexit.register(_KEPT.close)


def is_pipe(path: Path) -> bool:
    """Whether a path is standard input, or a FIFO (also one behind ``/dev/fd``).

    Raises:
        OSError: it cannot be looked at.
        ValueError: it is no possible path.
    """
    return path == STANDARD_INPUT or stat.S_ISFIFO(path.stat().st_mode)


def pieces_of(path: Path, name: str) -> Iterator[bytes]:
    """What comes through a pipe, piece by piece, until its writer closes it.

    Raises:
        InputError: standard input is a terminal, nobody writes, or the writer falls silent.
        OSError: the pipe cannot be read.
    """
    # Standard input may be shared with other programs, so it is left in its own mode.
    handle = os.dup(0) if path == STANDARD_INPUT else os.open(path, os.O_RDONLY | NO_WAIT | PLAIN_BYTES)
    try:
        if os.isatty(handle):
            raise _silent(name, "a terminal", "a recording that is piped in")
        yield from _pieces(handle, name)
    finally:
        os.close(handle)


def write_pieces(path: Path, pieces: Iterable[bytes], name: str, admit: Callable[[int], None]) -> None:
    """Write pieces to a file of our own; ``admit`` is asked before each, with its length.

    Raises:
        LimitError: there is no room for them, or ``admit`` says so.
    """
    with path.open("wb", buffering=0) as target:
        for piece in pieces:
            admit(len(piece))
            try:
                target.write(piece)
            except OSError as error:
                raise LimitError(
                    name,
                    found=f"does not fit into {path.parent.parent} ({error.strerror})",
                    expected="room for what is unpacked",
                    advice="Set TMPDIR to a folder with more room.",
                ) from error


def as_file(path: Path) -> Path:
    """The path itself; of a pipe, the file what came through it was written to, which lasts until Leadline ends.

    Raises:
        InputError: it is a pipe that nobody writes to.
        LimitError: more comes through it than the documented limit, or there is no room for it.
    """
    try:
        if not is_pipe(path):
            return path
    except (OSError, ValueError):
        return path  # whoever reads it says what is wrong with it
    folder = _KEPT.enter_context(scratch_folder("pipe"))
    name = "standard input" if path == STANDARD_INPUT else str(path)
    file = folder / name.replace("/", "-").replace(" ", "-").strip("-")
    left = UNPACKED_BYTES_MAX

    def admit(byte_count: int) -> None:
        nonlocal left
        left -= byte_count
        if left < 0:
            raise LimitError(
                name,
                found=f"a pipe through which more than {UNPACKED_BYTES_MAX >> 30} GiB came",
                expected="a recording with an end",
                advice="Save the recording as a file and name that.",
            )

    write_pieces(file, pieces_of(path, name), name, admit)
    return file


def _pieces(handle: int, name: str) -> Iterator[bytes]:
    patience_s = FIRST_PATIENCE_S
    while piece := _next_piece(handle, name, patience_s):
        yield piece
        patience_s = NEXT_PATIENCE_S


def _next_piece(handle: int, name: str, patience_s: float) -> bytes:
    if _readable(handle, min(patience_s, WRITER_PATIENCE_S)):
        return os.read(handle, _PIECE_BYTES)
    if not os.get_blocking(handle):
        with suppress(BlockingIOError):  # as there is a writer, who is silent
            piece = os.read(handle, _PIECE_BYTES)
            if not piece:
                raise _silent(name, f"a pipe that nobody has written to for {WRITER_PATIENCE_S:g} s", "a recording")
            return piece
    if _readable(handle, patience_s - WRITER_PATIENCE_S):
        return os.read(handle, _PIECE_BYTES)
    raise _silent(name, f"a pipe through which nothing has come for {patience_s:g} s", "a recording")


def _readable(handle: int, patience_s: float) -> bool:
    """Whether there is something to read, or the end, within the time."""
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(max(patience_s, 0.0) * 1000))


def _silent(name: str, problem: str, expected: str) -> InputError:
    return InputError(
        name,
        found=problem,
        expected=expected,
        advice="Start what writes the recording first, or save it as a file and name that.",
    )
