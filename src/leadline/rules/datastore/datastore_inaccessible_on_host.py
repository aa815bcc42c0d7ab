"""Some hosts of a cluster do not reach a datastore the others use.

Finds:
    Datastores that a host lists as not accessible, and datastores that at least two hosts of a cluster mount and others
    of it do not. Hosts of which no datastore is known are not judged.

Why:
    A VM with a disk there cannot run on those hosts: DRS and HA have fewer choices than they seem to have, and after a
    failure the database may have nowhere to start.

Do:
    Check zoning, masking, exports and the VMkernel port of those hosts, rescan, and mount the datastore everywhere.

When it is wrong:
    Datastores of one host only are local and left out. Sets of hosts may be kept apart on purpose, then split the
    cluster or say so in rules.

Sources:
    vCheck-vSphere: reports datastores that are not mounted on all hosts of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import hosts_by_cluster
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="DST139",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("disk-stalled",),
    needs=("datastore.hosts|datastore.accessible|datastore.type|datastore.capacity_gib",),
    clears=False,
)
_HOSTS_MIN = 2  # a datastore of one host is local


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore a host cannot reach, then per datastore that hosts of a cluster lack."""
    setting = (EntityKind.DATASTORE, "accessible")
    yield from flag_is(context, setting, False, "Datastore {name} is not accessible")
    mounts = _mounts(context)
    seen = {host for hosts in mounts.values() for host in hosts}
    entities: dict[str, Entity] = {}
    for datastore in context.inventory.of_kind(EntityKind.DATASTORE):
        entities.setdefault(datastore.name, datastore)
    for members in hosts_by_cluster(context.inventory).values():
        known = [host for host in members if host.name in seen]
        for name, hosts in mounts.items():
            having = [host for host in known if host.name in hosts]
            lacking = [host.name for host in known if host.name not in hosts]
            if len(having) < _HOSTS_MIN or not lacking:
                continue
            who = f"{len(lacking)} of {len(known)} hosts ({', '.join(sorted(lacking)[:4])})"
            evidence = Evidence(f"mounted by {', '.join(sorted(h.name for h in having)[:4])}", entity=entities[name])
            yield context.finding(entities[name], f"Datastore {name} is not mounted on {who}", [evidence])


def _mounts(context: RuleContext) -> dict[str, set[str]]:
    """Names of hosts by the name of the datastore they mount."""
    hosts_by_datastore: dict[str, set[str]] = {}
    for datastore in context.inventory.of_kind(EntityKind.DATASTORE):
        hosts = hosts_by_datastore.setdefault(datastore.name, set())
        hosts.update(str(name) for name in context.inventory.get(datastore, "hosts") or ())
        host = datastore.ancestor(EntityKind.HOST)
        if host is not None:
            hosts.add(host.name)
    return hosts_by_datastore
