"""Is it a limit? What tells a limiter's plateau from a device at the end of its own ability."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.derived import Recorded, derived
from leadline.core.model.finding import Evidence
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind
from leadline.core.statistics.rows import row_extents, row_means
from leadline.estate.arithmetic.plateaus import DiskLoad
from leadline.estate.derived.disks import behind, io_rate, virtual_disk_of
from leadline.estate.derived.series import mean_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity, Inventory
    from leadline.estate.arithmetic.plateaus import Plateau

LIMIT = "disk_iops_limit"
LIMIT_UNIT_MIB = 32 / 1024  # vSAN and mClock count an operation as one per 32 KiB begun
MIX_SPREAD_PCT = 5.0  # reads or writes must vary so much for their steady sum to say something
REGULAR_DISPERSION_MAX = 0.3  # of a stream of arrivals by chance, whose dispersion is 1
FLUSH_SHARE_MIN = 0.05  # of the rate; fewer flushes do not change what the ceiling is
REGULAR_QUEUE_MIN = 2.0  # one writer after the other is regular on any disk
SMOOTHED_S = 5.0  # Judgement: a second cuts requests at its ends; a limit holds the mean of five
FULL_SHARE_MIN = 0.9  # Judgement: the mean of samples, each a moment, of a queue that is full almost always
QUEUES = ("disk_active_count", "disk_queued_count", "disk_queue_depth_count", "disk_queue_used_pct")
NEAR_MAX = 8  # Judgement: of more devices of a host that could be below a disk, the slowest tell as much
STEADIER_RATIO = 4.0  # Judgement: bytes that vary so much less than requests are what is held


@dataclass(frozen=True, slots=True, eq=False)
class HeldRate:
    """A rate of one disk that a limit may hold: operations or bytes, reads and writes together or one of them.

    Attributes:
        noun: what it is called: "reads", "bytes written".
        is_bytes: the load's rate is MiB/s, not operations per second.
    """

    noun: str
    is_bytes: bool
    load: DiskLoad


def held_rates(context: RuleContext, disk: SeriesGroup, load: DiskLoad) -> Iterator[HeldRate]:
    """The rates that a limit may hold, smoothed over `SMOOTHED_S`.

    Args:
        context: of the rule.
        disk: the latency of one disk.
        load: of all its operations.
    """
    sample_s = float(np.median(load.ends_ns - load.starts_ns)) / 1e9
    width = min(max(round(SMOOTHED_S / sample_s), 1), len(load.rate)) if sample_s > 0 else 1
    if width > 1:
        yield HeldRate("IOPS", is_bytes=False, load=_smoothed(load, load.rate, load.rate, width))
    sums: dict[str, NDArray[np.floating[Any]]] = {}
    for way in ("read", "write"):
        counts, sizes = context.aligned(disk, f"disk_{way}s_per_s"), context.aligned(disk, f"disk_{way}_mib_per_s")
        if counts is None:
            continue
        if width > 1:
            yield HeldRate(f"{way}s", is_bytes=False, load=_smoothed(load, counts[0], counts[0], width))
        if sizes is not None:
            sums[f"{way}s"] = sizes[0]
    if len(sums) == 2:
        sums = {"throughput": sums["reads"] + sums["writes"], **sums}
    for noun, moved in sums.items():
        name = noun if noun == "throughput" else f"throughput of {noun}"
        yield HeldRate(name, is_bytes=True, load=_smoothed(load, moved, load.rate, width))


def _smoothed(
    load: DiskLoad, rate: NDArray[np.floating[Any]], operations: NDArray[np.floating[Any]], width: int
) -> DiskLoad:
    """A load whose rate is a running mean; one operation is as much of it as it is on average."""
    known = np.isfinite(rate)
    kernel = np.ones(width)
    counts = np.convolve(known.astype(np.float64), kernel, mode="same")
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.convolve(np.where(known, rate, 0.0), kernel, mode="same") / counts
        size = float(np.nansum(rate) / np.nansum(operations)) if np.nansum(operations) > 0 else 0.0
    smooth = np.where(known, mean, np.nan)
    return DiskLoad(smooth, load.latency_ms, load.starts_ns, load.ends_ns, operations, size / width)


def steadier_bytes(plateau: Plateau, held_rate: HeldRate, operations: NDArray[np.floating[Any]]) -> Evidence | None:
    """Evidence that bytes are held and not operations: they vary much less; None where they do not."""
    if not held_rate.is_bytes:
        return None
    at = plateau.at_ceiling
    mean = float(np.mean(operations[at]))
    spread_pct = 100.0 * float(np.std(operations[at])) / mean if mean > 0 else 0.0
    if spread_pct < STEADIER_RATIO * plateau.spread_pct:
        return None
    statement = f"requests vary by {show(spread_pct, 'pct')}, their bytes by {show(plateau.spread_pct, 'pct')}"
    return Evidence(statement, statistic="spread", value=spread_pct, unit="pct")


def signs_of_limit(context: RuleContext, disk: SeriesGroup, plateau: Plateau) -> list[Evidence]:
    """What speaks for a limit in the series of one disk: a round, regular rate that its mix of operations leaves alone.

    Args:
        context: of the rule.
        disk: the latency of one disk, at the times of the plateau.
        plateau: of that disk.
    """
    signs = []
    bare = rate_without_flushes(context, disk, plateau)
    near = round_ceiling(plateau.ceiling_per_s) or (None if bare is None else round_ceiling(bare))
    if near is not None:
        signs.append(Evidence(f"{near:,.0f} is a round number, as people set limits", value=near, unit="per_s"))
    if plateau.dispersion <= REGULAR_DISPERSION_MAX and plateau.queue >= REGULAR_QUEUE_MIN:
        statement = f"the rate is steadier than chance lets it be: dispersion {plateau.dispersion:.2g}, by chance 1"
        signs.append(Evidence(statement, statistic="dispersion", value=plateau.dispersion, unit="ratio"))
    spreads = []
    for metric in ("disk_reads_per_s", "disk_writes_per_s"):
        whole = context.aligned(disk, metric)
        part = np.full(1, np.nan) if whole is None else whole[0][plateau.at_ceiling]
        spreads.append(100.0 * float(np.std(part)) / plateau.ceiling_per_s)
    if np.min(spreads) > max(MIX_SPREAD_PCT, 2.0 * plateau.spread_pct):
        shown = " and ".join(show(spread, "pct") for spread in spreads)
        statement = f"reads and writes vary by {shown} of it, their sum by {show(plateau.spread_pct, 'pct')}"
        signs.append(Evidence(statement, statistic="spread", value=float(np.min(spreads)), unit="pct"))
    return signs


def rate_without_flushes(context: RuleContext, disk: SeriesGroup, plateau: Plateau) -> float | None:
    """The rate at the ceiling less flushes, per second; None where flushes were not measured or are few.

    Linux counts a flush that carries no data as a write, and a limiter may let flushes pass: a log disk capped at 30
    writes per second shows 60. It is right for one writer that waits for each flush: flushes of several are merged, so
    that more were empty, and a flush may carry data, so that none was (decision 0008).
    """
    flushes = context.aligned(disk, "guest_disk_flushes_per_s")
    if flushes is None:
        return None
    known = flushes[0][plateau.at_ceiling]
    share = float(np.nanmedian(known)) / plateau.ceiling_per_s if np.isfinite(known).any() else 0.0
    return plateau.ceiling_per_s * (1.0 - share) if FLUSH_SHARE_MIN <= share < 1.0 else None


def latency_below(context: RuleContext, disk: Entity, plateau: Plateau, share: float) -> Evidence | None:
    """Mean device latency below a disk while it was at the ceiling, ms; None when it was not recorded.

    Of the device the inventory names, else of the slowest on the VM's host that did at least ``share`` of the ceiling's
    rate and so could be it.
    """
    metric = "disk_device_latency_ms"
    near = _near(context, disk, plateau, share)
    means = {device: mean_of(context, metric, device, plateau.windows) for device in near}
    latencies = {device: mean for device, mean in means.items() if mean is not None}
    devices = _devices_below(context, disk, plateau, share, latencies)
    if not devices:
        return None
    slowest = max(devices, key=lambda device: latencies[device])
    return Evidence(
        f"device {slowest.name} below answered in {show(latencies[slowest], 'ms')} on average meanwhile",
        metric=metric,
        entity=slowest,
        statistic="mean",
        value=latencies[slowest],
        threshold=share * plateau.latency_ms,
        unit="ms",
    )


def has_full_queue_below(context: RuleContext, disk: Entity, plateau: Plateau, share: float) -> bool:
    """Whether a device below a disk had all its slots in use while the disk was at the ceiling, and commands waited.

    A limit of a VM keeps commands away from the device: then its slots are free. Of the devices `latency_below` means.
    """
    shown: dict[Entity, tuple[float | None, ...]] = {}
    for device in _near(context, disk, plateau, share):
        queues = tuple(mean_of(context, metric, device, plateau.windows) for metric in QUEUES)
        if queues[0] is not None or queues[3] is not None:
            shown[device] = queues
    for device in _devices_below(context, disk, plateau, share, shown):
        active, queued, depth, used = shown[device]
        used_share = active / depth if active is not None and depth else (used or 0.0) / 100.0
        if used_share >= FULL_SHARE_MIN and (1.0 if queued is None else queued) >= 1.0:
            return True
    return False


def _near(context: RuleContext, disk: Entity, plateau: Plateau, share: float) -> list[Entity]:
    """The devices that may be below a disk: those the inventory names, and of its host's the slowest that do enough."""
    guest = disk.ancestor(EntityKind.GUEST)
    owner = disk if guest is None else context.inventory.vm_of(guest)
    host = None if owner is None else owner.ancestor(EntityKind.HOST)
    slowest = [] if host is None else context.table(_slowest_devices).get(host, [])
    least = share * plateau.ceiling_per_s
    named = [device for device in behind(context.inventory, disk) if device.kind is EntityKind.DEVICE]
    others = (device for peak, device in slowest if peak >= least and device not in named)
    return [*named, *islice(others, NEAR_MAX)]


