"""A whole host that suffers, diagnosed: seconds of the process, lines on 80 columns, findings and what is told of them.

``python -m benches.bench_estate [--vms N] [--samples N] [--repeat N]`` generates esxtop captures of one host: healthy,
and sick with one or four faults on every VM. It exits with 1 when a sick estate takes more than two screens. Time is
printed, not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from leadline.app.generating import FaultRequest, generate
from leadline.generators.host_model import CaptureShape

DISKS_PER_VM = 2
ESTATES: dict[str, tuple[str, ...]] = {
    "healthy": (),
    "all VMs swap": ("memory-swap",),
    "all VMs, four faults": ("memory-swap", "cpu-contention", "memory-balloon", "disk-iops-limit"),
}
LINES_MAX = 2 * 50  # two screens
_PROGRAM = "from leadline.faces.cli.main import run; run()"


def sick_estate(path: Path, vm_count: int, sample_count: int, faults: tuple[str, ...]) -> None:
    """Write the capture of a host on which every VM has every one of the faults, in the middle third."""
    shape = CaptureShape(vm_count=vm_count, disks_per_vm=DISKS_PER_VM, sample_count=sample_count)
    step = {"disk-iops-limit": DISKS_PER_VM}  # of each VM the first disk
    requests = [FaultRequest(fault, vm * step.get(fault, 1)) for fault in faults for vm in range(vm_count)]
    generate(shape, requests, path)


def diagnosed(path: Path, *options: str) -> tuple[str, float]:
    """What ``leadline diagnose`` prints in a process of its own, and the seconds that takes."""
    words = [sys.executable, "-c", _PROGRAM, "diagnose", str(path), "--quiet", *options]
    started = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"})
    return done.stdout, time.perf_counter() - started


def main() -> int:
    """Print a row per estate; 1 when one is told too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vms", type=int, default=150)
    parser.add_argument("--samples", type=int, default=120)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    longest = 0
    print(f"{'estate':<22}{'findings':>10}{'told as':>9}{'lines':>7}{'seconds':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name, faults in ESTATES.items():
            path = Path(folder) / "esxtop.csv"
            sick_estate(path, options.vms, options.samples, faults)
            text, first_s = diagnosed(path)
            seconds = median([first_s, *(diagnosed(path)[1] for _ in range(options.repeat - 1))])
            document = json.loads(diagnosed(path, "--json")[0])
            findings, groups = document["findings"], document["groups"]
            told = len(findings) - sum(group["count"] - 1 for group in groups)
            line_count = len(text.splitlines())
            longest = max(longest, line_count)
            print(f"{name:<22}{len(findings):>10,}{told:>9}{line_count:>7}{seconds:>9.2f}")
            path.unlink()
            Path(f"{path}.truth.yaml").unlink()
    return 0 if longest <= LINES_MAX else 1


if __name__ == "__main__":
    raise SystemExit(main())
