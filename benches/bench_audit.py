"""Audit of a vCenter (govmomi's simulator) and of an RVTools-shaped workbook: ``make bench-audit``."""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benches.measure import Cost, whole_process
from tests.importers.rvtools_workbook import estate, write

BUDGET_VCENTER_S, BUDGET_WORKBOOK_S = 10.0, 5.0
VMS_PER_POOL = 4  # the simulator makes VMs per resource pool; with 3 clusters and a standalone host there are four
_RUN = """
import sys, io, contextlib, os
os.environ["LEADLINE_PASSWORD"] = "any"
from leadline.faces.cli.main import run
for words in {commands!r}:
    sys.argv = ["leadline", *words]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            run()
        except SystemExit as ended:
            assert ended.code in (0, 1), ended.code
"""


def main() -> int:
    """Measure both; exit 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vcenter-vms", type=int, default=1000)
    parser.add_argument("--workbook-vms", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write(folder / "rvtools.xlsx", estate(options.workbook_vms))
        cost = whole_process(_RUN.format(commands=[["audit", "-q", str(path)]]), repeat=options.repeat)
        missed += show(f"RVTools workbook, {options.workbook_vms:,} VMs: audit", cost, BUDGET_WORKBOOK_S)
        vcsim = find_vcsim()
        if vcsim is None:
            print("vcsim is not installed: the vCenter part is left out")
        else:
            cost = of_vcenter(vcsim, options.vcenter_vms, folder / "vc.parquet", options.repeat)
            missed += show(f"vCenter simulator, {options.vcenter_vms:,} VMs: collect and audit", cost, BUDGET_VCENTER_S)
    print("budgets: " + ("; ".join(missed) if missed else "met"))
    return 1 if missed else 0


def find_vcsim() -> str | None:
    """Where set-up or Go puts it."""
    places = [os.environ.get("PATH", ""), str(Path(".tools/bin").resolve()), str(Path.home() / "go" / "bin")]
    return shutil.which("vcsim", path=os.pathsep.join(places))


def of_vcenter(vcsim: str, vms: int, output: Path, repeat: int) -> Cost:
    """Start the simulator with at least so many VMs; cost of collecting and auditing."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    shape = ["-cluster", "3", "-host", "4", "-standalone-host", "1", "-vm", str(-(-vms // VMS_PER_POOL))]
    server = subprocess.Popen([vcsim, "-l", f"127.0.0.1:{port}", *shape], stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        collect = ["collect", "vcenter", "127.0.0.1", "--port", str(port), "--insecure", "-u", "any", "-q"]
        commands = [[*collect, "-o", str(output)], ["audit", "-q", str(output)]]
        return whole_process(_RUN.format(commands=commands), repeat=repeat)
    finally:
        server.terminate()
        server.wait(30)


def show(what: str, cost: Cost, budget_s: float) -> list[str]:
    """One row; the budget if it is missed."""
    print(f"{what:<58}{cost.wall_s:6.2f} s wall {cost.process_cpu_s:6.2f} s CPU {cost.peak_mib:6.0f} MiB")
    return [] if cost.wall_s <= budget_s else [f"{what} {cost.wall_s:.1f} s, budget {budget_s:.0f} s"]


if __name__ == "__main__":
    sys.exit(main())
