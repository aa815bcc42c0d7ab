"""Parts of one network path are set to different packet sizes.

Finds:
    VMkernel interfaces whose packets do not fit through the virtual switch, one of its physical cards, or the path
    that was probed (high); interfaces on one port group that differ from host to host (medium); interfaces for
    storage, vSAN or vMotion left at a smaller size on a switch made for jumbo frames (low).

Why:
    A packet that is too large is dropped without a word. Small ones pass: login works, `ping` works, and the first
    large read hangs until it times out. It shows as aborted commands and a datastore that comes and goes.

Do:
    Probe the path from each host: `vmkping -d -s 8972 TARGET` (8972 plus 28 of headers is 9000). Then set one size
    from end to end, physical switches and the array included, or go back to 1500 everywhere: jumbo frames save some
    CPU, they are not needed.

When it is wrong:
    Physical switches and the target are only known where the path was probed: agreement of what is seen here proves
    nothing about them. TCP agrees on the smaller size of both ends, so hosts that differ mostly work, only slower.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): check the frame size
    along the whole path. Performance Best Practices for VMware vSphere: jumbo frames end to end.
    Judgement: medium and low where the smaller size is agreed on or only unused.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.networks import is_vmkernel, port_group_of, port_groups, traffic

META = RuleMeta(
    code="NET135",
    layer=Layer.NETWORK,
    severity=Severity.HIGH,
    needs=("nic.mtu_bytes",),
    clears=False,
)
_HEAVY = frozenset({"storage", "vsan", "vmotion"})
_Path = list[tuple[str, int, Entity]]


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VMkernel interface."""
    inventory = context.inventory
    groups = port_groups(inventory)
    paths: dict[Entity, _Path] = {}
    peers: dict[tuple[str, str], int] = {}
    for nic in inventory.of_kind(EntityKind.NIC):
        if is_vmkernel(inventory, nic) and inventory.get(nic, "mtu_bytes") is not None:
            paths[nic] = _path(context, nic, port_group_of(inventory, groups, nic))
            key = _peers(context, nic)
            peers[key] = max(peers.get(key, 0), inventory.get(nic, "mtu_bytes"))
    for nic, path in paths.items():
        mtu = inventory.get(nic, "mtu_bytes")
        sent = Evidence(f"packets of {nic.label()} may have {mtu} bytes", entity=nic, value=float(mtu), unit="bytes")
        evidence = [sent, *_path_evidence(path)]
        tight = min(path, key=lambda part: part[1], default=None)
        if tight is not None and tight[1] < mtu:
            summary = f"packets of {mtu} bytes from {nic.label()} do not fit through {tight[0]} ({tight[1]})"
            yield context.finding(nic, summary, evidence)
        elif mtu < peers[_peers(context, nic)]:
            largest = peers[_peers(context, nic)]
            summary = f"{nic.label()} sends packets of {mtu} bytes, its peers of {largest}"
            yield context.finding(nic, summary, evidence, severity=Severity.MEDIUM)
        elif tight is not None and tight[1] > mtu and traffic(inventory, nic) & _HEAVY:
            summary = f"{nic.label()} sends packets of {mtu} bytes on a path for {tight[1]}"
            yield context.finding(nic, summary, evidence, severity=Severity.LOW)


def _peers(context: RuleContext, nic: Entity) -> tuple[str, str]:
    """What interfaces of several hosts have in common that talk to each other; else the interface itself."""
    network = context.inventory.get(nic, "network")
    return ("", str(nic)) if network is None else (str(network), ",".join(sorted(traffic(context.inventory, nic))))


def _path(context: RuleContext, nic: Entity, group: Entity | None) -> _Path:
    """What an interface's packets must pass, with its size: switch, physical cards, the probed path."""
    inventory = context.inventory
    path: _Path = []
    switch = None if group is None else group.parent
    if switch is not None:
        _add(path, inventory.get(switch, "mtu_bytes"), f"the switch {switch.name}", switch)
        for name in inventory.get(switch, "uplinks") or ():
            card = Entity(EntityKind.NIC, str(name), nic.parent)
            _add(path, inventory.get(card, "mtu_bytes"), card.label(), card)
    _add(path, inventory.get(nic, "path_mtu_bytes"), "the path that was probed", nic)
    return path


def _add(path: _Path, mtu: int | None, name: str, entity: Entity) -> None:
    if mtu is not None:
        path.append((name, mtu, entity))


def _path_evidence(path: _Path) -> list[Evidence]:
    return [
        Evidence(f"{name} passes {mtu} bytes", entity=entity, value=float(mtu), unit="bytes")
        for name, mtu, entity in path
    ]
