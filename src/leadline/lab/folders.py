"""Where labs run: a folder each in the user's cache, with one per guest; what is left of one that was killed."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.sockets import has_room
from leadline.lab.image import cache_folder
from leadline.lab.processes import PID, is_alive, note_process

_OWNER = "leadline.pid"
_LONGEST = 31 + len("/terminal")  # a guest's name and the longest of its sockets


@dataclass(frozen=True, slots=True)
class LabFolder:
    """The folder of a lab: its name, whether its Leadline still runs, and its guests."""

    path: Path

    @property
    def is_running(self) -> bool:
        """Whether the process that made it is there."""
        return is_alive(self.path / _OWNER)

    @property
    def guests(self) -> list[Path]:
        """The folders of its guests, by name."""
        return sorted(path for path in self.path.iterdir() if path.is_dir())


def running_folder() -> Path:
    """Where the folders of labs are."""
    return cache_folder() / "running"


@contextmanager
def lab_folder(name: str, *, keep: bool = False) -> Iterator[Path]:
    """A folder for a lab, gone with it unless kept.

    Raises:
        ToolError: it cannot be made, or its path is too long for sockets.
    """
    path = running_folder() / f"{name}-{secrets.token_hex(2)}"
    if not has_room(path, _LONGEST):
        raise ToolError(
            str(path), found="too long for sockets", expected="a short path", advice="Set XDG_CACHE_HOME to one."
        )
    try:
        path.mkdir(parents=True)
        note_process(path / _OWNER, os.getpid())
    except OSError as error:
        raise ToolError(
            str(path), found=str(error.strerror), expected="a folder to work in", advice="Set XDG_CACHE_HOME."
        ) from error
    try:
        yield path
    finally:
        if not keep:
            shutil.rmtree(path, ignore_errors=True)


def labs() -> list[LabFolder]:
    """Every lab that runs or was left behind."""
    base = running_folder()
    return [LabFolder(path) for path in sorted(base.iterdir())] if base.is_dir() else []


def find_guest(name: str) -> Path:
    """The folder of a running guest: its name, or LAB/GUEST where several labs have one of that name.

    Raises:
        UsageError: no lab that runs has it, or several.
    """
    matches = [
        guest
        for lab in labs()
        if lab.is_running
        for guest in lab.guests
        if name in (guest.name, f"{lab.path.name}/{guest.name}")
    ]
    if len(matches) != 1:
        raise UsageError(
            f"guest {name}",
            found="no such guest runs" if not matches else f"{len(matches)} labs have one of that name",
            expected="a running guest, as GUEST or LAB/GUEST",
            advice="`leadline lab list` shows them.",
        )
    return matches[0]


def clean() -> list[str]:
    """End the guests and remove the folders of labs whose Leadline is gone; what was done, in words."""
    done = []
    for lab in labs():
        if lab.is_running:
            continue
        for guest in lab.guests:
            if is_alive(guest / PID):
                with suppress(ProcessLookupError):
                    os.kill(int((guest / PID).read_text().split()[0]), signal.SIGKILL)
                done.append(f"ended guest {guest.name} of {lab.path.name}")
        shutil.rmtree(lab.path, ignore_errors=True)
        done.append(f"removed {lab.path}")
    return done
