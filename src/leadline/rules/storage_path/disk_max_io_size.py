"""The hypervisor sends larger commands than an array takes.

Finds:
    Hosts whose Disk.DiskMaxIOSize is larger than the largest command one of their devices is known to take.

Why:
    The hypervisor splits commands only above this size; its default is 32,767 KiB. An array that takes 4 MiB refuses
    what is larger. Most systems never send such commands, but firmware that boots Windows by UEFI does: the VM does
    not start, and the array's log fills with refused commands.

Do:
    Set Disk.DiskMaxIOSize to what the array's maker says, usually 4096 KiB, on every host of the cluster.

When it is wrong:
    Where no VM sends commands that large, nothing happens. Where the hypervisor learns the array's limit from the
    device it splits commands by itself.

Sources:
    codyhosterman.com, Disk.DiskMaxIOSize (August 2020): when it is needed, and 4096 KiB.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="STO139",
    layer=Layer.STORAGE_PATH,
    severity=Severity.LOW,
    needs=("host.advanced_options", "device.io_size_kib_max"),
    clears=False,  # a fitting size says nothing about latency
)
_OPTION = "Disk.DiskMaxIOSize"


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        fact = context.inventory.fact(host, "advanced_options")
        size = None if fact is None else _number(fact.value.get(_OPTION))
        if fact is None or size is None:
            continue
        devices = context.inventory.children(host, EntityKind.DEVICE)
        small = [device for device in devices if _takes_less(context, device, size)]
        if small:
            evidence = [Evidence(f"{_OPTION} of {host.name} is {show(size, 'kib')}", entity=host, source=fact.source)]
            for device in small:
                evidence += setting_evidence(context, device, "io_size_kib_max")
            names = ", ".join(device.name for device in small)
            summary = f"{host.name} may send commands of {show(size, 'kib')}, too large for {names}"
            yield context.finding(host, summary, evidence)


def _takes_less(context: RuleContext, device: Entity, size_kib: float) -> bool:
    most = context.inventory.get(device, "io_size_kib_max")
    return most is not None and most < size_kib


def _number(value: object) -> float | None:
    """The option as a number; None where it is missing or none."""
    try:
        return float(str(value))
    except ValueError:
        return None
