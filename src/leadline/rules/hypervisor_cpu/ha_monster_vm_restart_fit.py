"""The largest VM of a cluster cannot be restarted on any other host.

Finds:
    The running VM with the most vCPUs, the most memory or the largest memory reservation of a cluster, where no other
    host has enough hardware threads, or enough memory that is not reserved for others to hold its reservation (high).
    Where it would start, but with more vCPUs than every other host has cores, or with more memory than they have not
    given to VMs yet: medium.

Why:
    When its host fails, HA can only restart a VM where there is room. A VM sized to fill a host waits until somebody
    has moved others away; maintenance of its host turns into a puzzle for the same reason. If it does start on a host
    that is full, the database comes back slow.

Do:
    Size the VM for what it needs this year. Otherwise keep a host free for it, give it the highest restart priority
    and reserve its memory, or write down which VMs are to be switched off in its favour.

When it is wrong:
    Hosts of the cluster that are not in the inventory are not counted; where the cluster's host count says that some
    are missing, nothing is said. Memory that VMs were given but do not use makes more room than it seems.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): oversized VMs make HA and
    maintenance a game of Tetris; right-size instead of sizing for year five.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import hosts_by_cluster, is_open, memory_text, running_vms

META = RuleMeta(
    code="CPU142",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    needs=("host.cluster", "vm.vcpu_count", "vm.memory_mib", "host.core_count", "host.memory_mib"),
    clears=False,
)
_HOST_COUNT_MIN = 2  # a single host has no other to restart on


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM, in clusters of which every host is known."""
    inventory = context.inventory
    running = running_vms(inventory)
    for cluster, hosts in hosts_by_cluster(inventory).items():
        count = inventory.get(cluster, "host_count")
        known = all(inventory.get(host, name) for host in hosts for name in ("core_count", "memory_mib"))
        if len(hosts) < _HOST_COUNT_MIN or not known or (count is not None and count > len(hosts)):
            continue
        room = {host: _Room(context, host, running.get(host, [])) for host in hosts}
        for vm in _largest(context, [vm for host in hosts for vm in running.get(host, [])]):
            home = vm.ancestor(EntityKind.HOST)
            others = [room[host] for host in hosts if host != home and room[host].open]
            yield from _of_vm(context, cluster, vm, others)


class _Room:
    """What a host could still take: threads and cores at all, memory not reserved and not configured, in MiB."""

    def __init__(self, context: RuleContext, host: Entity, vms: list[Entity]) -> None:
        inventory = context.inventory
        self.name = host.name
        self.cores = int(inventory.get(host, "core_count"))
        self.threads = int(inventory.get(host, "thread_count") or self.cores)
        memory = float(inventory.get(host, "memory_mib"))
        self.unreserved_mib = memory - sum(_reserved(context, vm) for vm in vms)
        self.unused_mib = memory - sum(float(inventory.get(vm, "memory_mib") or 0.0) for vm in vms)
        self.open = is_open(inventory, host)


def _largest(context: RuleContext, vms: list[Entity]) -> list[Entity]:
    """The VMs with the most vCPUs, memory and reserved memory: one to three."""
    inventory = context.inventory
    sizes: tuple[Callable[[Entity], float], ...] = (
        lambda vm: float(inventory.get(vm, "vcpu_count")),
        lambda vm: float(inventory.get(vm, "memory_mib") or 0.0),
        lambda vm: _reserved(context, vm),
    )
    return list(dict.fromkeys(max(vms, key=size) for size in sizes)) if vms else []


def _of_vm(context: RuleContext, cluster: Entity, vm: Entity, others: list[_Room]) -> Iterator[Finding]:
    inventory = context.inventory
    vcpus, memory = inventory.get(vm, "vcpu_count"), inventory.get(vm, "memory_mib")
    if memory is None:
        return
    reserved = _reserved(context, vm)
    starts = [room for room in others if vcpus <= room.threads and reserved <= room.unreserved_mib]
    fits = [room for room in starts if vcpus <= room.cores and memory <= room.unused_mib]
    if fits:
        return
    size = f"{vcpus} vCPUs and {memory_text(memory)}"
    summary = (
        f"{vm.label()} ({size}) would start on another host of {cluster.label()} only by overcommitting it"
        if starts
        else f"{vm.label()} ({size}) cannot be restarted on any other host of {cluster.label()}"
    )
    fact = inventory.settings(vm)["vcpu_count"]
    statement = f"{vm.label()}: {size}, {memory_text(reserved)} reserved"
    evidence = [Evidence(statement, entity=vm, source=fact.source)]
    evidence += [
        Evidence(
            f"{room.name}: {room.cores} cores, {room.threads} threads, {memory_text(room.unreserved_mib)} not "
            f"reserved, {memory_text(max(room.unused_mib, 0.0))} not given to VMs"
        )
        for room in others
    ]
    yield context.finding(vm, summary, evidence, severity=META.severity.lowered() if starts else META.severity)


def _reserved(context: RuleContext, vm: Entity) -> float:
    """Reserved memory in MiB; none where it is not known."""
    if context.inventory.get(vm, "memory_reservation_locked") is True:
        return float(context.inventory.get(vm, "memory_mib") or 0.0)
    return float(context.inventory.get(vm, "memory_reservation_mib") or 0.0)
