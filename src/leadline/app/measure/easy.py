"""Choices for a load nobody wants to configure: machines, disks, sizes and load, each with its reason.

What is not known is said and replaced by what is safe: less data, never more. Sizes are bytes.

Sources: HCIBench 2.8, Easy Run (easy-run.rb): two machines for each disk group or host, what the working set is a share
of. VMware vSAN Design Guide: reactive rebalancing begins at 80 % of a capacity device; protection overheads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge import placement, vsan

GIB = 1024**3
GUARD = 0.8  # of the capacity, with what is there already
MACHINES_PER = 2  # for each disk group, or each host without disk groups
DISKS, DISKS_WITH_TARGET = 8, 4
OIO_OSA, OIO_OTHER = 32, 128  # per machine, where Easy Run loads; a sweep goes to twice that
BUFFER_GIB_MAX = 600.0  # write buffer of a disk group that vSAN uses (up to 7.x; 8.0 can use 1600)
SHARE_FLASH, SHARE_HYBRID, SHARE_CAPACITY = 0.75, 0.25, 1.0 / 3.0
SET_SHARE, SET_MIN, SET_MAX = 0.1, 1 * GIB, 32 * GIB  # Judgement: past small caches, filled within minutes
JOBS_MAX = 4  # Judgement: fio fills a disk with so many; more measure the scheduler
OIO_FLASH, OIO_HDD, OIO_MAX = 128, 64, 256  # Judgement: where depth is not known
DEFAULT = "hci-4k-70-30"
ENGINES = {
    "postgresql": "postgresql-io",
    "oracle": "oracle-oltp-io",
    "sqlserver": "sql-server-tier1-io",
    "sql-server": "sql-server-tier1-io",
    "mssql": "sql-server-tier1-io",
    "iris": "intersystems-io",
    "cache": "intersystems-io",
    "intersystems": "intersystems-io",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: what, its value as people read it, and why."""

    what: str
    value: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """Plain data."""
        return {"what": self.what, "value": self.value, "why": self.why}


@dataclass(frozen=True, slots=True)
class Easy:
    """What was chosen, per machine; ``jobs`` and ``oio_max`` are of a sweep's points.

    Attributes:
        disk_bytes: of each of the disks of a machine; in a folder, of each stream's file.
        folder: where on this machine; None where the load is for other machines.
    """

    workload: str
    machine_count: int
    disk_count: int
    disk_bytes: int
    jobs: int
    oio_max: int
    choices: tuple[Choice, ...]
    folder: str | None = None

    @property
    def set_bytes(self) -> int:
        """Working set of a machine."""
        return self.disk_count * self.disk_bytes


