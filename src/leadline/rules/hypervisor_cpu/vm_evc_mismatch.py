"""A running VM uses another EVC mode than its cluster offers.

Finds:
    Running VMs whose EVC mode differs from that of their cluster, or of their host where the cluster has none.

Why:
    A VM keeps the processor features it was started with. After the cluster's mode was raised it runs without the new
    instructions, which databases use for checksums, encryption and vector scans, until it is powered off and on.

Do:
    Power the VM off and on again in a maintenance window (a restart from inside the guest is not enough), or let the
    hypervisor do it at the guest's next reboot (vmx.reboot.PowerCycle).

When it is wrong:
    A VM with a mode of its own, set for migration between sites, differs on purpose. The gain is seldom large.

Sources:
    vCheck for vSphere (VMs whose EVC mode differs from the cluster's).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import cluster_of, runs
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU158",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("vm.evc_mode", "cluster.evc_mode|host.evc_mode"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    inventory = context.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        evc_mode = inventory.get(vm, "evc_mode")
        above = _above(context, vm)
        if evc_mode is None or above is None or not runs(inventory, vm):
            continue
        offered = inventory.get(above, "evc_mode")
        if _key(evc_mode) != _key(offered):
            summary = f"{vm.label()} runs with EVC mode {evc_mode}, {above.label()} offers {offered}"
            yield of_facts(context, vm, summary, [(vm, "evc_mode"), (above, "evc_mode")])


def _above(context: RuleContext, vm: Entity) -> Entity | None:
    """The VM's cluster if its mode is known, else its host if that one's is."""
    host = vm.ancestor(EntityKind.HOST)
    cluster = None if host is None else cluster_of(context.inventory, host)
    known = (e for e in (cluster, host) if e is not None and context.inventory.get(e, "evc_mode") is not None)
    return next(known, None)


def _key(mode: object) -> str:
    return str(mode).strip().casefold()
