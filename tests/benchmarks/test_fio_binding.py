"""Load that is bound to processors or a NUMA node, and load of persistent memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from leadline.app.measure import benching
from leadline.benchmarks import fio
from leadline.benchmarks._fio import binding
from leadline.core.contracts.benchmark import Place, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import LeadlineError, ToolError
from leadline.core.model.workload import IoSettings, Workload, find_workload, parse_workload
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore


def workload(settings: str) -> Workload:
    text = f"name: b\nio_settings: {{working_set: 4m, {settings}}}\nio: [{{block: 4k, read_pct: 50}}]\n"
    return parse_workload(text + "timing: {warm_up_s: 0, measure_s: 1, rounds: 1}\n", "t")


def job_of(settings: str, folder: Path) -> str:
    return fio.job_file(fio.plan(workload(settings), Target(str(folder))), Step("round-1", 1.0, 1))


def test_jobs_are_bound_to_processors_or_to_a_node(tmp_path: Path) -> None:
    first = min(os.sched_getaffinity(0))
    assert f"\ncpus_allowed={first}\n" in job_of(f"cpus: '{first}'", tmp_path)
    if Path("/sys/devices/system/node/node0").is_dir():
        assert "\nnuma_cpu_nodes=0\nnuma_mem_policy=bind:0\n" in job_of("numa_node: 0", tmp_path)
    assert "cpus_allowed" not in job_of("verify: false", tmp_path)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("cpus: '0-9999'", "processors that are there"),
        ("cpus: 'all'", "cpus"),
        ("numa_node: 1023", "numa_node: 1023 on a machine of"),
        ("numa_node: 0, cpus: '0'", "take one"),
        ("engine: libpmem, buffered: true", "no page cache"),
    ],
)
def test_what_cannot_be_bound_is_refused_before_anything_is_made(settings: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(LeadlineError, match=problem):
        job_of(settings, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_node_of_a_disk_is_that_of_its_controller(tmp_path: Path) -> None:
    """A partition has none of its own; the first device above it that has one says it."""
    number = tmp_path.stat().st_dev
    partition = tmp_path / "pci0000:17/0000:17:00.0/nvme/nvme0/nvme0n1/nvme0n1p1"
    partition.mkdir(parents=True)
    (tmp_path / "pci0000:17/0000:17:00.0/numa_node").write_text("1\n")
    devices = tmp_path / "dev"
    devices.mkdir()
    (devices / f"{os.major(number)}:{os.minor(number)}").symlink_to(partition)
    assert binding.node_of(tmp_path / "not-made-yet", devices) == 1


def test_the_node_of_a_disk_is_told_where_there_are_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "node_of", lambda _: 1)
    place = Place("/srv/f", 1, is_made=True)
    assert binding.node_notes(IoSettings(), [place], tmp_path) == []
    for node in ("node0", "node1"):
        (tmp_path / node).mkdir()
    said = binding.node_notes(IoSettings(numa_node=0), [place], tmp_path)
    assert said == ["/srv/f is on a disk at NUMA node 1; the load runs at node 0"]
    monkeypatch.setattr(binding, "node_of", lambda _: -1)
    assert binding.node_notes(IoSettings(), [place], tmp_path) == []


@pytest.mark.real
@pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")
def test_persistent_memory_is_loaded_and_what_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PMDK takes any memory for persistent where it is told to."""
    if "libpmem" not in subprocess.run(["fio", "--enghelp"], capture_output=True, text=True, check=False).stdout:
        pytest.skip("this fio has no libpmem")
    assert find_workload("persistent-memory").io_settings.engine == "libpmem"
    on, store = tmp_path / "on", RunStore(tmp_path / "home")
    on.mkdir()
    monkeypatch.delenv("PMEM_IS_PMEM_FORCE", raising=False)
    with pytest.raises(ToolError, match="persistent memory"):
        benching.run(benching.plan(workload("engine: libpmem"), Target(str(on))), store)
    monkeypatch.setenv("PMEM_IS_PMEM_FORCE", "1")
    run = benching.run(benching.plan(workload("engine: libpmem"), Target(str(on))), store)
    assert run.state == "done"
    (result,) = run.rounds[0].results
    assert {operation.name for operation in result.operations} == {"read", "write"}
    assert all(operation.mean_ms < 1.0 for operation in result.operations)
    assert list(on.iterdir()) == []
