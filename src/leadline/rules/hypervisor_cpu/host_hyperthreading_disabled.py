"""A host's processors have hyper-threading, but it is not in use.

Finds:
    Hosts where hyper-threading is available and not active.

Why:
    The second thread of a core gives perhaps a fifth more throughput under load, not twice as much. Without it more
    VMs wait for a core when the host is busy, and the hypervisor's own work competes with them.

Do:
    Enable hyper-threading in the firmware and on the host, and reboot it. Keep planning vCPUs by cores: threads are
    headroom, not capacity.

When it is wrong:
    It may be off on purpose, as the answer to a side-channel vulnerability; the side-channel aware scheduler is the
    milder one. Licences counted per thread, and hosts with few very latency-sensitive VMs, are other reasons.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): it should be enabled; expect
    20 % or more, not double. Performance Best Practices for VMware vSphere.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU143",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    catalogue=("cap-ht-gain",),
    needs=("host.hyperthreading_available", "host.hyperthreading"),
    clears=False,
)
_GAIN_PCT = 20  # InterSystems: perhaps 20 % or more


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    inventory = context.inventory
    for host in inventory.of_kind(EntityKind.HOST):
        if inventory.get(host, "hyperthreading_available") is not True:
            continue
        if inventory.get(host, "hyperthreading") is not False:
            continue
        summary = (
            f"Hyper-threading of {host.label()} is not in use; about {_GAIN_PCT} % of throughput under load is lost"
        )
        facts = [(host, "hyperthreading_available"), (host, "hyperthreading"), (host, "cpu_model")]
        yield of_facts(context, host, summary, facts)
