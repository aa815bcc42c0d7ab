"""Folders for Unix sockets, whose paths must be short.

Source: unix(7), sun_path: 108 bytes with the final zero.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.core.errors import ToolError

PATH_BYTES_MAX = 107
NAME_BYTES_MAX = 16  # of a socket in a folder of `make_socket_folder`
_RANDOM_BYTES = 8  # that mkdtemp adds to a name


def has_room(folder: Path, name_bytes: int) -> bool:
    """Whether a socket with a name so long can be in a folder."""
    return len(os.fsencode(folder)) + 1 + name_bytes <= PATH_BYTES_MAX


def make_socket_folder(prefix: str = "leadline-") -> Path:
    """A new folder that only this user may enter: where temporary files are, unless its path would be too long there.

    Raises:
        ToolError: none can be made.
    """
    places = [Path(tempfile.gettempdir()), *_short_places()]
    for place in places:
        if has_room(place / prefix, _RANDOM_BYTES + NAME_BYTES_MAX) and os.access(place, os.W_OK | os.X_OK):
            return Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    raise ToolError(
        f"folder for sockets in {', '.join(map(str, places))}",
        found="no folder that can be written and whose path is short enough",
        expected=f"paths of sockets of at most {PATH_BYTES_MAX} bytes",
        advice="Set TMPDIR to a short path.",
    )


def _short_places() -> list[Path]:
    own = os.environ.get("XDG_RUNTIME_DIR")
    return [*([Path(own)] if own else []), Path("/tmp")]


@contextmanager
def socket_folder(prefix: str = "leadline-") -> Iterator[Path]:
    """The same, removed at the end.

    Raises:
        ToolError: none can be made.
    """
    path = make_socket_folder(prefix)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
