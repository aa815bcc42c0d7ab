"""Backup windows, streams, proxies and repositories.

Answers:
    Whether full and incremental backups fit their windows, how many streams and proxies they take, what the
    repository must hold for the retention, how fast a snapshot grows and what its consolidation costs, and where the
    night overlaps the batch.

Method:
    Bytes of a full backup = data; of an increment = data x change rate; both divided by the reduction of compression
    and deduplication when stored. Needed rate = bytes / window; streams = needed rate / rate of a stream; proxies =
    streams / streams of a proxy. Retention after grandfather, father, son: daily increments, weekly, monthly and
    yearly fulls, with the protection of the repository on top. While a machine is backed up its snapshot grows by its
    writes; consolidating reads and writes that once, beside what is written meanwhile: it ends when the storage is
    faster than the machine writes. From a recording: the writes of the busiest machine, 95th percentile. From an
    inventory: machines, what they store, whether they share disks.

Assumptions:
    Increments hold the day's changed blocks once. Reduction is the same for all. Streams do not slow each other down
    below the rates given.

Bends:
    A full backup every night; a snapshot held longer than a few hours; consolidation on a busy datastore; quiescing a
    cluster that shares disks.

Sources:
    Broadcom KB 316414: consolidation reads snapshots and writes them to the disk.
    Veeam and vSphere documentation on snapshots: "Do not use a single snapshot for more than 72 hours" (VMware KB
    1025279).
    Arithmetic.
"""

from __future__ import annotations

from math import ceil
from typing import Annotated, cast

from pydantic import Field

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
from leadline.planners._backup.recorded import recorded_inputs

SNAPSHOT = "VMware KB 1025279"
CONSOLIDATION = "Broadcom KB 316414"
SNAPSHOT_HOURS_MAX = 72.0
# Name, bytes stored for each byte, losses survived.
PROTECTIONS = (("2 copies", 2.0, 1), ("3 copies", 3.0, 2), ("4+1", 5 / 4, 1), ("3+2", 5 / 3, 2), ("4+2", 6 / 4, 2),
               ("8+2", 10 / 8, 2))  # fmt: skip
HOURS = 24
Pct = Annotated[float, Field(ge=0, le=100)]

META = PlannerMeta(
    about="Whether backups fit the night: streams, proxies, repository, snapshots, overlap with batch work.",
    example={"data_tib": 20.0, "vms": 40, "window_h": 8.0, "stream_mib_per_s": 150.0},
    grows=(("data_tib", "repository"), ("data_tib", "streams"), ("change_pct", "increment"), ("daily", "repository")),
    reads="VMs with sizes of their disks, or a recording of writes",
)


class Backup(PlanInput):
    """What is backed up, when, and to where."""

    data_tib: Annotated[float, Field(gt=0, description="Data of all machines, TiB.")] = 20.0
    vms: Annotated[int, Field(ge=1, description="Machines.")] = 40
    change_pct: Annotated[Pct, Field(description="Data that changes in a day, percent.")] = 5.0
    window_h: Annotated[float, Field(gt=0, le=24, description="Hours a night's backup may take.")] = 8.0
    starts_at_h: Annotated[float, Field(ge=0, lt=24, description="Hour of the day it starts.")] = 22.0
    batch_from_h: Annotated[float, Field(ge=0, lt=24, description="Hour of the day the batch starts.")] = 1.0
    batch_h: Annotated[float, Field(ge=0, le=24, description="Hours the batch takes; 0 for none.")] = 3.0
    stream_mib_per_s: Annotated[float, Field(gt=0, description="Rate of one stream, MiB/s.")] = 150.0
    streams_per_proxy: Annotated[int, Field(ge=1, description="Streams a proxy runs at once.")] = 4
    source_mib_per_s: Annotated[
        float, Field(gt=0, description="What the storage gives to backups beside its work, MiB/s.")
    ] = 1500.0
    target_mib_per_s: Annotated[float, Field(gt=0, description="What the repository writes at most, MiB/s.")] = 2000.0
    reduction: Annotated[float, Field(ge=1, description="Compression and deduplication, times smaller.")] = 2.0
    daily: Annotated[int, Field(ge=0, description="Daily increments kept.")] = 14
    weekly: Annotated[int, Field(ge=0, description="Weekly full backups kept.")] = 4
    monthly: Annotated[int, Field(ge=0, description="Monthly full backups kept.")] = 12
    yearly: Annotated[int, Field(ge=0, description="Yearly full backups kept.")] = 1
    repository_factor: Annotated[
        float,
        Field(ge=1, description="Bytes stored for each byte: 3 for three copies, 1.667 for 3+2, 1.25 for RAID-6."),
    ] = 1.667
    vm_write_mib_per_s: Annotated[float, Field(ge=0, description="What the busiest machine writes, MiB/s.")] = 20.0
    consolidate_mib_per_s: Annotated[
        float, Field(gt=0, description="What consolidating a snapshot reads and writes, MiB/s.")
    ] = 200.0
    consolidate_kib: Annotated[
        float, Field(gt=0, description="Size of an operation when a snapshot is consolidated, KiB.")
    ] = 64.0  # Judgement: no size is published; vscsiStats or esxtop show it
    consolidate_spare_iops: Annotated[
        float | None, Field(gt=0, description="Operations the datastore has to spare then; none where not known.")
    ] = None
    is_cluster: Annotated[bool, Field(description="Whether machines share disks (failover cluster, RAC).")] = False