def _devices_below(
    context: RuleContext, disk: Entity, plateau: Plateau, share: float, measured: Collection[Entity]
) -> list[Entity]:
    """The measured devices the inventory names below a disk, else those on its host that are busy enough to be it."""
    devices = [device for device in behind(context.inventory, disk) if device in measured]
    if devices:
        return devices
    least = share * plateau.ceiling_per_s
    return [device for device in measured if (mean_of(context, "disk_iops", device, plateau.windows) or 0.0) >= least]


@derived("disk_iops", "disk_device_latency_ms")
def _slowest_devices(reader: Recorded) -> Mapping[Entity, list[tuple[float, Entity]]]:
    """The devices of each host with the highest rate of each, per second; the slowest on average first."""
    latencies: dict[Entity, float] = {}
    for group in reader.of("disk_device_latency_ms", EntityKind.DEVICE):
        means = zip(group.entities, row_means(group.values).tolist(), strict=True)
        latencies |= {device: mean for device, mean in means if not isnan(mean)}
    peaks: dict[Entity, float] = {}
    for group in reader.of("disk_iops", EntityKind.DEVICE):
        for device, peak in zip(group.entities, row_extents(group.values)[1].tolist(), strict=True):
            peaks[device] = max(peaks.get(device, 0.0), peak)
    by_host: dict[Entity, list[tuple[float, Entity]]] = {}
    for device in sorted(peaks, key=lambda one: latencies.get(one, -1.0), reverse=True):
        if device.parent is not None:
            by_host.setdefault(device.parent, []).append((peaks[device], device))
    return by_host


