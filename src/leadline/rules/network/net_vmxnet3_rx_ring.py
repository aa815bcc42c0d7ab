"""A guest drops received packets while its receive ring is smaller than it may be.

Finds:
    Network cards with fewer than 4096 receive ring entries (or, on Windows, fewer than 8192 small receive buffers)
    that drop received packets, or at whose VM's ports received packets are dropped, for at least 15 s.

Why:
    Packets wait in the ring until the guest fetches them. A vmxnet3 ring has 512 entries by default: at 10 Gbit/s a
    burst fills it in well under a millisecond, long before a vCPU that is not running right now gets to it.

Do:
    Raise the ring: `ethtool -G eth0 rx 4096` on Linux (make it permanent in the network configuration); on Windows in
    the adapter's advanced properties Rx Ring #1 Size 4096 and Small Rx Buffers 8192. The link drops for a moment. Let
    several vCPUs receive (RSS, multiqueue). Rule out CPU contention first (net-check-cpu-before-drops).

When it is wrong:
    Drops may have other causes: packets no one asked for, a firewall in the guest. A larger ring only helps against
    bursts, not against a guest that is too slow all the time.

Sources:
    VMware KB 2039495: large packet loss in the guest, ring of 4096 and 8192 buffers. Default of 512 and its limits:
    ntpro.nl, vmxnet3 ring settings.
    Judgement: 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import Episode, find_episodes, joined_windows
from leadline.estate.arithmetic.timeline import ever_above
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="NET130",
    layer=Layer.NETWORK,
    severity=Severity.MEDIUM,
    causes=("network-loss",),
    needs=("nic.rx_ring_count|nic.rx_small_buffers_count", "net_rx_dropped_per_s|net_rx_dropped_pct"),
    thresholds={
        "ring": Threshold(4096.0, "count", "VMware KB 2039495"),
        "small_buffers": Threshold(8192.0, "count", "VMware KB 2039495"),
        "drops": Threshold(0.0, "per_s", "VMware KB 2039495: any"),
        "duration": THREE_SAMPLES,
    },
    explains=("net-drops-vm-port",),
    clears=False,
)
_SETTINGS = (("rx_ring_count", "ring", "receive ring"), ("rx_small_buffers_count", "small_buffers", "receive buffers"))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per network card."""
    small = {
        nic: small_rings for nic in context.inventory.of_kind(EntityKind.NIC) if (small_rings := _small(context, nic))
    }
    if not small:
        return
    drops = _drops(context)
    for nic, small_rings in small.items():
        episodes = drops.get(nic) or _of_machine(context, nic, drops)
        if not episodes:
            continue
        worst = max(episodes, key=lambda episode: episode.median)
        seen = Evidence(
            f"received packets dropped at {worst.entity.label()}: median {show(worst.median, worst.group.unit)}, "
            f"{worst.held_s:.0f} s",
            metric=worst.group.metric,
            entity=worst.entity,
            statistic="median",
            value=worst.median,
            threshold=context.limit("drops"),
            unit=worst.group.unit,
            source=context.source_name(worst.group),
        )
        yield context.finding(
            nic,
            f"{nic.label()} drops received packets and has only {small_rings[0].statement.partition(' of ')[0]}",
            [*small_rings, seen],
            windows=joined_windows([e.window for e in episodes], context.limit("duration")),
        )


def _small(context: RuleContext, nic: Entity) -> list[Evidence]:
    """What is too small about a card that is, or may be, a vmxnet3."""
    driver = str(context.inventory.get(nic, "type") or "vmxnet3").casefold()
    if "vmxnet3" not in driver:
        return []
    evidence = []
    for setting, limit, noun in _SETTINGS:
        fact = context.inventory.fact(nic, setting)
        if fact is not None and fact.value < context.limit(limit):
            evidence.append(
                Evidence(
                    f"{fact.value} entries in the {noun} of {nic.label()}, {context.limit(limit):.0f} are possible",
                    entity=nic,
                    value=float(fact.value),
                    threshold=context.limit(limit),
                    unit="count",
                    source=fact.source,
                )
            )
    return evidence


def _drops(context: RuleContext) -> dict[Entity, list[Episode]]:
    """Episodes of dropped packets, by the guest's own card, and by VM for its ports."""
    episodes_by_owner: dict[Entity, list[Episode]] = {}
    limit, duration_s = context.limit("drops"), context.limit("duration")
    groups = [*context.of("net_rx_dropped_per_s", EntityKind.NIC), *context.of("net_rx_dropped_pct", EntityKind.PORT)]
    for group in groups:
        dropping = ever_above(group, limit)
        if dropping is None:
            continue
        met = np.nan_to_num(dropping.values, nan=0.0) > limit
        for episode in find_episodes(dropping, met, dropping.values, duration_s):
            of_card = episode.entity.kind is EntityKind.NIC
            owner = episode.entity if of_card else episode.entity.ancestor(EntityKind.VM)
            if owner is not None:
                episodes_by_owner.setdefault(owner, []).append(episode)
    return episodes_by_owner


def _of_machine(context: RuleContext, nic: Entity, drops: dict[Entity, list[Episode]]) -> list[Episode]:
    """Episodes at the ports of the VM a card belongs to, seen from inside or from outside."""
    guest = nic.ancestor(EntityKind.GUEST)
    vm = nic.ancestor(EntityKind.VM) if guest is None else context.inventory.vm_of(guest)
    return [] if vm is None else drops.get(vm, [])
