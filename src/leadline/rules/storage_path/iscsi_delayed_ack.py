"""A host's iSCSI adapter delays acknowledgements, or computes checksums of its data.

Finds:
    iSCSI adapters of hosts with delayed acknowledgement on (low), or with header or data digests preferred or required
    (informative).

Why:
    With delayed acknowledgement the receiver waits for a second segment before it confirms the first. Some arrays wait
    for that confirmation, so that reads on a congested network stall for up to a fifth of a second. Digests cost
    processor time for every byte.

Do:
    Follow the array's maker. Where it advises against delayed acknowledgement, switch it off for the adapter's
    targets, one host after the other, and reboot. Keep digests off unless the network is known to corrupt data.

When it is wrong:
    Many arrays do not mind. A host with quick iSCSI storage needs no change.

Sources:
    Performance Best Practices for VMware vSphere 7 and 8, storage considerations.
    Judgement: which array minds is not in any recording, so the setting alone is reported, and mildly.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="STO141",
    layer=Layer.STORAGE_PATH,
    severity=Severity.LOW,
    needs=("adapter.delayed_ack|adapter.iscsi_digest",),
    clears=False,  # a good setting says nothing about latency
    judgement=True,
)
_DIGEST_ON = frozenset({"preferred", "required"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per adapter."""
    for adapter in context.inventory.of_kind(EntityKind.ADAPTER):
        delayed = context.inventory.get(adapter, "delayed_ack") is True
        digest = str(context.inventory.get(adapter, "iscsi_digest") or "").casefold() in _DIGEST_ON
        if delayed or digest:
            yield _finding(context, adapter, delayed=delayed, digest=digest)


def _finding(context: RuleContext, adapter: Entity, *, delayed: bool, digest: bool) -> Finding:
    faults = [*(["delays acknowledgements"] if delayed else []), *(["checks digests"] if digest else [])]
    return context.finding(
        adapter,
        f"iSCSI adapter {adapter.label()} {' and '.join(faults)}",
        setting_evidence(context, adapter, "delayed_ack", "iscsi_digest"),
        severity=META.severity if delayed else Severity.INFO,
    )