@dataclass(frozen=True, slots=True)
class Storage:
    """A store of virtual disks as an inventory knows it; None is not known.

    Attributes:
        kind: ``vsan-osa``, ``vsan-esa`` or ``datastore``.
        overhead: bytes of capacity for each byte that is written.
    """

    name: str
    kind: str
    host_count: int
    group_count: int = 0
    cache_gib: float | None = None
    buffer_gib: float | None = None
    capacity_gib: float | None = None
    free_gib: float | None = None
    medium: str | None = None
    overhead: float = 1.0
    overhead_why: str = "nothing is known of copies below the datastore"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a machine, and what lies behind it; None is not known."""

    path: str
    size_bytes: int
    free_bytes: int
    device: str | None = None
    depth: int | None = None
    is_hdd: bool | None = None
    writable: bool = True


# Source: VMware vSAN Design Guide, storage policies; ESA codes 4+1 from six hosts on, else 2+1.
def overhead_of(raid: str | None, ftt: int | None, *, is_esa: bool, host_count: int) -> tuple[float, str]:
    """Bytes of capacity for each byte written under a vSAN policy, and which policy that is.

    >>> overhead_of("raid-5", 1, is_esa=True, host_count=6), overhead_of("raid-1", 2, is_esa=False, host_count=6)
    ((1.25, 'RAID-5 as ESA lays it out'), (3.0, '3 copies (2 failures tolerated)'))
    """
    if raid is None and ftt is None:
        return 2.0, "no policy is known: taken for the vSAN default, one failure tolerated by a second copy"
    word = (raid or "raid-1").casefold()
    if word == "raid-5":
        share = (1.25 if host_count >= 6 else 1.5) if is_esa else 4.0 / 3.0
        return share, f"RAID-5 {'as ESA lays it out' if is_esa else '3+1'}"
    if word == "raid-6":
        return 1.5, "RAID-6 4+2"
    tolerated = 0 if word == "raid-0" else 1 if ftt is None else int(ftt)
    return 1.0 + tolerated, f"{1 + tolerated} {'copies' if tolerated else 'copy'} ({tolerated} failures tolerated)"


def storages(inventory: Inventory) -> list[Storage]:
    """Stores an inventory describes: vSAN of its clusters, and datastores that are not vSAN."""
    clusters = dict.fromkeys([*inventory.of_kind(EntityKind.CLUSTER), *_clusters_of_hosts(inventory)])
    stores = [storage for cluster in clusters if (storage := _vsan_storage(inventory, cluster)) is not None]
    names = {storage.name for storage in stores}
    for store in inventory.of_kind(EntityKind.DATASTORE):
        if str(inventory.get(store, "type") or "").startswith("vsan") or store.name in names:
            continue
        names.add(store.name)
        stores.append(_datastore(inventory, store))
    return stores


def storage_at(inventory: Inventory, cluster: Entity, datastore: Entity) -> Storage:
    """A datastore as one cluster uses it: the hosts there that mount it and, on vSAN, the disk groups of the cluster.

    Capacity and free space are those of this datastore: a vCenter may have several clusters with vSAN.
    """
    store = _datastore(inventory, datastore)
    hosts = placement.hosts_of(inventory, cluster)
    mounted = set(inventory.get(datastore, "hosts") or ())
    is_vsan = str(inventory.get(datastore, "type") or "").startswith("vsan")
    below = _vsan_storage(inventory, cluster) if is_vsan else None
    if below is not None:
        return replace(below, name=store.name, capacity_gib=store.capacity_gib, free_gib=store.free_gib)
    return replace(store, host_count=sum(host.name in mounted for host in hosts) or len(hosts) or 1)


def _clusters_of_hosts(inventory: Inventory) -> list[Entity]:
    clusters = [vsan.cluster_of(inventory, host) for host in inventory.of_kind(EntityKind.HOST)]
    return [cluster for cluster in clusters if cluster is not None]


def _vsan_storage(inventory: Inventory, cluster: Entity) -> Storage | None:
    groups = vsan.disk_groups_of(inventory, cluster)
    is_esa = bool(inventory.get(cluster, "vsan_esa"))
    if not groups and not is_esa:
        return None
    hosts = placement.hosts_of(inventory, cluster)
    stores = [s for s in inventory.of_kind(EntityKind.DATASTORE) if str(inventory.get(s, "type")).startswith("vsan")]
    cluster_stores = [s for s in stores if s.ancestor(EntityKind.HOST) in (None, *hosts)]
    capacity = None if not cluster_stores else inventory.get(cluster_stores[0], "capacity_gib")
    if capacity is None:
        sizes = [inventory.get(group, "capacity_gib") for group in groups]
        capacity = float(sum(sizes)) if sizes and all(size is not None for size in sizes) else None
    caches = [inventory.get(group, "cache_gib") for group in groups]
    known = bool(caches) and all(size is not None for size in caches)
    disks = vsan.database_disks(inventory, cluster)
    policies = [(inventory.get(disk, "vsan_raid"), inventory.get(disk, "vsan_ftt")) for disk in disks]
    known_policies = [policy for policy in policies if policy != (None, None)]
    worst = [overhead_of(raid, ftt, is_esa=is_esa, host_count=len(hosts)) for raid, ftt in known_policies]
    overhead, why = max(worst, default=overhead_of(None, None, is_esa=is_esa, host_count=len(hosts)))
    return Storage(
        cluster.name,
        "vsan-esa" if is_esa else "vsan-osa",
        len(hosts),
        len(groups),
        vsan.cache_gib(inventory, cluster),
        sum(min(float(size), BUFFER_GIB_MAX) for size in caches) if known else None,
        capacity,
        None if not cluster_stores else inventory.get(cluster_stores[0], "free_gib"),
        vsan.capacity_medium(inventory, cluster),
        overhead,
        why,
    )


def _datastore(inventory: Inventory, store: Entity) -> Storage:
    named = inventory.get(store, "hosts") or ()
    hosts = inventory.get(store, "host_count") or len(named) or (1 if store.ancestor(EntityKind.HOST) else 0)
    keys = ("capacity_gib", "free_gib", "medium")
    capacity, free, medium = (inventory.get(store, key) for key in keys)
    return Storage(store.name, "datastore", int(hosts) or 1, capacity_gib=capacity, free_gib=free, medium=medium)


def choose_workload(inventory: Inventory) -> Choice:
    """The shipped workload that is like the databases of an inventory; a mixed one where there is none."""
    engines = [
        str(inventory.get(database, "engine") or "").casefold() for database in inventory.of_kind(EntityKind.DATABASE)
    ]
    known = [engine for engine in engines if engine in ENGINES]
    if not known:
        return Choice("workload", DEFAULT, "no database is known here; 4 KiB 70/30 is what storage is compared with")
    most = max(dict.fromkeys(known), key=known.count)
    return Choice("workload", ENGINES[most], f"{known.count(most)} of the databases here: {most}")


def choose_machines(storage: Storage, workload: Choice, machines: int | None = None, *, has_target: bool) -> Easy:
    """Machines, their disks, sizes and load for a store.

    Args:
        storage: what is loaded.
        workload: as chosen.
        machines: how many there are already; None: as many as the store should have.
        has_target: whether a latency target is looked for.

    Raises:
        UsageError: nothing may be written there.
    """
    per, count = ("disk group", storage.group_count) if storage.kind == "vsan-osa" else ("host", storage.host_count)
    number = MACHINES_PER * count if machines is None else machines
    why = f"{MACHINES_PER} for each of {count} {per}{'s' if count != 1 else ''}: all of them work, none alone"
    chosen = [Choice("machines", str(number), why if machines is None else "those that were named")]
    disks = DISKS_WITH_TARGET if has_target else DISKS
    target = "a latency target needs no more" if has_target else "the most parallel work, on paravirtual controllers"
    chosen.append(Choice("disks of each", str(disks), target))
    wanted, wanted_why = _wanted(storage, number * disks)
    usable, guard_why = _usable(storage)
    chosen.append(Choice("protection overhead", f"{storage.overhead:.2f}", storage.overhead_why))
    chosen.append(Choice("space that may be used", _gib(usable), guard_why))
    raw = min(wanted, usable)
    if raw < usable:
        size_why = f"{_gib(wanted)} of it: {wanted_why}; divided by the overhead"
    else:
        size_why = f"all of it: less than {_gib(wanted)} ({wanted_why}); divided by the overhead"
    disk = int(raw * GIB / storage.overhead / (number * disks)) // GIB * GIB
    if disk < GIB:
        raise UsageError(
            f"storage {storage.name}",
            found=f"{_gib(usable)} that may be used",
            expected=f"{_gib(number * disks * storage.overhead)}: 1 GiB for each of {number * disks} disks",
            advice="Free space there: a fifth of the capacity stays empty.",
        )
    chosen.append(Choice("size of each disk", _gib(disk / GIB), size_why))
    total = 2 * (OIO_OSA if storage.kind == "vsan-osa" else OIO_OTHER)
    load_why = f"up to {total} for a machine, twice what Easy Run loads it with; the sweep ends where growth does"
    chosen.append(Choice("outstanding I/O of each disk", f"1 to {total // disks}", load_why))
    return Easy(workload.value, number, disks, disk, disks, total // disks, (workload, *chosen))


def _wanted(storage: Storage, disk_count: int) -> tuple[float, str]:
    """GiB of capacity to use before the guard, and why."""
    if storage.kind == "vsan-osa" and storage.cache_gib is not None and storage.buffer_gib is not None:
        if storage.medium == "hdd":
            return storage.cache_gib * SHARE_HYBRID, (
                f"a quarter of the cache ({_gib(storage.cache_gib)}), else the rotating disks behind it are measured"
            )
        unknown = "" if storage.medium else "; taken for all-flash"
        return storage.buffer_gib * SHARE_FLASH, (
            f"three quarters of the write buffer ({_gib(storage.buffer_gib)}; {BUFFER_GIB_MAX:.0f} GiB of a disk group "
            f"at most{unknown})"
        )
    if storage.capacity_gib is None:
        return disk_count * storage.overhead, "neither capacity nor cache are known, so 1 GiB for a disk"
    cache = "its cache is not known" if storage.kind == "vsan-osa" else "there is no cache tier"
    return storage.capacity_gib * SHARE_CAPACITY, f"a third of the capacity ({_gib(storage.capacity_gib)}): {cache}"


def _usable(storage: Storage) -> tuple[float, str]:
    """GiB of capacity that may be used at most, and why."""
    if storage.capacity_gib is None and storage.free_gib is None:
        return float("inf"), "neither capacity nor free space are known: look before you run it"
    if storage.free_gib is None:
        return (1.0 - GUARD) * float(storage.capacity_gib or 0.0), "what is used is not known: a fifth of the capacity"
    usable_gib = GUARD * storage.free_gib
    why = f"80 % of the {_gib(storage.free_gib)} that are free"
    if storage.capacity_gib is not None:
        filled = max(GUARD * storage.capacity_gib - (storage.capacity_gib - storage.free_gib), 0.0)
        if filled < usable_gib:
            return filled, f"up to 80 % of the capacity ({_gib(storage.capacity_gib)}, {_gib(storage.free_gib)} free)"
    return usable_gib, why


def _gib(value: float) -> str:
    return "unlimited" if value == float("inf") else f"{value:,.0f} GiB" if value >= 10 else f"{value:,.1f} GiB"


def choose_folder(
    folders: Sequence[Folder], workload: Choice, cpu_count: int, *, named: bool = False, stream_count: int = 1
) -> Easy:
    """Folder, size and load on this machine; the first of equal folders.

    Args:
        folders: to choose from.
        workload: as chosen.
        cpu_count: CPUs this process may use.
        named: whether the user named the folder.
        stream_count: streams of the workload, each of which has a file of its own.

    Raises:
        UsageError: none can be written to, or none has space.
    """
    usable = [folder for folder in folders if folder.writable]
    if not usable:
        raise UsageError(
            "bench sweep --easy",
            found="no file system of a disk this user may write to",
            expected="one",
            advice="Name a folder with --on.",
        )
    roomiest = max(usable, key=lambda folder: (folder.path != "/", _room(folder)))
    room = _room(roomiest)
    wanted = min(max(SET_SHARE * roomiest.size_bytes, SET_MIN), SET_MAX)
    size = int(min(wanted, room) / stream_count) // 1024**2 * 1024**2
    if size < 64 * 1024**2:
        raise UsageError(
            roomiest.path,
            found=f"{_gib(room / GIB)} below 80 % of {_gib(roomiest.size_bytes / GIB)}",
            expected="64 MiB at least",
            advice="Name another folder with --on, or a size with --set-size.",
        )
    share = "a tenth of the file system, 1 to 32 GiB: larger than small caches, filled within minutes"
    if room < wanted:
        share = "what there is until the file system is 80 % full; four fifths of the free space at most"
    if stream_count > 1:
        share = f"for each of the {stream_count} streams; in all {share}"
    jobs = max(1, min(JOBS_MAX, cpu_count))
    depth, depth_why = _depth(roomiest)
    each = max(depth // jobs, 1)
    chosen = (
        workload,
        Choice("machines", "1", "this one; others with --inventory"),
        Choice("folder", roomiest.path, _folder_why(roomiest, len(usable), named=named)),
        Choice("working set", _gib(size / GIB), share),
        Choice("jobs", str(jobs), f"{cpu_count} CPUs, at most {JOBS_MAX}: one CPU must not be what is measured"),
        Choice("outstanding I/O of each job", f"1 to {each}", f"up to {depth} in all: {depth_why}"),
    )
    return Easy(workload.value, 1, 1, size, jobs, each, chosen, roomiest.path)


def _folder_why(folder: Folder, count: int, *, named: bool) -> str:
    where = "" if folder.device is None else f"; it lies on {folder.device}"
    if named:
        return f"named{where}"
    others = "the only file system of a disk" if count == 1 else f"most space of {count}, the root file system last"
    return f"{others} that may be written to{where}"


def _room(folder: Folder) -> float:
    """Bytes that may be written so that the file system stays below the guard, and a fifth of what is free stays."""
    used = folder.size_bytes - folder.free_bytes
    return max(min(GUARD * folder.size_bytes - used, GUARD * folder.free_bytes), 0.0)


def _depth(folder: Folder) -> tuple[int, str]:
    if folder.depth is not None:
        return min(2 * folder.depth, OIO_MAX), f"the device takes {folder.depth} at a time; beyond that they only queue"
    if folder.is_hdd:
        return OIO_HDD, "a rotating disk whose depth is not known"
    return OIO_FLASH, "how many the device takes at a time is not known"
