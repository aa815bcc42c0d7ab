"""What throw-away database servers share: where one may be, its folder, and the error when it cannot be made."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Protocol

from leadline.core.contracts.load_target import NEW
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.enclosures import OPEN, Enclosure
from leadline.core.system.leftovers import forget, identify, note, temporary_folder
from leadline.core.system.opened import printable

START_S = 180.0  # Judgement: starting takes a second; a busy disk or an emulated CPU may need a hundred times that
_ODD = frozenset(",'\"\\$`")
_SOCKET_BYTES_MAX = 107  # Source: unix(7), sun_path without its final zero


class ServerModule(Protocol):
    """The type of a module that makes throw-away servers of one engine."""

    NOTE: str
    LOG: str  # name of the folder of a log kept apart; empty where the engine's cannot be

    def base_of(self, target: str) -> Path:
        """Where the server of a target will be."""

    def expected_bytes(self, data_bytes: int) -> int:
        """What a server with that much data takes."""

    def dsn_of(self, base: Path) -> dict[str, str]:
        """How the server is reached."""

    def start(
        self, base: Path, output: Path, client_count: int, log: Path | None = None, within: Enclosure = OPEN
    ) -> None:
        """Make it and start it within an enclosure, its log in a folder of its own where one is named."""

    def stop(self, base: Path) -> None:
        """End and remove it."""


def free_base(target: str, engine: str, socket: str) -> Path:
    """A folder for a server: in the folder named, or a new temporary one; its socket must have a name that can be.

    Raises:
        UsageError: there is one already, or its socket could not have such a long name.
    """
    if target == NEW:
        base = temporary_folder() / f"leadline-bench-{secrets.token_hex(4)}"
    else:
        base = Path(target).resolve() / f"leadline-bench-{engine}"
    if base.exists():
        raise UsageError(
            str(base), found="it is there already", expected="a name that is free", advice="Remove it or name another."
        )
    path = str(base)
    if len(os.fsencode(base / socket)) > _SOCKET_BYTES_MAX or not path.isprintable() or _ODD.intersection(path):
        raise UsageError(
            printable(path),
            found="a path no socket can have, or that a server's scripts read in their own way",
            expected=f"at most {_SOCKET_BYTES_MAX - len(socket) - 1} bytes, none of {' '.join(sorted(_ODD))}",
            advice="Name another folder.",
        )
    return base


def make_folder(base: Path) -> None:
    """Make the folder of a server, which nobody else may enter; the next start removes it when we are killed.

    Raises:
        ToolError: it cannot be made.
    """
    note(base)
    try:
        base.mkdir(mode=0o700)
        identify(base)
    except OSError as error:
        forget(base)
        raise ToolError(
            str(base), found=str(error.strerror), expected="a folder that can be made", advice="Name another one."
        ) from error


def remove_folder(base: Path) -> None:
    """Remove the folder of a server that has ended."""
    shutil.rmtree(base)
    forget(base)


def failed(program: str, output: Path, advice: str) -> ToolError:
    """The error of a server that could not be made, with what its program said."""
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    complaint = next(
        (line for line in lines if "error" in line.lower() or "fatal" in line.lower()), (lines or ["nothing"])[-1]
    )
    return ToolError(
        program,
        found=f"a throw-away server could not be made: {complaint[:160]}",
        expected="a server of its own",
        advice=advice,
    )
