"""A host's NFS settings are not those arrays ask for.

Finds:
    Hosts that mount an NFS datastore and whose advanced options for NFS differ from the usual recommendation: heartbeat
    timeout 5 s, 256 volumes, TCP/IP heap of 32 MiB and at most 512 to 1536 MiB, send buffer 264 KiB, receive buffer 256
    KiB. Options that are not known are not judged.

Why:
    The defaults are for a few small volumes. Short buffers cap the throughput of one connection, a small heap makes
    mounts fail, and a wrong heartbeat turns a short pause of the array into a lost datastore.

Do:
    Set what the array's vendor says, the same on every host of the cluster; the vendor's plug-in usually does it. Some
    need a restart of the host.

When it is wrong:
    Vendors differ: put your array's numbers into the profile. Newer releases have larger defaults and some options
    are gone.

Sources:
    vCheck-vSphere: checks these options with these values.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

_SOURCE = "vCheck-vSphere"

META = RuleMeta(
    code="DST140",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    needs=("host.advanced_options", "datastore.type"),
    thresholds={
        "heartbeat": Threshold(5.0, "s", _SOURCE),
        "volumes": Threshold(256.0, "count", _SOURCE),
        "heap": Threshold(32.0, "mib", _SOURCE),
        "heap_max_from": Threshold(512.0, "mib", _SOURCE),
        "heap_max_to": Threshold(1536.0, "mib", _SOURCE),
        "send": Threshold(264.0, "kib", _SOURCE),
        "receive": Threshold(256.0, "kib", _SOURCE),
    },
    clears=False,
)
# Each option with the least and the greatest value it should have.
_OPTIONS = {
    "NFS.HeartbeatTimeout": ("heartbeat", "heartbeat"),
    "NFS.MaxVolumes": ("volumes", "volumes"),
    "Net.TcpipHeapSize": ("heap", "heap"),
    "Net.TcpipHeapMax": ("heap_max_from", "heap_max_to"),
    "NFS.SendBufferSize": ("send", "send"),
    "NFS.ReceiveBufferSize": ("receive", "receive"),
}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    inventory = context.inventory
    mounting = _hosts_with_nfs(context)
    for host in inventory.of_kind(EntityKind.HOST):
        fact = inventory.fact(host, "advanced_options")
        if fact is None or host.name not in mounting:
            continue
        options = {str(name).casefold(): value for name, value in fact.value.items()}
        evidence = [
            item
            for option, limits in _OPTIONS.items()
            if (item := _differing(context, host, option, options.get(option.casefold()), limits)) is not None
        ]
        if evidence:
            named = ", ".join(item.statement.split(" is ")[0] for item in evidence)
            yield context.finding(host, f"NFS options of {host.label()} differ from the usual: {named}", evidence)


def _differing(
    context: RuleContext, host: Entity, option: str, value: object, limits: tuple[str, str]
) -> Evidence | None:
    least, most = (context.limit(limit) for limit in limits)
    unit = context.meta.thresholds[limits[0]].unit
    try:
        number = float(str(value))
    except ValueError:
        return None
    if least <= number <= most:
        return None
    expected = show(least, unit) if least == most else f"{show(least, unit)} to {show(most, unit)}"
    return Evidence(
        f"{option} is {show(number, unit)}, expected {expected}",
        entity=host,
        value=number,
        threshold=least if number < least else most,
        unit=unit,
    )


def _hosts_with_nfs(context: RuleContext) -> set[str]:
    names: set[str] = set()
    for datastore in context.inventory.of_kind(EntityKind.DATASTORE):
        if str(context.inventory.get(datastore, "type")).casefold().startswith("nfs"):
            names.update(str(name) for name in context.inventory.get(datastore, "hosts") or ())
            host = datastore.ancestor(EntityKind.HOST)
            names |= set() if host is None else {host.name}
    return names
