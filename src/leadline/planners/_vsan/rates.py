"""Rates of the machines: as given, else 95th percentiles of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import nan

import numpy as np

from leadline.core.capture import NS_PER_S, Capture, SeriesGroup
from leadline.core.vocabulary import EntityKind
from leadline.planners._vsan.inputs import Vsan

# The first kind that was recorded counts: the others have the same requests again.
KINDS = (
    EntityKind.VIRTUAL_DISK,
    EntityKind.WORLD,
    EntityKind.DATASTORE,
    EntityKind.BLOCK_DEVICE,
    EntityKind.DEVICE,
)
MIB_MB = 2**20 / 1e6
PERCENTILE = 95.0
DAY_NS = 86_400 * NS_PER_S
METRICS = {
    "write_mb_per_s": ("disk_write_mib_per_s", MIB_MB, "MB/s written"),
    "read_mb_per_s": ("disk_read_mib_per_s", MIB_MB, "MB/s read"),
    "write_iops": ("disk_writes_per_s", 1.0, "writes per second"),
    "read_iops": ("disk_reads_per_s", 1.0, "reads per second"),
}


@dataclass(frozen=True, slots=True)
class Rates:
    """What is known of the load; NaN is not measured."""

    write_mb_per_s: float = nan
    read_mb_per_s: float = nan
    write_iops: float = nan
    read_iops: float = nan
    write_mean_mb_per_s: float = nan
    evidence: tuple[str, ...] = ()

    @property
    def read_bytes(self) -> float:
        """Bytes of a read; 0 where reads are not known or none."""
        known = self.read_iops > 0 and self.read_mb_per_s > 0
        return self.read_mb_per_s * 1e6 / self.read_iops if known else 0.0


def rates_of(own: Vsan, capture: Capture | None, told: tuple[str, ...] = ()) -> Rates:
    """What is given, and what is not from the recording; ``told`` is evidence found before."""
    found: dict[str, float] = {}
    evidence = list(told)
    for key, (metric, factor, noun) in METRICS.items():
        given = getattr(own, key)
        if given is not None:
            found[key] = given
            continue
        seen = None if capture is None else _seen(capture, metric)
        if seen is None:
            continue
        peak, mean, where = seen
        found[key] = peak * factor
        evidence.append(f"{peak * factor:,.4g} {noun}: 95th percentile of {where}")
        if key == "write_mb_per_s" and own.write_mean_mb_per_s is None:
            found["write_mean_mb_per_s"] = mean * factor
            evidence.append(f"{mean * factor:,.4g} {noun} on average, same window")
    if own.write_mean_mb_per_s is not None:
        found["write_mean_mb_per_s"] = own.write_mean_mb_per_s
    return Rates(**found, evidence=tuple(evidence))


def _seen(capture: Capture, metric: str) -> tuple[float, float, str] | None:
    """95th percentile and mean of the sum of all series, and where and when they were recorded."""
    for kind in KINDS:
        groups = [group for group in capture.of(metric, kind) if np.isfinite(group.values).any()]
        if groups:
            return _total(capture, kind, groups)
    return None


def _total(capture: Capture, kind: EntityKind, groups: list[SeriesGroup]) -> tuple[float, float, str]:
    """Over all groups; where a recording has another's disks as well, the larger of the two counts."""
    peaks: dict[frozenset[str], tuple[float, float]] = {}
    for group in groups:
        times = np.isfinite(group.values).any(axis=0)
        sums = np.nansum(group.values[:, times], axis=0)
        peak, mean = float(np.percentile(sums, PERCENTILE)), float(np.mean(sums))
        names = frozenset(map(str, group.entities))
        other = next((known for known in peaks if known & names), None)
        if other is not None:
            old = peaks.pop(other)
            peak, mean, names = max(peak, old[0]), max(mean, old[1]), names | other
        peaks[names] = (peak, mean)
    first = min(int(group.times_ns[0]) for group in groups)
    last = max(int(group.times_ns[-1]) for group in groups)
    sources = ", ".join(sorted({capture.sources[group.source].name for group in groups}))
    count = sum(len(names) for names in peaks)
    adds = " (percentiles of recordings added)" if len(peaks) > 1 else ""
    short = "; less than a day, other hours may be worse" if last - first < DAY_NS else ""
    told = f"the sum of {count} of kind {kind.value}{adds}, {_at(first)} to {_at(last)} UTC, {sources}{short}"
    return sum(peak for peak, _ in peaks.values()), sum(mean for _, mean in peaks.values()), told


def _at(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / NS_PER_S, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
