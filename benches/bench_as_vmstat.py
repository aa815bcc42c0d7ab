"""DBSherlock's single incidents as people record them: ``python -m benches.bench_as_vmstat``.

Each table is written as the output of vmstat and pgbench (``../shared/dbsherlock/as_vmstat.py``), so that nothing is
left of it but CPU, I/O wait, blocks, transactions and latency. Counted is whether an incident is told in the marked
rows, none elsewhere, and what is said of the disk.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.model.finding import Window
from leadline.faces.words.answers import headline
from leadline.faces.words.findings import Quotes
from tests.conftest import ROOT

FOLDER = ROOT.parent / "shared" / "dbsherlock"
BEGIN_S = datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp()  # of the tables that as_vmstat.py writes
OVERLAP_MIN = 0.5  # of the marked rows
_NS_PER_S = 1e9


def main() -> int:
    """Write, diagnose, count, print what is said of each."""
    parser = argparse.ArgumentParser(prog="bench_as_vmstat", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, metavar="N", help="only the first N incidents")
    options = parser.parse_args()
    if not FOLDER.is_dir():
        print("DBSherlock is not beside this checkout: nothing to measure")
        return 0
    with (FOLDER / "truth.tsv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream, delimiter="\t") if not {",", "+"} & set(row["cause"])]
    rows = rows[: options.count]
    counts: Counter[str] = Counter()
    for row in rows:
        with tempfile.TemporaryDirectory() as name:
            subprocess.run([sys.executable, FOLDER / "as_vmstat.py", FOLDER / row["file"], name], check=True)
            diagnosis = diagnose(import_paths([Path(name)]).capture)
        marked = Window(*(_ns(int(row[key])) for key in ("first_abnormal_row", "last_abnormal_row")))
        windows = [one.incident.window for one in diagnosis.answers if one.incident is not None]
        counts["told"] += any(_share(marked, window) >= OVERLAP_MIN for window in windows)
        elsewhere = [window for window in windows if not window.overlaps(marked)]
        counts["elsewhere"] += bool(elsewhere)
        counts[f"disk {diagnosis.answer.disk.value}"] += row["cause"] == "I/O Saturation"
        note = "".join(f" (also {window.duration_s:.0f} s elsewhere)" for window in elsewhere)
        print(f"{row['file']}: {diagnosis.answer.disk.value}; {headline(diagnosis, Quotes())}{note}")
    disks = ", ".join(
        f"{count} {key[5:]}" for key, count in sorted(counts.items()) if key.startswith("disk ") and count
    )
    print(
        f"{len(rows)} incidents: {counts['told']} told in their rows, {counts['elsewhere']} with one told elsewhere; "
        f"I/O saturation, is it the disk: {disks}"
    )
    return 0


def _ns(row: int) -> int:
    return int((BEGIN_S + row) * _NS_PER_S)


def _share(marked: Window, window: Window) -> float:
    """How much of the marked rows a window covers."""
    common = min(marked.end_ns, window.end_ns) - max(marked.start_ns, window.start_ns)
    return max(common, 0) / max(marked.end_ns - marked.start_ns, 1)


if __name__ == "__main__":
    sys.exit(main())
