"""A guest that is held back from outside: the fault shows in what is recorded, and ends when it is lifted."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import ExitStack
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from incidents.holding import cpu_limit
from incidents.lab import NAME, boot, facts
from leadline.core.model.errors import ToolError
from leadline.core.system.cgroups import InstanceLimits, find
from leadline.lab.kernel import find_kernel

LIMIT_PCT = 20.0
HEALTHY_S, FAULT_S, RECOVERY_S = 3.0, 6.0, 4.0


def _skip_where_there_is_no_guest() -> None:
    for program in ("qemu-system-x86_64", "mke2fs", "busybox", "setpriv"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if not list(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        pytest.skip("no PostgreSQL server is installed")
    try:
        find_kernel()
    except ToolError as error:
        pytest.skip(f"no kernel for guests: {error}")
    where = find(InstanceLimits(cpus=1.0))
    if isinstance(where, str):
        pytest.skip(f"no control groups: {where}")


def _run_and_ready_pct(file: Path) -> list[tuple[datetime, float, float]]:
    """The end of each interval, and the run and ready time of vCPU 0 in it."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    shown = []
    for before, after in pairwise(lines):
        began, ended = (datetime.fromisoformat(line["time"]) for line in (before, after))
        times = [line["guests"][NAME]["vcpus"]["0"] for line in (before, after)]
        run, ready = (
            (last - first) / (ended - began).total_seconds() / 1e7 for first, last in zip(*times, strict=True)
        )
        shown.append((ended, run, ready))
    return shown


@pytest.mark.real
@pytest.mark.slow
def test_a_cpu_limit_shows_in_the_vcpu_and_ends_when_it_is_lifted(tmp_path: Path) -> None:
    _skip_where_there_is_no_guest()
    folder = tmp_path / "recording"
    with ExitStack() as stack:
        guest = boot(tmp_path, stack)
        process = guest.machine.process
        assert facts(guest)["guest"] == NAME
        with guest.play(HEALTHY_S + FAULT_S + RECOVERY_S, folder):
            time.sleep(HEALTHY_S)
            with cpu_limit(guest, LIMIT_PCT) as done:
                began = time.time()
                time.sleep(FAULT_S)
                ended = time.time()
            assert "20 % of one CPU" in done
    assert process.poll() is not None
    # An interval that a phase begins or ends in is of both.
    shown = _run_and_ready_pct(folder / "qemu.jsonl")
    limited = [(run, ready) for at, run, ready in shown if began + 1.5 < at.timestamp() < ended]
    after = [run for at, run, _ in shown if at.timestamp() > ended + 1.5]
    assert len(limited) >= 3
    assert all(run < LIMIT_PCT * 1.5 for run, _ in limited)
    assert sum(ready for _, ready in limited) / len(limited) > 40.0
    assert max(after) > LIMIT_PCT * 1.5
    for name in ("linux.txt", "pgbench.txt", "pg_stat_database.csv"):
        assert (folder / name).stat().st_size > 0
