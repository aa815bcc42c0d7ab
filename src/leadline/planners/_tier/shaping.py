"""Requests behind limits: when each may pass, exactly, for millions of them at once.

A limit is a bucket of tokens that fills at a rate and holds some seconds of it. Requests pass in their order, each when
the bucket has its tokens. With arrivals a and costs c (seconds of the rate) the last moment at which the tokens of all
before are spent is V[i] = max over j <= i of a[j] + c[j] + ... + c[i]; request i passes at a[i], or later at V[i] less
what the bucket holds. Of several limits the latest counts.

Source: Le Boudec and Thiran, "Network Calculus" (2001), section 1.5: greedy shapers, and buckets in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SPREAD = 0.5  # Judgement: of a device's latency around its mean; recordings hold means
SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class DiskDemand:
    """What was asked for, by interval.

    Attributes:
        seconds: length of each, [n].
        iops: operations per second, [n].
        bytes: mean size of an operation, [n].
        latency_ms: mean time of an operation at the device without a limit, [n].
    """

    seconds: Floats
    iops: Floats
    bytes: Floats
    latency_ms: Floats

    @property
    def count(self) -> float:
        """Operations in all."""
        return float((self.seconds * self.iops).sum())

    def busiest(self, count_max: int) -> DiskDemand:
        """The stretch of intervals one after the other with most operations, of at most so many."""
        counts = self.seconds * self.iops
        if counts.sum() <= count_max:
            return self
        upto = np.concatenate(([0.0], np.cumsum(counts)))
        ends = np.searchsorted(upto, upto[:-1] + count_max, side="right") - 1
        lengths = np.concatenate(([0.0], np.cumsum(self.seconds)))
        span = np.where(ends > np.arange(len(ends)), lengths[ends] - lengths[:-1], np.inf)
        mean = np.where(np.isfinite(span), (upto[ends] - upto[:-1]) / span, 0.0)
        # Of stretches that reach the count the shortest is the busiest.
        first = int(np.argmax(mean))
        part = slice(first, max(int(ends[first]), first + 1))
        return DiskDemand(self.seconds[part], self.iops[part], self.bytes[part], self.latency_ms[part])


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """What a disk may.

    Attributes:
        iops: operations per second; None for no limit.
        mib_per_s: None for no limit.
        unit_kib: an operation counts as one for each of these, begun.
        burst_iops, burst_mib_per_s: for a while; None where nothing goes beyond the limit.
        burst_s: how long a burst of the highest rate lasts from full credit, seconds.
        held_s: what passes at once after an idle time, seconds of the limit.
    """

    iops: float | None
    mib_per_s: float | None = None
    unit_kib: float | None = None
    burst_iops: float | None = None
    burst_mib_per_s: float | None = None
    burst_s: float = 0.0
    held_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Requests of a demand, as many as were counted in each interval and at random within it.

    Attributes:
        at_s: when each comes, seconds, [m], ascending.
        bytes: of each, [m].
        device_ms: time at the device of each, [m].
    """

    at_s: Floats
    bytes: Floats
    device_ms: Floats

    @classmethod
    def of(cls, demand: DiskDemand) -> Requests:
        """The requests of a demand; the same for the same demand."""
        random = np.random.default_rng(SEED)
        upto = np.floor(np.cumsum(demand.seconds * demand.iops) + 0.5)
        counts = np.diff(upto, prepend=0.0).astype(np.int64)
        starts = np.concatenate(([0.0], np.cumsum(demand.seconds)[:-1]))
        which = np.repeat(np.arange(len(counts)), counts)
        at_s = starts[which] + demand.seconds[which] * random.random(len(which))
        order = np.argsort(at_s, kind="stable")
        which = which[order]
        shape = 1.0 / SPREAD**2
        device_ms = random.gamma(shape, 1.0 / shape, len(which)) * demand.latency_ms[which]
        return cls(at_s[order], demand.bytes[which], device_ms)


@dataclass(frozen=True, slots=True)
class Behind:
    """Requests behind a limit: their latency, what waited at most, and the share of them that waited."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    queue_most: int
    waited_share: float


def behind(requests: Requests, limit: TokenLimit) -> Behind:
    """How long requests take behind a limit, with the time at the device."""
    at_s = requests.at_s
    if not len(at_s):
        return Behind(0.0, 0.0, 0.0, 0, 0.0)
    passed = at_s
    for cost_s, held_s in _buckets(requests, limit):
        total = np.cumsum(cost_s)
        spent = np.maximum.accumulate(at_s - (total - cost_s)) + total
        passed = np.maximum(passed, spent - np.maximum(held_s, cost_s))
    waited_ms = (passed - at_s) * 1000.0
    p50, p95, p99 = np.quantile(waited_ms + requests.device_ms, [0.5, 0.95, 0.99])
    waiting = np.arange(1, len(at_s) + 1) - np.searchsorted(passed, at_s, side="right")
    share = float(np.mean(waited_ms > 1e-6))
    return Behind(float(p50), float(p95), float(p99), max(int(waiting.max()), 0), share)


def _buckets(requests: Requests, limit: TokenLimit) -> list[tuple[Floats, float]]:
    """Seconds of its rate that each request costs, and the seconds a bucket holds, of each bucket of a limit."""
    units = np.ones(len(requests.bytes))
    if limit.unit_kib is not None:
        units = np.maximum(np.ceil(requests.bytes / (limit.unit_kib * 1024.0) - 1e-9), 1.0)
    mib = requests.bytes / 1024.0**2
    buckets = []
    for cost, rate, burst in ((units, limit.iops, limit.burst_iops), (mib, limit.mib_per_s, limit.burst_mib_per_s)):
        if rate is None:
            continue
        is_burst = burst is not None and burst > rate and limit.burst_s > 0.0
        # A burst of so many seconds at the higher rate spends what it has more than the limit fills.
        held_s = limit.burst_s * (burst - rate) / rate if is_burst and burst is not None else limit.held_s
        buckets.append((cost / rate, held_s))
        if is_burst and burst is not None:
            buckets.append((cost / burst, limit.held_s))
    return buckets
