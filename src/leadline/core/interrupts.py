"""Work whose steps Ctrl-C must not tear apart: it is told to stop, and ends when it has put things right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Found = TypeVar("Found")
POLL_S = 0.1


def uninterrupted(work: Callable[[threading.Event], Found]) -> Found:
    """Run work in a thread; Ctrl-C sets the event it looks at, and is passed on when the work has ended.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed and the work raised nothing.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(1, "leadline-work") as pool:
        future = pool.submit(work, stop)
        while not future.done():
            try:
                wait([future], POLL_S)
            except KeyboardInterrupt:
                stop.set()
    found = future.result()
    if stop.is_set():
        raise KeyboardInterrupt
    return found
