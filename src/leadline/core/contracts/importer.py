"""The contract of importers: a file in ``importers/`` with ``META``, ``sniff`` and ``read``.

An importer's module docstring carries the headings *Reads, Sample, Lost, Units, Sources*. Its functions:

``sniff(source: Source) -> int``
    0 to 100: how sure it is, from the name and the first 64 KiB, that it can read the file. 0 is "not mine"; 50 is "by
    shape"; 90 and more only for a signature no other tool writes. Must be cheap and must not raise on any bytes.

``read(source: Source, request: Request) -> Capture``
    The capture of the whole file, built with `CaptureBuilder`. ``request.metrics`` names the canonical metrics that
    are asked for (None: all, including the tool's own counters as ``raw.…``); reading more is allowed, less is not.
    A file that is not what it claims to be raises `InputError`; what can be repaired is repaired and said with
    ``builder.warn``. Never a partial capture that looks whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Layer

# The guest a recording without a host name was made in. Merging replaces it by the incident's only named guest.
UNNAMED_GUEST = Entity(EntityKind.GUEST, "guest")


@dataclass(frozen=True, slots=True)
class Field:
    """What a tool's field becomes: the canonical metric, and the unit the tool prints it in."""

    metric: str
    unit: str


@dataclass(frozen=True, slots=True)
class ImporterMeta:
    """What is known about an importer before it reads anything.

    Attributes:
        tool: the tool's name as its users say it.
        layers: layers its recordings examine.
        fields: the tool's own field names and what they become.
        record: the command that records what this importer reads best.
        needs_tool: Debian package of an external program it runs, if any.
        marks: texts in lower case of which one is in the first 64 KiB of every file it can read; empty where there is
            no such text. Without one of them it is not asked, nor even imported.
        joins: its files are often one sample each: several in one folder are read as one recording.
        counts: metrics that count who is in a sample: of whoever is not in it the count is zero. A recording that is
            read in parts needs to know it.
    """

    tool: str
    layers: tuple[Layer, ...]
    fields: Mapping[str, Field] = field(default_factory=dict)
    record: str = ""
    needs_tool: str | None = None
    marks: tuple[str, ...] = ()
    joins: bool = False
    counts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of an importer.

    Attributes:
        metrics: canonical metrics wanted; None for everything, raw counters included.
        timezone: IANA name to assume for local times without a zone; None is UTC, with a warning.
        date: ISO date to assume for times without a date; None is the file's last change.
        truncate_last: drop a malformed last row even where the file does not look cut.
        map_file: what the columns of tables mean that no importer knows.
    """

    metrics: frozenset[str] | None = None
    timezone: str | None = None
    date: str | None = None
    truncate_last: bool = False
    map_file: Path | None = None

    def wants(self, metric: str) -> bool:
        """Whether a metric is asked for."""
        return self.metrics is None or metric in self.metrics


class Importer(Protocol):
    """The type of an importer module."""

    META: ImporterMeta

    def sniff(self, source: Source) -> int:
        """How sure it is that it can read the source, 0 to 100."""

    def read(self, source: Source, request: Request) -> Capture:
        """The capture the source holds."""
