"""How long flushes took, as a server counts them for Prometheus: etcd's and others' histograms of fsync.

Reads:
    A scrape (the text of ``/metrics``) of etcd, Prometheus, Consul and others that count how long a flush of their log
    took: families named ``..._fsync_duration_seconds`` and etcd's ``etcd_disk_backend_commit_duration_seconds``, as
    histograms or summaries. All other families are left to others.

Sample:
    .. code-block:: text

        # TYPE etcd_disk_wal_fsync_duration_seconds histogram
        etcd_disk_wal_fsync_duration_seconds_bucket{le="0.016"} 132
        etcd_disk_wal_fsync_duration_seconds_bucket{le="0.032"} 47595
        etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 57035
        etcd_disk_wal_fsync_duration_seconds_sum 1623.4
        etcd_disk_wal_fsync_duration_seconds_count 57035

Lost:
    When the flushes were: the counts are since the server was started. Where ``_sum`` was left out, the mean is of the
    middles of the buckets.

Units:
    Seconds. Percentiles lie within a bucket, in proportion.

Sources:
    etcd documentation, "Metrics"; Prometheus documentation, "Histograms and summaries".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="fsync histograms",
    layers=(Layer.STORAGE_PATH,),
    marks=("_fsync_duration_seconds", "etcd_disk_backend_commit_duration_seconds"),
    fields={"..._fsync_duration_seconds": Field("job_latency_ms", "s")},
    record="curl -s http://127.0.0.1:2379/metrics > metrics.txt",
)

_FAMILY = r"(\w{1,80}_fsync_duration_seconds|etcd_disk_backend_commit_duration_seconds)"
_BUCKET = re.compile(rf'^{_FAMILY}_bucket\{{[^}}\n]*\ble="([^"\n]+)"[^}}\n]*\}}\s+(\S+)', re.MULTILINE)
_TOTAL = re.compile(rf"^{_FAMILY}_(sum|count)(?:\{{[^}}\n]*\}})?\s+(\S+)", re.MULTILINE)
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(slots=True)
class _Family:
    """One family: how many took at most so long, by seconds; the sum of all, and how many there were."""

    at_most: dict[float, float] = field(default_factory=dict)
    sum_s: float = math.nan
    count: float = math.nan


def sniff(source: Source) -> int:
    """Sure by a bucket or a sum of such a family; less so beside families that another importer reads."""
    text = source.head_text
    if not (_BUCKET.search(text) or _TOTAL.search(text)):
        return 0
    return 91


def read(source: Source, request: Request) -> Capture:
    """A result for each family.

    Raises:
        InputError: no flush was counted.
    """
    del request
    builder = CaptureBuilder(source.name, "fsync-histograms", META.tool)
    for name, family in _families(source.text()).items():
        operation = _operation(family)
        if operation is not None:
            tool, _, job = name.removesuffix("_duration_seconds").partition("_")
            builder.results.append(Result(tool, job.replace("_", " "), (operation,), math.nan, source=source.name))
    if not builder.results:
        raise InputError(
            source.name,
            found="histograms of flushes without a count",
            expected="one flush or more",
            advice=f"Record it again: {META.record}",
        )
    builder.warn("since-start", "counts are of all flushes since the server was started")
    return builder.build(clock_known=False)


def _families(text: str) -> dict[str, _Family]:
    families: dict[str, _Family] = {}
    for name, edge, number in _numbers(_BUCKET, text):
        family = families.setdefault(name, _Family())
        family.at_most[float(edge)] = family.at_most.get(float(edge), 0.0) + number  # of several label sets the sum
    for name, kind, number in _numbers(_TOTAL, text):
        family = families.setdefault(name, _Family())
        if kind == "sum":
            family.sum_s = number if math.isnan(family.sum_s) else family.sum_s + number
        else:
            family.count = number if math.isnan(family.count) else family.count + number
    return families


def _numbers(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str, float]]:
    """Matches with a number that can be one."""
    for name, mark, number in pattern.findall(text):
        try:
            value = float(number)
            float(mark.replace("sum", "0").replace("count", "0"))
        except ValueError:
            continue
        if math.isfinite(value) and value >= 0:
            yield name, mark, value


def _operation(family: _Family) -> Operation | None:
    """What a family says of a flush; None where none was counted."""
    edges = sorted(family.at_most)
    count = family.at_most[edges[-1]] if edges else family.count
    if not count > 0:
        return None
    latency_ms: dict[str, float] = {}
    if math.isfinite(family.sum_s):
        latency_ms["mean"] = factor("s", "ms") * family.sum_s / count
    elif edges:
        latency_ms["mean"] = factor("s", "ms") * _middle_mean(edges, family.at_most)
    for name, share in _QUANTILES.items():
        quantile_s = _quantile(edges, family.at_most, share * count)
        if math.isfinite(quantile_s):
            latency_ms[name] = factor("s", "ms") * quantile_s
    return Operation("fsync", count=count, latency_ms=latency_ms) if latency_ms else None


def _middle_mean(edges: list[float], at_most: dict[float, float]) -> float:
    """The mean of the middles of buckets; the last, which has no end, counts as its beginning."""
    total = before = low = 0.0
    for edge in edges:
        high = edge if math.isfinite(edge) else low
        total += (at_most[edge] - before) * (low + high) / 2
        before, low = at_most[edge], high
    return total / before if before else math.nan


def _quantile(edges: list[float], at_most: dict[float, float], wanted: float) -> float:
    before = low = 0.0
    for edge in edges:
        inside = at_most[edge] - before
        if at_most[edge] >= wanted and inside > 0:
            return low + (edge - low) * (wanted - before) / inside if math.isfinite(edge) else low
        before, low = at_most[edge], edge if math.isfinite(edge) else low
    return math.nan
