"""The contract of collectors: a file in ``collectors/`` with ``META`` and ``collect`` or ``record``.

A collector's docstring carries the headings *Collects, Cost, Late or missing data, Sources*. It only reads; it never
keeps a secret; what it cannot see for lack of a privilege it leaves out and says.

``collect(access, progress) -> Capture`` asks once, for what there is. ``record(target, folder) -> Recorder`` samples
over time: each sample is appended to files in a format an importer reads, so that what was recorded is there whatever
ends the recording.
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
    """How to reach a source; ``host`` is a name or address."""

    host: str
    user: str
    password: Secret = field(repr=False)
    port: int = 443
    verify: bool = True
    timeout_s: float = 60.0


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

    def record(self, target: Address, folder: Path, **options: int) -> Recorder:
        """A recorder of a target that appends to files in a folder that is there; options have defaults."""
