"""Journals of fleets: which worker VMs a run is making, written before each is made.

One file per fleet, gone when all its workers are. It outlives whatever kills the run, so that `leadline bench fleet
--clean` can remove what is left. It holds no secret.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from leadline.core.io.outputs import keep, process_start
from leadline.core.io.private import PRIVATE, private_folder
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.system.leftovers import user_folder

VERSION = 1
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Worker:
    """A VM that is, or is about to be, made: its name, the instance UUID it is given, the id of the clone's task."""

    name: str
    uuid: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class Journal:
    """What has to be known to remove a fleet: where it is, and its workers."""

    id: str
    vcenter: str
    port: int
    user: str
    verify: bool
    template: str  # vCenter's id
    folder: str  # vCenter's id
    process: int
    process_start: str
    workers: tuple[Worker, ...] = field(default=())
    ca_file: str = ""

    @property
    def is_in_use(self) -> bool:
        """Whether the run that made it is still going on."""
        return bool(self.process_start) and process_start(self.process) == self.process_start

    def with_worker(self, worker: Worker) -> Journal:
        """With a worker added, or replaced by its name."""
        return replace(self, workers=(*(other for other in self.workers if other.name != worker.name), worker))


class FleetStore:
    """The journals of one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or user_folder()).absolute() / "fleets"

    def save(self, journal: Journal) -> None:
        """Write a journal; it is on the disk when this returns.

        Raises:
            ToolError: it cannot be written.
        """
        path = self.folder / f"{journal.id}.json"
        try:
            private_folder(self.folder.parent)
            private_folder(self.folder)
            keep(path, json.dumps({"version": VERSION, **asdict(journal)}).encode(), mode=PRIVATE)
        except OSError as error:
            raise ToolError(
                str(path),
                found=f"cannot be written ({error.strerror})",
                expected="a place for the list of VMs to remove, without which none is made",
                advice="Set LEADLINE_HOME to another folder.",
            ) from error

    def remove(self, journal: Journal) -> None:
        """Forget a fleet whose workers are gone."""
        (self.folder / f"{journal.id}.json").unlink(missing_ok=True)

    def list(self) -> list[Journal]:
        """Every fleet that is or may still be there, oldest first."""
        return [self._read(path) for path in sorted(self.folder.glob("*.json"))]

    def get(self, name: str) -> Journal:
        """The fleet of an id.

        Raises:
            UsageError: there is none.
        """
        path = self.folder / f"{name}.json"
        if not _ID.fullmatch(name) or not path.exists():
            known = ", ".join(journal.id for journal in self.list()) or "none"
            raise UsageError(f"fleet {name}", found="no such fleet", expected="the id of one", advice=f"Left: {known}.")
        return self._read(path)

    @staticmethod
    def _read(path: Path) -> Journal:
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            plain.pop("version")
            return Journal(**{**plain, "workers": tuple(Worker(**fields) for fields in plain["workers"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                str(path),
                found=f"damaged ({type(error).__name__})",
                expected="the list of a fleet's VMs",
                advice=f"Look in vCenter for VMs with leadline.fleet = {path.stem}, then remove the file.",
            ) from error
