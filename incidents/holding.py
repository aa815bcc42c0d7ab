"""Faults of a virtual machine, set from outside while its guest works; each ends with its ``with`` block."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from incidents.lab import FREE_IOPS, Guest
from leadline.core.model.errors import ToolError
from leadline.core.system.cgroups import Groups, Hierarchies, InstanceLimits, find
from leadline.core.system.processes import running
from leadline.lab.hardware import limit_group

NO_QUOTA_CPUS = 1000.0  # more than any machine this runs on has
BALLOON_S = 5.0  # Judgement: the guest gives what is free in two; what it has to swap for comes slowly
_UNIFIED = Path("/sys/fs/cgroup")
_DEFAULT_SHARES, _DEFAULT_WEIGHT = 1024, 100  # Source: Linux, sched-design-CFS.rst and cgroup-v2.rst


@contextmanager
def cpu_limit(guest: Guest, pct: float) -> Iterator[str]:
    """QEMU, with all its threads, in a control group that gets ``pct`` percent of one CPU.

    Raises:
        ToolError: this user may make no control groups.
    """
    limits = InstanceLimits(cpus=pct / 100.0)
    where = _where(limits)
    pid = guest.machine.process.pid
    home = _group_of(pid, where)
    groups = Groups(where, limits)
    try:
        (folder,) = groups.make(1).folders
        (folder / "cgroup.procs").write_text(str(pid))
        yield f"limited QEMU of VM {guest.machine.guest.name} to {pct:g} % of one CPU by a control group"
    finally:
        if guest.machine.process.poll() is None:
            (home / "cgroup.procs").write_text(str(pid))
        groups.remove()


@contextmanager
def cpu_neighbours(guest: Guest, count: int, shares: int = 8192) -> Iterator[str]:
    """Busy processes on the host that get ``shares`` of CPU time together, where QEMU gets 1024.

    Raises:
        ToolError: stress-ng is missing, or this user may make no control groups.
    """
    limits = InstanceLimits(cpus=NO_QUOTA_CPUS)
    where = _where(limits)
    groups = Groups(where, limits)
    folder = guest.machine.files.folder
    with ExitStack() as stack:
        stack.callback(groups.remove)
        group = groups.make(1)
        if where.version == 2:
            weight = min(max(round(shares * _DEFAULT_WEIGHT / _DEFAULT_SHARES), 1), 10_000)
            (group.folders[0] / "cpu.weight").write_text(str(weight))
        else:
            (group.folders[0] / "cpu.shares").write_text(str(shares))
        words = group.enter(["stress-ng", "--cpu", str(count), "--cpu-method", "int64"])
        stack.enter_context(running(words, output=folder / "neighbours.txt", folder=folder))
        yield f"started stress-ng --cpu {count} on the host, in a control group with {shares} CPU shares"


@contextmanager
def balloon(guest: Guest, mib: int) -> Iterator[str]:
    """A balloon that takes ``mib`` MiB of the guest's memory, as far as the guest gives them.

    Raises:
        ToolError: QEMU is gone.
    """
    monitor, memory = guest.machine.monitor, guest.machine.guest.memory
    monitor.execute("balloon", value=memory - mib * 2**20)
    try:
        deadline = time.monotonic() + BALLOON_S
        while balloon_mib(guest) < mib - 1 and time.monotonic() < deadline:
            time.sleep(0.2)
        taken = balloon_mib(guest)
        name = guest.machine.guest.name
        yield f"asked the balloon of VM {name} for {mib} of {memory // 2**20} MiB; it took {taken:.0f} MiB"
    finally:
        monitor.execute("balloon", value=memory)


def balloon_mib(guest: Guest) -> float:
    """Return the memory the balloon holds now, in MiB."""
    left = guest.machine.monitor.execute("query-balloon")["actual"]
    return float(guest.machine.guest.memory - left) / 2**20


@contextmanager
def disk_limit(guest: Guest, disk: str, iops: int) -> Iterator[str]:
    """The throttle group of a disk (``data``, ``wal``) at ``iops``, reads and writes together.

    Raises:
        ToolError: QEMU is gone.
    """
    group = limit_group(next(one for one in guest.machine.guest.disks if one.name == disk))
    _set_iops(guest, group, iops)
    try:
        yield (
            f"set iops-total={iops} on the throttle group {group} of VM {guest.machine.guest.name} "
            f"(disk {disk}, {Path(guest.devices[disk]).name} in the guest)"
        )
    finally:
        _set_iops(guest, group, FREE_IOPS)


def _set_iops(guest: Guest, group: str, iops: int) -> None:
    limits = {"iops-total": iops}
    guest.machine.monitor.execute("qom-set", path=f"/objects/{group}", property="limits", value=limits)


def _where(limits: InstanceLimits) -> Hierarchies:
    where = find(limits)
    if isinstance(where, str):
        raise ToolError(
            "control groups", found=where, expected="control groups this user may make", advice="Run as root."
        )
    return where


def _group_of(pid: int, where: Hierarchies) -> Path:
    """The control group a process is in: where it is put back."""
    if where.version == 1:
        return where.folders["cpu"]  # QEMU is our child, and groups are found below ours
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    path = next(line.removeprefix("0::") for line in lines if line.startswith("0::"))
    return _UNIFIED / path.lstrip("/")
