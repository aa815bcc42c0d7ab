"""What a vCenter is told to make and to remove of a fleet: clones, disks, power, addresses, removal.

Nothing is removed but VMs that carry the fleet's own mark.

Sources: vSphere Web Services API reference: VirtualMachine (CloneVM_Task, ReconfigVM_Task, Destroy_Task), Task,
TaskManager, SearchIndex, GuestInfo; PropertyCollector.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any

from leadline.app.fleet.model import MARK, FleetPlan, Placement
from leadline.app.fleet.offer import VcenterSite, error_line
from leadline.estate.knowledge.vcenter_session import id_of
from leadline.stores.fleets import Journal, Worker

POLL_S = 0.2
SETTLE_S = 3.0  # Judgement: without a running clone of the template for so long, none of ours is still to come
TRIES, PAUSE_S = 3, 1.0  # of a removal that fails, as when another task is at the VM
KNOCK_S, KNOCKERS = 1.0, 16  # waiting for a port to answer, at so many workers at a time
CONTROLLERS_UNIT = 7  # of a SCSI bus: the controller's own
RUNNING = ("queued", "running")
_TASK = ("info.state", "info.error", "info.result")

Steps = Generator[Any, Any, None]  # yields tasks of vCenter and is sent the result of each


class TaskError(Exception):
    """A task of vCenter that failed; raised where its steps wait for it."""


@dataclass(frozen=True, slots=True)
class Order:
    """One worker to be made."""

    fleet_id: str
    plan: FleetPlan
    placement: Placement
    worker: Worker


def making(site: VcenterSite, order: Order, note: Callable[[str, str], None]) -> Steps:
    """Clone, disks and power of one worker; ``note`` is told of each state, and of the clone's task as it begins."""
    from pyVmomi import vim  # noqa: PLC0415

    plan = order.plan
    template = site.at(vim.VirtualMachine, plan.template.id if plan.template else "")
    task = template.CloneVM_Task(site.at(vim.Folder, plan.folder or ""), order.placement.name, _clone(site, order))
    note("cloning", id_of(task))
    machine = yield task
    change = _network(site, order, machine) + _disks(site, order)
    if change:
        note("adding disks", "")
        yield machine.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=change))
    note("powering on", "")
    yield machine.PowerOnVM_Task()
    note("powered on", "")


def _clone(site: VcenterSite, order: Order) -> Any:  # noqa: ANN401
    from pyVmomi import vim  # noqa: PLC0415

    where = order.placement
    location = vim.vm.RelocateSpec(
        host=site.at(vim.HostSystem, where.host.id),
        datastore=site.at(vim.Datastore, where.datastore.id),
        pool=site.at(vim.ResourcePool, where.pool),
        profile=_profile(order),
    )
    config = vim.vm.ConfigSpec(
        instanceUuid=order.worker.uuid,
        annotation=f"Worker of `leadline bench fleet` {order.fleet_id}, which removes it at its end.",
        extraConfig=[vim.option.OptionValue(key=MARK, value=order.fleet_id)],
    )
    return vim.vm.CloneSpec(location=location, powerOn=False, template=False, config=config)


def _profile(order: Order) -> list[Any]:
    from pyVmomi import vim  # noqa: PLC0415

    policy = order.plan.spec.policy
    return [] if policy is None else [vim.vm.DefinedProfileSpec(profileId=policy)]


def _disks(site: VcenterSite, order: Order) -> list[Any]:
    """Controllers on the buses the template leaves free, and the disks on them; temporary keys are negative."""
    from pyVmomi import vim  # noqa: PLC0415

    device, add = vim.vm.device, vim.vm.device.VirtualDeviceSpec.Operation.add
    plan, store = order.plan, order.placement.datastore
    taken = plan.template.buses if plan.template else frozenset()
    free = [bus for bus in range(4) if bus not in taken]
    change, key = [], -1000
    for bus, count in zip(free, plan.controllers, strict=False):
        controller = device.ParaVirtualSCSIController(
            key=-100 - bus, busNumber=bus, sharedBus=device.VirtualSCSIController.Sharing.noSharing
        )
        change.append(device.VirtualDeviceSpec(operation=add, device=controller))
        units = [unit for unit in range(count + 1) if unit != CONTROLLERS_UNIT][:count]
        for unit in units:
            key -= 1
            backing = device.VirtualDisk.FlatVer2BackingInfo(
                fileName=f"[{store.name}]",
                datastore=site.at(vim.Datastore, store.id),
                diskMode="persistent",
                thinProvisioned=True,
            )
            size = plan.spec.disk_bytes
            disk: Any = device.VirtualDisk(key=key, controllerKey=controller.key, unitNumber=unit, backing=backing)
            disk.capacityInBytes, disk.capacityInKB = size, size // 1024
            create = device.VirtualDeviceSpec.FileOperation.create
            spec = device.VirtualDeviceSpec(operation=add, fileOperation=create, device=disk, profile=_profile(order))
            change.append(spec)
    return change


