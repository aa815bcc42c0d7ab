"""Use case: an ordered fleet is looked at before anything is made, and all that speaks against it is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from leadline.app.fleet.file import FleetFile, FleetLoad
from leadline.app.fleet.fleet import WorkerLoad
from leadline.app.fleet.model import FleetPlan, Problem, of_privileges, plan_fleet
from leadline.app.fleet.offer import offer_of, refused_privileges, site_of
from leadline.app.measure.fio_hosts import require_fio
from leadline.app.measure.hosts import hosts_tool
from leadline.app.measure.workloads import BY_SSH, workload_of
from leadline.core.contracts.collector import Access
from leadline.core.model.errors import LeadlineError, ToolError
from leadline.core.model.workload import Workload, adjusted, profiles
from leadline.core.system.extras import require
from leadline.core.system.secret import Secret
from leadline.core.system.ssh import SCHEME

DEVICES = "/dev/"
_NOT_ASKED = "What vCenter has could not be looked at; more may speak against it."


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fleet that was looked at; without problems it can be made."""

    plan: FleetPlan
    access: Access | None
    load: WorkerLoad | None
    exit_status: int = 0  # of the problems: 4 when something was missing or did not answer, else 2

    @property
    def problems(self) -> list[Problem]:
        """All that speaks against it."""
        return self.plan.problems


def prepare(file: FleetFile, folder: Path, password: Callable[[], Secret]) -> Prepared:
    """Where each worker would go, and everything that speaks against it; nothing is touched.

    ``folder`` is where workload files are looked for, ``password`` gets the password or says why there is none.
    """
    load, wrong = _load(file, folder)
    access, plan = None, FleetPlan(file.spec())
    connection = file.vcenter
    try:
        ca_file = "" if connection.ca_file is None else str(connection.ca_file.expanduser().absolute())
        access = Access(
            connection.host, connection.user, password(), connection.port, connection.verify, ca_file=ca_file
        )
        with site_of(access) as site:
            plan = plan_fleet(plan.spec, offer_of(site, plan.spec))
            plan.problems += of_privileges(refused_privileges(site, plan))
    except LeadlineError as error:
        wrong.append(error)
        plan.problems.append(Problem("vCenter", "not looked at", _NOT_ASKED))
    local = [Problem(error.where, error.found, error.advice) for error in wrong]
    local += _of_load(file, load)
    plan.problems[:0] = local
    status = 4 if any(isinstance(error, ToolError) for error in wrong) else 2
    return Prepared(plan, access, load, status if plan.problems else 0)


def _load(file: FleetFile, folder: Path) -> tuple[WorkerLoad | None, list[LeadlineError]]:
    wrong: list[LeadlineError] = []
    try:
        name = file.load.workload
        workload = workload_of(name if name in profiles() else str(folder / name))
    except LeadlineError as error:
        return None, [error]
    load = file.load
    for needed in _needs(workload, load):
        try:
            needed()
        except LeadlineError as error:
            wrong.append(error)
    worker_load = WorkerLoad(
        timed(workload, load),
        load.paths,
        load.fio_port if load.ssh_user is None else load.ssh_port,
        load.seed,
        file.address_wait_s,
        file.clones_at_a_time,
        file.keep_going,
        load.ssh_user or "",
    )
    return worker_load, wrong


def _needs(workload: Workload, load: FleetLoad) -> Iterator[Callable[[], object]]:
    """What must be here, or hold, for the tool of a workload."""
    if load.ssh_user is not None:
        yield lambda: require("asyncssh")
    if workload.tool != "vdbench":
        yield require_fio
    elif load.ssh_user is not None:
        yield lambda: hosts_tool(workload).require([(f"{SCHEME}worker", path) for path in load.paths])


def timed(workload: Workload, load: FleetLoad) -> Workload:
    """A workload with the working set and the times of a fleet file."""
    return adjusted(workload, load.working_set, load.measure_s, load.rounds, load.warm_up_s)


def _of_load(file: FleetFile, load: WorkerLoad | None) -> Iterator[Problem]:
    paths, disks = file.load.paths, file.disks
    wrong = [path for path in paths if not path.startswith("/")]
    if wrong:
        yield Problem("load.paths", ", ".join(wrong), "Paths in the workers, from /.")
    if len(set(paths)) < len(paths):
        yield Problem("load.paths", "the same path twice", "Each once.")
    devices = [path for path in paths if path.startswith(DEVICES)]
    if len(devices) > disks.count:
        yield Problem(
            "load.paths", f"{len(devices)} devices, {disks.count} disks are added", "Only added disks are blank."
        )
    if load is None:
        return
    if load.workload.kind != "io":
        yield Problem(
            f"workload {load.workload.name}", f"kind {load.workload.kind}", "One of I/O: workers do no other."
        )
    elif load.workload.tool != "fio" and not load.ssh_user:
        yield Problem(f"workload {load.workload.name}", f"tool {load.workload.tool}", BY_SSH)
    largest = max((load.workload.working_set_bytes(stream) for stream in load.workload.io), default=0)
    if devices and largest > disks.size:
        problem = f"{largest / 2**30:.1f} GiB on disks of {disks.size / 2**30:.1f} GiB"
        yield Problem("load.working_set", problem, "A smaller one, or larger disks.")
