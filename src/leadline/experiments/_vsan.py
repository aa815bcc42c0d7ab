"""What the experiments on disk groups share: devices of data sheets, and a scenario of them."""

from __future__ import annotations

from typing import Any

# Source: Intel, DC P4610 1.6 TB (writes 2,080 MB/s, 18 us) and DC P4800X 375 GB (2,000 MB/s, 10 us), product briefs.
FAST_CACHE = {"mb_per_s": 2080, "latency": "18us"}
# Source: Intel, DC S4600, product specification: sequential writes 490 MB/s, random reads 110 us, sequential 500 MB/s.
FLASH_DEVICE = {"mb_per_s": 490, "access": "110us", "read_mb_per_s": 500}
# Judgement: a disk of 7,200 rpm finds a place in some 12 ms and moves 150 MB/s.
DISK_DEVICE = {"mb_per_s": 150, "access": "12ms", "read_mb_per_s": 150}
FRONT_END = "front-end"
MIB, MB = 2.0**20, 1e6


def group(cache_gb: float, devices: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - parts of a scenario
    """A disk group of flash; ``cache`` and ``device`` replace what its devices are like."""
    cache, device = more.pop("cache", {}), more.pop("device", {})
    return {
        "name": "g",
        "cache": {**FAST_CACHE, "gb": cache_gb, **cache},
        "devices": {**FLASH_DEVICE, "count": devices, **device},
        **more,
    }


def tiers(disk_group: dict[str, Any], *, measure_s: float, window_s: float, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A scenario of disk groups that writes without end, 64 KiB each, 1,024 outstanding; no congestion below full."""
    return {
        "name": "disk-groups",
        "system": "cache-tiers",
        "timing": {"warm_up_s": 0, "measure_s": measure_s, "window_s": window_s},
        "workload": {"io": [{"block": "64k", "read_pct": 0, "oio": 1024}]},
        "groups": [disk_group],
        "protection": {"copies": 2},
        "destage_from_pct": 0,
        "slow_from_pct": 100,
        "slow_to_pct": 100,
        **more,
    }
