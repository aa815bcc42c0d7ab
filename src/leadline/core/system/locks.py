"""Locks of files, which end with the process that holds them; where the system has none (Windows), that is an error.

Source: flock(2).
"""

from __future__ import annotations

import errno
import os
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True


def lock_file(file: int | IO[bytes], *, wait: bool = False) -> None:
    """Lock an open file until it is closed.

    Raises:
        BlockingIOError: another process holds the lock, and ``wait`` is not set.
        OSError: the file system or the operating system has no such locks.
    """
    if not _HAS_LOCKS:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def has_locks() -> bool:
    """Whether this operating system has locks of files."""
    return _HAS_LOCKS
