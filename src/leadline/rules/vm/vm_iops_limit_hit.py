"""A limit holds a disk's IOPS at a ceiling, and latency grows behind it.

Finds:
    IOPS of a virtual disk, or of a guest's block device, that stay within 5 % of one value for at least 60 s while
    latency is above 2 ms and above 3 times that of the rest of the recording, with at least about one request under way
    all the time. The ceiling is estimated as the densest rate among slow samples and stated with its spread; where the
    inventory gives the disk's limit, 95 % of it counts as reached. IOPS are also compared in units of 32 KiB. A disk
    is not reported when the device below it was measured to be as slow, or when most of the quick
    rest of the recording has the same steady rate: then it is the load's own. Neither is it reported when the queue of
    the device below was full, or when a virtual disk had one request at a time and nothing else speaks for a limit.

Why:
    A limit (IOPS limit of a disk or a storage policy, a throttled volume, a cloud disk's tier) lets so many requests
    per second through and makes the others wait. The latency is artificial: it is the length of the queue divided by
    the limit, and no faster disk shortens it.

Do:
    Raise or remove the limit: the disk's IOPS limit in the VM's settings, the storage policy, the volume's tier or the
    hypervisor's throttle. Until then ask for less: fewer sessions, larger reads, checkpoints spread over more time. Do
    not buy disks for it, and do not judge storage by latency measured at the limit: measure just below it.

    Look for a limit on this disk: in vSphere (Edit Settings > Hard disk > Limit - IOPS), in its vSAN storage policy, or
    in the tier of the cloud volume. Where there is none, the device is as slow itself: record the host (esxtop: DAVG,
    ACTV, QUED, DQLEN).

When it is wrong:
    A device at the end of its own ability looks alike from inside the guest: flat IOPS, growing latency. What speaks
    for a limit is said in the evidence: a quick device below, a round number, a rate that stays while its mix of reads
    and writes changes, a rate steadier than requests arriving by chance. Without any of it severity is low. A
    single synchronous writer on a slow disk has a flat rate too.

Sources:
    Cloud4Y, disk subsystem diagnosis with iostat, fio and ioping: 580 ms behind a limit of 200 IOPS, 230 to 290 ms at
    400; real latency only below the limit.
    cormachogan.com, vSAN 6.2 IOPS limit: limits count units of 32 KiB.
    Little's law: requests under way = rate x latency.
    Judgement: 95 % of the limit, 5 % band, 3 times the latency, 60 s; they tell injected limits from steady load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Severity
from leadline.core.statistics.rows import median_of_sorted
from leadline.estate.arithmetic.episodes import sample_bounds
from leadline.estate.arithmetic.plateaus import DiskLoad, Plateau, PlateauShape, find_plateau
from leadline.estate.derived.disks import io_rate
from leadline.estate.derived.latencies import block_awaits, forms, latency_parts
from leadline.estate.language.iops_limits import (
    LIMIT,
    LIMIT_UNIT_MIB,
    QUEUES,
    HeldRate,
    has_full_queue_below,
    held_rates,
    latency_below,
    rate_without_flushes,
    set_limit,
    signs_of_limit,
    steadier_bytes,
    units_of_32_kib,
)
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, WAITS_FOR_DEVICE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

MIB_IN_MB = 1.048576
_LIMIT = "Raise or remove the limit"  # starts the advice for what is proven
_ALIKE = "Look for a limit on this disk"  # starts that for what is not
QUEUED_SHARE = 0.5  # Judgement: a limit holds most of the time in which requests queue; less is flat by chance

META = RuleMeta(
    code="VMC120",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    causes=("disk-capped",),
    accuses=Blames.LIMIT,
    needs=(
        f"{forms('virtual_disk_latency_ms')}|{forms('guest_disk_await_ms')}",
        "disk_iops|disk_reads_per_s|disk_writes_per_s",
    ),
    uses=(
        "disk_read_mib_per_s",
        "disk_write_mib_per_s",
        "disk_device_latency_ms",
        "guest_disk_flushes_per_s",
        LIMIT,
        *QUEUES,
    ),
    thresholds={
        "near_limit": Threshold(
            95.0, "pct", "Judgement: a limiter lets bursts through and samples are cut at its edges"
        ),
        "latency_factor": Threshold(3.0, "ratio", "Judgement: beyond what a change of load does to a quick disk"),
        "latency_min": Threshold(2.0, "ms", "Judgement: what the slides allow a log; below it nobody is held back"),
        "latency_min_alone": Threshold(10.0, "ms", "Judgement: needed where nothing outside the plateau was recorded"),
        "queue_alone": Threshold(
            2.0, "count", "Judgement: more than a synchronous writer has under way, which has a flat rate on any disk"
        ),
        "flat_bytes": Threshold(
            8.0, "pct", "Judgement: half the width of the band; requests of many sizes cut samples"
        ),
        "held_share": Threshold(80.0, "pct", "Judgement: share of samples at the ceiling"),
        "device_share": Threshold(50.0, "pct", "Judgement: a device that takes half of the latency is at fault"),
        "duration": Threshold(60.0, "s", "Judgement: twelve samples of esxtop's default interval"),
    },
    explains=(*WAITS_FOR_DEVICE, *GUEST_AND_DATABASE_WAIT_FOR_DISK, "vsan-client-latency-high"),
    judgement=True,
    examines="limits",
    clears_with=("virtual_disk_latency_ms_read",),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Disk:
    """One disk's series: its latency, its rate, and that in units of 32 KiB where its sizes were measured.

    ``further`` are the other rates that a limit may hold.
    """

    entity: Entity
    series: SeriesGroup
    load: DiskLoad
    normalised: DiskLoad | None
    further: tuple[HeldRate, ...]


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk, and per block device of guests whose virtual disks do not show it.

    A disk that several tools recorded is reported once, from the recording that shows the limit most clearly.
    """
    findings: list[Finding] = []
    for group in chain(
        latency_parts(context, "virtual_disk_latency_ms", EntityKind.VIRTUAL_DISK), block_awaits(context)
    ):
        for disk in _slow_disks(context, group):
            finding = _judged(context, disk)
            if finding is not None and not _is_reported(context, finding, findings):
                findings.append(finding)
    clearest = {finding.entity: finding for finding in sorted(findings, key=lambda f: (f.severity, f.score))}
    yield from clearest.values()


