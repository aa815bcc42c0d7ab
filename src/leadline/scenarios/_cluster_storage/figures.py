"""What the simulator measures of cluster storage."""

from __future__ import annotations

from leadline.scenarios._simulator import Column, Figures, IoFigures, Number, Outcome


class Traffic(Figures):
    """Work of all disks and of the network: of guests, and of resynchronisation."""

    reads: tuple[int, int]
    writes: tuple[int, int]
    read_bytes: tuple[int, int]
    written_bytes: tuple[int, int]
    sent_bytes: tuple[int, int]


class Healing(Figures):
    """The way back to full protection: when, ns, and how much."""

    failed: Number
    began: Number
    ended: Number
    fragment_count: int
    bytes: int
    stalled_count: int


class ClusterFigures(Outcome):
    """What the simulator measured; of groups the last is all together, ``latency_p95`` is of each VM, ns."""

    raw_by_data: float
    groups: tuple[IoFigures, ...]
    latency_p95: tuple[Number, ...]
    disk_use: Column
    wire_use: Column
    resynced: Column
    traffic: Traffic
    healing: Healing
    chunk_count: int
    unreadable_count: int
    parked_count: int
