"""stdout that tells its own failures from those of files: a full disk behind it, or a reader that has left."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING

from leadline.core.model.errors import ToolError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDOUT = 1


class Stdout(io.FileIO):
    """The standard output; remembers why it could not be written."""

    failure: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        """Write to it.

        Raises:
            OSError: as ever; it is remembered.
        """
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise


def guard_stdout() -> Stdout | None:
    """Put a watched stream in the place of ``sys.stdout``; None where it is no file, as under a test."""
    if sys.stdout is None:  # closed by who started this: the result goes nowhere, and no file may take its number
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - lives as long as the process
        return None
    try:
        if sys.stdout.fileno() != _STDOUT:
            return None
    except (AttributeError, OSError, ValueError):
        return None
    old = sys.stdout
    old.flush()
    raw = Stdout(_STDOUT, "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), old.encoding, old.errors, line_buffering=old.isatty(), write_through=False
    )
    return raw


def drop_stdout() -> None:
    """Let what is left to write go nowhere, so that the flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)


def stdout_error(error: OSError) -> ToolError:
    """The error for a result that could not be printed."""
    return ToolError(
        "stdout",
        found=f"cannot be written ({error.strerror or error})",
        expected="a place that takes the whole result",
        advice="Free space there or send the result elsewhere; files that were asked for are written.",
    )