def _slow_disks(context: RuleContext, group: SeriesGroup) -> Iterator[_Disk]:
    rate = io_rate(context, group)
    if rate is None:
        return
    starts, ends = sample_bounds(group)
    units = units_of_32_kib(context, group, rate)
    shape = _shape(context)
    queued_s = DiskLoad(rate, group.values, starts, ends).queued(shape) @ ((ends - starts) / 1e9)
    # LVM and md devices repeat the disks below them: those come first.
    rows = np.flatnonzero(queued_s >= shape.duration_s).tolist()
    for row in sorted(rows, key=lambda r: _stacked(group.entities[r])):
        load = DiskLoad(rate[row], group.values[row], starts, ends)
        queued = load.queued(shape)
        larger = _median(units[row, queued]) > _median(rate[row, queued])
        normalised = replace(load, rate=units[row]) if larger else None
        in_guest = group.entities[row].kind is EntityKind.BLOCK_DEVICE  # hypervisors limit operations
        series = group.take([row])
        further = tuple(held_rates(context, series, load)) if in_guest else ()
        yield _Disk(group.entities[row], series, load, normalised, further)


def _median(values: NDArray[np.floating[Any]]) -> float:
    return median_of_sorted(np.sort(values))


def _judged(context: RuleContext, disk: _Disk) -> Finding | None:
    limit = set_limit(context, disk.entity)
    plateau = None if limit is None else _first_plateau(context, disk, limit.per_s)
    at_limit, held_rate = plateau is not None, None
    plateau = plateau or _first_plateau(context, disk, None)
    if plateau is None:
        plateau, held_rate = _held_plateau(context, disk)
    if plateau is None:
        return None
    device_share = context.limit("device_share") / 100.0
    below = latency_below(context, disk.entity, plateau, device_share)
    if not at_limit and has_full_queue_below(context, disk.entity, plateau, device_share):
        return None
    if below is not None and (below.value or 0.0) >= device_share * plateau.latency_ms:
        return None
    signs = _signs(context, disk, plateau, held_rate)
    if at_limit and limit is not None:
        signs.insert(0, Evidence(limit.text, threshold=limit.per_s, unit="per_s"))
    proven = at_limit or below is not None
    on_host = disk.entity.kind is EntityKind.VIRTUAL_DISK  # where a limit shows in what is recorded below
    if on_host and not proven and not signs and plateau.queue < context.limit("queue_alone"):
        return None  # one request at a time: the rate of a slow disk is as steady as its latency
    if np.isnan(plateau.outside_latency_ms):
        enough = 1 if disk.further else 2  # a guest sees no more; below a virtual disk more could have been recorded
        if plateau.latency_ms <= context.limit("latency_min_alone") or not (proven or len(signs) >= enough):
            return None
        crowded = bool(signs) and plateau.queue >= context.limit("queue_alone")
        sure = proven or (bool(disk.further) and (crowded or len(signs) > 1))
    else:
        sure = proven or bool(signs)
    further = (
        [*signs, below] if below is not None else [*signs, Evidence("latency of the device below was not recorded")]
    )
    return _finding(context, disk, (plateau, held_rate), further, sure=sure, proven=proven)


