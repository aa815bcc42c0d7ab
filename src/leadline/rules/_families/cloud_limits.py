"""Rules that look at what a cloud says of its limits: whether somebody waits while it is so, and how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import sample_bounds
from leadline.estate.derived.disks import means_over
from leadline.estate.derived.latencies import block_awaits
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity

# What these rules read beside the limits; rules that call `capped` declare them.
WAITS = (
    *("guest_disk_await_ms", "guest_disk_await_ms_read", "guest_disk_await_ms_write"),
    *("disk_iops", "disk_reads_per_s", "disk_writes_per_s"),
)
LATENCY_MIN = Threshold(5.0, "ms", "Judgement: cloud volumes answer in 1 to 2 ms; requests that wait take longer")


def cloud_meta(code: str, metrics: tuple[str, str], warn: Threshold, crit: Threshold) -> RuleMeta:
    """META of a rule about a cloud's limits of IOPS and of throughput, by two metrics in percent."""
    return RuleMeta(
        code=code,
        layer=Layer.VM,
        severity=Severity.HIGH,
        causes=("disk-capped",),
        accuses=Blames.LIMIT,
        needs=("|".join(metrics),),
        uses=WAITS,
        thresholds={"warn": warn, "crit": crit, "latency_min": LATENCY_MIN, "duration": TWO_SAMPLES},
        explains=("vm-iops-limit-hit", *GUEST_AND_DATABASE_WAIT_FOR_DISK, "guest-disk-slow-for-database"),
        clears=False,
    )


@dataclass(frozen=True, slots=True)
class _Disk:
    """Where the latency of a disk is, and its samples."""

    group: SeriesGroup
    row: int
    values: NDArray[np.floating[Any]]


_Disks = dict["Entity", list[_Disk]]


def capped(context: RuleContext, specs: Iterable[Over]) -> Iterator[Finding]:
    """Findings of limits that are reached while requests wait; one severity lower where no latency was recorded.

    The rule's META gives a threshold ``latency_min``, beside those of `Over`; its advice has a paragraph for disks and
    one for machines.
    """
    disks = _disks(context)

    def while_slow(_: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
        return _while_slow(group, disks, context.limit("latency_min"))

    for bare in over_any(context, [replace(spec, value=while_slow) for spec in specs]):
        whose = "Where the disk" if bare.entity.kind is EntityKind.BLOCK_DEVICE else "Where the machine"
        finding = replace(bare, remedy=f"{context.advice(whose)} {bare.remedy}")
        latency = _latency(context, finding, disks.get(finding.entity, []))
        if latency is None:
            guess = "that requests wait for it: no latency of this disk was recorded at the time"
            yield replace(finding, severity=finding.severity.lowered(), guessed=(*finding.guessed, guess))
        else:
            summary = f"{finding.summary}; {show(latency.value or 0.0, 'ms')} of latency is mostly its queue"
            yield replace(finding, summary=summary, evidence=(*finding.evidence, latency))


def _disks(context: RuleContext) -> _Disks:
    """The recorded latencies of each disk, and of all disks of each machine."""
    disks: _Disks = {}
    for group in block_awaits(context):
        values = group.values
        for row, disk in enumerate(group.entities):
            for entity in (disk, disk.parent):
                if entity is not None:
                    disks.setdefault(entity, []).append(_Disk(group, row, values[row]))
    return disks


def _while_slow(group: SeriesGroup, disks: _Disks, least_ms: float) -> NDArray[np.floating[Any]]:
    """The values [k, n]; NaN where latency was recorded and all disks of the entity were quick."""
    starts, ends = sample_bounds(group)
    values = np.array(group.values, dtype=np.float64)
    for row, entity in enumerate(group.entities):
        latency = _latency_within(disks.get(entity, []), starts, ends)
        with np.errstate(invalid="ignore"):
            values[row, latency < least_ms] = np.nan
    return values


def _latency_within(disks: Iterable[_Disk], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean latency [n] of the slowest of some disks within each span; NaN where none was recorded."""
    slowest = np.full(len(starts), np.nan)
    for disk in disks:
        known = np.isfinite(disk.values)
        times, values = disk.group.times_ns[known], disk.values[known]
        total = np.concatenate(([0.0], np.cumsum(values)))
        first, end = (np.searchsorted(times, bounds, side="right") for bounds in (starts, ends))
        count = end - first
        mean = np.full(len(starts), np.nan)
        np.divide(total[end] - total[first], count, out=mean, where=count > 0)
        slowest = np.fmax(slowest, mean)
    return slowest


def _latency(context: RuleContext, finding: Finding, disks: list[_Disk]) -> Evidence | None:
    """The latency of the slowest of some disks in the windows of a finding, and in the rest of the recording."""
    groups = [disk.group.take([disk.row]) for disk in disks]
    means = means_over(groups, finding.windows) if finding.windows else {}
    if not means:
        return None
    slowest = max(means, key=lambda each: means[each])
    rest = means_over(groups, _rest(context, finding.windows), slowest).get(slowest, float("nan"))
    otherwise = f", {show(rest, 'ms')} otherwise" if np.isfinite(rest) else ""
    return Evidence(
        f"latency of {slowest.label()} {show(means[slowest], 'ms')} while so{otherwise}",
        metric="guest_disk_await_ms",
        entity=slowest,
        statistic="mean",
        value=means[slowest],
        threshold=context.limit("latency_min"),
        unit="ms",
    )


def _rest(context: RuleContext, windows: tuple[Window, ...]) -> list[Window]:
    """What lies before the first window and after the last, where there is any."""
    span = context.capture.span_ns()
    if span is None:
        return []
    first, last = windows[0].start_ns, windows[-1].end_ns
    outside = ((span[0], first), (last, span[1]))
    return [Window(start, end) for start, end in outside if end > start]


def of_machines_and_disks(metric: str, noun: str, says: str, *, below: bool = False) -> Over:
    """The condition of a limit of a disk, or of a machine for all of its disks; a value at the limit counts."""
    kinds = (EntityKind.BLOCK_DEVICE, EntityKind.GUEST)
    return Over(metric, noun, kinds, below=below, inclusive=True, says=says)
