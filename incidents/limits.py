"""A control group whose limits are changed while its programs run: the database's container, or a client's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from incidents.processes import RigError
from leadline.core.system.cgroups import PERIOD_US, ControlGroup, Groups, InstanceLimits, find

TAKING_BACK_S = 3.0
UNLIMITED = InstanceLimits(cpus=64.0, memory_bytes=1 << 40)


@dataclass(frozen=True)
class Group:
    """A control group and the version of its interface."""

    group: ControlGroup
    folders: dict[str, Path]  # controller -> folder
    version: int

    def enter(self, command: list[str]) -> list[str]:
        """A command that runs in the group."""
        return self.group.enter(command)

    @contextmanager
    def cpus(self, count: float) -> Iterator[None]:
        """The group's programs get at most so many CPUs, for a while."""
        name = "cpu.max" if self.version == 2 else "cpu.cfs_quota_us"
        quota, none = str(round(count * PERIOD_US)), str(round((UNLIMITED.cpus or 0) * PERIOD_US))
        if self.version == 2:
            quota, none = f"{quota} {PERIOD_US}", f"max {PERIOD_US}"
        yield from self._held("cpu", name, quota, none)

    @contextmanager
    def memory(self, limit_bytes: int) -> Iterator[None]:
        """The group's programs get at most so much memory, page cache included, for a while."""
        name = "memory.high" if self.version == 2 else "memory.limit_in_bytes"
        yield from self._held("memory", name, str(limit_bytes), "max" if self.version == 2 else "-1")

    def _held(self, controller: str, name: str, limit: str, none: str) -> Iterator[None]:
        path = self.folders[controller] / name
        _write(path, limit)
        try:
            yield
        finally:
            path.write_text(none)


def _write(path: Path, limit: str) -> None:
    """Set a limit; the kernel may need several tries to take memory back.

    Raises:
        RigError: it cannot.
    """
    deadline = time.monotonic() + TAKING_BACK_S
    while True:
        try:
            path.write_text(limit)
        except OSError as error:
            if time.monotonic() > deadline:
                raise RigError(f"the kernel does not take {limit} for {path.name}: {error.strerror}") from error
            time.sleep(0.05)
        else:
            return


def build(stack: ExitStack, number: int) -> Group:
    """Make a group without limits; it is removed when the stack closes.

    Raises:
        RigError: this machine has no control groups for CPU and memory.
    """
    where = find(UNLIMITED)
    if isinstance(where, str):
        raise RigError(f"{where}: CPU and memory limits cannot be set")
    groups = Groups(where, UNLIMITED)
    stack.callback(groups.remove)
    group = groups.make(number)
    by_parent = {folder.parent: folder for folder in group.folders}
    return Group(group, {name: by_parent[parent] for name, parent in where.folders.items()}, where.version)
