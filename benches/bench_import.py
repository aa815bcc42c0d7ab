"""Import of esxtop captures beside polars.read_csv and pandas.read_csv: ``make bench-import``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benches.measure import Cost, cost_of, whole_process
from leadline.app.generating import generate
from leadline.generators.esxtop import shape_for_width

SIZES = ((2_900, 360), (28_800, 360), (61_500, 720))
BUDGET_PROJECTED, BUDGET_EVERY, BUDGET_MEMORY = 8.0, 5.0, 0.25
DIAGNOSE_CPU_S, DIAGNOSE_MIB = 3.0, 400.0

_SETUP = """
from pathlib import Path
from leadline.app.read.importing import import_paths
from leadline.app.diagnose.diagnosing import metrics_read
from leadline.core.contracts.importer import Request
from leadline.core.contracts.discovery import load_units
load_units("importer")
paths = [Path({path!r})]
projected, everything = Request(metrics=metrics_read()), Request()
"""
READERS = {
    "polars.read_csv": ("import polars", "polars.read_csv({path!r})"),
    "pandas.read_csv": ("import pandas", "pandas.read_csv({path!r}, low_memory=False)"),
    "leadline, every column": (_SETUP, "import_paths(paths, everything)"),
    "leadline, what diagnose reads": (_SETUP, "import_paths(paths, projected)"),
}
_DIAGNOSE = """
import io, sys, contextlib
sys.argv = ["leadline", "diagnose", "--quiet", {path!r}]
from leadline.faces.cli.main import run
with contextlib.redirect_stdout(io.StringIO()):
    try:
        run()
    except SystemExit:
        pass
"""


def main() -> int:
    """Generate, measure, print; exit 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="processes per measurement, the fastest counts")
    parser.add_argument("--no-pandas", action="store_true", help="leave out pandas, which takes minutes")
    parser.add_argument("--size", nargs=2, type=int, action="append", metavar=("COLUMNS", "ROWS"))
    options = parser.parse_args()
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for columns, rows in options.size or SIZES:
            path = Path(name) / f"{columns}x{rows}.csv"
            generate(shape_for_width(columns, rows), [], path, columns=columns)
            is_budgeted = columns > SIZES[0][0]
            missed += measure(
                path, columns, rows, options.repeat, with_pandas=not options.no_pandas, budgeted=is_budgeted
            )
            path.unlink()
    print("\nbudgets: " + ("; ".join(missed) if missed else "all met"))
    return 1 if missed else 0


def measure(path: Path, columns: int, rows: int, repeat: int, *, with_pandas: bool, budgeted: bool) -> list[str]:
    """Print the rows of one capture; the budgets it misses."""
    size_mb = path.stat().st_size / 1e6
    print(f"\n{columns:,} columns x {rows} rows, {size_mb:.0f} MB")
    print(f"{'':32}{'wall s':>9}{'CPU s':>9}{'peak MiB':>10}{'speed':>9}{'memory':>9}")
    costs: dict[str, Cost] = {}
    for reader, (setup, body) in READERS.items():
        if reader.startswith("pandas") and not with_pandas:
            continue
        times = 1 if reader.startswith("pandas") else repeat
        costs[reader] = cost_of(setup.format(path=str(path)), body.format(path=str(path)), repeat=times)
        show(reader, costs[reader], costs["polars.read_csv"])
    whole = whole_process(_DIAGNOSE.format(path=str(path)), repeat=repeat)
    print(
        f"{'leadline diagnose, whole process':32}{whole.wall_s:>9.2f}{whole.process_cpu_s:>9.2f}{whole.peak_mib:>10.0f}"
    )
    return missed_budgets(costs, whole, columns) if budgeted else []


def show(reader: str, cost: Cost, polars: Cost) -> None:
    """One row; speed and memory are relative to polars in the same run."""
    speed, memory = polars.wall_s / cost.wall_s, cost.peak_mib / polars.peak_mib
    print(f"{reader:32}{cost.wall_s:>9.2f}{cost.cpu_s:>9.2f}{cost.peak_mib:>10.0f}{speed:>8.1f}x{memory:>9.2f}")


def missed_budgets(costs: dict[str, Cost], whole: Cost, columns: int) -> list[str]:
    """What falls short, in words."""
    polars = costs["polars.read_csv"]
    missed = []
    for reader, budget in (
        ("leadline, what diagnose reads", BUDGET_PROJECTED),
        ("leadline, every column", BUDGET_EVERY),
    ):
        speed, memory = polars.wall_s / costs[reader].wall_s, costs[reader].peak_mib / polars.peak_mib
        if speed < budget:
            missed.append(f"{columns}: {reader} {speed:.1f}x, budget {budget:.0f}x")
        if memory > BUDGET_MEMORY:
            missed.append(f"{columns}: {reader} memory {memory:.2f}, budget {BUDGET_MEMORY}")
    if columns == SIZES[-1][0] and (whole.process_cpu_s > DIAGNOSE_CPU_S or whole.peak_mib > DIAGNOSE_MIB):
        missed.append(f"{columns}: diagnose {whole.process_cpu_s:.2f} CPU s, {whole.peak_mib:.0f} MiB")
    return missed


if __name__ == "__main__":
    sys.exit(main())
