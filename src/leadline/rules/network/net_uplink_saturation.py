"""A physical network card of a host is close to the speed of its link.

Finds:
    Traffic of a host's network card in one direction above 70 % (low) or 90 % (medium) of the link's speed for at
    least 60 s.

Why:
    Above that packets queue in the card and in the switch, and bursts are dropped. Where storage, vMotion, backup and
    clients share the card, the database feels a backup as slow commits and a vMotion as a hanging session.

Do:
    Find the talker first (the ports behind the card, a backup window, a vMotion). Then spread the load over more
    uplinks, give storage its own, use 25 Gbit/s, and turn network I/O control on so that shares decide while the link
    is full.

When it is wrong:
    A backup at night may fill a link that nobody else needs. Averages over minutes hide bursts: a card at 40 % may
    drop packets.

Sources:
    Performance Best Practices for VMware vSphere: enough bandwidth for each kind of traffic.
    Judgement: 70 % and 90 % are rules of thumb of the field; 60 s, since links may be full for moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.networks import is_uplink
from leadline.estate.language.templates import Over, joined, over_groups

META = RuleMeta(
    code="NET131",
    layer=Layer.NETWORK,
    severity=Severity.MEDIUM,
    causes=("network-narrow",),
    needs=("net_rx_mbit_per_s|net_tx_mbit_per_s", "nic.speed_mbit_per_s"),
    thresholds={
        "warn": Threshold(70.0, "pct", "Judgement: bursts are dropped above it"),
        "crit": Threshold(90.0, "pct", "Judgement: next to nothing left"),
        "duration": Threshold(60.0, "s", "Judgement: links may be full for moments"),
    },
    judgement=True,
    clears_with=("net_tcp_rtt_us",),
)
_DIRECTIONS = (("rx", "received"), ("tx", "sent"))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per physical card of a host; the fuller direction leads."""
    findings_by_card: dict[object, list[Finding]] = {}
    for direction, noun in _DIRECTIONS:
        spec = Over("net_util_pct", f"share of the link's speed {noun}")
        for finding in over_groups(context, _shares(context, direction), spec):
            findings_by_card.setdefault(finding.entity, []).append(finding)
    for findings in findings_by_card.values():
        yield joined(findings, context.limit("duration"))


def _shares(context: RuleContext, direction: str) -> Iterator[SeriesGroup]:
    """Traffic in one direction as a share of the link's speed, per cent [k, n], of cards whose speed is known."""
    for group in context.of(f"net_{direction}_mbit_per_s", EntityKind.NIC):
        speeds = [
            context.inventory.get(nic, "speed_mbit_per_s") if is_uplink(context.inventory, nic) else None
            for nic in group.entities
        ]
        rows = [row for row, speed in enumerate(speeds) if speed]
        if rows:
            part = group.take(rows)
            speed = np.array([float(speeds[row] or 0.0) for row in rows])[:, np.newaxis]
            yield replace(part, metric="net_util_pct", values=100.0 * part.values / speed)
