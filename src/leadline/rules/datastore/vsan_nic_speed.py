"""The network cards that carry vSAN are too slow, too few, or shared without control.

Finds:
    Hosts whose uplinks for vSAN run below 10 Gbit/s (high; below 1 Gbit/s where the capacity tier is known to be
    rotating), below 25 Gbit/s with the Express Storage Architecture (medium), hosts with a single such uplink (medium),
    and uplinks shared with VM or vMotion traffic on a switch with network I/O control off (medium).

Why:
    Each write crosses this network at least once, a rebuild all of it. At 1 Gbit/s, 110 MB/s, the network is slower
    than a single flash device, and a vMotion on the same card takes what is left.

Do:
    Use 10 Gbit/s at least, 25 or more for NVMe, two uplinks on two switches, and network I/O control with a reserved
    share for vSAN where cards are shared. Switches with large buffers that ports do not share keep bursts from loss.

When it is wrong:
    A card that is only a standby may be slower on purpose. The speed is that of the link, which a bad cable lowers.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: 10 Gbit/s with its own bandwidth, mandatory for
    all-flash, with redundant links. vSAN Design and Sizing guide: 25 Gbit/s for the Express Storage Architecture.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.networks import is_up, is_uplink, traffic
from leadline.estate.knowledge.vsan import capacity_medium, is_esa

_VSAN = "vsan"
_GUIDE = "vSAN Design and Sizing guide"

META = RuleMeta(
    code="DST141",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    causes=("network-narrow",),
    needs=("nic.speed_mbit_per_s", "nic.traffic|virtual-switch.traffic|port-group.traffic"),
    thresholds={
        "warn": Threshold(10_000.0, "mbit_per_s", "vmgu.ru articles on vSphere, vSAN and StarWind performance"),
        "warn_hybrid": Threshold(1_000.0, "mbit_per_s", _GUIDE),
        "warn_esa": Threshold(25_000.0, "mbit_per_s", _GUIDE),
        "uplinks_min": Threshold(2.0, "count", "vmgu.ru articles on vSphere, vSAN and StarWind performance"),
    },
    clears=False,
)
_RIVALS = frozenset({"vm", "vmotion", "replication", "storage"})

Complaint = tuple[Severity, str, Evidence]


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per host with all that is wrong; the worst gives the severity."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        uplinks = _uplinks(context, host)
        if not uplinks:
            continue
        complaints = [*_too_slow(context, host, uplinks), *_too_few(context, host, uplinks), *_shared(context, uplinks)]
        if complaints:
            severity = max(complaint[0] for complaint in complaints)
            summary = f"vSAN network of {host.label()}: {', '.join(complaint[1] for complaint in complaints)}"
            yield context.finding(host, summary, [complaint[2] for complaint in complaints], severity=severity)


def _uplinks(context: RuleContext, host: Entity) -> list[Entity]:
    """Physical cards with a link that carry vSAN: they say so, or the switch or port group does that uses them."""
    inventory = context.inventory
    used: set[str] = set()
    for switch in inventory.children(host, EntityKind.VIRTUAL_SWITCH):
        if _VSAN in traffic(inventory, switch):
            used |= {str(name) for name in inventory.get(switch, "uplinks") or ()}
        for group in inventory.children(switch, EntityKind.PORT_GROUP):
            if _VSAN in traffic(inventory, group):
                for setting in ("active_uplinks", "standby_uplinks"):
                    used |= {str(name) for name in inventory.get(group, setting) or ()}
    return [
        nic
        for nic in inventory.children(host, EntityKind.NIC)
        if is_uplink(inventory, nic)
        and is_up(inventory, nic)
        and (nic.name in used or _VSAN in traffic(inventory, nic))
    ]


def _too_slow(context: RuleContext, host: Entity, uplinks: list[Entity]) -> Iterator[Complaint]:
    speeds = [(context.inventory.get(nic, "speed_mbit_per_s"), nic) for nic in uplinks]
    known = [(float(speed), nic) for speed, nic in speeds if speed is not None]
    if not known:
        return
    speed, nic = min(known, key=_speed)
    hybrid = capacity_medium(context.inventory, host) == "hdd"
    limit = context.limit("warn_hybrid" if hybrid else "warn")
    severity = context.meta.severity
    if speed >= limit and is_esa(context.inventory, host):
        limit, severity = context.limit("warn_esa"), severity.lowered()
    if speed < limit:
        statement = f"{nic.label()} runs at {speed / 1000:g} Gbit/s, {limit / 1000:g} are needed"
        evidence = Evidence(statement, entity=nic, value=speed, threshold=limit, unit="mbit_per_s")
        yield severity, f"{speed / 1000:g} Gbit/s", evidence


def _too_few(context: RuleContext, host: Entity, uplinks: list[Entity]) -> Iterator[Complaint]:
    if len(uplinks) < context.limit("uplinks_min"):
        evidence = Evidence(f"the only uplink of {host.label()} for vSAN with a link is {uplinks[0].name}", entity=host)
        yield context.meta.severity.lowered(), "one uplink", evidence


def _shared(context: RuleContext, uplinks: list[Entity]) -> Iterator[Complaint]:
    inventory = context.inventory
    names = {nic.name for nic in uplinks}
    rivals = sorted(_RIVALS & frozenset().union(*(traffic(inventory, nic) for nic in uplinks)))
    host = uplinks[0].ancestor(EntityKind.HOST)
    for switch in inventory.of_kind(EntityKind.VIRTUAL_SWITCH):
        uses = names & {str(name) for name in inventory.get(switch, "uplinks") or ()}
        if switch.ancestor(EntityKind.HOST) not in (None, host) or inventory.get(switch, "io_control") is not False:
            continue
        other_traffic = rivals or sorted(_RIVALS & traffic(inventory, switch))
        if uses and other_traffic:
            statement = f"{switch.label()} carries vSAN and {', '.join(other_traffic)} with network I/O control off"
            yield (
                context.meta.severity.lowered(),
                f"shared with {', '.join(other_traffic)}",
                Evidence(statement, entity=switch),
            )


def _speed(pair: tuple[float, Entity]) -> float:
    return pair[0]