def _network(site: VcenterSite, order: Order, machine: Any) -> list[Any]:  # noqa: ANN401
    """The first network adapter put on the network asked for; nothing without one."""
    from pyVmomi import vim  # noqa: PLC0415

    device, chosen = vim.vm.device, order.plan.network
    if chosen is None:
        return []
    card = next(
        adapter for adapter in machine.config.hardware.device if isinstance(adapter, device.VirtualEthernetCard)
    )
    if chosen.kind == "DistributedVirtualPortgroup":
        group = site.at(vim.dvs.DistributedVirtualPortgroup, chosen.id)
        port = vim.dvs.PortConnection(portgroupKey=group.key, switchUuid=group.config.distributedVirtualSwitch.uuid)
        card.backing = device.VirtualEthernetCard.DistributedVirtualPortBackingInfo(port=port)
    else:
        network = site.at(vim.Network, chosen.id)
        card.backing = device.VirtualEthernetCard.NetworkBackingInfo(deviceName=chosen.name, network=network)
    edit = device.VirtualDeviceSpec.Operation.edit
    return [device.VirtualDeviceSpec(operation=edit, device=card)]


@dataclass(frozen=True, slots=True)
class Pace:
    """How steps run: how many at a time, whether the others go on when one fails, and what stops them all."""

    limit: int
    keep_going: bool
    stop: Event


def drive(site: VcenterSite, work: dict[str, Callable[[], Steps]], pace: Pace) -> dict[str, str]:
    """Run the steps of each worker; return the reason of each failure by name.

    When they are stopped nothing new begins, and the tasks that run are cancelled and waited for.
    """
    driven, waiting, cancelled = _Driven(pace), list(work), False
    while driven.live or (waiting and not driven.is_over):
        while waiting and len(driven.live) < pace.limit and not driven.is_over:
            name = waiting.pop(0)
            steps = work[name]()
            driven.step(name, steps, lambda steps=steps: next(steps))  # type: ignore[misc]
        if driven.is_over and not cancelled:
            cancelled = True
            for _, task in driven.live.values():
                cancel(task)
        if driven.live:
            time.sleep(POLL_S)
        for name, ended in _states(site, {name: task for name, (_, task) in driven.live.items()}).items():
            driven.go_on(name, *ended)
    return driven.failed