MODEL = Backup


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return whether backups fit the window, with streams, proxies, the repository's size and snapshots."""
    inputs, evidence, assumed = _known(cast("Backup", inputs), context.capture)  # read with MODEL
    full, increment = inputs.data_tib, inputs.data_tib * inputs.change_pct / 100.0
    most = min(inputs.source_mib_per_s, inputs.target_mib_per_s * inputs.reduction)
    needed, stream = _rate(increment, inputs.window_h), inputs.stream_mib_per_s
    streams, per_proxy = max(ceil(needed / stream), 1), inputs.streams_per_proxy
    rate = min(most, streams * stream)
    hours, full_hours = _hours(increment, rate), _hours(full, most)
    stored = repository_tib(inputs)
    snapshot_h = _hours(increment / inputs.vms, inputs.stream_mib_per_s)
    grown = snapshot_h * 3600.0 * inputs.vm_write_mib_per_s / 1024.0
    ends = consolidation_h(inputs, snapshot_h)
    figures = (
        Figure("increment", round(increment, 3), "TiB", f"{inputs.data_tib:g} TiB x {inputs.change_pct:g} %"),
        Figure("streams", streams, "", f"{needed:,.0f} / {stream:g} MiB/s"),
        Figure("proxies", ceil(streams / per_proxy), "", f"{several(per_proxy, 'stream')} each"),
        Figure("increment takes", round(hours, 2), "h", f"at {rate:,.0f} MiB/s; window {inputs.window_h:g} h"),
        Figure("full takes", round(full_hours, 2), "h", f"at the {most:,.0f} MiB/s there are"),
        Figure("repository", round(stored, 2), "TiB", _repository_arithmetic(inputs)),
        Figure(
            "snapshot of the busiest grows",
            round(grown, 2),
            "GiB",
            f"{snapshot_h:.2g} h x {inputs.vm_write_mib_per_s:g} MiB/s",
        ),
        Figure(
            "consolidation takes",
            ends if ends == "does not end" else round(float(ends), 2),
            "h",
            _consolidation(inputs),
        ),
        Figure(
            "consolidation operations",
            ceil(consolidation_iops(inputs)),
            "per_s",
            _operations(inputs),
            CONSOLIDATION,
        ),
        Figure("overlap with the batch", round(overlap_h(inputs, hours), 2), "h", _overlap(inputs, hours)),
    )
    fits = hours <= inputs.window_h and ends != "does not end"
    return Plan(
        headline=f"An increment of {increment:,.3g} TiB takes {hours:,.2g} h of {inputs.window_h:g} with "
        f"{several(streams, 'stream')}; a full backup {full_hours:,.3g} h; the repository holds {stored:,.3g} "
        "TiB.",
        figures=figures,
        sheets=(_night(inputs, hours), _protections(inputs)),
        assumptions=(
            "Streams do not slow each other down below the rates given: try with `leadline bench protect`.",
            *assumed,
        ),
        bends=tuple(_bends(inputs, full_hours, snapshot_h, hours)),
        snippets=_snippets(inputs),
        evidence=evidence,
        infeasible=None if fits else _infeasible(inputs, increment, most, ends),
    )


def repository_tib(inputs: Backup) -> float:
    """Return the size of all backups kept, after reduction and with protection, TiB."""
    fulls = inputs.weekly + inputs.monthly + inputs.yearly + 1
    kept_tib = fulls * inputs.data_tib + inputs.daily * inputs.data_tib * inputs.change_pct / 100.0
    return kept_tib / inputs.reduction * inputs.repository_factor


def overlap_h(inputs: Backup, hours: float) -> float:
    """Return the hours of a day in which backup and batch both run."""
    shared = 0.0
    for day in (-HOURS, 0, HOURS):
        start = max(inputs.starts_at_h, inputs.batch_from_h + day)
        shared += max(0.0, min(inputs.starts_at_h + hours, inputs.batch_from_h + day + inputs.batch_h) - start)
    return shared


def consolidation_h(inputs: Backup, snapshot_h: float) -> float | str:
    """Return the hours to merge the busiest machine's snapshot while the machine writes; "does not end" if never."""
    spare = inputs.consolidate_mib_per_s - inputs.vm_write_mib_per_s
    return "does not end" if spare <= 0 else snapshot_h * inputs.vm_write_mib_per_s / spare


def consolidation_iops(inputs: Backup) -> float:
    """Operations per second that merging a snapshot adds: each block is read from it and written to its disk."""
    return 2.0 * inputs.consolidate_mib_per_s * 1024.0 / inputs.consolidate_kib


