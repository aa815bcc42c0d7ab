"""Our own recorded incidents: the archives of ``incidents/recorded`` and the truth in each.

An archive ``KIND/VARIANT.tar.xz`` holds the files of one recording and ``truth.yaml``, which says what was done to the
machine and when. The truth is never imported with the files.
"""

from __future__ import annotations

import lzma
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel, Field, field_validator, model_validator

from incidents.contract import CAUSES
from leadline.app.diagnose.diagnosing import metrics_read
from leadline.app.read.importing import import_paths, is_recording
from leadline.core.contracts.importer import Request
from leadline.core.io.yaml_files import read_model
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError, LeadlineError
from leadline.core.model.vocabulary import EntityKind, Layer

TRUTH = "truth.yaml"
UNPACKED_BYTES_MAX = 2 * 1024**3  # Judgement: a recording of some minutes has megabytes
_PACKINGS = (".gz", ".xz", ".bz2", ".zst")


def ns_of(moment: datetime) -> int:
    """UTC nanoseconds of a moment; the truth is written to the millisecond."""
    return round(moment.timestamp() * 1000) * 10**6


class TrueEntity(BaseModel):
    """A disk, a guest or another part of the machine, by kind and name; a process also by its program alone."""

    kind: EntityKind
    name: str

    def is_around(self, entity: Entity) -> bool:
        """Whether an entity is this one or a part of it."""
        return any(e.kind is self.kind and self._is_named(e.name) for e in entity.lineage())

    def _is_named(self, name: str) -> bool:
        if self.kind is EntityKind.PROCESS:
            return name == self.name or name.startswith(f"{self.name}[")
        return name.removeprefix("/dev/") == self.name


class Fault(BaseModel):
    """What was done to the machine, and which answers name it: any of the layers, any of the entities."""

    cause: str
    others: list[str] = []  # causes that are true as well: of two faults, or what the first one leads to
    layers: list[Layer] = Field(min_length=1)
    entities: list[TrueEntity] = []
    start: AwareDatetime
    end: AwareDatetime

    @property
    def causes(self) -> frozenset[str]:
        """Every cause that is true."""
        return frozenset({self.cause, *self.others})

    @model_validator(mode="after")
    def _has_causes_there_are(self) -> Fault:
        if unknown := self.causes - CAUSES:
            message = f"{', '.join(sorted(unknown))}: none of {', '.join(sorted(CAUSES))}"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Fault:
        if self.end <= self.start:
            raise ValueError("the fault ends before it starts")
        return self


class Innocent(BaseModel):
    """Layers and entities that are not to blame."""

    layers: list[Layer] = []
    entities: list[TrueEntity] = []


class TrueBystander(BaseModel):
    """What else was at work on the machine and had no part in it; ``entity`` is its disk."""

    kind: str
    program: str
    entity: str = ""
    rate: str
    start: AwareDatetime = Field(alias="from")
    end: AwareDatetime = Field(alias="to")


class Phase(BaseModel):
    """A span of the recording."""

    name: str
    start: AwareDatetime
    end: AwareDatetime


class RecordedFile(BaseModel):
    """What wrote a file."""

    recorder: str
    command: str = ""


class WaitShares(BaseModel):
    """The true shares of the sessions' time, by wait event."""

    fault: dict[str, float] = {}
    outside: dict[str, float] = {}


