"""The write buffer: how long a peak of writes is absorbed, in closed form and simulated."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan
from typing import Any

from leadline.core.contracts.planner import PlanContext
from leadline.planners._vsan.inputs import Vsan

WRITE_SHARES = {"all-flash": 1.0, "hybrid": 0.3}
READ_HITS = {"all-flash": 0.0, "hybrid": 0.9}
DESTAGE_FROM, SLOW_FROM, SLOW_TO = 0.3, 0.8, 1.0  # as the system cache-tiers has them
READ_TIME_MAX = 0.5
FETCH_BYTES = float(1 << 20)
MB = 1e6


@dataclass(frozen=True, slots=True)
class DiskGroupLoad:
    """A disk group and what reaches it: MB/s written with protection, reads per second and their bytes."""

    buffer_gb: float
    cache_mb_per_s: float
    device_mb_per_s: float
    write_mb_per_s: float
    read_busy: float = 0.0

    @property
    def drain_mb_per_s(self) -> float:
        """Return the rate at which the group destages while it serves reads, MB/s."""
        return self.device_mb_per_s * (1 - min(self.read_busy, READ_TIME_MAX))

    def absorbed_s(
        self,
        fill: float,
        destage_from: float = DESTAGE_FROM,
        slow_from: float = SLOW_FROM,
        slow_to: float = SLOW_TO,
    ) -> float:
        """Seconds until writes are slowed; infinite where destaging keeps up.

        Below ``destage_from`` the buffer fills at the rate of writes, above at that less what is destaged, up to where
        the line of congestion crosses the rate. With destaging from the start and a buffer that slows only when full it
        is B (1 - f) / (writes - drain).
        """
        rate, drain = self.write_mb_per_s, self.drain_mb_per_s
        if rate >= self.cache_mb_per_s:
            return 0.0
        if rate <= drain:
            return inf
        crossing = (self.cache_mb_per_s - rate) / (self.cache_mb_per_s - drain)
        level = slow_from + crossing * (slow_to - slow_from)
        size = self.buffer_gb * 1000.0
        quiet = max(0.0, min(destage_from, level) - fill)
        rest = max(0.0, level - max(fill, destage_from))
        return size * quiet / rate + size * rest / (rate - drain)


def buffer_gb(inputs: Vsan) -> float:
    """Of a group: the device's part for writes, at most what the version uses."""
    return min(inputs.cache_gb * WRITE_SHARES[inputs.media], inputs.buffer_max_gb)


def group_of(inputs: Vsan, rates: tuple[float, float, float], devices: int, groups: int) -> DiskGroupLoad:
    """A group of so many in the cluster; ``rates``: MB/s written with protection, reads per second, bytes of a read."""
    writes, reads, size = rates
    fetched = FETCH_BYTES if inputs.media == "hybrid" else size
    fetch_s = inputs.device_access_ms / 1000.0 + fetched / (inputs.device_read_mb_per_s * MB)
    busy = reads / groups * (1 - READ_HITS[inputs.media]) * fetch_s / devices
    return DiskGroupLoad(
        buffer_gb(inputs), inputs.cache_mb_per_s, devices * inputs.device_mb_per_s, writes / groups, busy
    )


def scenario(inputs: Vsan, rates: tuple[float, float, float], devices: int, groups: int) -> dict[str, Any]:
    """Return a scenario of one disk group with its share of the load; writes already include their copies."""
    writes, reads, size = (value / count for value, count in zip(rates, (groups, groups, 1), strict=True))
    window = max(inputs.burst_s, 60.0) / 60.0
    streams: list[dict[str, Any]] = [
        {"name": "writes", "block": "64k", "read_pct": 0, "rate_iops": writes * MB / 65_536},
    ]
    if reads > 0 and size > 0:
        block = max(1, round(size / 1024))
        streams.append({"name": "reads", "block": f"{block}k", "read_pct": 100, "rate_iops": reads})
    device = {
        "count": devices,
        "mb_per_s": inputs.device_mb_per_s,
        "access": inputs.device_access_ms / 1000.0,
        "read_mb_per_s": inputs.device_read_mb_per_s,
    }
    cache = {"gb": inputs.cache_gb, "mb_per_s": inputs.cache_mb_per_s}
    return {
        "name": "vsan-plan",
        "system": "cache-tiers",
        "policy": inputs.media,
        "timing": {"warm_up_s": 0, "measure_s": 120 * window, "window_s": window},
        "workload": {"io": streams},
        "groups": [{"name": "group", "cache": cache, "devices": device, "fill_pct": inputs.fill_pct}],
        "protection": {"copies": 1},
        "buffer_max_gb": inputs.buffer_max_gb,
    }


def simulated_s(
    inputs: Vsan, rates: tuple[float, float, float], devices: int, groups: int, context: PlanContext
) -> float:
    """Seconds until writes are slowed; infinite when that is not within twice the peak."""
    slowed = context.simulated(scenario(inputs, rates, devices, groups)).measure("front-end", "slowed_after_s").value
    return inf if isnan(slowed) else float(slowed)
