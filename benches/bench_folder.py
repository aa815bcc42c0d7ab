"""A folder of many small recordings, diagnosed: CPU seconds must grow as the number of files does.

``python -m benches.bench_folder [--files N] [--reports N]`` writes ``iostat -x -t`` of as many machines, a quarter and
half of them first, and diagnoses each folder in a process of its own, as the command line does. It exits with 1 when
the whole folder of the full size takes more than the budget.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benches.bench_iostat import write_recording
from benches.measure import whole_process

BUDGET_CPU_S = 30.0
FILES, REPORTS, DISKS = 5_000, 12, 2
RECORDING_COUNT = 16  # different ones; only the machine's name differs between their copies

_DIAGNOSE = """
from pathlib import Path
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
diagnose(import_paths([Path({path!r})], Request(metrics=metrics_read())).capture)
"""


def write_folder(folder: Path, *, files: int, reports: int) -> None:
    """Write a recording of each of as many machines; the same arguments give the same bytes."""
    folder.mkdir(parents=True)
    texts = []
    for seed in range(min(RECORDING_COUNT, files)):
        path = folder / "text"
        write_recording(path, reports=reports, disks=DISKS, seed=seed)
        texts.append(path.read_text(encoding="ascii"))
        path.unlink()
    for index in range(files):
        text = texts[index % len(texts)].replace("(db01)", f"(db{index:05d})")
        (folder / f"db{index:05d}.txt").write_text(text, encoding="ascii")


def main() -> int:
    """Print a row per folder; 1 when the largest is over budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--reports", type=int, default=REPORTS)
    options = parser.parse_args()
    cpu_s = 0.0
    print(f"{'files':>7}{'CPU s':>9}{'ms a file':>11}{'MiB':>8}")
    with tempfile.TemporaryDirectory() as temporary:
        for count in (options.files // 4, options.files // 2, options.files):
            folder = Path(temporary) / f"{count}"
            write_folder(folder, files=count, reports=options.reports)
            taken = whole_process(_DIAGNOSE.format(path=str(folder)), repeat=1)
            cpu_s = taken.cpu_s
            print(f"{count:>7,}{cpu_s:>9.2f}{1000.0 * cpu_s / max(count, 1):>11.2f}{taken.peak_mib:>8.0f}", flush=True)
    return 1 if options.files >= FILES and cpu_s > BUDGET_CPU_S else 0


if __name__ == "__main__":
    raise SystemExit(main())
