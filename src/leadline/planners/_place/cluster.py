"""Datastores as arrays, with the disks on them: what fits where, and what latency it would have."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

NEAR = 1e-9  # GiB: sums of sizes that are equal but for rounding


@dataclass(frozen=True, slots=True)
class DiskSet:
    """Disks that stay together: what is placed or moved.

    Attributes:
        vm: VM they belong to.
        labels: names of the disks.
        size_gib: space of all of them.
        outstanding: operations in flight, all of them together; NaN when not measured.
        ids: disks of the cluster they are; none when they are new.
        is_whole: they are all the disks of their VM.
        kind: what asks for it: create, clone, add-disk, relocate, maintenance, prerequisite, balance.
        avoid: datastores it must not go to.
        origin: VM that it is cloned from.
        sizes_gib: space of each disk.
    """

    vm: str
    labels: tuple[str, ...]
    size_gib: float
    outstanding: float = float("nan")
    ids: tuple[int, ...] = ()
    is_whole: bool = True
    kind: str = "create"
    avoid: frozenset[int] = frozenset()
    origin: str = ""
    sizes_gib: tuple[float, ...] = ()

    @property
    def load(self) -> float:
        """Outstanding operations, none where not measured."""
        return 0.0 if np.isnan(self.outstanding) else self.outstanding


@dataclass(slots=True)
class StoreState:
    """State of n datastores.

    Attributes:
        names: of the datastores.
        size_gib, limit_gib, used_gib: [n] capacity, space below the threshold, space in use.
        base_ms, slope_ms: [n] latency = base + slope x outstanding; NaN where not measured.
        outstanding: [n] operations in flight.
        latency_max_ms: threshold of latency.
        usable: [n] what may take new disks.
        rules: names of VMs of which no two share a datastore.
        split: VMs whose disks lie apart.
    """

    names: tuple[str, ...]
    size_gib: Floats
    limit_gib: Floats
    used_gib: Floats
    base_ms: Floats
    slope_ms: Floats
    outstanding: Floats
    latency_max_ms: float
    usable: Flags
    rules: tuple[frozenset[str], ...] = ()
    split: frozenset[str] = frozenset()
    labels: list[str] = field(default_factory=list)
    vms: list[str] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    on: list[set[int]] = field(default_factory=list)
    of_vm: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.on = self.on or [set() for _ in self.names]

    def copied(self) -> StoreState:
        """Return an independent copy, on which moves can be tried."""
        twin = copy.copy(self)
        twin.used_gib, twin.outstanding = self.used_gib.copy(), self.outstanding.copy()
        for name in ("labels", "vms", "sizes", "loads", "at"):
            setattr(twin, name, list(getattr(self, name)))
        twin.on = [set(disks) for disks in self.on]
        twin.of_vm = {vm: set(disks) for vm, disks in self.of_vm.items()}
        return twin

    def record(self, vm: str, label: str, size: float, load: float, store: int) -> int:
        """Add a disk and return its number; the caller counts its space and load."""
        number = len(self.labels)
        self.labels.append(label)
        self.vms.append(vm)
        self.sizes.append(size)
        self.loads.append(load)
        self.at.append(store)
        self.of_vm.setdefault(vm, set()).add(number)
        self.on[store].add(number)
        return number

    def latency_ms(self, added: float | Floats = 0.0) -> Floats:
        """Latency [n] with more outstanding; NaN where not measured."""
        return self.base_ms + self.slope_ms * np.maximum(self.outstanding + added, 0.0)

    def forbidden(self, unit: DiskSet) -> set[int]:
        """Return the datastores that rules forbid for the unit."""
        stores = set(unit.avoid)
        for rule in self.rules:
            if unit.vm in rule:
                stores.update(self.at[disk] for other in rule - {unit.vm} for disk in self.of_vm.get(other, ()))
        if unit.vm in self.split:
            stores.update(self.at[disk] for disk in self.of_vm.get(unit.vm, ()) if disk not in unit.ids)
        return stores

    def allowed(self, unit: DiskSet) -> Flags:
        """Datastores [n] that rules leave; where it lies is none of them."""
        flags = self.usable.copy()
        flags[[*self.forbidden(unit), *{self.at[disk] for disk in unit.ids}]] = False
        return flags

    def fits(self, unit: DiskSet, *, is_strict: bool = True) -> Flags:
        """Datastores [n] with space for it; if strict those that stay below the latency threshold too."""
        flags = self.allowed(unit) & (self.used_gib + unit.size_gib <= self.limit_gib + NEAR)
        return flags & ~(self.latency_ms(unit.load) > self.latency_max_ms) if is_strict else flags

    def loads_with(self, unit: DiskSet) -> Floats:
        """How full [n] each would be: the larger of space over its limit and latency over the threshold."""
        space = (self.used_gib + unit.size_gib) / self.limit_gib
        return np.fmax(space, self.latency_ms(unit.load) / self.latency_max_ms)

    def put(self, unit: DiskSet, store: int) -> DiskSet:
        """Place or move a unit; return it with the numbers of its disks."""
        if unit.ids:
            for disk in unit.ids:
                self._leave(disk)
                self.at[disk] = store
                self.on[store].add(disk)
            ids = unit.ids
        else:
            share = unit.load / max(1, len(unit.labels))
            ids = tuple(
                self.record(unit.vm, label, size, share, store)
                for label, size in zip(unit.labels, unit.sizes_gib, strict=True)
            )
        self.used_gib[store] += unit.size_gib
        self.outstanding[store] += unit.load
        return replace(unit, ids=ids)

    def _leave(self, disk: int) -> None:
        store = self.at[disk]
        self.on[store].discard(disk)
        self.used_gib[store] -= self.sizes[disk]
        self.outstanding[store] -= 0.0 if np.isnan(self.loads[disk]) else self.loads[disk]

    def groups(self, store: int, kind: str) -> list[DiskSet]:
        """Return the units that can leave a datastore: the disks of a VM together, or singly where it is split."""
        by_vm: dict[str, list[int]] = {}
        for disk in sorted(self.on[store]):
            by_vm.setdefault(self.vms[disk], []).append(disk)
        groups = []
        for vm, disks in by_vm.items():
            parts = [[disk] for disk in disks] if vm in self.split else [disks]
            groups += [self.unit(vm, part, kind) for part in parts]
        return groups

    def unit(self, vm: str, disks: list[int], kind: str) -> DiskSet:
        """Disks of a VM as one."""
        loads = [self.loads[disk] for disk in disks]
        return DiskSet(
            vm,
            tuple(self.labels[disk] for disk in disks),
            sum(self.sizes[disk] for disk in disks),
            float("nan") if np.isnan(loads).all() else float(np.nansum(loads)),
            tuple(disks),
            len(disks) == len(self.of_vm[vm]),
            kind,
            sizes_gib=tuple(self.sizes[disk] for disk in disks),
        )
