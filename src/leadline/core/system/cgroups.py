"""Limits of one process and its threads by control groups, version 2 or 1, whichever the machine has.

A group is made below the group this process is in, so that limits around us stay in force; with version 2, below the
nearest group above us that hands the controllers on, because a group that holds processes may not. Groups carry our
name and process: what a killed run left is found by them, and only an empty group can be removed at all.

Source: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max, memory.max, io.max, "No Internal Process Constraint")
and cgroup-v1 (memory.rst, blkio-controller.rst; scheduler/sched-bwc.rst for cpu.cfs_quota_us).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from leadline.core.model.errors import UsageError
from leadline.core.system.portable import user_id

PREFIX = "leadline-density"
PERIOD_US = 100_000  # of CPU time, the kernel's default
MEMORY_MIN = 32 * 1024**2  # Judgement: what fio itself needs
NOT_ENTERED = 97  # exit status of a command that could not enter its group
_REMOVE_S = 2.0  # Judgement: the kernel lets go of ended processes in milliseconds
_NAME = re.compile(rf"{PREFIX}-(\d+)-[0-9a-f]+-\d+")
_MOUNTS, _OWN = Path("/proc/self/mountinfo"), Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class InstanceLimits:
    """What one instance may have; None: as much as it gets. ``iops`` holds for reads and for writes, each."""

    cpus: float | None = None
    memory_bytes: int | None = None
    iops: int | None = None

    @property
    def controllers(self) -> tuple[str, ...]:
        """The controllers that set them, as version 2 calls them."""
        wanted = (("cpu", self.cpus), ("memory", self.memory_bytes), ("io", self.iops))
        return tuple(name for name, limit in wanted if limit is not None)

    def check(self) -> None:
        """Refuse limits nothing can run in.

        Raises:
            UsageError: a limit is not positive, or the memory is less than the tool needs.
        """
        if (
            (self.cpus is not None and not 0.01 <= self.cpus <= 1024)
            or (self.memory_bytes is not None and self.memory_bytes < MEMORY_MIN)
            or (self.iops is not None and self.iops < 1)
        ):
            raise UsageError(
                "--cpus, --memory and --iops",
                found=self.words() or "nothing",
                expected=f"at least 0.01 CPUs, {MEMORY_MIN // 2**20} MiB, 1 IOPS",
                advice="Leave a limit out for none.",
            )

    def words(self) -> str:
        """For people."""
        parts = [] if self.cpus is None else [f"{self.cpus:g} CPUs"]
        parts += [] if self.memory_bytes is None else [f"{self.memory_bytes / 2**20:.0f} MiB of memory"]
        parts += [] if self.iops is None else [f"{self.iops} reads/s and {self.iops} writes/s"]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where groups can be made: the folder of each controller wanted; one folder for all with version 2."""

    version: int
    folders: dict[str, Path]


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One group: its folders, one of each hierarchy."""

    folders: tuple[Path, ...]

    def enter(self, command: list[str]) -> list[str]:
        """A command that enters the group first, so that nothing of it runs outside."""
        steps = " && ".join(f"echo $$ > {shlex.quote(str(folder / 'cgroup.procs'))}" for folder in self.folders)
        return ["sh", "-c", f'{{ {steps}; }} || exit {NOT_ENTERED}; exec "$@"', "sh", *command]

    def remove(self) -> bool:
        """Remove it, once its processes are gone; False when it could not be. Safe to call twice."""
        deadline = time.monotonic() + _REMOVE_S
        left = [folder for folder in self.folders if folder.exists()]
        while left and time.monotonic() < deadline:
            for folder in left:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            left = [folder for folder in left if folder.exists()]
            if left:
                time.sleep(0.02)
        return not left


def find(limits: InstanceLimits, mounts: Path = _MOUNTS, membership: Path = _OWN) -> Hierarchies | str:
    """Where groups with these limits can be made, or why they cannot."""
    wanted = limits.controllers
    places, paths = _mounted(mounts), _group_paths(membership)
    two = places.get("")
    if two is not None:
        delegated = _delegating(two, paths.get("", "/"), wanted)
        if delegated is not None:
            return Hierarchies(2, dict.fromkeys(wanted, delegated))
    folders = {}
    for name in wanted:
        old = {"io": "blkio"}.get(name, name)
        if old not in places:
            return f"no control group hierarchy here has the controller {name}"
        folder = places[old] / paths.get(old, "/").lstrip("/")
        # A container sees its own group as the root of the mount.
        folders[name] = folder if folder.is_dir() else places[old]
        if not os.access(folders[name], os.W_OK):
            return f"no right to make control groups in {folders[name]}"
    return Hierarchies(1, folders)


def _mounted(mounts: Path) -> dict[str, Path]:
    """Mount points: of version 2 under "", of version 1 by controller."""
    points: dict[str, Path] = {}
    for line in mounts.read_text(encoding="utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        point = Path(fields.split()[4])
        if kind == "cgroup2":
            points.setdefault("", point)
        elif kind == "cgroup":
            for option in options.split()[-1].split(","):
                points.setdefault(option, point)
    return points


def _group_paths(membership: Path) -> dict[str, str]:
    """Control group of this process: of version 2 under "", of version 1 by controller."""
    paths = {}
    for line in membership.read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            paths[name] = path
    return paths


def _delegating(root: Path, path: str, wanted: tuple[str, ...]) -> Path | None:
    """The nearest group from ours upwards whose children have the controllers, and where we may make one."""
    folder = root / path.lstrip("/")
    folder = folder if folder.is_dir() else root
    for candidate in (folder, *folder.parents):
        if not candidate.is_relative_to(root):
            return None
        try:
            handed_on = (candidate / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if set(wanted) <= set(handed_on) and os.access(candidate, os.W_OK):
            return candidate
    return None


class Groups:
    """The groups of one run, all with the same limits; ``device`` is the disk ``iops`` is limited on."""

    def __init__(self, where: Hierarchies, limits: InstanceLimits, device: str | None = None) -> None:
        self._where, self._limits, self._device = where, limits, device
        self._name = f"{PREFIX}-{os.getpid()}-{secrets.token_hex(3)}"
        self._groups: list[ControlGroup] = []

    def make(self, number: int) -> ControlGroup:
        """The group of an instance, with its limits set.

        Raises:
            OSError: the kernel refuses it.
        """
        group = self.make_open(number)
        self.limit(number)
        return group

    def make_open(self, number: int) -> ControlGroup:
        """The group of an instance, without limits yet.

        Raises:
            OSError: the kernel refuses it.
        """
        parents = dict.fromkeys(self._where.folders.values())
        group = ControlGroup(tuple(parent / f"{self._name}-{number}" for parent in parents))
        self._groups.append(group)
        for folder in group.folders:
            folder.mkdir()
        return group

    def limit(self, number: int) -> None:
        """Set the limits of an instance's group.

        Raises:
            OSError: the kernel refuses them.
        """
        for name, texts in self._settings().items():
            controller, file = name
            folder = self._where.folders[controller] / f"{self._name}-{number}"
            for text in texts:
                (folder / file).write_text(text)

    def _settings(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """(controller, file) -> what is written to it, one write each."""
        limits, settings = self._limits, dict[tuple[str, str], tuple[str, ...]]()
        if limits.cpus is not None:
            quota = round(limits.cpus * PERIOD_US)
            if self._where.version == 2:
                settings["cpu", "cpu.max"] = (f"{quota} {PERIOD_US}",)
            else:
                settings["cpu", "cpu.cfs_period_us"] = (str(PERIOD_US),)
                settings["cpu", "cpu.cfs_quota_us"] = (str(quota),)
        if limits.memory_bytes is not None:
            file = "memory.max" if self._where.version == 2 else "memory.limit_in_bytes"
            settings["memory", file] = (str(limits.memory_bytes),)
        if limits.iops is not None:
            if self._where.version == 2:
                settings["io", "io.max"] = (f"{self._device} riops={limits.iops} wiops={limits.iops}",)
            else:
                for way in ("read", "write"):
                    settings["io", f"blkio.throttle.{way}_iops_device"] = (f"{self._device} {limits.iops}",)
        return settings

    def remove(self) -> list[Path]:
        """Remove every group that was made; returns what could not be removed."""
        left = [group for group in self._groups if not group.remove()]
        return [folder for group in left for folder in group.folders if folder.exists()]


def remove_leftovers(where: Hierarchies) -> list[Path]:
    """Remove the empty groups of runs whose process is gone; returns what was removed."""
    removed = []
    for parent in dict.fromkeys(where.folders.values()):
        for folder in sorted(parent.glob(f"{PREFIX}-*")):
            match = _NAME.fullmatch(folder.name)
            if match is None or Path(f"/proc/{match[1]}").exists() or folder.stat().st_uid != user_id():
                continue
            with contextlib.suppress(OSError):  # one that is not empty stays
                folder.rmdir()
                removed.append(folder)
    return removed


def disk_under(path: Path, devices: Path = Path("/sys/dev/block")) -> str | None:
    """The whole disk a file is on, or that a device is, as ``major:minor``; None where there is none below."""
    state = path.stat()
    number = state.st_rdev if path.is_block_device() else state.st_dev
    device = devices / f"{os.major(number)}:{os.minor(number)}"
    if not device.exists():
        return None
    whole = device.resolve().parent if (device / "partition").exists() else device
    return (whole / "dev").read_text().strip()
