"""Characterisation of a trace of ten million records, binary (vscsiStats version 2) and MSR-style CSV.

``python -m benches.bench_trace [--records N]`` writes both files into a temporary folder and characterises them, each
time in a process of its own: histograms, streams, outstanding requests, burstiness, working set and miss-ratio curve.
Beside it, in the same run, what a script would do for a small part of that: NumPy reads the binary records and bins
lengths and latencies per direction, Polars reads the CSV and groups by length. It prints wall time and peak memory of
the process, and exits with 1 when ten million records take longer than the budget.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.measure import cost_of

RECORDS = 10_000_000
BUDGET_S = 5.0
BUDGET_MIB = 256.0
PART = 500_000
_FIELDS = "cmd:u2 ver:u2 sn:u4 len:u4 nsg:u4 lbn:u8 ts:u8 rt:u8"
RECORD = np.dtype([(name, f"<{kind}") for name, kind in (field.split(":") for field in _FIELDS.split())])

_OURS = (
    "from leadline.app.traces.tracing import characterise; from pathlib import Path",
    "characterise([Path({path!r})])",
)
_NUMPY = (
    f"import numpy as np; dtype = np.dtype({RECORD.descr!r})",
    """
raw = np.fromfile({path!r}, dtype)
for code in (0x28, 0x2a):
    part = raw[raw["cmd"] == code]
    np.unique(part["len"], return_counts=True)
    np.histogram(part["rt"], [0, 1, 10, 100, 500, 1000, 5000, 15000, 30000, 50000, 100000])
np.diff(raw["ts"])
""",
)
_POLARS = (
    "import polars as pl",
    """
frame = pl.read_csv({path!r}, has_header=False, new_columns=["t", "host", "disk", "kind", "offset", "size", "rt"])
rt = pl.col("rt")
frame.group_by("disk", "kind", "size").agg(pl.len(), rt.quantile(0.5).alias("p50"), rt.quantile(0.99).alias("p99"))
""",
)


def records(count: int, seed: int = 12) -> NDArray[Any]:
    """Records with skewed addresses, a tenth of them in sequential runs, Poisson arrivals."""
    random = np.random.default_rng(seed)
    made = np.zeros(count, dtype=RECORD)
    made["cmd"] = np.where(random.random(count) < 0.7, 0x28, 0x2A)
    made["ver"] = 0x0200
    made["sn"] = np.arange(count)
    made["len"] = random.choice([4096, 8192, 16384, 65536], count, p=[0.3, 0.5, 0.1, 0.1])
    scattered = (random.zipf(1.2, count).astype(np.uint64) * np.uint64(2_654_435_761)) % np.uint64(1 << 25)
    in_run = np.arange(count) % 100 < 10
    made["lbn"] = scattered * np.uint64(8)
    made["lbn"][in_run] = (1 << 28) + np.arange(int(in_run.sum()), dtype=np.uint64) * np.uint64(128)
    made["ts"] = np.uint64(10**12) + np.cumsum(random.exponential(100.0, count)).astype(np.uint64)
    made["rt"] = random.lognormal(6.0, 1.0, count).astype(np.uint64)
    return made


def write_msr(path: Path, made: NDArray[Any]) -> None:
    """The same records as MSR-style CSV."""
    with path.open("w", encoding="ascii") as stream:
        for start in range(0, len(made), PART):
            part = made[start : start + PART]
            columns = (part[name].tolist() for name in ("ts", "cmd", "lbn", "len", "rt"))
            stream.writelines(
                f"{us * 10},db01,0,{'Read' if code == 0x28 else 'Write'},{lbn * 512},{length},{rt * 10}\n"
                for us, code, lbn, length, rt in zip(*columns, strict=True)
            )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        binary, text = Path(folder) / "db01.vscsi", Path(folder) / "db01.csv"
        made = records(options.records)
        made.tofile(binary)
        write_msr(text, made)
        del made
        megabytes = f"{binary.stat().st_size / 1e6:.0f} and {text.stat().st_size / 1e6:.0f} MB"
        print(f"{options.records:,} records: vscsiStats binary and MSR-style CSV, {megabytes}")
        print(f"{'':<34} {'wall s':>7} {'CPU s':>7} {'peak MiB':>9}")
        met = True
        for name, (setup, body), path in (
            ("leadline, binary", _OURS, binary),
            ("numpy, binary: two histograms", _NUMPY, binary),
            ("leadline, CSV", _OURS, text),
            ("polars, CSV: one group-by", _POLARS, text),
        ):
            cost = cost_of(setup, body.format(path=str(path)), repeat=options.repeat)
            if name.startswith("leadline"):
                met &= cost.wall_s <= BUDGET_S and cost.peak_mib <= BUDGET_MIB
            print(f"{name:<34} {cost.wall_s:>7.2f} {cost.cpu_s:>7.2f} {cost.peak_mib:>9.0f}")
    if options.records >= RECORDS:
        print(f"budget of {BUDGET_S:g} s and {BUDGET_MIB:g} MiB: {'met' if met else 'missed'}")
        if not met:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
