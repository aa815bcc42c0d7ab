"""Traffic of a VM is shaped or limited.

Finds:
    Port groups with traffic shaping on, and network cards of VMs with a bandwidth limit: medium where a database VM
    is behind it or nothing is known of the VMs, low where only others are.

Why:
    Shaping delays packets and drops what does not fit. The guest and its switch port show drops or long round trips
    while every link is idle. It was meant for one guest long ago and applies to all of them on the port group.

Do:
    Take shaping off the port group (Edit settings, Traffic shaping) and the limit off the adapter's network resources,
    or raise them above what the database ever sends. To protect others from it, use shares of network I/O control.

When it is wrong:
    A limit far above what is sent harms nobody; compare with the traffic of the port.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): check limits, network I/O
    control and traffic shaping. Performance Best Practices for VMware vSphere: shares rather than limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_vms import database_guess, likely_database_vms
from leadline.estate.knowledge.networks import port_group_of, port_groups

META = RuleMeta(
    code="NET137",
    layer=Layer.NETWORK,
    severity=Severity.MEDIUM,
    causes=("network-narrow",),
    needs=("port-group.shaping_in|port-group.shaping_out|nic.limit_mbit_per_s",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per port group and per card of a VM."""
    known = likely_database_vms(context.inventory)
    yield from _shaped(context, known)
    for nic in context.inventory.of_kind(EntityKind.NIC):
        limit = context.inventory.fact(nic, "limit_mbit_per_s")
        vm = nic.ancestor(EntityKind.VM)
        if limit is None or limit.value < 0 or vm is None:
            continue
        evidence = Evidence(
            f"bandwidth limit of {nic.label()} is {show(limit.value, 'mbit_per_s')}",
            entity=nic,
            value=float(limit.value),
            unit="mbit_per_s",
            source=limit.source,
        )
        summary = f"{nic.label()} is limited to {show(limit.value, 'mbit_per_s')}"
        severity = META.severity if vm in known else Severity.LOW
        yield context.finding(nic, summary, [evidence], severity=severity, guessed=_guesses([vm], known))


def _shaped(context: RuleContext, known: Mapping[Entity, Fact]) -> Iterator[Finding]:
    """Findings of port groups that shape traffic in either direction."""
    inventory = context.inventory
    groups = port_groups(inventory)
    behind: dict[Entity, list[Entity]] = {}
    for nic in inventory.of_kind(EntityKind.NIC):
        vm = nic.ancestor(EntityKind.VM)
        group = None if vm is None else port_group_of(inventory, groups, nic)
        if vm is not None and group is not None:
            behind.setdefault(group, []).append(vm)
    for group in inventory.of_kind(EntityKind.PORT_GROUP):
        evidence = [
            Evidence(f"{way} traffic shaping of {group.label()} is on", entity=group, source=fact.source)
            for setting, way in (("shaping_in", "ingress"), ("shaping_out", "egress"))
            if (fact := inventory.fact(group, setting)) is not None and fact.value
        ]
        if not evidence:
            continue
        average = inventory.get(group, "shaping_mbit_per_s")
        rate = "" if average is None else f" to {show(average, 'mbit_per_s')} on average"
        vms = behind.get(group, [])
        databases = [vm for vm in vms if vm in known]
        yield context.finding(
            group,
            f"port group {group.label()} shapes traffic{rate}",
            evidence,
            severity=META.severity if databases or not vms else Severity.LOW,
            guessed=_guesses(databases, known),
        )


def _guesses(vms: list[Entity], known: Mapping[Entity, Fact]) -> tuple[str, ...]:
    return tuple(guess for vm in vms if vm in known for guess in database_guess(vm, known[vm]))
