"""Import of a day of `iostat -x -t` text: 5 s apart, 72 disks, 21 columns (version 12), about 250 MB.

``python -m benches.bench_iostat [--reports N] [--disks N]`` writes the file into a temporary folder and imports it,
each time in a process of its own: every column, what the rules of `leadline diagnose` ask for, and two metrics. It
prints wall time, CPU time and peak memory of the whole process, the interpreter and its libraries included. It exits
with 1 when a file of the full size takes more than the budget.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benches.measure import whole_process

BODY_COUNT = 4096
BUDGET_CPU_S = 5.0
BUDGET_MIB = 300.0
REPORTS, DISKS = 17_280, 72
INTERVAL_S = 5
START = datetime(2026, 11, 20, tzinfo=UTC)
HEADER = (
    "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await"
    " wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\n"
)

ASKED = {
    "all": "None",
    "rules": "metrics_read()",
    "two metrics": 'frozenset({"guest_disk_await_ms_read", "disk_iops"})',
}

_IMPORT = """
from pathlib import Path
from leadline.app.diagnose.diagnosing import metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
metrics = {metrics}
import_paths([Path({path!r})], Request(metrics=metrics))
"""


def write_recording(path: Path, *, reports: int, disks: int, seed: int = 12, interval_s: int = INTERVAL_S) -> int:
    """Write a recording; the same arguments give the same bytes. Returns its size."""
    random_ = random.Random(seed)
    bodies = [_body(random_) for _ in range(BODY_COUNT)]
    names = [f"{f'sd{chr(97 + i // 26)}{chr(97 + i % 26)}':<9}" for i in range(disks)]
    with path.open("w", encoding="ascii", newline="\n", buffering=1 << 20) as stream:
        stream.write(f"Linux 6.1.0-18-amd64 (db01) \t{START:%Y-%m-%d} \t_x86_64_\t(72 CPU)\n\n")
        for report in range(reports):
            moment = START + timedelta(seconds=interval_s * report)
            cpu = random_.uniform(1.0, 30.0)
            stream.write(f"{moment:%Y-%m-%dT%H:%M:%S}+0000\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n")
            stream.write(
                f"        {cpu:7.2f} {0:7.2f} {cpu / 4:7.2f} {cpu / 8:7.2f} {0:7.2f} {100 - cpu * 1.375:7.2f}\n"
            )
            stream.write(f"\n{HEADER}")
            offset = random_.randrange(BODY_COUNT)
            rows = [names[i] + bodies[(offset + 61 * i) % BODY_COUNT] for i in range(disks)]
            stream.write("".join(rows))
            stream.write("\n\n")
    return path.stat().st_size


def _body(random_: random.Random) -> str:
    """The numbers of one disk; one in ten is idle, one in twenty moves more than 100 MB/s."""
    if random_.random() < 0.1:
        reads, writes, size = 0.0, 0.0, 0.0
    else:
        reads, writes = random_.expovariate(1 / 400), random_.expovariate(1 / 300)
        size = 512.0 if random_.random() < 0.05 else random_.choice((4.0, 8.0, 16.0, 64.0))
    parts = []
    for rate in (reads, writes, 0.0):
        merged = rate * random_.random() / 10
        share = 100 * merged / (rate + merged) if rate else 0.0
        await_ms = random_.expovariate(1 / 3) if rate else 0.0
        parts.append(
            f"{rate:7.2f} {rate * size:9.2f} {merged:8.2f} {share:6.2f} {await_ms:7.2f} {size if rate else 0:8.2f}"
        )
    flushes = writes / 10
    queue = (reads + writes) * 0.003
    tail = f"{flushes:7.2f} {random_.random() if flushes else 0:7.2f} {queue:7.2f} {min(queue * 40, 100):6.2f}"
    return f" {' '.join(parts)} {tail}\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=REPORTS)
    parser.add_argument("--disks", type=int, default=DISKS)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        path = Path(folder) / "iostat.txt"
        size = write_recording(path, reports=options.reports, disks=options.disks)
        print(f"iostat -x -t: {options.reports} reports of {options.disks} disks, {size / 1e6:.0f} MB")
        print(f"{'asked for':<12} {'wall s':>7} {'CPU s':>7} {'peak MiB':>9}")
        met = True
        for name, metrics in ASKED.items():
            cost = whole_process(_IMPORT.format(metrics=metrics, path=str(path)), repeat=options.repeat)
            met &= cost.process_cpu_s <= BUDGET_CPU_S and cost.peak_mib <= BUDGET_MIB
            print(f"{name:<12} {cost.wall_s:>7.2f} {cost.process_cpu_s:>7.2f} {cost.peak_mib:>9.0f}")
    if options.reports >= REPORTS and options.disks >= DISKS:
        print(f"budget of {BUDGET_CPU_S:g} CPU s and {BUDGET_MIB:g} MiB: {'met' if met else 'missed'}")
        if not met:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
