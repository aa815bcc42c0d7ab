"""The contract of collectors: a file in ``collectors/`` with ``META`` and ``collect``, ``record`` or ``watch``.

A collector's docstring carries the headings *Collects, Cost, Late or missing data, Sources*. It only reads; it never
keeps a secret; what it cannot see for lack of a privilege it leaves out and says.

``collect(access, progress) -> Capture`` asks once, for what there is. ``record(target, folder) -> Recorder`` samples
over time: each sample is appended to files in a format an importer reads, so that what was recorded is there whatever
ends the recording. ``watch(target) -> LiveSource`` gives new samples as captures, for a standing watch; a collector
that records is watched through the files it appends to, and needs no ``watch``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from leadline.core.model.capture import Capture
from leadline.core.model.vocabulary import Layer
from leadline.core.system.addresses import Address
from leadline.core.system.secret import Secret


@dataclass(frozen=True, slots=True)
class CollectorMeta:
    """What is known about a collector: what it is called, which layers it tells of, the least privilege it needs."""

    tool: str
    layers: tuple[Layer, ...]
    privilege: str


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a source.

    Attributes:
        host: a name or address.
        verify: whether its certificate is checked.
        ca_file: the only authorities whose certificates are trusted; empty for those of the machine.
    """

    host: str
    user: str
    password: Secret = field(repr=False)
    port: int = 443
    verify: bool = True
    timeout_s: float = 60.0
    ca_file: str = ""


class Collector(Protocol):
    """The type of a collector module."""

    META: CollectorMeta

    def collect(self, access: Access, progress: Callable[[int, int], None] | None = None) -> Capture:
        """What is there now."""


class Recorder(Protocol):
    """Samples a source; every sample is on its way to the disk when `sample` returns."""

    notes: list[str]

    def sample(self) -> None:
        """Take one sample and append it."""

    def close(self) -> None:
        """Give up connections and files."""


class RecordingCollector(Protocol):
    """The type of a collector module that samples over time."""

    META: CollectorMeta

    def record(self, target: Address, folder: Path, **options: int | str) -> Recorder:
        """A recorder of a target that appends to files in a folder that is there; options have defaults."""


class LiveSource(Protocol):
    """A source whose samples are asked for again and again, each of them given once.

    Attributes:
        notes: what is left out, and why, for lack of a privilege or a version.
        interval_s: the usual distance of its samples, seconds.
    """

    notes: list[str]
    interval_s: float

    def sample(self) -> Capture:
        """Return the samples that are new since the last call, with the inventory where it changed.

        Late samples come when the source has them; a sample is given once. A capture without groups says that nothing
        is new.

        Raises:
            ToolError: the source cannot be reached now, or refuses.
        """

    def close(self) -> None:
        """Give up connections and files."""


class WatchingCollector(Protocol):
    """The type of a collector module whose source has columns of samples of its own."""

    META: CollectorMeta

    def watch(self, target: Address, **options: int | str | bool) -> LiveSource:
        """A live source of a target; options have defaults."""
