"""A host is not connected to vCenter, or is in maintenance.

Finds:
    Hosts whose connection state is not "connected" (high); hosts in maintenance mode (low).

Why:
    Its VMs cannot be managed, balanced or seen; if the host itself is down, its load is on the others already. A host
    in maintenance is capacity the cluster does not have for as long as it lasts.

Do:
    Find out whether the host answers at all (console, remote management), then its management network, the agents
    (hostd, vpxa) and its certificate; reconnect it. Take hosts out of maintenance when the work is done.

When it is wrong:
    A host can be disconnected on purpose, before it is retired; an inventory export shows the state of its moment.

Sources:
    vCheck for vSphere (hosts not responding, in maintenance, disconnected).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="HST177",
    layer=Layer.HOST,
    severity=Severity.HIGH,
    needs=("host.connection_state|host.maintenance_mode",),
    clears=False,
)
_CONNECTED = "connected"


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    inventory = context.inventory
    for host in inventory.of_kind(EntityKind.HOST):
        state = inventory.get(host, "connection_state")
        facts = [(host, "connection_state"), (host, "maintenance_mode")]
        if state is not None and str(state).strip().casefold() != _CONNECTED:
            yield of_facts(context, host, f"{host.label()} is {state}, not connected to vCenter", facts)
        elif inventory.get(host, "maintenance_mode") is True:
            yield of_facts(context, host, f"{host.label()} is in maintenance", facts, severity=Severity.LOW)
