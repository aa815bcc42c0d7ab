"""Sources that append to files: their recorders, and files that others write, read on together.

What the files of one machine say belongs together (its name is in one of them, its database in another), so all of them
are read as one recording, as ``diagnose`` reads a folder. What is new since the last reading is given.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from leadline.app.read.importing import import_paths
from leadline.app.read.machine_facts import record_facts
from leadline.app.watch.growing import GrowingFile
from leadline.core.contracts.collector import Recorder, RecordingCollector
from leadline.core.contracts.discovery import load_unit
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Fact, Inventory
from leadline.core.model.errors import InputError

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request
    from leadline.core.system.addresses import Address

FACTS = "facts.json"
FACTS_EVERY_S = 3600.0


@dataclass(eq=False)
class _Folder:
    """A folder of files that grow, and of their copies."""

    name: str
    path: Path
    copies: Path
    is_own: bool
    lock: threading.Lock = field(default_factory=threading.Lock)
    files: dict[str, GrowingFile] = field(default_factory=dict)

    def look(self) -> bool:
        """Copy what was added to its files; False where nothing was."""
        with self.lock:
            if self.path.is_dir():
                for path in sorted(self.path.iterdir()):
                    if path.is_file() and path.name not in self.files and not path.name.startswith("."):
                        self.files[path.name] = GrowingFile(path, self.copies / path.name, is_own=self.is_own)
            return any([file.look() for file in self.files.values()])  # each of them, not only until one grew

    def begin_anew(self, path: Path) -> None:
        """Go on with the files of another folder, whose copies replace those of this one."""
        with self.lock:
            for file in self.files.values():
                file.close()
            self.files.clear()
            self.path = path


@dataclass(eq=False)
class _RecorderSampler:
    """A recorder whose files are read elsewhere."""

    recorder: Recorder
    lock: threading.Lock

    @property
    def notes(self) -> list[str]:
        return self.recorder.notes

    def sample(self) -> None:
        """Take a sample; it is whole in its file when this returns."""
        with self.lock:
            self.recorder.sample()

    def close(self) -> None:
        self.recorder.close()


@dataclass(eq=False)
class RecordedFiles:
    """All files that recorders and others append to, read on as one recording.

    Args:
        folder: a private folder for files and copies; best in memory, so that a disk that hangs does not stop it.
        request: how times without a zone are read.
    """

    folder: Path
    request: Request | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    _folders: dict[str, _Folder] = field(default_factory=dict)
    _given: dict[tuple[str, str], int] = field(default_factory=dict)
    _starts: int = 0

    def recorder(
        self, name: str, collector: str, target: Address, options: Mapping[str, Any]
    ) -> Callable[[], _RecorderSampler]:
        """What opens the recorder of a source, again after each failure, with its files in a new folder."""
        copies = self.folder / "copies" / name
        copies.mkdir(parents=True, exist_ok=True)
        known = self._folders.setdefault(name, _Folder(name, self.folder / "none", copies, is_own=True))

        def opened() -> _RecorderSampler:
            self._starts += 1
            unit = cast("RecordingCollector", load_unit("collector", collector))
            path = self.folder / "files" / f"{name}-{self._starts}"
            path.mkdir(parents=True)
            recorder = unit.record(target, path, **options)
            shutil.rmtree(known.path, ignore_errors=True)
            known.begin_anew(path)
            return _RecorderSampler(recorder, known.lock)

        return opened

    def follow(self, name: str, path: Path) -> None:
        """Read a file that something else appends to; it may be rotated, and need not be there yet."""
        copies = self.folder / "copies" / name
        copies.mkdir(parents=True, exist_ok=True)
        folder = self._folders[name] = _Folder(name, self.folder / "none", copies, is_own=False)
        folder.files[path.name] = GrowingFile(path, copies / path.name)

    def add_facts(self, name: str) -> None:
        """Read what this machine says of itself: its disks, file systems, databases and settings."""
        facts = record_facts(Path("/"), datetime.now(UTC))
        copies = self.folder / "copies" / name
        copies.mkdir(parents=True, exist_ok=True)
        (copies / FACTS).write_text(json.dumps(facts), encoding="utf-8")

    def read(self) -> Capture | None:
        """The samples that are new since the last reading, with what is known of the entities; None for none.

        Raises:
            OSError: a file or its copy cannot be read or written.
        """
        if not any([folder.look() for folder in self._folders.values()]):
            return None
        copies = self.folder / "copies"
        try:
            imported = import_paths([copies], self.request)
        except InputError as error:
            self.left_out = {"": str(error)}
            return None
        self.left_out = {self._shown(str(error.where)): str(error) for error in imported.left_out}
        self.left_out |= {self._shown(name): "not recognised" for name in imported.unrecognised}
        return self._new(imported.capture)

    def _shown(self, name: str) -> str:
        return name.removeprefix(f"{self.folder / 'copies'}/")

    def _new(self, capture: Capture) -> Capture:
        """The samples that were not given before; of files that others write the newest may not be whole yet."""
        sources = [replace(info, name=self._shown(info.name)) for info in capture.sources]
        ends: dict[int, int] = {}
        for group in capture.groups:
            ends[group.source] = max(ends.get(group.source, 0), int(group.times_ns[-1]) if len(group.times_ns) else 0)
        groups = []
        for group in capture.groups:
            key = (
                sources[group.source].name,
                f"{group.metric} {group.entities[0].kind.value if group.entities else ''}",
            )
            is_new = group.times_ns > self._given.get(key, 0)
            if group.since_boot and len(is_new):
                is_new[0] = False
            if not self._is_own(sources[group.source].name):
                is_new &= group.times_ns < ends[group.source]
            if is_new.any():
                columns = np.flatnonzero(is_new)
                self._given[key] = int(group.times_ns[columns[-1]])
                groups.append(
                    replace(group, times_ns=group.times_ns[columns], values=group.values[:, columns], since_boot=False)
                )
        return Capture(groups, sources, self._named(capture.inventory))

    def _is_own(self, name: str) -> bool:
        source, _, file = name.partition("/")
        folder = self._folders.get(source)
        return folder is not None and folder.is_own and file not in _WRITTEN_MEANWHILE

    def _named(self, inventory: Inventory) -> Inventory:
        """The inventory with sources named as in the settings, not by the paths of copies."""
        copies = f"{self.folder / 'copies'}/"
        facts = {
            entity: {
                name: Fact(fact.value, fact.source.replace(copies, ""), fact.guessed) for name, fact in known.items()
            }
            for entity, known in inventory.facts.items()
        }
        return Inventory(facts, dict(inventory.links))


# Files of our own recorders that a thread of theirs appends to at any time.
_WRITTEN_MEANWHILE = frozenset({"pg_active_sessions.csv"})
