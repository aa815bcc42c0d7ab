"""Work whose steps Ctrl-C must not tear apart: it is told to stop, and ends when it has put things right.

Where something is kept after Ctrl-C, the work says so with `kept`, and the command line prints that and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

ResultT = TypeVar("ResultT")
POLL_S = 0.1
NOTHING = "nothing was left behind"


class Interrupted(Exception):
    """Ctrl-C ended a command; the text says what is kept and how to go on."""


@contextmanager
def kept(text: Callable[[], str]) -> Iterator[None]:
    """Say what is kept when Ctrl-C ends the work inside, unless ``text`` returns nothing; the outermost text counts."""
    try:
        yield
    except KeyboardInterrupt as error:
        if note := text():
            error.add_note(note)
        raise


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Turn Ctrl-C into `Interrupted` with what was kept.

    Raises:
        Interrupted: Ctrl-C was pressed.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(getattr(error, "__notes__", [NOTHING])[-1]) from error


def uninterrupted(work: Callable[[threading.Event], ResultT]) -> ResultT:
    """Run work in a thread; Ctrl-C sets the event it looks at, and is passed on when the work has ended.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed and the work raised nothing.
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # noqa: PLC0415 - every start imports this module

    stop = threading.Event()
    with ThreadPoolExecutor(1, "leadline-work") as pool:
        future = pool.submit(work, stop)
        while not future.done():
            try:
                wait([future], POLL_S)
            except KeyboardInterrupt:
                stop.set()
    result = future.result()
    if stop.is_set():
        raise KeyboardInterrupt
    return result
