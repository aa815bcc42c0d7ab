"""Disks simulated without Leadline's simulator, and recorded as iostat would: requests in, counters by second out.

Loads are arrivals at random or a loop; devices are one server, or as slow as requests are outstanding. The kernel
counts a request, and its time, when it is done; what is outstanding is the integral over the second.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BEGIN = datetime(2026, 11, 21, 10, 0, 0)  # noqa: DTZ001 - as iostat prints it
KIB = 8.0
READ_SHARE = 0.7


def poisson(rate: float, seconds: float, seed: int) -> Array:
    """Times of arrivals at random, s [n]."""
    chance = np.random.default_rng(seed)
    times = np.cumsum(chance.exponential(1.0 / rate, int(rate * seconds * 1.2) + 50))
    return np.asarray(times[times < seconds], dtype=np.float64)


def one_server(times_s: Array, service_s: Array) -> Array:
    """When each request is done by a device that takes one after the other, s [n]. Source: Lindley's recursion."""
    served = np.cumsum(service_s)
    return np.asarray(served + np.maximum.accumulate(times_s - (served - service_s)), dtype=np.float64)


def linear(times_s: Array, alone_s: float, slope_s: float, seed: int) -> Array:
    """When each request is done that takes alone + slope x the others it finds, on average; exponentially spread."""
    chance = np.random.default_rng(seed)
    found, busy = np.zeros(len(times_s)), list[float]()
    for n, at in enumerate(times_s):
        while busy and busy[0] <= at:
            heapq.heappop(busy)
        found[n] = at + chance.exponential(alone_s + slope_s * len(busy))
        heapq.heappush(busy, found[n])
    return found


def linear_loop(clients: int, seconds: float, alone_s: float, slope_s: float, seed: int) -> tuple[Array, Array]:
    """Times and ends of requests of a loop on the same device, each sent when one is done."""
    chance = np.random.default_rng(seed)
    times, ends, busy = list[float](), list[float](), [0.0] * clients
    while (at := heapq.heappop(busy)) < seconds:
        times.append(at)
        ends.append(at + chance.exponential(alone_s + slope_s * (clients - 1)))
        heapq.heappush(busy, ends[-1])
    return np.array(times), np.array(ends)


def write_iostat(path: Path, loads: Sequence[tuple[Array, Array]], seconds: int, seed: int = 1) -> Array:
    """``iostat -x -t 1`` of disk sdb under one load after the other; mean latencies (ms) of what was done in each."""
    lines = ["Linux 6.1.0 (db01) \t11/21/2026 \t_x86_64_\t(2 CPU)", ""]
    means, number = [], 0
    for times_s, ends_s in loads:
        is_read = np.random.default_rng(seed + number).random(len(times_s)) < READ_SHARE
        columns = []
        for way in (is_read, ~is_read):
            second, taken = ends_s[way].astype(int), (ends_s - times_s)[way] * 1e3
            count, total = np.bincount(second, minlength=seconds), np.bincount(second, taken, minlength=seconds)
            columns += [count[:seconds], (total / np.maximum(count, 1))[:seconds]]
        queue = _outstanding(times_s, ends_s, seconds)
        within = ends_s < seconds
        means.append(float(np.mean((ends_s - times_s)[within])) * 1e3)
        for row in zip(*columns, queue, strict=True):
            lines += _report(number, *(float(value) for value in row))
            number += 1
    path.write_text("\n".join(lines))
    return np.array(means)


def _outstanding(times_s: Array, ends_s: Array, seconds: int) -> Array:
    """Mean number under way in each second, [seconds]."""
    edges = np.arange(seconds + 1.0)
    return np.diff(_sums(ends_s, edges) - _sums(times_s, edges))


def _sums(of: Array, edges: Array) -> Array:
    """Sum of min(edge, value) over values, for each edge."""
    own = np.sort(of)
    below = np.searchsorted(own, edges)
    return np.concatenate([[0.0], np.cumsum(own)])[below] + edges * (len(own) - below)


def _report(number: int, reads: float, read_ms: float, writes: float, write_ms: float, queue: float) -> list[str]:
    return [
        f"{BEGIN + timedelta(seconds=number):%m/%d/%Y %H:%M:%S}",
        "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz aqu-sz %util",
        f"sdb {reads:.2f} {reads * KIB:.2f} 0.00 0.00 {read_ms:.2f} {KIB:.2f} {writes:.2f} {writes * KIB:.2f} "
        f"0.00 0.00 {write_ms:.2f} {KIB:.2f} {queue:.2f} 50.00",
        "",
    ]