class Truth(BaseModel):
    """What was done in one recording, and what a diagnosis should say; see ``incidents`` for the format."""

    kind: str
    variant: int
    set_aside: bool = False
    summary: str = ""
    host: str = ""
    timezone: str = "UTC"
    fault: Fault | None = None
    disk: str
    innocent: Innocent = Innocent()
    bystanders: list[TrueBystander] = []
    visible_in: list[str] = []
    phases: list[Phase] = []
    recordings: dict[str, RecordedFile]
    wait_shares: WaitShares | None = None
    usual: dict[str, str] = {}

    @field_validator("disk", mode="before")
    @classmethod
    def _is_an_answer(cls, disk: Any) -> str:  # noqa: ANN401 - as YAML has it
        answer = {True: "yes", False: "no"}.get(disk, disk) if isinstance(disk, bool) else disk
        if answer not in {"yes", "no", "either"}:
            raise ValueError("disk is neither yes, no nor either")
        return str(answer)

    @model_validator(mode="after")
    def _blames_no_innocent(self) -> Truth:
        for layer in self.innocent.layers:
            if self.fault is not None and layer in self.fault.layers:
                message = f"layer {layer.value} is to blame and innocent"
                raise ValueError(message)
        return self

    @property
    def recorders(self) -> list[str]:
        """Names of the recorders, in the order of their files."""
        return list(dict.fromkeys(recorded.recorder for recorded in self.recordings.values()))

    def recorder_of(self, file: str) -> str | None:
        """The recorder of a file, which may be packed; None when the truth does not name the file."""
        for name in (file, *(file.removesuffix(packing) for packing in _PACKINGS if file.endswith(packing))):
            if name in self.recordings:
                return self.recordings[name].recorder
        packed = (f"{file}{packing}" for packing in _PACKINGS)
        return next((self.recordings[name].recorder for name in packed if name in self.recordings), None)


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file of a recording as Leadline reads it; ``capture`` is None where no importer can."""

    name: str
    recorder: str | None  # None for files that describe the machine, such as the inventory
    capture: Capture | None
    reason: str = ""

    @property
    def is_static(self) -> bool:
        """Whether it holds settings and no sample."""
        return self.capture is not None and not self.capture.groups and not self.capture.results


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded incident: its truth, all of it as ``leadline diagnose FOLDER`` reads it, and each file alone."""

    truth: Truth
    whole: Capture
    files: tuple[ImportedFile, ...]


def archives(folder: Path, kinds: list[str] | None = None) -> list[Path]:
    """The archives of a folder, by kind and variant."""
    paths = sorted(folder.glob("*/*.tar.xz"))
    return [path for path in paths if not kinds or path.parent.name in kinds]


def read_recording(archive: Path, folder: Path) -> Recording:
    """The recording of an archive, unpacked into an empty folder.

    Raises:
        InputError: the archive or its truth is damaged.
    """
    unpack(archive, folder)
    place = next(iter(sorted(folder.rglob(TRUTH))), None)
    if place is None:
        raise _damaged(archive, f"no {TRUTH}")
    try:
        truth = read_model(place, Truth, "the truth of a recording", "docs/incidents.md")
    except InputError as error:
        raise _damaged(archive, f"a damaged {TRUTH}: {error.found}") from error
    place.unlink()
    files = tuple(_imported(path, truth) for path in sorted(place.parent.rglob("*")) if path.is_file())
    if all(file.capture is None for file in files):
        raise _damaged(archive, "no file that Leadline can read")
    return Recording(truth, import_paths([place.parent], _request(truth)).capture, files)


def _request(truth: Truth) -> Request:
    """What the command line asks of importers."""
    return Request(metrics=metrics_read(), timezone=truth.timezone)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of regular files.

    Raises:
        InputError: it is damaged, or too large.
    """
    try:
        with tarfile.open(archive, "r:xz") as tar:
            members = list(_members(tar, archive))
            tar.extractall(folder, members=members, filter="data")
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise _damaged(archive, f"a damaged archive ({error})") from error


def _members(tar: tarfile.TarFile, archive: Path) -> Iterator[tarfile.TarInfo]:
    unpacked = 0
    for member in tar:
        unpacked += member.size
        if unpacked > UNPACKED_BYTES_MAX:
            raise _damaged(archive, "more than 2 GiB")
        if member.isfile() or member.isdir():
            yield member


def _imported(path: Path, truth: Truth) -> ImportedFile:
    recorder = truth.recorder_of(path.name)
    try:
        if not is_recording(path) and not path.name.endswith(_PACKINGS):
            return ImportedFile(path.name, recorder, None, "no importer knows it")
        return ImportedFile(path.name, recorder, import_paths([path], _request(truth)).capture)
    except LeadlineError as error:
        return ImportedFile(path.name, recorder, None, error.found)


def _damaged(archive: Path, problem: str) -> InputError:
    return InputError(
        f"{archive.parent.name}/{archive.name}",
        found=problem,
        expected=f"an .tar.xz archive of recordings with a {TRUTH}",
        advice="Record it again.",
    )