def _known(inputs: Backup, capture: Capture | None) -> tuple[Backup, tuple[str, ...], tuple[str, ...]]:
    """Return the inputs completed from recordings and inventories, the evidence, and the inputs left at defaults."""
    if capture is None:
        return inputs, (), ()
    inputs, evidence = filled(inputs, recorded_inputs(capture))
    return inputs, evidence, by_default(inputs, ("data_tib", "vms", "change_pct", "vm_write_mib_per_s", "batch_from_h"))


def _operations(inputs: Backup) -> str:
    return f"2 x {inputs.consolidate_mib_per_s:g} MiB/s / {inputs.consolidate_kib:g} KiB, read and written"


def _rate(tib: float, hours: float) -> float:
    return tib * 1024.0**2 / (hours * 3600.0)


def _hours(tib: float, mib_per_s: float) -> float:
    return tib * 1024.0**2 / mib_per_s / 3600.0


def _repository_arithmetic(inputs: Backup) -> str:
    fulls = inputs.weekly + inputs.monthly + inputs.yearly + 1
    return f"({fulls} fulls + {inputs.daily} increments) / {inputs.reduction:g} x {inputs.repository_factor:g}"


def _consolidation(inputs: Backup) -> str:
    return f"grown / ({inputs.consolidate_mib_per_s:g} - {inputs.vm_write_mib_per_s:g} MiB/s)"


def _overlap(inputs: Backup, hours: float) -> str:
    end = (inputs.starts_at_h + hours) % HOURS
    return f"backup {inputs.starts_at_h:g}:00 to {end:.1f}, batch {inputs.batch_from_h:g}:00 for {inputs.batch_h:g} h"


def _night(inputs: Backup, hours: float) -> Sheet:
    rows = []
    for hour in range(HOURS):
        at = float(hour)
        backup = any(inputs.starts_at_h + day <= at < inputs.starts_at_h + day + hours for day in (-HOURS, 0))
        batch = any(inputs.batch_from_h + day <= at < inputs.batch_from_h + day + inputs.batch_h for day in (-HOURS, 0))
        if backup or batch:
            rows.append((f"{hour:02}:00", "backup" if backup else "", "batch" if batch else ""))
    return Sheet("The night, by hours that begin", ("hour", "backup", "batch"), tuple(rows))


def _protections(inputs: Backup) -> Sheet:
    """Return the size of the repository by protection scheme."""
    stored = repository_tib(inputs) / inputs.repository_factor
    rows = tuple((name, round(factor, 3), lost, round(stored * factor, 2)) for name, factor, lost in PROTECTIONS)
    return Sheet("Repository by protection: copies and erasure codes", ("scheme", "x data", "lost ok", "TiB"), rows)


def _bends(inputs: Backup, full_hours: float, snapshot_h: float, hours: float) -> list[Bend]:
    bends = []
    if full_hours > inputs.window_h:
        cost = f"{full_hours:,.3g} h: use synthetic or weekend fulls"
        bends.append(Bend("a full backup fits the window", cost))
    if snapshot_h > SNAPSHOT_HOURS_MAX:
        bends.append(Bend("no snapshot is kept longer than 72 hours", f"{snapshot_h:,.0f} h", SNAPSHOT))
    iops, spare_iops = consolidation_iops(inputs), inputs.consolidate_spare_iops
    if spare_iops is not None and iops > spare_iops:
        cost = f"{iops:,.0f} per second on {spare_iops:,.0f} to spare: others wait"
        bends.append(Bend("consolidation fits what the datastore has to spare", cost, CONSOLIDATION))
    if overlap_h(inputs, hours) > 0:
        cost = f"{overlap_h(inputs, hours):.2g} h: both read the same disks; move one, or limit the backup's rate"
        bends.append(Bend("the batch runs without the backup", cost))
    if inputs.is_cluster:
        cost = "a quiesced snapshot stops a node until its heartbeat fails: back up the passive node, or from inside"
        bends.append(Bend("clusters are not quiesced from outside", cost, SNAPSHOT))
    return bends


def _snippets(inputs: Backup) -> tuple[Snippet, ...]:
    text = "Get-VM | Get-Snapshot | Where-Object {$_.Created -lt (Get-Date).AddHours(-24)} | Select VM, Created, SizeGB"
    return (Snippet("Look for snapshots that stayed", "powercli", text),)


def _infeasible(inputs: Backup, increment: float, most: float, ends: float | str) -> Infeasible:
    if ends == "does not end":
        return Infeasible(
            f"the busiest machine writes {inputs.vm_write_mib_per_s:g} MiB/s, "
            f"merging does {inputs.consolidate_mib_per_s:g}",
            "back it up from inside or by storage snapshots, or at an hour it writes less",
        )
    side = "the source" if inputs.source_mib_per_s <= inputs.target_mib_per_s * inputs.reduction else "the repository"
    return Infeasible(
        f"{side} gives {most:,.0f} MiB/s; the window needs {_rate(increment, inputs.window_h):,.0f}",
        f"a window of {_hours(increment, most):.2g} h",
    )
