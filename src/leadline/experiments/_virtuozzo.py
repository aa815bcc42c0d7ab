"""The cluster of Virtuozzo's storage tests, as far as it is published, and what is assumed of the rest.

Published: disks of 15,000 rpm and 10 GbE; 42 chunk servers on five nodes in the test of density; chunks of 256 MB and
encoding in pieces of 1 MB ("Hybrid Infrastructure administrator's guide", redundancy by erasure coding). Nodes and
disks of the test of backups are not published.
"""

from __future__ import annotations

from typing import Any

CHUNK_BYTES = 256 * 1024**2  # Source: the guide, as above
UNIT_BYTES = 1024**2  # Source: as above
NIC_MB_PER_S = 1250.0  # 10 GbE
NETWORK_LATENCY_US = 50  # Judgement: a switch and two kernels, one way
SEEK_READ_MS, SEEK_WRITE_MS = 3.3, 3.8  # Source: Hitachi Ultrastar 15K450 specification, 4.5.1, typical averages
HALF_TURN_MS = 2.0  # Source: 15,000 rpm
DISK_MB_PER_S = 163.0  # Source: Seagate Cheetah 15K.7 product manual, 4.2.3: 122 to 204 MB/s, the middle


def disk(speed: float = 1.0) -> dict[str, Any]:
    """A disk that is ``speed`` times as fast; positioning takes from nothing to twice the average."""

    def position(seek_ms: float) -> dict[str, Any]:
        mean_us = 1000.0 * (seek_ms + HALF_TURN_MS) / speed
        return {"kind": "uniform", "low": "0us", "high": f"{2.0 * mean_us:.3f}us"}

    return {
        "name": "sas15k",
        "service": position(SEEK_READ_MS),
        "write_service": position(SEEK_WRITE_MS),
        "sequential_service": "10us",
        "mb_per_s": DISK_MB_PER_S * speed,
    }


def cluster(protection: str, nodes: list[dict[str, Any]], vms: list[dict[str, Any]], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - data of a scenario file
    """A scenario of these disks; ``nodes`` need only their names and how many disks they have."""
    return {
        "system": "cluster-storage",
        "cluster": {
            "protection": protection,
            "chunk": CHUNK_BYTES,
            "stripe_unit": UNIT_BYTES,
            "network_latency": f"{NETWORK_LATENCY_US}us",
        },
        "nodes": [{"mb_per_s": NIC_MB_PER_S, **node} for node in nodes],
        "disks": [disk()],
        "vms": vms,
        **more,
    }
