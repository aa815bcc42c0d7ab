"""The turn to change which files of a sample store count: a reader that never comes to its end takes it for a while.

Appends do not need it. A reader that was stopped holds up no compaction for longer than `WAIT_S`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from leadline.core.system.locks import has_locks, lock_file
from leadline.core.system.portable import NO_LINK, PLAIN_BYTES

NAME = "turn.lock"
WAIT_S = 30.0  # Judgement: longer than a query of a month takes
_STEP_S = 0.01


def make_turn(folder: Path) -> None:
    """Make the file that is locked; without it (a full disk) readers try without a turn."""
    with suppress(OSError):
        os.close(os.open(folder / NAME, os.O_RDWR | os.O_CREAT | PLAIN_BYTES | NO_LINK, 0o600))


@contextmanager
def holding_turn(folder: Path, *, wait_s: float = WAIT_S) -> Iterator[bool]:
    """Hold the turn; false where it could not be had in this time, or where there are no locks."""
    file = -1
    with suppress(OSError):
        file = os.open(folder / NAME, os.O_RDONLY | PLAIN_BYTES | NO_LINK)
    try:
        yield file >= 0 and has_locks() and _taken(file, time.monotonic() + wait_s)
    finally:
        if file >= 0:
            os.close(file)


def _taken(file: int, end_s: float) -> bool:
    while True:
        try:
            lock_file(file)
        except BlockingIOError:
            if time.monotonic() >= end_s:
                return False
            time.sleep(_STEP_S)
        except OSError:
            return False
        else:
            return True
