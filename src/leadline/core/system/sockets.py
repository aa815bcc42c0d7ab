"""Folders for Unix sockets, whose paths must be short.

Source: unix(7), sun_path: 108 bytes with the final zero.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.core.model.errors import ToolError
from leadline.core.system.leftovers import scratch_folder, scratch_name, temporary_folder

PATH_BYTES_MAX = 107
NAME_BYTES_MAX = 16  # of a socket in a folder of `make_socket_folder`
_RANDOM_BYTES = 8  # that mkdtemp adds to a name


def has_room(folder: Path, name_bytes: int) -> bool:
    """Whether a socket with a name so long can be in a folder."""
    return len(os.fsencode(folder)) + 1 + name_bytes <= PATH_BYTES_MAX


@contextmanager
def socket_folder(kind: str = "sockets") -> Iterator[Path]:
    """Make a scratch folder: where temporary files are, unless the paths of sockets would be too long there.

    Raises:
        ToolError: none can be made.
    """
    temporary = temporary_folder()
    places = [temporary, *_short_places()]
    name_bytes = len(scratch_name(kind)) + _RANDOM_BYTES
    for place in places:
        if has_room(place, name_bytes + 1 + NAME_BYTES_MAX) and os.access(place, os.W_OK | os.X_OK):
            with scratch_folder(kind, None if place == temporary else place) as path:
                yield path
            return
    raise ToolError(
        f"folder for sockets in {', '.join(map(str, places))}",
        found="no folder that can be written and whose path is short enough",
        expected=f"paths of sockets of at most {PATH_BYTES_MAX} bytes",
        advice="Set TMPDIR to a short path.",
    )


def _short_places() -> list[Path]:
    runtime_folder = os.environ.get("XDG_RUNTIME_DIR")
    return [*([Path(runtime_folder)] if runtime_folder else []), Path("/tmp")]
