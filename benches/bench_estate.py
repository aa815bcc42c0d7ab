"""A whole host that suffers, diagnosed: seconds of the process, lines on 80 columns, findings and what is told of them.

``python -m benches.bench_estate [--vms N] [--samples N] [--red-samples N] [--repeat N]`` generates esxtop captures of
one host: healthy, and sick with one or four faults on every VM. It exits with 1 when a sick estate takes more than two
screens. Time is printed, not judged. ``red`` is a host on which every counter of every VM and device is beyond its
limits: its CPU seconds as text and as JSON, and the rules that cost most.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from leadline.app.diagnose.findings import run_rules
from leadline.app.diagnose.symptoms import symptoms_of
from leadline.app.generating import FaultRequest, generate
from leadline.app.read.importing import import_paths
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.profile import Profile
from leadline.generators.host_model import CaptureShape

DISKS_PER_VM = 2
ESTATES: dict[str, tuple[str, ...]] = {
    "healthy": (),
    "all VMs swap": ("memory-swap",),
    "all VMs, four faults": ("memory-swap", "cpu-contention", "memory-balloon", "disk-iops-limit"),
}
RED_SAMPLES, RED_INTERVAL_S = 360, 5
RED_START = datetime(2026, 6, 25, 14, tzinfo=UTC)
VCPUS, RED_DISKS, PCPUS, DEVICES = 8, 4, 128, 64
SHOWN_RULES = 5
LINES_MAX = 2 * 50  # two screens
_PROGRAM = "from leadline.faces.cli.main import run; run()"


def sick_estate(path: Path, vm_count: int, sample_count: int, faults: tuple[str, ...]) -> None:
    """Write the capture of a host on which every VM has every one of the faults, in the middle third."""
    shape = CaptureShape(vm_count=vm_count, disks_per_vm=DISKS_PER_VM, sample_count=sample_count)
    step = {"disk-iops-limit": DISKS_PER_VM}  # of each VM the first disk
    requests = [FaultRequest(fault, vm * step.get(fault, 1)) for fault in faults for vm in range(vm_count)]
    generate(shape, requests, path)


def red_host(path: Path, vm_count: int, sample_count: int, seed: int = 7) -> None:
    """Write an esxtop recording of a host whose counters are anything from 0 to 100, so that all limits are passed."""
    names = ["(PDH-CSV 4.0) (UTC)(0)", *(rf"\\esx01.lab.example\{name}" for name in _counters(vm_count))]
    random_ = random.Random(seed)
    pool = [f'"{random_.uniform(0, 100):.2f}"' for _ in range(4096)]
    with path.open("w", encoding="ascii") as stream:
        stream.write(",".join(f'"{name}"' for name in names) + "\n")
        for sample in range(sample_count):
            moment = RED_START + timedelta(seconds=RED_INTERVAL_S * sample)
            values = random_.choices(pool, k=len(names) - 1)
            stream.write(f'"{moment:%m/%d/%Y %H:%M:%S}",' + ",".join(values) + "\n")


def _counters(vm_count: int) -> Iterator[str]:
    """Counters of a host as esxtop writes them, without the host's name."""
    for pcpu in range(PCPUS):
        yield from _of(f"Physical Cpu({pcpu})", "% Processor Time", "% Util Time", "% Core Util Time")
    for vm in range(vm_count):
        group, name = 100_000 + 100 * vm, f"db-{vm:03d}"
        times = [f"% {noun}" for noun in ("Used", "Run", "System", "Wait", "VmWait", "Ready", "Idle", "CoStop")]
        times.extend(("% Max Limited", "% Swap Wait", "Switches/sec", "Migrates/sec"))
        yield from _of(f"Group Cpu({group}:{name})", "Members", *times)
        for vcpu in range(VCPUS):
            yield from _of(f"Vcpu({group}:{name}:{group + 1 + vcpu}:vmx-vcpu-{vcpu}:{name})", *times)
        memory = ("Memory Size", "Memctl", "Swapped", "Swap Target", "Swap Read", "Swap Written")
        sizes = (
            f"{noun} MBytes{'/sec' if noun.startswith('Swap ') and noun != 'Swap Target' else ''}" for noun in memory
        )
        yield from _of(f"Group Memory({group}:{name})", *sizes, "Numa % Local")
        for disk in range(RED_DISKS):
            latencies = (f"Average MilliSec/{noun}" for noun in ("Read", "Write"))
            yield from _of(f"Virtual Disk({name}:scsi{disk // 4}:{disk % 4})", *_RATES, *latencies)
        dropped = ("% Outbound Packets Dropped", "% Received Packets Dropped")
        packets = ("Packets Transmitted/sec", "Packets Received/sec")
        yield from _of(f"Network Port(vSwitch0:{50_331_648 + vm}:{group}:{name}.eth0)", *packets, *dropped)
    for device in range(DEVICES):
        nouns = (f"Average {layer} MilliSec/Command" for layer in ("Driver", "Kernel", "Guest", "Queue"))
        queues = ("Adapter Q Depth", "Active Commands", "Queued Commands", "% Used", "Failed Commands/sec")
        yield from _of(f"Physical Disk SCSI Device(naa.6000c29{device:024x})", *queues, *_RATES, *nouns)


_RATES = ("Commands/sec", "Reads/sec", "Writes/sec", "MBytes Read/sec", "MBytes Written/sec")


def _of(instance: str, *counters: str) -> Iterator[str]:
    return (f"{instance}\\{counter}" for counter in counters)


def costliest_rules(path: Path) -> list[tuple[str, float]]:
    """The rules that take most CPU seconds on a recording, each asked alone."""
    capture = import_paths([path]).capture
    cost_by_rule = []
    for name in rule_metas():
        started = time.process_time()
        run_rules(Profile(), [name], symptoms_of(capture), capture)
        cost_by_rule.append((name, time.process_time() - started))
    return sorted(cost_by_rule, key=lambda pair: -pair[1])[:SHOWN_RULES]


def diagnosed(path: Path, *options: str) -> tuple[str, float]:
    """What ``leadline diagnose`` prints in a process of its own, and the seconds that takes."""
    words = [sys.executable, "-c", _PROGRAM, "diagnose", str(path), "--quiet", *options]
    started = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"})
    return done.stdout, time.perf_counter() - started


def diagnosed_cpu_s(path: Path, *options: str) -> float:
    """The CPU seconds of ``leadline diagnose`` in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    diagnosed(path, *options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    """Print a row per estate; 1 when one is told too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vms", type=int, default=150)
    parser.add_argument("--samples", type=int, default=120)
    parser.add_argument("--red-samples", type=int, default=RED_SAMPLES)
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
        path = Path(folder) / "red.csv"
        red_host(path, options.vms, options.red_samples)
        for noun, flags in (("text", ()), ("--json", ("--json",))):
            print(f"red, CPU s, {noun}: {diagnosed_cpu_s(path, *flags):.2f}")
        for rule, cpu_s in costliest_rules(path):
            print(f"  {rule:<40}{cpu_s:>7.3f}")
    return 0 if longest <= LINES_MAX else 1


if __name__ == "__main__":
    raise SystemExit(main())
