"""Use case: an easy fleet is planned from what a vCenter says: workers, disks, sizes and load; nothing is touched.

Source: HCIBench 2.8, Easy Run (easy-run.rb): four profiles, one load per machine for all of them.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.app.fleet.file import SSH_USER
from leadline.app.fleet.fleet import WorkerLoad
from leadline.app.fleet.model import FleetPlan, FleetSpec, Offer, Problem, TemplateFacts, of_privileges, plan_fleet
from leadline.app.fleet.offer import offer_of, refused_privileges, site_of
from leadline.app.fleet.services import ServiceState, service_states
from leadline.app.measure.easy import GIB, Choice, Easy, Storage, choose_machines, storage_at
from leadline.app.measure.hosts import hosts_tool
from leadline.app.measure.workloads import driven_by, workload_of
from leadline.app.read.importing import import_paths
from leadline.collectors.vcenter import collect
from leadline.core.contracts.collector import Access
from leadline.core.contracts.importer import Request
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.model.workload import Workload, adjusted
from leadline.core.system.extras import require
from leadline.core.system.ssh import SCHEME

PROFILES = ("hci-4k-70-30", "hci-4k-read", "hci-8k-50-50", "hci-256k-write")
MIB = 1024**2
NAMES_SHOWN = 5
DEVICES = "/dev/"


@dataclass(frozen=True, slots=True)
class EasyWish:
    """What is asked of an easy fleet; None and nothing leave the choice to the plan.

    Attributes:
        paths: in each worker, instead of the disks that are added.
        set_bytes: working set of each path.
        inventories: files that say what vCenter does not.
        tool: what loads, instead of the tool of each profile.
        ssh_user: who logs in to the workers, instead of fio's servers.
    """

    cluster: str
    datastore: str
    template: str
    profiles: tuple[str, ...] = PROFILES
    network: str | None = None
    folder: str | None = None
    worker_count: int | None = None
    paths: tuple[str, ...] = ()
    set_bytes: int | None = None
    measure_s: float | None = None
    rounds: int | None = None
    warm_up_s: float | None = None
    fio_port: int = 8765
    address_wait_s: float = 600.0
    seed: int = 1
    inventories: tuple[Path, ...] = ()
    tool: str | None = None
    ssh_user: str | None = None
    ssh_port: int = 22


@dataclass(slots=True)
class EasyOrder:
    """An easy fleet that was looked at; without problems it can be made.

    Attributes:
        target: what its runs are compared by: the datastore of a cluster of a vCenter.
        exit_status: of the problems: 4 when something was missing or did not answer, else 2.
    """

    wish: EasyWish
    target: str
    plan: FleetPlan
    access: Access | None = None
    storage: Storage | None = None
    easy: Easy | None = None
    services: tuple[ServiceState, ...] = ()
    workloads: tuple[Workload, ...] = ()
    load: WorkerLoad | None = None
    exit_status: int = 0

    @property
    def problems(self) -> list[Problem]:
        """All that speaks against it."""
        return self.plan.problems

    @property
    def paths(self) -> tuple[str, ...]:
        """What is loaded in each worker."""
        return self.load.paths if self.load is not None else ()


def order_easy(wish: EasyWish, host: str, access: Callable[[], Access]) -> EasyOrder:
    """Plan an easy fleet, and list everything that speaks against it.

    Args:
        wish: what is asked for.
        host: name of the vCenter, for its runs.
        access: how it is reached; raises where there is no password.
    """
    spec = FleetSpec(wish.template, 1, 0, 0, cluster=wish.cluster, datastores=(wish.datastore,))
    order = EasyOrder(wish, f"{wish.datastore} of {wish.cluster} at {host}", FleetPlan(spec))
    errors: list[LeadlineError] = []
    profiles: list[Workload] = []
    steps: tuple[Callable[[], object], ...] = (
        lambda: profiles.extend(_profiles(wish)),
        lambda: _look(order, access()),
    )
    for step in steps:
        try:
            step()
        except LeadlineError as error:
            errors.append(error)
    order.plan.problems[:0] = [Problem(error.where, error.found, error.advice) for error in errors]
    if order.problems:
        order.exit_status = 4 if any(isinstance(error, ToolError) for error in errors) else 2
    if order.easy is not None and profiles:
        order.workloads = tuple(profile_load(profile, order.easy, wish, len(order.paths)) for profile in profiles)
        if order.load is not None:
            order.load = replace(order.load, workload=order.workloads[0])
    return order


def _profiles(wish: EasyWish) -> list[Workload]:
    """Return the profiles, each of which its tool can make on the workers."""
    profiles = [driven_by(workload_of(name), wish.tool) for name in wish.profiles]
    if wish.ssh_user is not None:
        require("asyncssh")
        if re.fullmatch(SSH_USER, wish.ssh_user) is None:
            expected = "letters, digits and _ . -"
            raise UsageError("--ssh-user", found="no plain name", expected=expected, advice="For example bench.")
    for profile in profiles:
        tool = hosts_tool(profile)
        if profile.tool == "vdbench" and wish.ssh_user is None:
            raise UsageError(
                f"workload {profile.name}",
                found="tool vdbench, and workers reached by fio's server",
                expected="--ssh-user, who logs in to the workers",
                advice="vdbench is started over SSH. See docs/guides/fleet.md.",
            )
        scheme = SCHEME if wish.ssh_user is not None else ""
        tool.require([(f"{scheme}worker", path) for path in wish.paths or (DEVICES,)])
    return profiles


def _look(order: EasyOrder, access: Access) -> None:
    """Ask vCenter for all the plan needs."""
    order.access, wish = access, order.wish
    inventory = collect(access).inventory
    fallback = None
    if wish.inventories:
        fallback = import_paths(list(wish.inventories), Request(metrics=frozenset())).capture.inventory
    order.services = service_states(inventory, wish.cluster, wish.datastore, fallback)
    places = [_named(inventory, EntityKind.CLUSTER, wish.cluster, order.problems)]
    places.append(_named(inventory, EntityKind.DATASTORE, wish.datastore, order.problems))
    cluster, datastore = places
    if cluster is None or datastore is None:
        return
    with site_of(access) as site:
        offer = offer_of(site, replace(order.plan.spec, folder=wish.folder))
        storage = order.storage = storage_at(inventory, cluster, datastore)
        order.plan = planned_easy(order, storage, offer)
        order.plan.problems += of_privileges(refused_privileges(site, order.plan))


def _named(inventory: Inventory, kind: EntityKind, name: str, problems: list[Problem]) -> Entity | None:
    matches = inventory.named(kind, name)
    if len(matches) == 1:
        return matches[0]
    known = [entity.name for entity in inventory.of_kind(kind)]
    shown = ", ".join(known[:NAMES_SHOWN]) + (" ..." if len(known) > NAMES_SHOWN else "")
    problem = f"{len(matches)} of that name" if matches else "not there"
    problems.append(Problem(f"{kind.value} {name}", problem, f"There are: {shown or 'none that may be seen'}."))
    return None


def planned_easy(order: EasyOrder, storage: Storage, offer: Offer) -> FleetPlan:
    """Return the fleet of the easy plan; what was chosen and the load are noted in the order.

    The space for the workers themselves, their memory swapped out included, is set apart before disks are sized.
    """
    wish = order.wish
    template = offer.templates[0] if len(offer.templates) == 1 else None
    names = Choice("profiles", ", ".join(wish.profiles), _profiles_why(wish.profiles))
    try:
        easy = choose_machines(storage, names, wish.worker_count, has_target=False)
        apart = 0.0
        if template is not None and storage.free_gib is not None:
            apart = easy.machine_count * (template.provisioned_bytes + template.memory_bytes) / GIB * storage.overhead
            rest = replace(storage, free_gib=max(storage.free_gib - apart, 0.0))
            easy = choose_machines(rest, names, wish.worker_count, has_target=False)
    except LeadlineError as error:
        plan = plan_fleet(_spec(order, 1, 0, 0), offer)
        plan.problems.append(Problem(error.where, error.found, error.advice))
        return plan
    outstanding = easy.oio_max * easy.disk_count // 2
    *choices, _ = easy.choices
    if apart:
        why = "their system disks and memory, before the disks are sized"
        choices.insert(2, Choice("space set apart for the workers", f"{apart:,.0f} GiB", why))
    choices.append(Choice("outstanding I/O of each worker", str(outstanding), "what Easy Run loads a machine with"))
    order.easy = replace(easy, choices=tuple(choices))
    paths = wish.paths or device_paths(template, easy.disk_count)
    count = easy.disk_count if any(path.startswith(DEVICES) for path in paths) else 0  # folders need no disks
    plan = plan_fleet(_spec(order, easy.machine_count, count, easy.disk_bytes), offer)
    plan.problems += _of_paths(paths, easy, wish)
    workload = workload_of(PROFILES[0])
    port = wish.fio_port if wish.ssh_user is None else wish.ssh_port
    order.load = WorkerLoad(workload, paths, port, wish.seed, wish.address_wait_s, ssh_user=wish.ssh_user or "")
    return plan


def _profiles_why(profiles: tuple[str, ...]) -> str:
    return "the four of HCIBench's Easy Run, one after the other" if profiles == PROFILES else "named"


def _spec(order: EasyOrder, count: int, disk_count: int, disk_bytes: int) -> FleetSpec:
    spec, wish = order.plan.spec, order.wish
    return replace(
        spec, count=count, disk_count=disk_count, disk_bytes=disk_bytes, network=wish.network, folder=wish.folder
    )


def device_paths(template: TemplateFacts | None, disk_count: int) -> tuple[str, ...]:
    """Names Linux gives the added disks: those after the template's.

    Judgement: disks of SCSI and SATA in the order of their controllers; a worker with others is given --path.
    """
    first = 1 if template is None else template.disk_count
    return tuple(f"{DEVICES}sd{letter}" for letter in string.ascii_lowercase[first : first + disk_count])


def _of_paths(paths: tuple[str, ...], easy: Easy, wish: EasyWish) -> list[Problem]:
    problems = []
    wrong = [path for path in paths if not path.startswith("/")]
    if wrong:
        problems.append(Problem("--path", ", ".join(wrong), "Paths in the workers, from /."))
    if len(set(paths)) < len(paths) or not paths:
        problems.append(Problem("--path", "the same path twice, or none", "Each once."))
    devices = [path for path in paths if path.startswith(DEVICES)]
    if len(devices) < len(paths) and wish.set_bytes is None:
        problems.append(Problem("--path", "a folder, whose free space is not known", "Name --set-size with it."))
    if len(devices) > easy.disk_count:
        problem = f"{len(devices)} devices, {easy.disk_count} disks are added"
        problems.append(Problem("--path", problem, "Only added disks are blank."))
    if devices and wish.set_bytes is not None and wish.set_bytes > easy.disk_bytes:
        problem = f"{wish.set_bytes / GIB:.1f} GiB on disks of {easy.disk_bytes / GIB:.1f} GiB"
        problems.append(Problem("--set-size", problem, "A smaller one."))
    return problems


def profile_load(profile: Workload, easy: Easy, wish: EasyWish, path_count: int) -> Workload:
    """Return a profile as each path of a worker is given it.

    A shipped profile has the outstanding I/O of the plan, spread over paths and streams; another keeps its load.
    """
    size = wish.set_bytes or max(easy.set_bytes // max(path_count, 1) // MIB * MIB, MIB)
    load = adjusted(profile, size, wish.measure_s, wish.rounds, wish.warm_up_s)
    if profile.name not in PROFILES:
        return load
    each = max(easy.oio_max * easy.disk_count // 2 // max(path_count, 1) // len(load.io), 1)
    return load.model_copy(update={"io": tuple(s.model_copy(update={"oio": each, "jobs": 1}) for s in load.io)})
