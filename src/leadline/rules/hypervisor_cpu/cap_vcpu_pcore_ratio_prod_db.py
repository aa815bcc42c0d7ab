"""Production databases on a host have more vCPUs than the host has physical cores.

Finds:
    Hosts whose running production VMs have more than 1 vCPU per core together (low), or more than 1.5 (medium).
    Production VMs are those of the first tier, whatever runs in them, and databases of no known tier. On a
    vSAN cluster a tenth of the cores counts as used by storage. One severity lower where ready time was recorded and
    stayed low. VMs known to be of another tier than the first are not counted.

Why:
    At their peak, which business databases tend to reach in the same hour, all vCPUs want to run. Beyond one vCPU per
    core somebody waits then. Two VMs as wide as the host, both busy, were measured to lose a sixth of their throughput
    each, at half as much response time again.

Do:
    Start with one vCPU per core for production databases. Take vCPUs nobody uses away, spread the VMs over hosts, and
    consolidate further only after ready time at peak has shown that there is room.

When it is wrong:
    Databases whose peaks do not coincide can share cores. What counts as a database is taken from disk roles and from
    engines found in guests, and a tier that is not given is taken for production: name tiers in an inventory file.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): one vCPU per physical core for
    production; HCI services need CPU of the host. Performance Best Practices for VMware vSphere: 1.5. vSAN Design and
    Sizing guide: 10 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.derived.ready import ready_p95_of_host
from leadline.estate.knowledge.placement import (
    cluster_of,
    is_tier_one,
    production_databases,
    running_vms,
    vcpu_sum,
)
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU137",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    catalogue=("cap-hci-cpu-overhead",),
    needs=("vm.vcpu_count", "host.core_count", "virtual-disk.role|database.engine"),
    uses=ready_p95_of_host.reads,
    thresholds={
        "warn": Threshold(1.0, "ratio", "Virtualizing large databases: VMware CPU capacity planning"),
        "crit": Threshold(1.5, "ratio", "Performance Best Practices for VMware vSphere"),
        "hci": Threshold(10.0, "pct", "vSAN Design and Sizing guide: CPU of the storage services"),
        "ready": Threshold(5.0, "pct", "EsxtopDrill c_map.csv: ready time per vCPU"),
    },
    clears=False,  # a low ratio does not exclude contention
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    inventory = context.inventory
    first, unknown = production_databases(inventory)
    waited_pct = context.table(ready_p95_of_host)
    for host, vms in running_vms(inventory).items():
        cores = inventory.get(host, "core_count")
        databases = [vm for vm in vms if vm in first or vm in unknown or is_tier_one(inventory, vm)]
        if not cores or not databases:
            continue
        usable = cores * (1.0 - context.limit("hci") / 100.0) if _on_vsan(context, host) else float(cores)
        ratio = vcpu_sum(inventory, databases) / usable
        if ratio > context.limit("warn"):
            finding = _finding(context, host, databases, ratio, [vm for vm in databases if vm in unknown])
            yield _with_waiting(context, finding, waited_pct.get(host))


def _finding(context: RuleContext, host: Entity, vms: list[Entity], ratio: float, assumed: list[Entity]) -> Finding:
    severity = META.severity if ratio > context.limit("crit") else META.severity.lowered()
    summary = (
        f"{len(vms)} production VM{'s' if len(vms) > 1 else ''} on {host.label()}: "
        f"{show(ratio, 'ratio')} vCPUs per core (limit {show(context.limit('warn'), 'ratio')})"
    )
    facts = [(host, "core_count"), *((vm, "vcpu_count") for vm in vms)]
    finding = of_facts(context, host, summary, facts, severity=severity)
    guesses = (f"that {vm.label()} is in production" for vm in assumed)
    return replace(finding, score=ratio / context.limit("warn"), guessed=(*finding.guessed, *guesses))


def _with_waiting(context: RuleContext, finding: Finding, waited: float | None) -> Finding:
    """The finding with how long VMs waited as evidence, one severity lower where they did not; None: not recorded."""
    if waited is None:
        return finding
    quiet = waited <= context.limit("ready")
    severity = finding.severity.lowered() if quiet else finding.severity
    return replace(finding, severity=severity, evidence=(*finding.evidence, _ready(finding.entity, waited)))


def _ready(host: Entity, waited: float) -> Evidence:
    return Evidence(
        f"ready time of the VM of {host.label()} that waited most: {show(waited, 'pct')} (95th percentile)",
        metric="cpu_ready_pct",
        entity=host,
        statistic="p95",
        value=waited,
        unit="pct",
    )


def _on_vsan(context: RuleContext, host: Entity) -> bool:
    cluster = cluster_of(context.inventory, host)
    return cluster is not None and context.inventory.get(cluster, "vsan_enabled") is True
