"""Sources that append to files: their recorders, and files that others write, read on together.

What the files of one machine say belongs together (its name is in one of them, its database in another), so all of them
are read as one recording, as ``diagnose`` reads a folder. What is new since the last reading is given.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import numpy as np

from leadline.app.read.importing import import_paths
from leadline.app.read.machine_facts import record_facts
from leadline.app.watch.growing import GrowingFile
from leadline.core.contracts.collector import Recorder, RecordingCollector
from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.importer import UNNAMED_GUEST, Importer
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, Fact, Inventory
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.importer import Request
    from leadline.core.system.addresses import Address

FACTS = "facts.json"
HERE = "here"  # this machine, as the folder of its files is called
LOOK_WAIT_S = 0.3  # for a source that is taking a sample
_ENGINES = {"postgresql": "postgresql", "mysql": "mysql"}  # collector -> what importers call an unnamed server


def machine_of(collector: str, target: str) -> str:
    """The machine that a source is of: the host of its target; this one for sockets and no host.

    >>> machine_of("postgresql", "host=db1 user=me"), machine_of("postgresql", "host=/run/postgresql")
    ('db1', 'here')
    >>> machine_of("linux", "ssh://me@db1:22"), machine_of("linux", ""), machine_of("mysql", "mysql://localhost/x")
    ('db1', 'here', 'here')
    """
    if "://" in target:
        host = urlsplit(target).hostname or ""
    elif collector == "postgresql":
        host = next((word[5:] for word in target.split() if word.startswith("host=")), "")
    else:
        host = ""
    is_here = not host or host.startswith(("/", "%2F")) or host in {"localhost", "127.0.0.1", "::1"}
    return HERE if is_here else re.sub(r"[^\w.-]", "-", host)


@dataclass(eq=False)
class _Folder:
    """A folder of files that grow, and of their copies."""

    name: str
    machine: str
    path: Path
    copies: Path
    is_own: bool
    engine: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    files: dict[str, GrowingFile] = field(default_factory=dict)

    def look(self) -> bool:
        """Copy what was added to its files; False where nothing was, or where a sample is being taken."""
        if not self.lock.acquire(timeout=LOOK_WAIT_S):
            return False  # its source hangs; what it has is read when it answers, or is opened again
        try:
            if self.path.is_dir():
                for path in sorted(self.path.iterdir()):
                    if path.is_file() and path.name not in self.files and not path.name.startswith("."):
                        self.files[path.name] = GrowingFile(path, self.copies / path.name, is_own=self.is_own)
            return any([file.look() for file in self.files.values()])  # each of them, not only until one grew
        finally:
            self.lock.release()

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
    _moments: dict[str, NDArray[np.int64]] = field(default_factory=dict)  # of the samples of counts, by source
    _counted: dict[tuple[str, str], dict[Entity, int]] = field(default_factory=dict)  # when each was last in a sample
    _given: dict[tuple[str, str], dict[Entity, int]] = field(default_factory=dict)  # the last time of each series
    _starts: int = 0

    def recorder(
        self, name: str, collector: str, target: Address, options: Mapping[str, Any]
    ) -> Callable[[], _RecorderSampler]:
        """What opens the recorder of a source, again after each failure, with its files in a new folder."""
        machine = machine_of(collector, target.text)
        copies = self._copies(machine, name)
        empty = _Folder(name, machine, self.folder / "none", copies, is_own=True, engine=_ENGINES.get(collector, ""))
        known = self._folders.setdefault(name, empty)

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
        copies = self._copies(HERE, name)
        folder = self._folders[name] = _Folder(name, HERE, self.folder / "none", copies, is_own=False)
        folder.files[path.name] = GrowingFile(path, copies / path.name)

    def add_facts(self, name: str) -> None:
        """Read what this machine says of itself: its disks, file systems, databases and settings.

        Of a source that is another machine nothing is read: these would be the facts of the wrong one.
        """
        folder = self._folders.get(name)
        if folder is not None and folder.machine != HERE:
            return
        facts = record_facts(Path("/"), datetime.now(UTC))
        (self._copies(HERE, name) / FACTS).write_text(json.dumps(facts), encoding="utf-8")

    def read(self) -> Capture | None:
        """The samples that are new since the last reading, with what is known of the entities; None for none.

        Raises:
            OSError: a file or its copy cannot be read or written.
        """
        grown = {folder.machine for folder in self._folders.values() if folder.look()}
        captures = [capture for machine in sorted(grown) if (capture := self._read_machine(machine)) is not None]
        return Capture.merged(captures) if captures else None

    def forget(self, before_ns: int) -> None:
        """Forget series that had no sample since a time: sessions and statements come and go."""
        for key, given in list(self._given.items()):
            self._given[key] = {entity: time_ns for entity, time_ns in given.items() if time_ns >= before_ns}
        for key, last in list(self._counted.items()):
            self._counted[key] = {entity: time_ns for entity, time_ns in last.items() if time_ns >= before_ns}
        for name, moments in self._moments.items():
            self._moments[name] = moments[moments >= before_ns]

    def _read_machine(self, machine: str) -> Capture | None:
        """What is new in the files of one machine."""
        try:
            imported = import_paths([self.folder / "copies" / machine], self.request)
        except InputError as error:
            self.left_out[machine] = str(error)
            return None
        known = {name: why for name, why in self.left_out.items() if not self._is_of(name, machine)}
        known |= {self._shown(str(error.where)): str(error) for error in imported.left_out}
        self.left_out = known | {self._shown(name): "not recognised" for name in imported.unrecognised}
        return self._new(self._renamed(imported.capture, machine))

    def _is_of(self, name: str, machine: str) -> bool:
        folder = self._folders.get(name.partition("/")[0])
        return name == machine or (folder is not None and folder.machine == machine)

    def _copies(self, machine: str, name: str) -> Path:
        copies = self.folder / "copies" / machine / name
        copies.mkdir(parents=True, exist_ok=True)
        return copies

    def _renamed(self, capture: Capture, machine: str) -> Capture:
        """The capture with another machine's guest named, and servers of one engine told apart by their sources."""
        here = [folder for folder in self._folders.values() if folder.machine == machine]
        engines = {folder.name: folder.engine for folder in here}
        several = {engine for engine in _ENGINES.values() if list(engines.values()).count(engine) > 1}
        if machine == HERE and not several:
            return capture

        def renamed(entity: Entity, source: str) -> Entity:
            parent = None if entity.parent is None else renamed(entity.parent, source)
            name = machine if entity == UNNAMED_GUEST and machine != HERE else entity.name
            if entity.kind is EntityKind.DATABASE and engines.get(source) in several:
                name = source if entity.name in several else f"{source}.{entity.name}"
            return Entity(entity.kind, name, parent)

        groups = []
        for group in capture.groups:
            source = self._source_of(capture.sources[group.source].name)
            groups.append(group.relabelled(entities=[renamed(entity, source) for entity in group.entities]))
        inventory = Inventory()
        for entity, facts in capture.inventory.facts.items():
            for source in {self._source_of(fact.source) for fact in facts.values()} or {""}:
                kept = {name: fact for name, fact in facts.items() if self._source_of(fact.source) == source}
                inventory.facts.setdefault(renamed(entity, source), {}).update(kept)
        inventory.links.update({renamed(guest, ""): vm for guest, vm in capture.inventory.links.items()})
        return replace(capture, groups=groups, inventory=inventory)

    def _source_of(self, name: str) -> str:
        """The source that wrote a file."""
        return self._shown(name).partition("/")[0]

    def _shown(self, name: str) -> str:
        """A file as SOURCE/FILE."""
        inside = name.removeprefix(f"{self.folder / 'copies'}/")
        return name if inside == name else inside.partition("/")[2]

    def _new(self, capture: Capture) -> Capture:
        """The samples that were not given before; of files that others write the newest may not be whole yet."""
        sources = [replace(info, name=self._shown(info.name)) for info in capture.sources]
        ends: dict[int, int] = {}
        for group in capture.groups:
            ends[group.source] = max(ends.get(group.source, 0), int(group.times_ns[-1]) if len(group.times_ns) else 0)
        groups = []
        for group in capture.groups:
            given = self._given.setdefault((sources[group.source].name, group.metric), {})
            # What one entity of a group has had and another one not is given again: it is kept once.
            is_new = group.times_ns > min((given.get(entity, 0) for entity in group.entities), default=0)
            if group.since_boot and len(is_new):
                is_new[0] = False
            if not self._is_own(sources[group.source].name):
                is_new &= group.times_ns < ends[group.source]
            if is_new.any():
                columns = np.flatnonzero(is_new)
                given.update(dict.fromkeys(group.entities, int(group.times_ns[columns[-1]])))
                groups.append(
                    replace(group, times_ns=group.times_ns[columns], values=group.values[:, columns], since_boot=False)
                )
        groups += [group for place in range(len(sources)) for group in self._zeros(place, sources[place], groups)]
        return Capture(groups, sources, self._named(capture.inventory))

    def _zeros(self, place: int, info: SourceInfo, groups: list[SeriesGroup]) -> Iterator[SeriesGroup]:
        """Of who is not in the samples of a source: the counts of its importer are zero, not missing.

        Whoever is counted for the first time was not there before, as far as the moments of samples are known.
        """
        new = [group for group in groups if group.source == place]
        counts = cast("Importer", load_unit("importer", info.importer)).META.counts if new else frozenset()
        if not counts:
            return
        moments = np.unique(np.concatenate([group.times_ns for group in new]))
        before = self._moments.get(info.name, np.empty(0, dtype=np.int64))
        self._moments[info.name] = np.concatenate([before, moments])
        for metric in sorted(counts):
            counted = {entity for group in new if group.metric == metric for entity in group.entities}
            last = self._counted.setdefault((info.name, metric), {})
            first = [entity for entity in counted if entity not in last]
            absent = [entity for entity in last if entity not in counted]
            last.update(dict.fromkeys(counted, int(moments[-1])))
            for entities, times in ((first, before), (absent, moments)):
                if entities and len(times):
                    zeros = np.zeros((len(entities), len(times)), dtype=np.float32)
                    yield SeriesGroup(metric, entities, times, zeros, source=place)

    def _is_own(self, name: str) -> bool:
        source, _, file = name.partition("/")
        folder = self._folders.get(source)
        return folder is not None and folder.is_own and file not in _WRITTEN_MEANWHILE

    def _named(self, inventory: Inventory) -> Inventory:
        """The inventory with sources named as in the settings, not by the paths of copies."""

        def named(known: dict[str, Fact]) -> dict[str, Fact]:
            return {name: replace(fact, source=self._shown(fact.source)) for name, fact in known.items()}

        facts = {entity: named(known) for entity, known in inventory.facts.items()}
        return Inventory(facts, dict(inventory.links))


# Files of our own recorders that a thread of theirs appends to at any time.
_WRITTEN_MEANWHILE = frozenset({"pg_active_sessions.csv", "mysql_active_sessions.csv"})
