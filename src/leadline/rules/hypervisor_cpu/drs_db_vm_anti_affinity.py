"""Busy database VMs share a host that is too small for them, and no DRS rule keeps them apart.

Finds:
    Hosts with two or more first-tier database VMs that have more vCPUs together than the host has cores, where no rule
    of the cluster separates them (high; medium where tiers are not known). The same where a rule keeps such VMs
    together. Clusters without DRS are left out.

Why:
    DRS balances by what VMs used lately. Two databases that are idle at the same time look like good neighbours, and
    at the next peak both want all cores. At twice as many busy vCPUs as cores, each was measured to lose 16 % of
    its throughput while response time rose by more than half.

Do:
    Create a rule that separates the large database VMs, or host groups that give each its hosts. Delete rules that
    keep them together unless the application needs it, and review "must" rules, which HA obeys as well.

When it is wrong:
    In a cluster with as many databases as hosts separation is not always possible; then cap their sizes. Databases
    whose peaks never coincide may share a host.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): wrong DRS rules moved busy
    database VMs together; two VMs of 24 vCPUs on 24 cores. vCheck for vSphere (DRS rules).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.placement import cluster_of, drs_rules, production_databases, running_vms, vcpu_sum
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU140",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    catalogue=("cap-two-monster-vms-penalty",),
    needs=("cluster.drs_rules", "vm.vcpu_count", "host.core_count", "virtual-disk.role|database.engine"),
    thresholds={
        "warn": Threshold(1.0, "ratio", "Virtualizing large databases: vCPUs of busy databases per core"),
        "penalty": Threshold(2.0, "ratio", "Virtualizing large databases: two VMs as wide as the host were measured"),
    },
    clears=False,
)
_VM_COUNT_MIN = 2  # one VM has nobody to be kept apart from


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host; a rule that keeps databases together is part of the finding of their host."""
    inventory = context.inventory
    first, unknown = production_databases(inventory)
    for host, vms in running_vms(inventory).items():
        cluster, cores = cluster_of(inventory, host), inventory.get(host, "core_count")
        rules = None if cluster is None else inventory.get(cluster, "drs_rules")
        databases = [vm for vm in vms if vm in first or vm in unknown]
        if cluster is None or rules is None or not cores or inventory.get(cluster, "drs_enabled") is False:
            continue
        apart, together = (_pairs(context, cluster, kind) for kind in ("separate", "together"))
        joined = _largest(context, databases, apart)
        ratio = vcpu_sum(inventory, joined) / cores
        if ratio <= context.limit("warn"):
            continue
        bound = any(frozenset(vm.name for vm in pair) in together for pair in combinations(joined, 2))
        why = "and a DRS rule keeps them together" if bound else "and no DRS rule keeps them apart"
        summary = f"{len(joined)} database VMs share {host.label()}, {show(ratio, 'ratio')} vCPUs per core, {why}"
        yield _finding(context, (host, cluster), joined, summary, ratio)


def _finding(
    context: RuleContext, where: tuple[Entity, Entity], vms: list[Entity], summary: str, ratio: float
) -> Finding:
    host, cluster = where
    assumed = [vm for vm in vms if context.inventory.get(vm, "tier") is None]
    facts = [*((vm, "vcpu_count") for vm in vms), (host, "core_count")]
    severity = META.severity.lowered() if assumed else META.severity
    finding = of_facts(context, host, summary, facts, severity=severity)
    guesses = (f"that {vm.label()} is of the first tier" for vm in assumed)
    rules = context.inventory.settings(cluster)["drs_rules"]
    names = ", ".join(rules.value) or "none"
    given = Evidence(f"DRS rules in force in {cluster.label()}: {names}", entity=cluster, source=rules.source)
    finding = replace(finding, score=ratio, guessed=(*finding.guessed, *guesses), evidence=(*finding.evidence, given))
    if ratio < context.limit("penalty"):
        return finding
    known = Evidence("at twice as many busy vCPUs as cores each VM lost 16% of throughput, response time rose by 50%")
    return replace(finding, evidence=(*finding.evidence, known))


def _largest(context: RuleContext, vms: list[Entity], apart: set[frozenset[str]]) -> list[Entity]:
    """VMs no rule separates from each other, with as many vCPUs as possible: the best of a greedy pick per VM."""
    by_size = sorted(vms, key=lambda vm: int(context.inventory.get(vm, "vcpu_count")), reverse=True)
    names = {vm.name for vm in vms}
    avoids: dict[str, set[str]] = {}
    for pair in apart:
        if len(pair & names) == _VM_COUNT_MIN:
            for name in pair:
                avoids.setdefault(name, set()).update(pair - {name})
    best: list[Entity] = []
    for seed in by_size if avoids else by_size[:1]:
        picked: list[Entity] = []
        taken: set[str] = set()
        for vm in (seed, *(vm for vm in by_size if vm is not seed)):
            if taken.isdisjoint(avoids.get(vm.name, ())):
                picked.append(vm)
                taken.add(vm.name)
        if vcpu_sum(context.inventory, picked) > vcpu_sum(context.inventory, best):
            best = picked
    return best if len(best) >= _VM_COUNT_MIN else []


def _pairs(context: RuleContext, cluster: Entity, kind: str) -> set[frozenset[str]]:
    """Pairs of names of VMs that rules of a kind name together."""
    rules = drs_rules(context.inventory, cluster, kind).values()
    return {frozenset(pair) for names in rules for pair in combinations(names, 2)}
