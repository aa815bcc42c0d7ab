"""A VM has virtual devices a database server does not need.

Finds:
    Floppy, CD-ROM, serial, parallel, USB and sound devices of a VM: low where one is connected, informative where they
    are only there. A CD-ROM drive with nothing connected is left out.

Why:
    Such devices are polled or emulated by the hypervisor and cost some CPU; a connected CD image or host device keeps
    the VM from being moved to another host, so the load on a full host cannot be balanced.

Do:
    Disconnect and remove them, with the VM off where the device demands it. A CD-ROM drive may stay if nothing is
    connected to it.

When it is wrong:
    A serial console or a licence dongle may be needed. It does not make a database slow by itself.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): floppy, CD-ROM, COM ports
    and the like consume resources. Performance Best Practices for VMware vSphere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="VMC105",
    layer=Layer.VM,
    severity=Severity.LOW,
    needs=("vm.virtual_devices",),
    clears=False,  # a tidy VM may still be badly configured
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; what is connected is named first."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        fact = context.inventory.fact(vm, "virtual_devices")
        devices = [device for device in fact.value if _counts(device)] if fact is not None else []
        if fact is None or not devices:
            continue
        connected = [device for device in devices if device["connected"]]
        names = ", ".join(device["name"] for device in connected or devices)
        evidence = [
            Evidence(f"{device['name']} ({device['type']}) is {_state(device)}", entity=vm, source=fact.source)
            for device in devices
        ]
        yield context.finding(
            vm,
            f"{vm.label()} has {names}" + (" connected" if connected else ", none known to be connected"),
            evidence,
            severity=META.severity if connected else Severity.INFO,
        )


def _counts(device: Mapping[str, Any]) -> bool:
    return device["type"] != "cdrom" or device["connected"] is not False


def _state(device: Mapping[str, Any]) -> str:
    return {True: "connected", False: "not connected"}.get(device["connected"], "there; not known whether connected")
