"""`leadline lab console`: a shell in a running guest."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from leadline.lab.channel import Channel

EPILOG = """\
Examples:

  XDG_CACHE_HOME=cache leadline lab console pvscsi

  XDG_CACHE_HOME=cache leadline lab console lsi cat /proc/interrupts
"""


def command(
    guest: Annotated[str, typer.Argument(help="A running guest: GUEST, or LAB/GUEST.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]...", help="Run this instead.")] = None,
) -> None:
    """A shell in a guest that runs; Ctrl-] leaves it. With a command: its output and exit status."""
    from leadline.lab.channel import Channel
    from leadline.lab.folders import find_guest

    folder = find_guest(guest)
    channel = Channel(folder / "terminal", folder.name)
    try:
        if words:
            status = channel.run(words, timeout_s=3600.0, seen=_pass_on).status
        elif sys.stdin.isatty():
            status = _interactive(channel)
        else:
            status = channel.run(["sh", "-c", sys.stdin.read()], timeout_s=3600.0, seen=_pass_on).status
    finally:
        channel.close()
    raise typer.Exit(status)


def _pass_on(stream: str, data: bytes) -> None:
    destination = sys.stdout.buffer if stream == "out" else sys.stderr.buffer
    destination.write(data)
    destination.flush()


def _interactive(channel: Channel) -> int:
    import os
    import shutil
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    size = shutil.get_terminal_size()
    sys.stderr.write("Ctrl-] leaves\n")
    try:
        tty.setraw(terminal)
        return channel.shell(size.lines, size.columns, lambda: os.read(terminal, 1024), _pass_on)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
