"""Use case: worker VMs made through vCenter, loaded together and removed, whatever happens in between.

Before a VM is made its name and instance UUID are in a journal; only VMs with the fleet's mark are removed.
"""

from __future__ import annotations

import os
import secrets
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Event
from typing import TYPE_CHECKING

from leadline.app.fleet import vcenter
from leadline.app.fleet.model import FleetPlan
from leadline.app.fleet.offer import VcenterSite, site_of
from leadline.app.measure.hosts import Host, HostResult, HostsOptions, HostsResult, load_hosts
from leadline.app.measure.kept_runs import begun_run, keeping
from leadline.core.contracts.collector import Access
from leadline.core.io.outputs import process_start
from leadline.core.model.errors import LeadlineError, ToolError
from leadline.core.model.result import Operation, Result
from leadline.core.model.run import Round, Run
from leadline.core.system.interrupts import uninterrupted
from leadline.core.system.leftovers import scratch_folder
from leadline.stores.fleets import FleetStore, Journal, Worker
from leadline.stores.runs import RunStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leadline.core.model.workload import Workload

REMOVALS = 8  # at a time
CONNECTS, RECONNECT_S = 3, 3.0  # tries to reach vCenter for the removal


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """What the workers do: workload, folders or devices of each, the port that answers, how long to wait.

    The port is that of fio's servers, or of SSH where ``ssh_user`` says who logs in.
    """

    workload: Workload
    paths: tuple[str, ...]
    port: int
    seed: int
    address_wait_s: float
    parallel: int = 4
    keep_going: bool = False
    ssh_user: str = ""

    @property
    def service(self) -> str:
        """What answers at the port."""
        return "SSH" if self.ssh_user else "fio --server"


@dataclass(frozen=True, slots=True)
class FleetTalk:
    """How a run tells what it is doing: a phase, and the state of a worker."""

    say: Callable[[str], None]
    worker: Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class FleetJob:
    """A fleet to be made: its plan, where, the load, how progress is told, and where its journal is kept."""

    plan: FleetPlan
    access: Access
    load: WorkerLoad
    talk: FleetTalk
    fleets: FleetStore
    fleet_id: str = ""


