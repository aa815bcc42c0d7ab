"""A guest's clock is not kept right, or by two masters.

Finds:
    Guests whose clock is not disciplined by NTP or PTP (medium), is more than 1 s off (medium) or more than 0.1 s off
    (low), or is set by an NTP service and by VMware Tools periodically at once (medium).

Why:
    Recordings of guest and host can only be compared on one clock. Replication, Kerberos and log shipping compare
    clocks too. Two masters pull against each other: time jumps, and timeouts with it.

Do:
    Run chrony (Linux) or the Windows time service against the same sources the ESXi hosts use, and leave the periodic
    synchronisation of VMware Tools off (tools.syncTime = "FALSE").

When it is wrong:
    Tools still set the clock once after a resume, a snapshot or a migration; that is right. On KVM a guest may take its
    time from the host's PTP clock.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): synchronise guests and
    hosts with NTP. Performance Best Practices for VMware vSphere. Oracle Databases on VMware Best Practices Guide.
    Judgement: 0.1 s and 1 s; a tenth of a second already puts samples of a few seconds apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="GST150",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("time-step",),
    needs=("guest.clock_synchronised|guest.clock_offset_s|guest.time_services",),
    thresholds={
        "warn": Threshold(0.1, "s", "Judgement: samples of a few seconds are compared across clocks"),
        "crit": Threshold(1.0, "s", "Judgement: a whole sample of a fine recording"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per guest; the worst fault gives the severity, all are evidence."""
    for guest in context.inventory.of_kind(EntityKind.GUEST):
        faults = list(_faults(context, guest))
        if faults:
            evidence = [Evidence(statement, entity=guest, source=source) for statement, source, _ in faults]
            worst = max(faults, key=lambda fault: fault[2])
            yield context.finding(guest, worst[0], evidence, severity=worst[2])


def _faults(context: RuleContext, guest: Entity) -> Iterator[tuple[str, str, Severity]]:
    """What is wrong, where it was read, how bad it is."""
    inventory = context.inventory
    synchronised = inventory.fact(guest, "clock_synchronised")
    offset = inventory.fact(guest, "clock_offset_s")
    services = inventory.fact(guest, "time_services")
    vm = inventory.vm_of(guest)
    if synchronised is not None and synchronised.value is False:
        yield f"The clock of {guest.label()} is not synchronised", synchronised.source, META.severity
    if offset is not None and abs(float(offset.value)) > context.limit("warn"):
        severity = META.severity if abs(float(offset.value)) > context.limit("crit") else META.severity.lowered()
        statement = f"The clock of {guest.label()} is {show(abs(float(offset.value)), 's')} off"
        yield statement, offset.source, severity
    if vm is not None and inventory.get(vm, "tools_sync_time") is True and services is not None and services.value:
        names = ", ".join(map(str, services.value))
        yield f"{names} and VMware Tools both set the clock of {guest.label()}", services.source, META.severity
