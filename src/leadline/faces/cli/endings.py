"""How the program ends early: Ctrl-C, a polite kill, a lost terminal, a fault nobody foresaw."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from leadline import __version__
from leadline.core.system.interrupts import raised_interrupts

INTERRUPTED = 130  # as shells report a program ended by Ctrl-C
UNFORESEEN = 70  # Source: sysexits.h, EX_SOFTWARE
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))  # Windows: one


class Ended(KeyboardInterrupt):
    """A signal asked the program to end: everything that cleans up after Ctrl-C cleans up after it, too."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


_asked: list[int] = []


def end_as_by_ctrl_c() -> None:
    """Make SIGTERM and SIGHUP clean up as Ctrl-C does; one that the caller ignores (nohup) stays ignored."""

    def end(number: int, _: FrameType | None) -> None:
        _asked.append(number)
        signal.signal(number, signal.SIG_IGN)  # a second one must not disturb the clean-up
        raise Ended(number)

    def interrupt(number: int, _: FrameType | None) -> None:
        _asked.append(number)
        raise KeyboardInterrupt

    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def ended_an_import(error: BaseException) -> bool:
    """Whether a signal arrived, and the error came out of a module's own lines.

    Libraries pass on as an error of theirs what is raised while they make a class (Python 3.11: RuntimeError; pydantic:
    SchemaError), and so a signal that arrives during an import.
    """
    import traceback

    frames = (frame for chained in _chain(error) for frame, _ in traceback.walk_tb(chained.__traceback__))
    return bool(_asked) and any(frame.f_code.co_name == "<module>" for frame in frames)


def interruptible(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command, ended by Ctrl-C with what it kept: Typer would lose that."""

    @wraps(command)
    def ended_with_words(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever a command takes and gives
        with raised_interrupts():
            return command(*args, **named)

    return ended_with_words


def interrupted(text: str) -> NoReturn:
    """Say what ended the program and what is kept; exit as shells report it."""
    ending = [number for number in _asked if number in _ENDING]
    if ending:
        sys.stderr.write(f"ended by {signal.Signals(ending[-1]).name}; {text}\n")
        sys.exit(128 + ending[-1])
    sys.stderr.write(f"interrupted; {text}\n")
    sys.exit(INTERRUPTED)


def unforeseen(error: BaseException) -> NoReturn:
    """Say in one line that the program failed, and where its report is; exit status 70."""
    kind = type(error).__name__
    try:
        where = f"The report is in {_write_report(error)}; please send it to the developers."
    except OSError as failure:
        where = f"No report could be written ({failure.strerror})."
    text = f"error: leadline: a fault in Leadline itself ({kind}); expected a result or a clear error. {where}\n"
    sys.stderr.write(text)
    sys.exit(UNFORESEEN)


def _write_report(error: BaseException) -> Path:
    """Write where in the code it failed, and versions; neither messages nor arguments, which may hold data."""
    import platform
    import tempfile
    import traceback

    from leadline.core.system.leftovers import temporary_folder

    descriptor, name = tempfile.mkstemp(prefix="leadline-fault-", suffix=".txt", dir=temporary_folder())
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(f"leadline {__version__}\npython {platform.python_version()} on {platform.platform()}\n")
        stream.write(f"command: leadline {' '.join(_words(sys.argv[1:]))}\n\n")
        for chained in _chain(error):
            stream.write(f"{type(chained).__module__}.{type(chained).__qualname__}\n")
            stream.writelines(traceback.format_list(traceback.extract_tb(chained.__traceback__)))
            stream.write("\n")
    return Path(name)


def _chain(error: BaseException) -> list[BaseException]:
    """An error and what caused it, the last first."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return chain


def _words(arguments: list[str]) -> list[str]:
    """Return the verb and the names of options; values are data."""
    verb = [word for word in arguments[:1] if word.isascii() and word.isalpha()]
    return verb + [word.partition("=")[0] for word in arguments if word.startswith("--")]