@dataclass(slots=True)
class FleetDone:
    """What came of a fleet: results by worker and path, workers that were not made, VMs that could not be removed."""

    id: str
    run_id: str = ""
    hosts: HostsResult | None = None
    names: list[str] = field(default_factory=list)  # of the workers, in the order of the results
    failed: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every worker was made, loaded and removed."""
        return (
            not self.failed and not self.left and not any(host.error for host in (self.hosts or HostsResult(())).hosts)
        )


def run_fleet(
    plan: FleetPlan, access: Access, load: WorkerLoad, talk: FleetTalk, store: RunStore | None = None
) -> FleetDone:
    """Make the workers, load them together, keep the run, remove them.

    Raises:
        ToolError: a worker cannot be made, or some could not be removed.
        KeyboardInterrupt: passed on after the removal.
    """
    runs = store or RunStore()

    def work(addresses: dict[str, str], done: FleetDone) -> None:
        _load(plan, load, addresses, done, talk, runs)

    return with_workers(FleetJob(plan, access, load, talk, FleetStore(runs.folder)), work)


def with_workers(job: FleetJob, work: Callable[[dict[str, str], FleetDone], None]) -> FleetDone:
    """Make the workers, do some work with them, remove them, whatever the work raises.

    ``work`` is given the address of each worker by name, and what is known of the fleet by then.

    Raises:
        ToolError: a worker cannot be made, or some could not be removed.
        KeyboardInterrupt: passed on after the removal.
    """
    journal = _journal(job.plan, job.access)
    job = replace(job, fleet_id=journal.id)
    done = FleetDone(journal.id)
    job.fleets.save(journal)
    try:
        job.talk.say(f"fleet {journal.id}: making {len(job.plan.placements)} workers, {job.load.parallel} at a time")
        work(uninterrupted(lambda stop: _make(job, done, stop)), done)
    except BaseException:
        remove(job.fleets.get(journal.id), job.access, job.talk, job.fleets, done)
        _require_removed(done)
        raise
    remove(job.fleets.get(journal.id), job.access, job.talk, job.fleets, done)
    return done


def _journal(plan: FleetPlan, access: Access) -> Journal:
    if plan.problems or plan.template is None or plan.folder is None:
        message = "a plan with problems is not carried out"
        raise ValueError(message)
    return Journal(
        id=f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}",
        vcenter=access.host,
        port=access.port,
        user=access.user,
        verify=access.verify,
        ca_file=access.ca_file,
        template=plan.template.id,
        folder=plan.folder,
        process=os.getpid(),
        process_start=process_start(os.getpid()),
    )


def _make(job: FleetJob, done: FleetDone, stop: Event) -> dict[str, str]:
    """Address of each worker by name.

    Raises:
        ToolError: one could not be made or got no address, and the others are not to go on alone.
    """
    keep = job.load.keep_going
    with site_of(job.access) as site:
        work = {placement.name: _worker_steps(site, job, index) for index, placement in enumerate(job.plan.placements)}
        failed = vcenter.drive(site, work, vcenter.Pace(job.load.parallel, keep, stop))
        done.failed.update({name: f"not made: {why}" for name, why in failed.items()})
        _require(job, done, stop, work)
        journal = job.fleets.get(job.fleet_id)
        created = [worker for worker in journal.workers if worker.name not in failed]
        machines = {worker.name: vcenter.find(site, journal, worker) for worker in created}
        machines = {name: machine for name, machine in machines.items() if machine is not None}
        wait_s, port = job.load.address_wait_s, job.load.port
        job.talk.say(f"waiting for addresses, and {job.load.service} at port {port}")
        answers = vcenter.addresses(site, machines, vcenter.Patience(wait_s, port, stop), job.talk.worker)
    addresses = {name: answer.address for name, answer in answers.items() if answer.answers}
    for name in work:
        if name not in addresses and name not in done.failed:
            done.failed[name] = _why_unreachable(answers.get(name), job.load)
            job.talk.worker(name, done.failed[name])
    _apart(addresses, done)
    _require(job, done, stop, work)
    return addresses


def _why_unreachable(answer: vcenter.ReportedAddress | None, load: WorkerLoad) -> str:
    if answer is None:
        return f"no address within {load.address_wait_s:.0f} s"
    return f"nothing answers at {answer.address} port {load.port}, where {load.service} should"


def _apart(addresses: dict[str, str], done: FleetDone) -> None:
    """Workers of one address are not told apart: those after the first count as failed.

    A template with a fixed address makes them, and the load of all would go to one.
    """
    first: dict[str, str] = {}
    for name, address in sorted(addresses.items()):
        if first.setdefault(address, name) != name:
            done.failed[name] = f"it has the address of {first[address]}, {address}"
            del addresses[name]


def _worker_steps(site: VcenterSite, job: FleetJob, index: int) -> Callable[[], vcenter.Steps]:
    placement = job.plan.placements[index]
    worker = Worker(placement.name, str(uuid.uuid4()))

    def note(state: str, task: str) -> None:
        if task:
            job.fleets.save(job.fleets.get(job.fleet_id).with_worker(replace(worker, task=task)))
        job.talk.worker(worker.name, state)

    def steps() -> vcenter.Steps:
        job.fleets.save(job.fleets.get(job.fleet_id).with_worker(worker))
        yield from vcenter.making(site, vcenter.Order(job.fleet_id, job.plan, placement, worker), note)

    return steps


def _require(job: FleetJob, done: FleetDone, stop: Event, every: Iterable[str]) -> None:
    """A fleet that is not whole is not loaded, unless that was asked for."""
    if stop.is_set() or not done.failed or (job.load.keep_going and set(done.failed) < set(every)):
        return
    name, why = next(iter(done.failed.items()))
    more = f", and {len(done.failed) - 1} more" if len(done.failed) > 1 else ""
    raise ToolError(
        f"worker {name}",
        found=f"{why}{more}",
        expected=f"{len(job.plan.placements)} workers",
        advice="Look at the events of vCenter; keep_going: true loads those that came up.",
    )


def _load(
    plan: FleetPlan, load: WorkerLoad, addresses: dict[str, str], done: FleetDone, talk: FleetTalk, store: RunStore
) -> None:
    hosts = worker_hosts(addresses, load)
    names = [host.name for host in hosts]
    target = f"{len(addresses)} clones of {plan.spec.template}"
    with keeping(_run(load, target), store) as kept, scratch_folder("fleet") as folder:
        done.run_id = kept.run.id
        for name in sorted(addresses):
            talk.worker(name, "loading")
        options = HostsOptions(destroy=tuple(host.path for host in hosts if host.is_blank))
        done.hosts = load_hosts(load.workload, hosts, folder, seed=load.seed, say=talk.say, options=options)
        done.names = names
        results = tuple(_result(kept.run.tool, name, host) for name, host in zip(names, done.hosts.hosts, strict=True))
        notes = [
            f"{placement.name} on {placement.host.name}, {placement.datastore.name}"
            for placement in plan.placements
            if placement.name in addresses
        ]
        notes += [f"{name}: {why}" for name, why in done.failed.items()]
        notes += [f"{name}: {host.error}" for name, host in zip(names, done.hosts.hosts, strict=True) if host.error]
        kept.run = replace(kept.run, rounds=(Round("all-rounds", results, ()),), notes=tuple(notes))
        kept.state = "done"


def _run(load: WorkerLoad, target: str) -> Run:
    return begun_run(
        load.workload.name, load.workload.plain(), seed=load.seed, tool=load.workload.tool or "fio", target=target
    )


def worker_hosts(addresses: dict[str, str], load: WorkerLoad) -> list[Host]:
    """Return what is loaded: every path of every worker, under the worker's name."""
    return [
        Host(
            ssh_address(load.ssh_user, address, load.port) if load.ssh_user else client_address(address, load.port),
            path,
            is_blank=path.startswith("/dev/"),
            label=f"{name} {path}" if len(load.paths) > 1 else name,
        )
        for name, address in sorted(addresses.items())
        for path in load.paths
    ]


