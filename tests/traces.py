"""I/O traces for tests, made with a seeded generator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIELDS = "cmd:u2 ver:u2 sn:u4 len:u4 nsg:u4 lbn:u8 ts:u8 rt:u8"
RECORD = np.dtype([(name, f"<{kind}") for name, kind in (field.split(":") for field in _FIELDS.split())])
READ, WRITE = 0x28, 0x2A
START_US = 10**12


def vscsi_records(count: int, *, read_share: float = 0.7, mean_gap_us: float = 1000.0, seed: int = 1) -> NDArray[Any]:
    """Random requests of 4, 8 and 64 KiB within 16 MiB, Poisson arrivals, latencies of about half a millisecond."""
    random = np.random.default_rng(seed)
    made = np.zeros(count, dtype=RECORD)
    made["cmd"] = np.where(random.random(count) < read_share, READ, WRITE)
    made["ver"] = 0x0200
    made["sn"] = np.arange(count)
    made["len"] = random.choice([4096, 8192, 65536], count, p=[0.5, 0.4, 0.1])
    made["lbn"] = random.integers(0, 2032, count) * 16
    made["ts"] = START_US + np.cumsum(random.exponential(mean_gap_us, count)).astype(np.uint64)
    made["rt"] = random.lognormal(6.0, 0.5, count).astype(np.uint64)
    return made


def write_vscsi(path: Path, count: int, *, mean_gap_us: float = 1000.0, read_share: float = 0.7) -> NDArray[Any]:
    """Write a version 2 trace; its records."""
    made = vscsi_records(count, mean_gap_us=mean_gap_us, read_share=read_share)
    made.tofile(path)
    return made
