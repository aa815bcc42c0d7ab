"""Folders and files that only their owner may read: 0700 and 0600, made so, and tightened when found open."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from leadline.core.system.portable import NO_LINK, PLAIN_BYTES, user_id

PRIVATE = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private_folder(path: Path) -> Path:
    """Make a folder, with those above it, for its owner alone; one that is there is tightened where it is ours.

    Raises:
        OSError: it cannot be made.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not missing:
        _tighten(path)
    return path


def private_file(path: Path) -> Path:
    """Make an empty file for its owner alone, or tighten the one that is there.

    Raises:
        OSError: it cannot be made.
    """
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | PLAIN_BYTES | NO_LINK, 0o600))
    _tighten(path)
    return path


def tighten_below(folder: Path) -> None:
    """Take away what others may do with a folder of ours and all that is in it."""
    for name, _, files in os.walk(folder):
        for path in (Path(name), *(Path(name) / file for file in files)):
            _tighten(path)


def _tighten(path: Path) -> None:
    """Take access from others; not where another owns it, at a link, or in a shared folder such as /tmp."""
    with suppress(OSError):
        state = path.lstat()
        kind, is_shared = stat.S_IFMT(state.st_mode), bool(state.st_mode & stat.S_ISVTX)
        if kind not in (stat.S_IFDIR, stat.S_IFREG) or state.st_uid != user_id() or is_shared:
            return
        if state.st_mode & _OTHERS and path not in (Path.home(), Path.cwd()):
            path.chmod(stat.S_IMODE(state.st_mode) & ~_OTHERS)
