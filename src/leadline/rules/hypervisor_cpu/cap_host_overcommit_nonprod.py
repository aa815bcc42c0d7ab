"""The running VMs of a host have many more vCPUs together than the host has cores.

Finds:
    Hosts with more than 3 vCPUs per physical core (low) or more than 5 (medium) over all running VMs; informative
    where ready time was recorded and stayed low.

Why:
    The more vCPUs share a core, the likelier several want it at once. General servers tolerate three per core; beyond
    five somebody nearly always waits when the host is busy.

Do:
    Look at ready time and co-stop at peak first: they outrank the ratio. Then take vCPUs from VMs that do not use
    them, and keep databases on hosts with a low ratio or give them reservations.

When it is wrong:
    Many idle VMs make a high ratio harmless; desktops run at ten and more. A core count derived from hyper-threads is
    a guess and said to be one.

Sources:
    Performance Best Practices for VMware vSphere: overcommitment is measured by contention, not by a fixed ratio.
    Judgement: 3 and 5 vCPUs per core are rules of thumb for general servers.
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
from leadline.estate.knowledge.placement import running_vms, vcpu_sum
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU138",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    needs=("vm.vcpu_count", "host.core_count"),
    uses=ready_p95_of_host.reads,
    thresholds={
        "warn": Threshold(3.0, "ratio", "Judgement: general servers tolerate it"),
        "crit": Threshold(5.0, "ratio", "Judgement: contention is to be expected"),
        "ready": Threshold(5.0, "pct", "EsxtopDrill c_map.csv: ready time per vCPU"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    inventory = context.inventory
    waited_pct = context.table(ready_p95_of_host)
    for host, vms in running_vms(inventory).items():
        cores = inventory.get(host, "core_count")
        vcpus = vcpu_sum(inventory, vms)
        if not cores or vcpus / cores <= context.limit("warn"):
            continue
        yield _finding(context, host, f"{vcpus} vCPUs of {len(vms)} running VMs", vcpus / cores, waited_pct.get(host))


def _finding(context: RuleContext, host: Entity, demand: str, ratio: float, waited: float | None) -> Finding:
    severity = META.severity if ratio > context.limit("crit") else META.severity.lowered()
    if waited is not None and waited <= context.limit("ready"):
        severity = Severity.INFO
    warn = context.limit("warn")
    summary = (
        f"{demand} share the cores of {host.label()}: {show(ratio, 'ratio')} per core (limit {show(warn, 'ratio')})"
    )
    finding = of_facts(context, host, summary, [(host, "core_count")], severity=severity)
    evidence = [*finding.evidence, Evidence(demand, entity=host, value=ratio, threshold=warn, unit="ratio")]
    if waited is not None:
        evidence.append(
            Evidence(
                f"ready time of the VM that waited most: {show(waited, 'pct')} (95th percentile)",
                metric="cpu_ready_pct",
                entity=host,
                statistic="p95",
                value=waited,
                threshold=context.limit("ready"),
                unit="pct",
            )
        )
    return replace(finding, evidence=tuple(evidence), score=ratio / warn)
