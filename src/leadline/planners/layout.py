"""Data, WAL or journal, temp and backup on virtual disks, adapters and devices.

Answers:
    Which virtual disks a database gets, on which adapters and devices, aligned and provisioned how; which RAID level
    its share of writes asks for; how many devices its operations need, with the theoretical operations; what each level
    does with one device failed, and while its successor is rebuilt.

Method:
    Back-end operations are reads + penalty x writes, the penalty of a small random write being 1 for RAID-0, 2 for
    RAID-1 and 10, 4 for RAID-5, 6 for RAID-6. Devices = back-end operations / operations of a device at the use
    allowed, not fewer than the level needs, even for mirrors. The level with the fewest devices for capacity and
    operations together is taken for data; above ``parity_writes_pct`` writes, and for the log, parity is not
    considered. Data, log, temp and backup have an adapter each while there are enough, the later ones sharing the last.
    One device failed: with mirrors its partner has the reads of both; with parity each read of it becomes one on every
    device that its data is computed from, which doubles the reads of all, and its writes read all other data. The
    latency of a read is that of M/M/1 devices, 1 / (1 - busy) idle ones, the slowest of k at once H(k) of that. A
    rebuild takes its share of the devices it reads, all with parity, the partner alone with mirrors, and lasts as
    long as a device takes to be written at that share.
    From a recording: 95th percentiles of reads and writes of the disks with data, of all disks where none is known to
    hold data. From an inventory: engine, and sizes of the disks by role.

Assumptions:
    A full stripe of the log is written by the array's cache as one; the penalty is that of small random writes. Four
    paravirtual SCSI adapters at most, as vSphere has them. Load is even over devices. A failed array writes parity as
    a whole one does where it can; a cache of the array hides none of it. The share of a rebuild is 30 % by default,
    as controllers of one vendor have it; 200 MB/s is a judgement: an SSD writes faster, a disk slower at its end.

Bends:
    Log and data on one adapter when there is one only. Parity under many writes when asked for. A stripe unit that
    the file system's unit of allocation does not divide. A load that is more than the array does with a device failed.

Sources:
    Patterson, Gibson and Katz, "A case for redundant arrays of inexpensive disks" (SIGMOD 1988), for small writes.
    Holland and Gibson, "Parity declustering for continuous operation in redundant disk arrays" (ASPLOS 1992), and Muntz
    and Lui, "Performance analysis of disk arrays under failure" (VLDB 1990), for arrays with a failed device.
    Dell, "PERC 3 user's guide", rebuild rate: a share of the controller, 30 % by default.
    VMware, "Architecting Microsoft SQL Server on VMware vSphere", disks and PVSCSI adapters.
    Microsoft, "Disk partition alignment (sector alignment) for SQL Server": partition offset / stripe unit and stripe
    unit / allocation unit are whole numbers.
    PostgreSQL documentation, "WAL configuration" and "CREATE TABLESPACE".
"""

from __future__ import annotations

from math import lcm
from typing import Literal, cast

from leadline.core.contracts.planner import (
    Bend,
    Figure,
    Infeasible,
    Plan,
    PlanContext,
    PlanInput,
    PlannerMeta,
    Sheet,
    Snippet,
)
from leadline.core.model.capture import Capture
from leadline.core.model.units import several
from leadline.estate.derived.recorded_loads import by_default, filled
from leadline.planners._layout import degraded
from leadline.planners._layout.inputs import LayoutInputs
from leadline.planners._layout.levels import LEVELS, RaidLevel
from leadline.planners._layout.recorded import recorded_inputs

ALIGNMENT = "Microsoft, Disk partition alignment for SQL Server"
RAID_SOURCE = "Patterson, Gibson and Katz 1988"
Role = Literal["data", "log", "temp", "backup"]
LOG_WORD = {"postgresql": "WAL", "sqlserver": "transaction log", "oracle": "redo", "intersystems": "journal"}
UNIT_KIB = {"postgresql": 4, "sqlserver": 64, "oracle": 4, "intersystems": 4}  # of allocation in the filesystem

META = PlannerMeta(
    about="Which virtual disks, adapters and devices for data, log, temp and backup; RAID level and devices needed.",
    example={"engine": "postgresql", "reads_per_s": 6000.0, "writes_per_s": 2000.0, "data_gib": 2000.0},
    grows=(
        ("reads_per_s", "back-end operations"),
        ("writes_per_s", "devices for data"),
        ("data_gib", "devices for data"),
    ),
    reads="disks with roles (data, log, temp) and sizes, or a recording of reads and writes of disks",
)