def units_of_32_kib(
    context: RuleContext, group: SeriesGroup, rate: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """The rate [k, n] per second as limits count it that charge an operation once per 32 KiB, from the mean size."""
    total = io_rate(context, group, (("disk_read_mib_per_s", "disk_write_mib_per_s"),))
    return rate if total is None else np.fmax(rate, total / LIMIT_UNIT_MIB)


def limit_of(inventory: Inventory, disk: Entity) -> float | None:
    """The limit in operations per second the inventory gives for a virtual disk, or for the one a block device is."""
    virtual = virtual_disk_of(inventory, disk) if disk.kind is EntityKind.BLOCK_DEVICE else disk
    limit = None if virtual is None else inventory.get(virtual, "iops_limit")
    return None if limit is None else float(limit)


@dataclass(frozen=True, slots=True)
class SetLimit:
    """A limit in operations per second that is known to be set on a disk, and the sentence that says so."""

    per_s: float
    text: str


def set_limit(context: RuleContext, disk: Entity) -> SetLimit | None:
    """The lowest limit a virtual disk, or the one a block device is, had in the recording; else the inventory's."""
    inventory = context.inventory
    virtual = virtual_disk_of(inventory, disk) if disk.kind is EntityKind.BLOCK_DEVICE else disk
    recorded = None if virtual is None else context.table(_set_limits).get(virtual)
    if recorded is None:
        limit = limit_of(inventory, disk)
        return None if limit is None else SetLimit(limit, f"the inventory gives a limit of {show(limit, 'per_s')}")
    lowest, highest = recorded
    before = f", and of {show(highest, 'per_s')} at other times" if highest > lowest else ""
    return SetLimit(lowest, f"a limit of {show(lowest, 'per_s')} was set on it{before}")


@derived(LIMIT)
def _set_limits(reader: Recorded) -> Mapping[Entity, tuple[float, float]]:
    """The lowest and the highest limit of each disk whose limit was recorded, per second."""
    limits: dict[Entity, tuple[float, float]] = {}
    for group in reader.of(LIMIT):
        lows, highs = row_extents(group.values)
        for disk, low, high in zip(group.entities, lows.tolist(), highs.tolist(), strict=True):
            if not isnan(low):
                before = limits.get(disk, (low, high))
                limits[disk] = (min(before[0], low), max(before[1], high))
    return limits


def round_ceiling(ceiling_per_s: float) -> float | None:
    """The round number a ceiling is close to, as people set limits; None when it is close to none.

    Steps are 10 below 100, 50 below 1000, 100 below 10,000, 1000 above; close is 1 %, and a tenth of the step.

    >>> [round_ceiling(rate) for rate in (199.6, 212.0, 30.1, 2995.0)]
    [200.0, None, 30.0, 3000.0]
    """
    steps = ((100.0, 10.0), (1000.0, 50.0), (10_000.0, 100.0), (float("inf"), 1000.0))
    step = next(step for below, step in steps if ceiling_per_s < below)
    nearest = step * round(ceiling_per_s / step)
    close = nearest > 0 and abs(ceiling_per_s - nearest) <= min(0.01 * ceiling_per_s, 0.1 * step)
    return nearest if close else None
