"""A physical network card counts errors.

Finds:
    Errors of received or transmitted packets above 0 (low) or 1 per second (medium) for at least 60 s, on network
    cards of hosts and of machines that are not known to be virtual.

Why:
    Damaged packets are thrown away and sent again after a timeout; a stream of them makes the network slow without
    any load on it. iSCSI and NFS feel it as aborted commands, a database as sessions that hang for a moment.

Do:
    Look at `esxcli network nic stats get -n vmnic0` to see which errors they are. CRC errors: change cable and SFP,
    clean the fibre, look at the counters of the switch port. Missed or FIFO errors: firmware and driver, the card's
    ring. A duplex mismatch shows late collisions.

When it is wrong:
    Some drivers count packets of unknown protocols as errors. A cable that was plugged in during the recording leaves
    a few.

Sources:
    Performance Best Practices for VMware vSphere: no errors on physical cards.
    Judgement: the numbers are common knowledge of the field, not re-read at their source; 60 s so that a single burst
    does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, joined, over_groups

META = RuleMeta(
    code="NET132",
    layer=Layer.NETWORK,
    severity=Severity.MEDIUM,
    causes=("network-loss",),
    needs=("net_errors_count|net_rx_errors_per_s|net_tx_errors_per_s",),
    thresholds={
        "warn": Threshold(0.0, "per_s", "Performance Best Practices for VMware vSphere"),
        "crit": Threshold(1.0, "per_s", "Judgement: a steady stream"),
        "duration": Threshold(60.0, "s", "Judgement: a single burst does not count"),
    },
    judgement=True,
    clears_with=("net_tcp_rtt_us",),
)
_METRICS = {
    "net_rx_errors_per_s": "receive errors",
    "net_tx_errors_per_s": "transmit errors",
    "net_errors_count": "packet errors",
}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per card."""
    findings_by_card: dict[Entity, list[Finding]] = {}
    for metric, noun in _METRICS.items():
        groups = [_per_second(group) for group in context.of(metric, EntityKind.NIC)]
        for finding in over_groups(context, groups, Over(metric, noun, keep=_physical)):
            findings_by_card.setdefault(finding.entity, []).append(finding)
    for findings in findings_by_card.values():
        yield joined(findings, context.limit("duration"))


def _physical(context: RuleContext, nic: Entity) -> bool:
    guest = nic.ancestor(EntityKind.GUEST)
    virtual = nic.ancestor(EntityKind.VM) or (None if guest is None else context.inventory.vm_of(guest))
    return virtual is None and (guest is None or context.inventory.get(guest, "virtualisation") in (None, "none"))


def _per_second(group: SeriesGroup) -> SeriesGroup:
    """Counts of an interval as errors per second; rates as they are. NaN where the interval is not known."""
    if group.metric != "net_errors_count":
        return group
    seconds = group.interval_s if group.interval_s > 0 else np.nan
    return replace(group, metric="net_rx_errors_per_s", values=group.values / seconds)
