"""Sweeps on disk: what one is to do, in the folder of its files; what was measured are its runs.

The description is written once, before anything is loaded, so a sweep that was killed is known by its runs.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leadline.core.io.outputs import keep
from leadline.core.io.private import PRIVATE, private_folder
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.sweep import LoadVariant, Sweep

VERSION = 1
NAME = "sweep.json"


class SweepStore:
    """The sweeps among the runs of a folder."""

    def __init__(self, folder: Path) -> None:
        self._runs = folder / "runs"

    def save(self, sweep: Sweep) -> None:
        """Write what a sweep is to do, and that this process works on it; it appears whole or not at all."""
        self._write(sweep, os.getpid())

    def release(self, sweep: Sweep) -> None:
        """Nobody works on it any more."""
        self._write(sweep, None)

    def _write(self, sweep: Sweep, process: int | None) -> None:
        path = self._runs / sweep.id / NAME
        for folder in (self._runs.parent, self._runs, path.parent):
            private_folder(folder)
        keep(path, json.dumps({"version": VERSION, "process": process, **asdict(sweep)}).encode(), mode=PRIVATE)

    def get(self, name: str) -> Sweep:
        """The sweep with that id, its unique beginning, or ``last``.

        Raises:
            UsageError: there is none, several begin so, or another process works on it.
            InputError: it is damaged.
        """
        known = sorted(path.parent.name for path in self._runs.glob(f"*/{NAME}"))
        same = [key for key in known if key == name]
        matches = known[-1:] if name == "last" else same or [key for key in known if key.startswith(name)]
        if len(matches) != 1:
            raise UsageError(
                f"sweep {name}",
                found="no such sweep" if not matches else f"{len(matches)} sweeps begin so",
                expected="a sweep's id, or enough of it",
                advice=f"Kept are: {', '.join(known[-3:]) or 'none'}.",
            )
        path = self._runs / matches[0] / NAME
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            sweep = _sweep(plain)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                str(path), found=f"damaged ({error})", expected="a sweep kept by Leadline", advice="Begin a new one."
            ) from error
        return sweep

    def worked_on(self, sweep: Sweep) -> int | None:
        """The other process that works on a sweep; None for nobody."""
        path = self._runs / sweep.id / NAME
        process = int(json.loads(path.read_text(encoding="utf-8")).get("process") or 0) if path.exists() else 0
        return process if process not in (0, os.getpid()) and _is_leadline(process) else None


def _is_leadline(process: int) -> bool:
    """Whether a process is there and may be one of ours: its number may have been given to another since."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return b"leadline" in words or b"python" in words or b"pytest" in words


def _sweep(plain: dict[str, Any]) -> Sweep:
    fields = {name: plain[name] for name in Sweep.__dataclass_fields__}
    fields["loads"] = tuple(plain["loads"])
    fields["variants"] = tuple(LoadVariant(**plain_variant) for plain_variant in plain["variants"])
    return Sweep(**fields)
