"""Control groups: real ones where this user may make them, and the layouts of both versions as files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.core.model.errors import UsageError
from leadline.core.system.cgroups import (
    NOT_ENTERED,
    PREFIX,
    ControlGroup,
    Groups,
    Hierarchies,
    InstanceLimits,
    disk_under,
    find,
    remove_leftovers,
)

LIMITS = InstanceLimits(cpus=0.2, memory_bytes=64 * 2**20)
BURN = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass"


def made(limits: InstanceLimits, device: str | None = None) -> Groups:
    """Groups on this machine, or a skip with the reason."""
    where = find(limits)
    if isinstance(where, str):
        pytest.skip(where)
    return Groups(where, limits, device)


def grouped(groups: Groups) -> ControlGroup:
    try:
        return groups.make(1)
    except OSError as error:
        pytest.skip(f"the kernel refuses control groups here: {error}")


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    groups = made(LIMITS)
    yield grouped(groups)
    assert groups.remove() == []


def run(group: ControlGroup, code: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(group.enter([sys.executable, "-c", code]), check=False, capture_output=True, timeout=60)


@pytest.mark.real
def test_a_process_and_its_children_are_inside(group: ControlGroup) -> None:
    code = "import subprocess; subprocess.run(['cat', '/proc/self/cgroup'])"
    assert group.folders[0].name in run(group, code).stdout.decode()


@pytest.mark.real
def test_the_share_of_a_cpu_is_kept(group: ControlGroup) -> None:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    assert run(group, BURN).returncode == 0
    after, passed = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used <= 0.2 * passed + 0.2  # periods of 0.1 s, and what starting took before the group was entered


@pytest.mark.real
def test_more_memory_than_the_limit_is_not_given(group: ControlGroup) -> None:
    code = "data = bytearray(256 * 2**20)\ndata[::4096] = bytes(len(data[::4096]))"
    if Path("/proc/swaps").read_text().count("\n") > 1:
        pytest.skip("with swap the rest goes there")
    assert run(group, "pass").returncode == 0
    assert run(group, code).returncode == -9


@pytest.mark.real
def test_a_group_goes_with_its_last_process_and_not_before() -> None:
    groups = made(LIMITS)
    own = grouped(groups)
    process = subprocess.Popen(own.enter(["sleep", "60"]))
    while not all((folder / "cgroup.procs").read_text().strip() for folder in own.folders):
        time.sleep(0.01)
    assert not own.remove()
    assert own.folders[0].exists()
    process.kill()
    process.wait()
    assert own.remove()
    assert groups.remove() == []


@pytest.mark.real
def test_what_a_killed_run_left_is_removed_and_what_is_alive_is_not() -> None:
    where = find(LIMITS)
    if isinstance(where, str):
        pytest.skip(where)
    gone = subprocess.Popen(["true"])
    gone.wait()
    parent = next(iter(where.folders.values()))
    dead, alive = (parent / f"{PREFIX}-{number}-0a0b0c-1" for number in (gone.pid, os.getpid()))
    try:
        dead.mkdir()
        alive.mkdir()
    except OSError as error:
        pytest.skip(f"the kernel refuses control groups here: {error}")
    try:
        removed = remove_leftovers(where)  # with what tests beside this one left, and killed
        assert not dead.exists()
        assert alive.is_dir()
        assert alive not in removed
    finally:
        alive.rmdir()


def test_a_group_that_cannot_be_entered_runs_nothing(tmp_path: Path) -> None:
    done = subprocess.run(ControlGroup((tmp_path / "none",)).enter(["touch", str(tmp_path / "ran")]), check=False)
    assert done.returncode == NOT_ENTERED
    assert list(tmp_path.iterdir()) == []


def layout(folder: Path, mounts: str, own: str) -> tuple[Path, Path]:
    (folder / "mountinfo").write_text(mounts)
    (folder / "cgroup").write_text(own)
    return folder / "mountinfo", folder / "cgroup"


def test_version_2_goes_up_to_where_controllers_are_handed_on(tmp_path: Path) -> None:
    """A group that holds processes may not hand on; systemd's does, above the service."""
    root = tmp_path / "fs"
    service = root / "system.slice" / "shell.service"
    service.mkdir(parents=True)
    (service / "cgroup.subtree_control").write_text("")
    (service.parent / "cgroup.subtree_control").write_text("cpu memory io\n")
    (root / "cgroup.subtree_control").write_text("cpu memory io\n")
    files = layout(
        tmp_path,
        f"30 23 0:26 / {root} rw shared:4 - cgroup2 cgroup2 rw\n",
        "0::/system.slice/shell.service\n",
    )
    limits = InstanceLimits(0.5, 2**28, 100)
    where = find(limits, *files)
    assert where == Hierarchies(2, dict.fromkeys(("cpu", "memory", "io"), service.parent))
    own = Groups(where, limits, "8:0").make(1).folders[0]
    assert (own / "cpu.max").read_text() == "50000 100000"
    assert (own / "memory.max").read_text() == str(2**28)
    assert (own / "io.max").read_text() == "8:0 riops=100 wiops=100"


def test_version_1_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    folders = {name: tmp_path / "fs" / name for name in ("cpu,cpuacct", "memory", "blkio")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    lines = [f"3{i} 31 0:29 / {path} rw - cgroup cgroup rw,{name}" for i, (name, path) in enumerate(folders.items())]
    files = layout(tmp_path, "\n".join(lines) + "\n", "3:blkio:/\n2:cpu,cpuacct:/\n1:memory:/a/b\n0::/\n")
    limits = InstanceLimits(0.5, 2**28, 100)
    where = find(limits, *files)
    assert isinstance(where, Hierarchies)
    assert where.version == 1
    group = Groups(where, limits, "8:0").make(1)
    assert len(group.folders) == 3
    held = {path.name: path.read_text() for folder in group.folders for path in folder.iterdir()}
    assert held == {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "50000",
        "memory.limit_in_bytes": str(2**28),
        "blkio.throttle.read_iops_device": "8:0 100",
        "blkio.throttle.write_iops_device": "8:0 100",
    }


def test_without_hierarchies_the_reason_is_said(tmp_path: Path) -> None:
    files = layout(tmp_path, "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "0::/\n")
    assert find(InstanceLimits(cpus=1.0), *files) == "no control group hierarchy here has the controller cpu"


@pytest.mark.parametrize(
    "limits", [InstanceLimits(cpus=0.0), InstanceLimits(memory_bytes=2**20), InstanceLimits(iops=0)]
)
def test_limits_nothing_can_run_in_are_refused(limits: InstanceLimits) -> None:
    with pytest.raises(UsageError, match="--cpus"):
        limits.check()


def test_a_file_lies_on_a_whole_disk(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    disk = tmp_path / "devices" / "sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "sda1" / "partition").write_text("1\n")
    (disk / "sda1" / "dev").write_text(f"{name}\n")
    (tmp_path / "block").mkdir()
    assert disk_under(tmp_path, tmp_path / "block") is None
    (tmp_path / "block" / name).symlink_to(disk / "sda1")
    assert disk_under(tmp_path, tmp_path / "block") == "8:0"