def _held_plateau(context: RuleContext, disk: _Disk) -> tuple[Plateau, HeldRate] | tuple[None, None]:
    """The plateau of the first of the further rates that has one."""
    for held_rate in disk.further:
        shape = _shape(context)
        if held_rate.is_bytes:
            shape = replace(shape, flat_share=context.limit("flat_bytes") / 100.0)
        plateau = find_plateau(held_rate.load, shape)
        queued = disk.load.queued(shape)
        if plateau is not None and (plateau.inside & queued).sum() >= QUEUED_SHARE * queued.sum():
            return plateau, held_rate
    return None, None


def _signs(context: RuleContext, disk: _Disk, plateau: Plateau, held_rate: HeldRate | None) -> list[Evidence]:
    if held_rate is None or not held_rate.is_bytes:
        return signs_of_limit(context, disk.series, plateau)
    steadier = steadier_bytes(plateau, held_rate, disk.load.rate)
    return [] if steadier is None else [steadier]


def _first_plateau(context: RuleContext, disk: _Disk, limit: float | None) -> Plateau | None:
    loads = (disk.load, disk.normalised) if disk.normalised is not None else (disk.load,)
    plateaus = (find_plateau(load, _shape(context), limit) for load in loads)
    return next((plateau for plateau in plateaus if plateau is not None), None)


