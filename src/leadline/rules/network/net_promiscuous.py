"""A port group lets VMs listen to each other or change their address.

Finds:
    Port groups that accept promiscuous mode, forged transmits or changes of the MAC address.

Why:
    With promiscuous mode every packet of the virtual switch is copied to every port that asks, which costs the host
    CPU for each packet, and one VM reads what others send. The other two let a VM pretend to be another.

Do:
    Set all three to Reject. Where a firewall, a nested hypervisor or a cluster address needs one, give it a port
    group of its own.

When it is wrong:
    Nested hypervisors, network appliances and some cluster software (Network Load Balancing in unicast mode) need it.
    Standard switches accept forged transmits and address changes by default.

Sources:
    vCheck for vSphere: port group security must reject.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="NET138",
    layer=Layer.NETWORK,
    severity=Severity.LOW,
    needs=("port-group.promiscuous|port-group.forged_transmits|port-group.mac_changes",),
    clears=False,
)
_ACCEPTED = {
    "promiscuous": "promiscuous mode",
    "forged_transmits": "forged transmits",
    "mac_changes": "changes of the MAC address",
}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per port group."""
    for group in context.inventory.of_kind(EntityKind.PORT_GROUP):
        known = context.inventory.settings(group)
        accepted = {
            name: known[setting].source
            for setting, name in _ACCEPTED.items()
            if setting in known and known[setting].value
        }
        if accepted:
            evidence = [
                Evidence(f"{name} accepted on {group.label()}", entity=group, source=source)
                for name, source in accepted.items()
            ]
            yield context.finding(group, f"port group {group.label()} accepts {', '.join(accepted)}", evidence)
