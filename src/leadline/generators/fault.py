"""The contract of faults: a file in ``generators/faults/`` with ``META`` and ``inject``.

``inject(model, target, window) -> Entity`` changes the model's primary quantities for the samples of ``window`` on the
target (an index of what ``META.target`` names) and returns the entity a diagnosis must accuse. A fault's docstring
carries the headings *Injects, Seen as, Parameters, Sources*.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.generators.host_model import HostModel


class FaultTarget(StrEnum):
    """What a fault strikes."""

    HOST = "host"
    VM = "vm"
    DISK = "disk"
    LUN = "lun"


@dataclass(frozen=True, slots=True)
class FaultMeta:
    """What a diagnosis must say of a fault: one of these rules, in this layer."""

    rules: tuple[str, ...]
    layer: Layer
    target: FaultTarget


class Fault(Protocol):
    """The type of a fault module."""

    META: FaultMeta

    def inject(self, model: HostModel, target: int, window: slice) -> Entity:
        """Write the fault into the model; the entity to accuse."""


def target_count(model: HostModel, target: FaultTarget) -> int:
    """How many targets of a kind the model has."""
    shape = model.shape
    return {
        FaultTarget.HOST: 1,
        FaultTarget.VM: shape.vm_count,
        FaultTarget.DISK: shape.vm_count * shape.disks_per_vm,
        FaultTarget.LUN: shape.lun_count,
    }[target]


def host_entity(model: HostModel) -> Entity:
    """The host."""
    return Entity(EntityKind.HOST, model.shape.host)


def vm_entity(model: HostModel, vm: int) -> Entity:
    """A VM by index."""
    return Entity(EntityKind.VM, model.vm_names[vm], host_entity(model))


def disk_entity(model: HostModel, disk: int) -> Entity:
    """A virtual disk by index, as esxtop names it."""
    per_vm = model.shape.disks_per_vm
    name = f"scsi{disk % per_vm % 4}:{disk % per_vm // 4}"
    return Entity(EntityKind.VIRTUAL_DISK, name, vm_entity(model, disk // per_vm))


def lun_entity(model: HostModel, lun: int) -> Entity:
    """A LUN by index."""
    return Entity(EntityKind.DEVICE, model.lun_name(lun), host_entity(model))


def port_entity(model: HostModel, vm: int) -> Entity:
    """The port of a VM's first network adapter."""
    return Entity(EntityKind.PORT, model.port_name(vm), vm_entity(model, vm))
