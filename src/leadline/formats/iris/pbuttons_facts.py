"""What a SystemPerformance report says of the instance and its machine, beside its samples.

Source: InterSystems documentation, "Monitoring Performance Using ^SystemPerformance": the contents of the report by
platform; names of the sections as public readers of such reports find them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time

from leadline.core.contracts.importer import UNNAMED_GUEST
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.formats.iris.cpf import Cpf, parse_cpf
from leadline.formats.iris.report_sections import Sections
from leadline.formats.linux.listings import (
    Filesystem,
    by_disk,
    cpu_facts,
    filesystems,
    holder,
    mapper_names,
    sysctl_facts,
    system_facts,
)

_INSTANCE = re.compile(r"^[^\S\n]*+(?:<[^<>]*+>)*+([\w.-]{1,64}) on machine ([\w.-]{1,253})", re.MULTILINE)
_PRODUCT = re.compile(r"Version String: ?([^\r\n<]{1,200})")
_RUN = re.compile(r"^Profile run .* at (\d\d:\d\d:\d\d) on ([A-Z][a-z]{2} \d{1,2},? \d{4})\.?", re.MULTILINE)
_EVERY = re.compile(r"^Run over \d+ intervals of (\d{1,6}) (second|minute)s?\.", re.MULTILINE)
_CPUS = re.compile(r"numberofcpus=(\d{1,5})\b")


@dataclass(frozen=True, slots=True)
class SamplingSpan:
    """When a report's samples were taken: the day and time they begin, seconds between them; None: not said."""

    day: date | None
    clock: time | None
    interval_s: float | None

    @classmethod
    def of(cls, text: str) -> SamplingSpan:
        """What the report's head says of its run."""
        every = _EVERY.search(text)
        interval_s = None if every is None else float(every[1]) * (60.0 if every[2] == "minute" else 1.0)
        match = _RUN.search(text)
        if match is None:
            return cls(None, None, interval_s)
        try:
            start = datetime.strptime(f"{match[2].replace(',', '')} {match[1]}", "%b %d %Y %H:%M:%S")  # noqa: DTZ007
        except ValueError:
            return cls(None, None, interval_s)
        return cls(start.date(), start.time(), interval_s)


@dataclass(frozen=True, slots=True)
class ReportMachine:
    """Whose report it is."""

    guest: Entity
    database: Entity
    host: str | None
    version: str | None


def note_facts(text: str, sections: Sections, builder: CaptureBuilder) -> ReportMachine:
    """Note in the inventory what the report says of its machine and instance."""
    named, product, cpus = _INSTANCE.search(text), _PRODUCT.search(text), _CPUS.search(text)
    guest = UNNAMED_GUEST if named is None else Entity(EntityKind.GUEST, named[2])
    database = Entity(EntityKind.DATABASE, "iris" if named is None else named[1], guest)
    cpf = parse_cpf(sections.of("cpffile"))
    version = (None if product is None else product[1].strip()) or cpf.version
    name = builder.info.name
    counted = {"cpu_count": int(cpus[1])} if cpus and int(cpus[1]) else {}
    memory = _memory_mib(sections)
    builder.inventory.add(
        guest,
        name,
        **{**counted, **cpu_facts(sections.texts("cpu"))},
        **system_facts(sections.texts("linuxinfo")),
        sysctl=sysctl_facts(sections.texts("sysctl-a")) or None,
        memory_mib=memory,
    )
    builder.inventory.add(database, name, engine="iris", version=version, parameters=cpf.parameters or None)
    if cpf.unread:
        message = "lines of the CPF file that are neither section nor name=value were left out"
        builder.warn("cpf", message, len(cpf.unread))
    mapped = mapper_names(sections.texts("linuxinfo"))
    mounted = filesystems(sections.texts("mount"), sections.texts("df-m", "df-k"), mapped)
    _note_disks(mounted, guest, builder)
    _note_places(cpf, mounted, database, builder)
    return ReportMachine(guest, database, None if named is None else named[2], version)


def _memory_mib(sections: Sections) -> float | None:
    """The second cell behind date and time of the first row of ``free``, in MiB (free -m)."""
    lines = list(sections.texts("free"))
    heading = next((i for i, line in enumerate(lines) if "memtotal" in line.casefold()), None)
    if heading is None or heading + 1 >= len(lines):
        return None
    names = (name.strip().casefold() for name in lines[heading].split(","))
    cells = (cell.strip() for cell in lines[heading + 1].split(","))
    text = dict(zip(names, cells, strict=False)).get("memtotal", "")
    return float(text) if text.isascii() and text.isdigit() and 0 < len(text) < 13 else None


def _note_disks(mounted: list[Filesystem], guest: Entity, builder: CaptureBuilder) -> None:
    for disk, filesystem in by_disk(mounted):
        builder.inventory.add(
            Entity(EntityKind.BLOCK_DEVICE, disk, guest),
            builder.info.name,
            mount=filesystem.point,
            filesystem=filesystem.kind,
            mount_options=None if filesystem.options is None else list(filesystem.options),
            filesystem_free_pct=filesystem.free_pct,
        )


def _note_places(cpf: Cpf, mounted: list[Filesystem], database: Entity, builder: CaptureBuilder) -> None:
    """Where the instance keeps what, by its configuration and the mounted filesystems.

    Of databases on several filesystems the one counts that something else of the instance lies on, else the first.
    """
    if not mounted:
        return
    disks = {id(filesystem): disk for disk, filesystem in by_disk(mounted)}
    places = {
        purpose: [fs for path in paths if (fs := holder(mounted, path))] for purpose, paths in cpf.places().items()
    }
    others = {fs.point for purpose, holders in places.items() if purpose != "databases" for fs in holders}
    mounts = {
        purpose: next((fs.point for fs in holders if purpose == "databases" and fs.point in others), holders[0].point)
        for purpose, holders in places.items()
        if holders
    }
    data = {disks[id(fs)] for fs in places.get("databases", [])}
    log = {disks[id(fs)] for fs in places.get("journal", [])}
    builder.inventory.add(
        database,
        builder.info.name,
        mounts=mounts or None,
        data_device=next(iter(data)) if len(data) == 1 else None,
        wal_device=next(iter(log), None),
    )
    for role, role_disks in ((Role.WAL, log), (Role.DATA, data - log)):
        for disk in role_disks:
            device = Entity(EntityKind.BLOCK_DEVICE, disk, database.parent)
            builder.inventory.add(device, builder.info.name, role=role.value)