class _Driven:
    """Steps that wait for a task each, and why those failed that did."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.live: dict[str, tuple[Steps, Any]] = {}
        self.failed: dict[str, str] = {}

    @property
    def is_over(self) -> bool:
        return self.pace.stop.is_set() or (bool(self.failed) and not self.pace.keep_going)

    def step(self, name: str, steps: Steps, act: Callable[[], Any]) -> None:
        from pyVmomi import vmodl  # noqa: PLC0415

        self.live.pop(name, None)
        try:
            self.live[name] = steps, act()
        except StopIteration:
            pass
        except (TaskError, vmodl.MethodFault, OSError) as error:
            self.failed[name] = str(error) if isinstance(error, TaskError) else error_line(error)

    def go_on(self, name: str, state: str, error: Any, result: Any) -> None:  # noqa: ANN401
        steps = self.live[name][0]
        if state in RUNNING:
            return
        if self.is_over:
            self.live.pop(name)
            steps.close()
        elif state == "success":
            self.step(name, steps, lambda: steps.send(result))
        else:
            self.step(name, steps, lambda: steps.throw(TaskError(error_line(error))))


def cancel(task: Any) -> None:  # noqa: ANN401
    """Ask a task to end early; not every task can."""
    from pyVmomi import vmodl  # noqa: PLC0415

    with contextlib.suppress(vmodl.MethodFault, OSError):
        task.CancelTask()


def _states(site: VcenterSite, tasks: dict[str, Any]) -> dict[str, tuple[str, Any, Any]]:
    """State, error and result of tasks; one vCenter does not know any more counts as failed."""
    from pyVmomi import vim  # noqa: PLC0415

    if not tasks:
        return {}
    tasks_by_id = {id_of(ref): properties for ref, properties in site.all(vim.Task, _TASK, list(tasks.values()))}
    lost = {"info.state": "error"}
    every = {name: tasks_by_id.get(id_of(task), lost) for name, task in tasks.items()}
    return {
        name: (str(properties.get("info.state")), properties.get("info.error"), properties.get("info.result"))
        for name, properties in every.items()
    }


@dataclass(frozen=True, slots=True)
class Patience:
    """How long workers are waited for, at which port something has to answer, and what ends the waiting."""

    wait_s: float
    port: int
    stop: Event


@dataclass(frozen=True, slots=True)
class ReportedAddress:
    """The address VMware Tools told of a worker, and whether the port answers there."""

    address: str
    answers: bool


def addresses(
    site: VcenterSite, machines: dict[str, Any], patience: Patience, tell: Callable[[str, str], None]
) -> dict[str, ReportedAddress]:
    """Address of each VM by name, as soon as VMware Tools tell it; those without are left out."""
    replies: dict[str, ReportedAddress] = {}
    left = set(machines)
    deadline = time.monotonic() + patience.wait_s
    while left and time.monotonic() < deadline and not patience.stop.is_set():
        reported = _reported_addresses(site, {name: machines[name] for name in left})
        with ThreadPoolExecutor(KNOCKERS) as pool:
            answers = list(pool.map(lambda address: answers_at(address, patience.port), reported.values()))
        for (name, address), is_there in zip(reported.items(), answers, strict=True):
            replies[name] = ReportedAddress(address, is_there)
            if is_there:
                left.discard(name)
                tell(name, f"address {address}")
        if left:
            patience.stop.wait(POLL_S)
    return replies


def _reported_addresses(site: VcenterSite, machines: dict[str, Any]) -> dict[str, str]:
    from pyVmomi import vim  # noqa: PLC0415

    names = {id_of(machine): name for name, machine in machines.items()}
    addresses = {}
    for ref, properties in site.all(vim.VirtualMachine, ["guest.ipAddress"], list(machines.values())):
        address = properties.get("guest.ipAddress")
        if address and not ipaddress.ip_address(address).is_link_local:
            addresses[names[id_of(ref)]] = str(address)
    return addresses


def answers_at(address: str, port: int) -> bool:
    """Whether something listens there."""
    try:
        with socket.create_connection((address, port), KNOCK_S):
            return True
    except OSError:
        return False


def settle(site: VcenterSite, journal: Journal) -> None:
    """Wait until no clone of the fleet is being made any more; those whose tasks are known are cancelled.

    A run killed while it asked for a clone does not know the task: then every clone of the template is waited for,
    cancelled is none of them.
    """
    from pyVmomi import vim  # noqa: PLC0415

    tasks = {worker.name: site.at(vim.Task, worker.task) for worker in journal.workers if worker.task}
    tasks = {name: tasks[name] for name, (state, _, _) in _states(site, tasks).items() if state in RUNNING}
    for task in tasks.values():
        cancel(task)
    while any(state in RUNNING for state, _, _ in _states(site, tasks).values()):
        time.sleep(POLL_S)
    quiet_since = time.monotonic()
    unknown = [worker for worker in journal.workers if not worker.task]
    while any(find(site, journal, worker) is None for worker in unknown):
        if _clones_run(site, journal.template):
            quiet_since = time.monotonic()
        elif time.monotonic() - quiet_since > SETTLE_S:
            return
        time.sleep(POLL_S)


def _clones_run(site: VcenterSite, template: str) -> bool:
    from pyVmomi import vim  # noqa: PLC0415

    recent = list(site.content.taskManager.recentTask or ())
    asked = ("info.state", "info.entity", "info.descriptionId")
    for _, properties in site.all(vim.Task, asked, recent) if recent else ():
        entity = properties.get("info.entity")
        is_clone = str(properties.get("info.descriptionId")).startswith("VirtualMachine.clone")
        if is_clone and entity is not None and id_of(entity) == template and properties.get("info.state") in RUNNING:
            return True
    return False


def find(site: VcenterSite, journal: Journal, worker: Worker) -> Any:  # noqa: ANN401
    """The worker's VM, by its instance UUID or its name in the fleet's folder; None unless it has the fleet's mark."""
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    index = site.content.searchIndex
    candidates = [index.FindByUuid(None, worker.uuid, True, True)]
    with contextlib.suppress(vmodl.fault.ManagedObjectNotFound):
        candidates.append(index.FindChild(site.at(vim.Folder, journal.folder), worker.name))
    for machine in candidates:
        if isinstance(machine, vim.VirtualMachine) and is_ours(site, machine, journal.id):
            return machine
    return None


def is_ours(site: VcenterSite, machine: Any, fleet_id: str) -> bool:  # noqa: ANN401
    """Whether a VM carries the mark of a fleet."""
    from pyVmomi import vim  # noqa: PLC0415

    for _, properties in site.all(vim.VirtualMachine, ["config.extraConfig", "config.template"], [machine]):
        marks = {option.key: option.value for option in properties.get("config.extraConfig") or ()}
        return marks.get(MARK) == fleet_id and not properties.get("config.template")
    return False


def removing(site: VcenterSite, journal: Journal, worker: Worker) -> Steps:
    """Power off and destruction of one worker; nothing when it is not there."""
    from pyVmomi import vmodl  # noqa: PLC0415

    for attempt in range(1, TRIES + 1):
        machine = find(site, journal, worker)
        if machine is None:
            return
        try:
            if machine.runtime.powerState != "poweredOff":
                yield machine.PowerOffVM_Task()
            yield machine.Destroy_Task()
        except vmodl.fault.ManagedObjectNotFound:
            return
        except (TaskError, vmodl.MethodFault) as error:
            if attempt == TRIES:
                raise TaskError(str(error) if isinstance(error, TaskError) else error_line(error)) from error
            time.sleep(PAUSE_S)