def _finding(
    context: RuleContext,
    disk: _Disk,
    ceiling: tuple[Plateau, HeldRate | None],
    further: list[Evidence],
    *,
    sure: bool,
    proven: bool,
) -> Finding:
    plateau, held_rate = ceiling
    name, latency = disk.entity.label(), show(plateau.latency_ms, "ms")
    noun, rate = "IOPS" if held_rate is None else held_rate.noun, show(plateau.ceiling_per_s, "per_s")
    if held_rate is not None and held_rate.is_bytes:
        rate = f"about {plateau.ceiling_per_s * MIB_IN_MB:.3g} MB/s"
    alone = np.isnan(plateau.outside_latency_ms)
    otherwise = "nothing else was recorded" if alone else f"{show(plateau.outside_latency_ms, 'ms')} otherwise"
    bare = rate_without_flushes(context, disk.series, plateau)
    if bare is not None and (held_rate is None or not held_rate.is_bytes):
        rate = f"{rate} ({show(bare, 'per_s')} without flushes)"
        further = [*further, Evidence("Linux counts empty flushes as writes: the limit may lie below the rate")]
    counted = float(np.mean(disk.load.rate[plateau.at_ceiling]))
    if held_rate is None and disk.normalised is not None and plateau.ceiling_per_s > 1.05 * counted:
        noun, rate = "throughput", f"about {plateau.ceiling_per_s * LIMIT_UNIT_MIB * MIB_IN_MB:.3g} MB/s"
    reference = context.limit("latency_factor") * plateau.outside_latency_ms
    source = context.source_name(disk.series)
    evidence = [
        Evidence(
            f"{noun} of {name} stayed at {rate} for {plateau.held_s:.0f} s, give or take "
            f"{show(plateau.spread_pct, 'pct')}",
            metric="disk_iops",
            entity=disk.entity,
            statistic="mean",
            value=counted,
            unit="per_s",
            source=source,
        ),
        Evidence(
            f"latency {latency} at that rate, {otherwise}; on average {_few(plateau.queue)} requests under way",
            metric=disk.series.metric,
            entity=disk.entity,
            statistic="median",
            value=plateau.latency_ms,
            threshold=None if alone else reference,
            unit="ms",
            source=source,
        ),
    ]
    guess = f"that a limit, not {name} itself, holds the rate: from inside the guest both look alike"
    claim = f"{name} is {'' if proven else 'probably '}capped at {_cap(noun, rate, plateau, bare)}"
    ending = "is its queue" if proven else "is the queue"
    finding = context.finding(
        disk.entity,
        f"{claim}{'' if proven else ', or as slow itself'}; {latency} of latency {ending}",
        [*evidence, *further],
        severity=context.meta.severity if sure else Severity.LOW,
        windows=plateau.windows,
        score=min(plateau.latency_ms / np.fmax(reference, context.limit("latency_min")), SCORE_MAX),
        guessed=() if proven else (guess,),
    )
    remedy = context.advice(_LIMIT)
    return replace(finding, remedy=remedy if proven else f"{context.advice(_ALIKE)} {remedy}")


def _few(queue: float) -> str:
    """A number of requests: 0.99, 4.2, 170."""
    return f"{queue:,.0f}" if queue >= 10 else f"{queue:.2g}"


def _cap(noun: str, rate: str, plateau: Plateau, bare: float | None) -> str:
    """The number to search for: about 30 IOPS (59.6/s with the flushes that Linux counts); about 52 MB/s."""
    if rate.startswith("about"):
        return rate
    per_s = plateau.ceiling_per_s if bare is None else bare
    number = f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.2g}"
    unit = "IOPS" if noun == "IOPS" else f"{noun}/s"
    counted = "" if bare is None else f" ({show(plateau.ceiling_per_s, 'per_s')} with the flushes that Linux counts)"
    return f"about {number} {unit}{counted}"


def _is_reported(context: RuleContext, finding: Finding, reported: list[Finding]) -> bool:
    """Whether a finding of that time names a disk of the same machine: the virtual disk, or the disk below LVM."""
    guest = finding.entity.ancestor(EntityKind.GUEST)
    if guest is None:
        return False
    owners = {guest} if _stacked(finding.entity) else set()
    owners.add(context.inventory.vm_of(guest) or guest)
    return any(
        other.entity.parent in owners
        and (other.entity.kind is EntityKind.VIRTUAL_DISK or _stacked(finding.entity))
        and any(a.overlaps(b) for a in finding.windows for b in other.windows)
        for other in reported
    )


def _stacked(entity: Entity) -> bool:
    return entity.name.startswith(("dm-", "md"))


def _shape(context: RuleContext) -> PlateauShape:
    return PlateauShape(
        flat_share=1.0 - context.limit("near_limit") / 100.0,
        held_share=context.limit("held_share") / 100.0,
        duration_s=context.limit("duration"),
        latency_ms_min=context.limit("latency_min"),
        latency_factor=context.limit("latency_factor"),
    )
