"""The network cards of a host are slower than 10 Gbit/s.

Finds:
    Hosts whose fastest physical card with a link is below 10 Gbit/s; and slower cards that are known to carry storage,
    vSAN or vMotion (medium). Below 250 Mbit/s not even one vMotion at a time is supported.

Why:
    At 1 Gbit/s a link moves 110 MB/s, less than one SATA disk: a full scan, a backup or the first synchronisation of
    a replica fills it for hours. A vMotion of a large database VM may never finish, because memory changes faster
    than it is copied.

Do:
    Give hosts of databases two ports of 10 or 25 Gbit/s of server-class cards, separate storage from clients, and use
    several cards for vMotion of large VMs. Check that a faster card has not fallen back to 1 Gbit/s.

When it is wrong:
    Cards for management only may be slow: they are left out as long as a faster card is there and nothing says that
    they carry more.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): server-class cards.
    Performance Best Practices for VMware vSphere: 10 Gbit/s for storage and vMotion. vMotion: at least 250 Mbit/s for
    each migration under way.
    Judgement: 10 Gbit/s for every host that runs databases.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.networks import is_uplink, traffic

META = RuleMeta(
    code="NET133",
    layer=Layer.NETWORK,
    severity=Severity.MEDIUM,
    causes=("network-narrow",),
    catalogue=("net-vmotion-bandwidth",),
    needs=("nic.speed_mbit_per_s",),
    thresholds={
        "warn": Threshold(10_000.0, "mbit_per_s", "Judgement: for hosts that run databases"),
        "vmotion": Threshold(250.0, "mbit_per_s", "vSphere requirements: for each concurrent vMotion"),
    },
    clears=False,
    judgement=True,
)
_HEAVY = frozenset({"storage", "vsan", "vmotion", "replication"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host whose cards are all slow; else per slow card that carries much."""
    inventory = context.inventory
    by_host: dict[Entity, list[tuple[float, Entity]]] = {}
    for nic in inventory.of_kind(EntityKind.NIC):
        speed = inventory.get(nic, "speed_mbit_per_s")
        if (
            speed
            and nic.parent is not None
            and is_uplink(inventory, nic)
            and inventory.get(nic, "connected") is not False
        ):
            by_host.setdefault(nic.parent, []).append((float(speed), nic))
    for host, cards in by_host.items():
        slow = [(speed, nic) for speed, nic in cards if speed < context.limit("warn")]
        fastest = max(speed for speed, _ in cards)
        if len(slow) == len(cards):
            summary = f"the fastest network card of {host.label()} has {show(fastest, 'mbit_per_s')}"
            yield context.finding(host, summary, [_speed_evidence(context, *card) for card in slow])
            continue
        for speed, nic in slow:
            heavy = sorted(traffic(inventory, nic) & _HEAVY)
            if heavy:
                summary = f"{nic.label()} carries {', '.join(heavy)} at {show(speed, 'mbit_per_s')}"
                yield context.finding(nic, summary, [_speed_evidence(context, speed, nic)])


def _speed_evidence(context: RuleContext, speed: float, nic: Entity) -> Evidence:
    fact = context.inventory.fact(nic, "speed_mbit_per_s")
    moves = int(speed // context.limit("vmotion"))
    vmotion = f", enough for {moves} concurrent vMotions" if "vmotion" in traffic(context.inventory, nic) else ""
    return Evidence(
        f"link speed of {nic.label()} is {show(speed, 'mbit_per_s')}{vmotion}",
        entity=nic,
        value=speed,
        threshold=context.limit("warn"),
        unit="mbit_per_s",
        source=None if fact is None else fact.source,
    )
