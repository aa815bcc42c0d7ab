"""Use case: choose machines, disks, sizes and load of a sweep from this machine, an inventory or a list of machines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leadline.app.measure.easy import (
    Choice,
    Easy,
    Folder,
    Storage,
    choose_folder,
    choose_machines,
    choose_workload,
    storages,
)
from leadline.app.measure.workloads import workload_of
from leadline.app.read.block_devices import device_of, mounts
from leadline.app.read.importing import import_paths
from leadline.app.read.machine_facts import record_facts
from leadline.app.read.machine_files import Tree
from leadline.core.contracts.importer import Request
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.model.workload import Workload

ROOT = Path("/")
SYSTEM = ("/boot", "/usr", "/etc", "/proc", "/sys", "/dev", "/snap")
READ_ONLY = ("iso9660", "squashfs", "erofs", "vfat")


def easy_here(on: str | None, workload: str | None) -> Easy:
    """What to do on this machine, in a folder or in the best there is; nothing is written.

    Raises:
        UsageError: no folder can be written to, or none has space.
    """
    facts = record_facts(ROOT, datetime.now(UTC))["guests"][0]
    inventory = Inventory()
    guest = Entity(EntityKind.GUEST, str(facts["name"]))
    for database in facts.get("databases", ()):
        inventory.add(Entity(EntityKind.DATABASE, str(database["name"]), guest), "here", engine=database.get("engine"))
    folders = _folders(facts.get("devices", ())) if on is None else [_folder(on, facts.get("devices", ()))]
    chosen = _workload(workload, inventory)
    streams = len(_io(chosen.value).io)
    cpus = len(os.sched_getaffinity(0))
    return choose_folder(folders, chosen, cpus, named=on is not None, stream_count=streams)


def easy_for(
    paths: Sequence[Path], store: str | None, machines: int | None, workload: str | None, *, has_target: bool
) -> tuple[Storage, Easy]:
    """What to do with a store an inventory describes.

    Args:
        paths: inventory files, or recordings that hold one.
        store: name of the cluster or datastore; may be left out where there is only one.
        machines: how many there are; None: as many as the store should have.
        workload: as named, or None.
        has_target: whether a latency target is looked for.

    Raises:
        InputError: a file cannot be read.
        UsageError: there is no such store, several, or no space.
    """
    inventory = import_paths(list(paths), Request(metrics=frozenset())).capture.inventory
    known = storages(inventory)
    matches = [storage for storage in known if store in (None, storage.name)]
    if len(matches) != 1:
        raise UsageError(
            "--storage" if store is None else f"--storage {store}",
            found="none in the inventory" if not matches else f"{len(matches)} of them: {_names(matches)}",
            expected="the name of one",
            advice=f"Known are: {_names(known)}." if known else "It needs datastores, or hosts with disk_groups.",
        )
    wanted = _workload(workload, inventory)
    _io(wanted.value)
    return matches[0], choose_machines(matches[0], wanted, machines, has_target=has_target)


def _names(known: Sequence[Storage]) -> str:
    return ", ".join(storage.name for storage in known[:5]) + (", …" if len(known) > 5 else "")


def _workload(named: str | None, inventory: Inventory) -> Choice:
    return choose_workload(inventory) if named is None else Choice("workload", named, "named")


def _io(name: str) -> Workload:
    workload = workload_of(name)
    if workload.kind != "io":
        raise UsageError(
            f"workload {name}", found=f"kind {workload.kind}", expected="io", advice="Sweep a database with --clients."
        )
    return workload


def _folders(devices: Sequence[dict[str, Any]]) -> list[Folder]:
    """A folder for each file system of a disk that is not the system's own; what does not answer is left out."""
    folders = []
    for mount in mounts(Tree(ROOT)):
        is_disk = not mount.number.startswith("0:") or mount.filesystem == "btrfs"
        is_system = mount.point.startswith(SYSTEM) or mount.filesystem in READ_ONLY or "ro" in mount.options
        if is_disk and not is_system and os.path.isdir(mount.point):  # noqa: PTH112 - Path raises where one is broken
            folders.append(_folder(mount.point, devices))
    return folders


def _folder(path: str, devices: Sequence[dict[str, Any]]) -> Folder:
    """Return size, free space and queue depth of the file system and the disk below a folder.

    Raises:
        UsageError: it is no folder.
    """
    if not Path(path).is_dir():
        raise UsageError(
            f"--on {path}",
            found="no folder",
            expected="a folder, where files are made and removed",
            advice="--easy never overwrites a device; without it, name the load yourself.",
        )
    filesystem = os.statvfs(path)
    tree = Tree(ROOT)
    name = device_of(tree, mounts(tree), str(Path(path).resolve()))
    facts: dict[str, Any] = next((device for device in devices if device["name"] == name), {})
    depth = facts.get("queue_depth_count") or facts.get("nr_requests_count")
    return Folder(
        path,
        filesystem.f_blocks * filesystem.f_frsize,
        filesystem.f_bavail * filesystem.f_frsize,
        name,
        None if depth is None else int(depth),
        facts.get("rotational"),
        os.access(path, os.W_OK | os.X_OK),
    )
