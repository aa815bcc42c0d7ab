"""The benchmarks run, tiny; what they print on a machine is for people, not for tests."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

RUNS = {
    "bench_away": ["--minutes", "0.15", "--before", "8", "--after", "6"],
    "bench_import": ["--size", "400", "20", "--no-pandas", "--repeat", "1"],
    "bench_live": ["--vms", "40", "--steps", "2", "--window", "100"],
    "bench_played": ["--kind", "iops-limit-data", "--count", "1", "--jobs", "1"],
    "bench_store": ["--vms", "12", "--hours", "2"],
    "bench_diagnose": ["--scale", "0.002", "--repeat", "1", "--only", "healthy", "day"],
    "bench_faults": ["--sizes", "small", "--seeds", "1", "--faults", "cpu-limit"],
    "bench_incidents": ["--count", "1", "--jobs", "1"],
    "bench_damage": ["--files", "12", "--pastes", "12", "--archives", "2", "--no-goal"],
    "bench_cuts": ["--kind", "iops-limit-data", "--every", "4", "--length", "3", "--length", "15"],
    "bench_account": ["--kind", "slow-flush", "--count", "1", "--details"],
    "bench_report": ["--series", "400", "--samples", "20", "--repeat", "1"],
    "bench_iostat": ["--reports", "20", "--disks", "3", "--repeat", "1"],
    "bench_folder": ["--files", "12", "--reports", "4"],
    "bench_logs": ["--transactions", "2000", "--log-mb", "1", "--snapshots", "50"],
    "bench_trace": ["--records", "20000", "--repeat", "1"],
    "bench_measure": ["--pairs", "1", "--seconds", "1.5", "--samples", "20000"],
    "bench_limit": ["--caps"],
    "bench_tier": ["--caps"],
    "bench_loads": ["--engines", "psync", "--keys", "block", "burst", "--seconds", "0.5"],
    "bench_calibrate": ["--seconds", "20", "--depths", "--any"],
    "bench_kills": ["--count", "1", "--verb", "facts", "--verb", "plan"],
    "bench_hosts": ["--hosts", "3", "--seconds", "3"],
    "bench_sim": [
        *("--events", "1000000", "--simpy-events", "20000", "--repeat", "1", "--pending", "1000", "--any"),
        *("--decisions", "100000", "--hour-seconds", "2"),
    ],
    "bench_audit": ["--workbook-vms", "50", "--vcenter-vms", "8", "--repeat", "1"],
    "bench_estate": ["--vms", "12", "--samples", "60", "--red-samples", "60", "--repeat", "1"],
    "bench_several": ["--draws", "1"],
    "bench_as_vmstat": ["--count", "1"],
    "bench_vcenter": ["--hosts", "2", "--vms", "2", "--cycles", "0"],
    "bench_watch": ["--hosts", "2", "--vms", "2", "--cycles", "0"],
    "bench_reduction": ["--mib", "2", "--folder", "examples/easy", "--folder", "docs"],
    "bench_plan": ["--datastores", "40", "--disks", "400", "--small", "3", "--repeat", "1"],
}


# What takes seconds even when it is tiny; `make test-real` runs these.
LONG = {"bench_report", "bench_measure", "bench_calibrate", "bench_kills", "bench_hosts", "bench_loads", "bench_audit"}
LONG |= {
    "bench_vcenter",
    "bench_watch",
    "bench_tier",
    "bench_away",
}  # they drive a real simulator, or a disk with a limit


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in RUNS])
def test_a_benchmark_runs(name: str) -> None:
    words = [sys.executable, "-m", f"benches.{name}", *RUNS[name]]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


@pytest.mark.real
def test_counts_of_a_log_equal_those_of_pgbadger() -> None:
    words = ["--only", "postgresql", "--log-mb", "1", "--beside-pgbadger"]
    command = [sys.executable, "-m", "benches.bench_logs", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ms of lock waits" in done.stdout


def test_every_benchmark_is_run() -> None:
    assert set(RUNS) == {path.stem for path in (ROOT / "benches").glob("bench_*.py")}