MODEL = LayoutInputs


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return the RAID level, the number of devices, and the virtual disk and adapter of each role."""
    inputs, evidence, assumed = _known(cast("LayoutInputs", inputs), context.capture)  # read with MODEL
    total = inputs.reads_per_s + inputs.writes_per_s
    share = 100.0 * inputs.writes_per_s / total if total else 0.0
    level = min(_allowed(inputs, share), key=lambda one: (one.devices(inputs), one.penalty))
    count = level.devices(inputs)
    back_end = inputs.reads_per_s + level.penalty * inputs.writes_per_s
    disks = _disks(inputs)
    fits = inputs.devices is None or inputs.devices >= count
    return Plan(
        headline=f"Data on {several(count, 'device')} in {level.name} ({back_end:,.0f} back-end operations per "
        f"second), {LOG_WORD[inputs.engine]} on a mirror of its own, {several(len(disks), 'virtual disk')} on "
        f"{several(len({adapter for _, adapter, _ in disks}), 'adapter')}.",
        figures=_figures(inputs, level, disks, share),
        sheets=(_levels_sheet(inputs), _disks_sheet(inputs, disks, level), *degraded.sheets(LEVELS, inputs)),
        assumptions=(
            f"A device is planned at {inputs.device_use_pct:g} % of its operations: latency grows steeply above.",
            "Devices of data, log and backup are not shared with other systems at their peaks.",
            "All devices of the data are one RAID group; a failure in one of several groups slows that group alone.",
            *assumed,
        ),
        bends=(*_bends(inputs, level, share), *degraded.bends(level, inputs)),
        snippets=_snippets(inputs, disks),
        evidence=evidence,
        infeasible=None if fits else _infeasible(inputs, level, count),
    )


def _allowed(inputs: LayoutInputs, share: float) -> list[RaidLevel]:
    """Return the RAID levels that may be chosen; ``share`` is that of writes, percent."""
    allowed = [level for level in LEVELS if inputs.raid in ("best", level.name)]
    if inputs.raid == "best" and share > inputs.parity_writes_pct:
        return [level for level in allowed if level.is_mirrored]
    return allowed


def _figures(
    inputs: LayoutInputs, level: RaidLevel, disks: list[tuple[Role, int, float]], share: float
) -> tuple[Figure, ...]:
    """Return the numbers of the answer; ``share`` is that of writes, percent."""
    total, count = inputs.reads_per_s + inputs.writes_per_s, level.devices(inputs)
    back_end = inputs.reads_per_s + level.penalty * inputs.writes_per_s
    allowed = _allowed(inputs, share)
    return (
        Figure("share of writes", round(share, 1), "pct", f"{inputs.writes_per_s:,.0f} / {total:,.0f}"),
        Figure("RAID of data", level.name, "", f"fewest devices of {', '.join(one.name for one in allowed)}"),
        Figure(
            "back-end operations",
            round(back_end),
            "per_s",
            f"{inputs.reads_per_s:,.0f} + {level.penalty} x {inputs.writes_per_s:,.0f}",
            RAID_SOURCE,
        ),
        Figure("devices for data", count, "devices", _devices_arithmetic(inputs, level)),
        Figure(
            "theoretical operations",
            round(count * inputs.device_iops),
            "per_s",
            f"{count} x {inputs.device_iops:,.0f}",
        ),
        Figure(
            "partitions begin at",
            begin_kib(inputs),
            "kib",
            f"least multiple of 1,024 KiB and of the stripe unit, {inputs.stripe_kib} KiB",
            ALIGNMENT,
        ),
        Figure("virtual disks", len(disks), "", ", ".join(role for role, _, _ in disks)),
        *degraded.figures(level, inputs),
    )


def _known(inputs: LayoutInputs, capture: Capture | None) -> tuple[LayoutInputs, tuple[str, ...], tuple[str, ...]]:
    """Return the inputs completed from recordings and inventories, the evidence, and the inputs left at defaults."""
    if capture is None:
        return inputs, (), ()
    inputs, evidence = filled(inputs, recorded_inputs(capture))
    return (
        inputs,
        evidence,
        by_default(inputs, ("engine", "reads_per_s", "writes_per_s", "data_gib", "log_gib", "temp_gib")),
    )


def _devices_arithmetic(inputs: LayoutInputs, level: RaidLevel) -> str:
    usable = inputs.device_iops * inputs.device_use_pct / 100.0
    return (
        f"operations / {usable:,.0f} each, {inputs.data_gib:,.0f} GiB / {inputs.device_gib:,.0f} each, "
        f"{level.devices_min} at least"
    )


def _disks(inputs: LayoutInputs) -> list[tuple[Role, int, float]]:
    """Role, adapter and GiB of each virtual disk."""
    disks: list[tuple[Role, int, float]] = [
        ("data", 0, inputs.data_gib),
        ("log", min(1, inputs.adapters - 1), inputs.log_gib),
        ("temp", min(2, inputs.adapters - 1), inputs.temp_gib),
    ]
    if inputs.backup_gib:
        disks.append(("backup", min(3, inputs.adapters - 1), inputs.backup_gib))
    return disks


def _levels_sheet(inputs: LayoutInputs) -> Sheet:
    rows = tuple(
        (
            level.name,
            level.penalty,
            round(inputs.reads_per_s + level.penalty * inputs.writes_per_s),
            level.devices(inputs),
            round(
                level.devices(inputs)
                * inputs.device_iops
                / (inputs.reads_per_s + level.penalty * inputs.writes_per_s or 1.0),
                2,
            ),
        )
        for level in LEVELS
    )
    return Sheet("RAID levels for the data", ("level", "penalty", "back-end /s", "devices", "theory / need"), rows)


def _disks_sheet(inputs: LayoutInputs, disks: list[tuple[Role, int, float]], level: RaidLevel) -> Sheet:
    kind = {"data": level.name, "log": "raid-10", "temp": level.name, "backup": "raid-6"}
    thick = {"data": "eager zeroed thick", "log": "eager zeroed thick", "temp": "thin", "backup": "thin"}
    rows = tuple(
        (
            role,
            f"PVSCSI {adapter}",
            f"{role} datastore",
            kind[role],
            thick[role],
            f"{_unit(inputs, role)} KiB",
            round(size),
        )
        for role, adapter, size in disks
    )
    columns = ("disk", "adapter", "lies on", "RAID", "provisioned", "unit", "GiB")
    return Sheet("Virtual disks", columns, rows)


def begin_kib(inputs: LayoutInputs) -> int:
    """Where partitions begin, KiB: at a MiB that is the start of a stripe unit too."""
    return lcm(1024, inputs.stripe_kib)


def _unit(inputs: LayoutInputs, role: str) -> int:
    return 64 if role == "backup" else UNIT_KIB[inputs.engine]


def _bends(inputs: LayoutInputs, level: RaidLevel, share: float) -> list[Bend]:
    bends = []
    if inputs.adapters == 1:
        cost = "log and data queue in one adapter: a burst of checkpoint writes delays every commit"
        bends.append(Bend("log and data on adapters of their own", cost, "Architecting SQL Server on vSphere"))
    if inputs.stripe_kib % UNIT_KIB[inputs.engine]:
        cost = f"{inputs.stripe_kib} / {UNIT_KIB[inputs.engine]} KiB is no whole number: some units lie on two devices"
        bends.append(Bend("stripe unit / allocation unit is a whole number", cost, ALIGNMENT))
    if not level.is_mirrored and share > inputs.parity_writes_pct:
        cost = f"{share:.0f} % of operations are writes and cost {level.penalty} each"
        bends.append(Bend("no parity under many writes", cost, RAID_SOURCE))
    return bends


def _infeasible(inputs: LayoutInputs, level: RaidLevel, count: int) -> Infeasible:
    usable = inputs.device_iops * inputs.device_use_pct / 100.0
    back_end = inputs.reads_per_s + level.penalty * inputs.writes_per_s
    there = inputs.devices or 0
    reached = 100.0 * there * usable / back_end if back_end else 100.0
    return Infeasible(
        f"{there} devices; {level.name} needs {count} for operations and capacity",
        f"{count} devices, or {min(reached, 100.0):.0f} % of the operations with {there}",
    )


def _snippets(inputs: LayoutInputs, disks: list[tuple[Role, int, float]]) -> tuple[Snippet, ...]:
    adapters = sorted({adapter for _, adapter, _ in disks})
    power = ['$vm = Get-VM "<VM>"']
    for adapter in adapters:
        disks_here = [(role, size) for role, disk_adapter, size in disks if disk_adapter == adapter]
        for index, (role, size) in enumerate(disks_here):
            provisioned = "Thin" if role == "backup" else "EagerZeroedThick"
            store = f'-Datastore "<DATASTORE FOR {role.upper()}>"'
            add = f"$vm | New-HardDisk -CapacityGB {size:.0f} -StorageFormat {provisioned} {store}"
            join = " | New-ScsiController -Type ParaVirtual" if index == 0 and adapter else ""
            power.append(f"{add}{join}")
    snippets = [Snippet("Virtual disks and adapters; the first adapter is the VM's own", "powercli", "\n".join(power))]
    snippets.append(_partition(inputs))
    if inputs.engine == "postgresql":
        places = (
            "initdb -D /data/pgdata --waldir=/log/pg_wal",
            "psql -c \"CREATE TABLESPACE temp LOCATION '/temp'\"",
            "psql -c \"ALTER SYSTEM SET temp_tablespaces = 'temp'\"",
        )
        snippets.append(Snippet("Where PostgreSQL puts them", "shell", "\n".join(places)))
    return tuple(snippets)


def _partition(inputs: LayoutInputs) -> Snippet:
    """An aligned partition with a file system of the engine's unit of allocation, in its usual system."""
    begin, unit = begin_kib(inputs), UNIT_KIB[inputs.engine]
    if inputs.engine == "sqlserver":
        text = (
            f"New-Partition -DiskNumber <NUMBER> -UseMaximumSize -Alignment {begin * 1024} -AssignDriveLetter | "
            f"Format-Volume -FileSystem NTFS -AllocationUnitSize {unit * 1024}"
        )
        return Snippet("Each disk: an aligned partition", "powershell", text)
    text = f"parted --script /dev/<DISK> mklabel gpt mkpart db {begin}KiB 100%\nmkfs.xfs -b size={unit}k /dev/<DISK>1"
    return Snippet("Each disk: an aligned partition", "shell", text)