def client_address(address: str, port: int) -> str:
    """As fio's client takes it.

    >>> client_address("192.0.2.7", 8765), client_address("2001:db8::7", 8765)
    ('192.0.2.7,8765', 'ip6:2001:db8::7,8765')

    Source: fio(1), CLIENT / SERVER.
    """
    return f"{'ip6:' if ':' in address else ''}{address},{port}"


def ssh_address(user: str, address: str, port: int) -> str:
    """As a host reached over SSH is named.

    >>> ssh_address("bench", "192.0.2.7", 22), ssh_address("bench", "2001:db8::7", 2222)
    ('ssh://bench@192.0.2.7:22', 'ssh://bench@[2001:db8::7]:2222')
    """
    return f"ssh://{user}@{f'[{address}]' if ':' in address else address}:{port}"


def _result(tool: str, name: str, host_result: HostResult) -> Result:
    """A worker's requests of all rounds and streams as one operation."""
    histogram = host_result.histogram
    if host_result.per_s != host_result.per_s:
        return Result(tool=tool, job=name, operations=(), error_count=1)
    count = float("nan") if histogram is None else float(histogram.total)
    return Result(
        tool=tool,
        job=name,
        operations=(Operation("io", host_result.per_s, count=count, histogram=histogram),),
        error_count=int(host_result.error is not None),
    )


def remove(journal: Journal, access: Access, talk: FleetTalk, fleets: FleetStore, done: FleetDone) -> None:
    """Remove the workers of a fleet that are there; what is left, with why, is in ``done``. Safe to call again.

    Ctrl-C does not stop it: what was made must go.
    """
    if not journal.workers:
        fleets.remove(journal)
        return
    talk.say(f"removing {len(journal.workers)} workers")

    done.left = {worker.name: "not tried" for worker in journal.workers}

    def work(_: Event) -> None:
        try:
            with _reached(access) as site:
                vcenter.settle(site, journal)
                steps = {worker.name: _removal(site, journal, worker, talk) for worker in journal.workers}
                done.left = vcenter.drive(site, steps, vcenter.Pace(REMOVALS, keep_going=True, stop=Event()))
        except LeadlineError as error:
            done.left = {worker.name: error.found for worker in journal.workers}
        if not done.left:
            fleets.remove(journal)

    try:
        uninterrupted(work)
    except KeyboardInterrupt:
        _require_removed(done)
        raise


def _removal(site: VcenterSite, journal: Journal, worker: Worker, talk: FleetTalk) -> Callable[[], vcenter.Steps]:
    def steps() -> vcenter.Steps:
        yield from vcenter.removing(site, journal, worker)
        talk.worker(worker.name, "removed")

    return steps


@contextmanager
def _reached(access: Access) -> Iterator[VcenterSite]:
    """A session of its own, since the one that made the workers may have ended during the load."""
    with ExitStack() as stack:
        for attempt in range(1, CONNECTS + 1):
            try:
                site = stack.enter_context(site_of(access))
                break
            except ToolError:
                if attempt == CONNECTS:
                    raise
                time.sleep(RECONNECT_S)
        yield site


def _require_removed(done: FleetDone) -> None:
    if done.left:
        name, why = next(iter(done.left.items()))
        raise ToolError(
            f"fleet {done.id}",
            found=f"{len(done.left)} of its VMs could not be removed ({name}: {why})",
            expected="none left",
            advice=f"Run leadline bench fleet --clean {done.id}",
        )


def clean(journal: Journal, access: Access, talk: FleetTalk, fleets: FleetStore) -> FleetDone:
    """Remove what a killed run left of a fleet.

    Raises:
        ToolError: its run is still going on.
    """
    if journal.is_in_use:
        raise ToolError(
            f"fleet {journal.id}",
            found=f"its run is going on (process {journal.process})",
            expected="a run that is over",
            advice="End it with Ctrl-C: it removes its workers itself.",
        )
    done = FleetDone(journal.id)
    remove(journal, access, talk, fleets, done)
    return done
