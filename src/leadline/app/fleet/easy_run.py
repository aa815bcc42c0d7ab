"""Use case: the profiles of an easy fleet one after the other on all its workers, each kept as a run, and compared."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from leadline.app.fleet.easy_order import EasyOrder
from leadline.app.fleet.fleet import FleetDone, FleetJob, FleetTalk, with_workers, worker_hosts
from leadline.app.measure.comparing_runs import RunComparison, compare_runs, history_of, percentile_interval
from leadline.app.measure.hosts import OUTLIER, Host, HostResult, HostsOptions, HostsResult, load_hosts
from leadline.app.measure.kept_runs import Kept, begun_run, keeping
from leadline.app.measure.prefill import fill_devices
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.run import PERCENTILES, Run
from leadline.core.model.units import factor
from leadline.core.model.workload import Workload
from leadline.core.statistics.resampling import Interval
from leadline.core.system.leftovers import scratch_folder
from leadline.stores.fleets import FleetStore
from leadline.stores.runs import RunStore

KIND = "-easy-"  # in the ids of easy runs
OUTLIERS_OF_MIN = 3  # workers: of two, neither is far from the others


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """What one worker did in a profile, all its disks together; NaN is not measured."""

    name: str
    per_s: float
    bytes_per_s: float
    p95_ms: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """One profile on all workers: its run, what all did together and each, and how it compares with an earlier one."""

    run: Run
    pooled: HostsResult
    workers: tuple[WorkerPart, ...]
    comparison: RunComparison | None = None

    @property
    def name(self) -> str:
        """Of the profile."""
        return self.run.name

    @property
    def error(self) -> str | None:
        """Why it is not whole; None when it is."""
        failed = [part for part in self.workers if part.error is not None]
        if not failed:
            return None
        more = f", and {len(failed) - 1} more workers" if len(failed) > 1 else ""
        return f"{failed[0].name}: {failed[0].error}{more}"

    def per_s(self) -> Interval:
        """Operations per second of all workers, with a 95 % interval over the seconds."""
        seconds = self.run.per_s()
        return seconds if seconds.mean == seconds.mean else replace(seconds, mean=self.pooled.per_s)

    def percentiles_ms(self) -> dict[str, tuple[float, float, float]]:
        """Percentiles of the pooled requests of all workers: name -> ms, and its 95 % interval."""
        whole = self.pooled.histogram
        if whole is None:
            return {}
        to_ms = factor(whole.unit, "ms")
        percentiles_ms = {}
        for name, (ms, _) in self.pooled.percentiles_ms().items():
            low, high = percentile_interval(whole, PERCENTILES[name])
            percentiles_ms[name] = ms, low * to_ms, high * to_ms
        return percentiles_ms

    def outliers(self) -> list[WorkerPart]:
        """Workers far from the median of all that did not fail."""
        good = [part for part in self.workers if part.error is None]
        if len(good) < OUTLIERS_OF_MIN:
            return []
        p95_ms, per_s = (float(np.median([getattr(part, key) for part in good])) for key in ("p95_ms", "per_s"))
        return [part for part in good if part.p95_ms > OUTLIER * p95_ms or part.per_s * OUTLIER < per_s]


@dataclass(slots=True)
class EasyReport:
    """An easy run as far as it came; ``stopped`` says why profiles are missing, empty when none is."""

    id: str
    order: EasyOrder
    profiles: list[ProfileResult] = field(default_factory=list)
    fleet: FleetDone | None = None
    against: str = ""
    stopped: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Profiles that were not measured."""
        return tuple(workload.name for workload in self.order.workloads[len(self.profiles) :])

    @property
    def is_whole(self) -> bool:
        """Whether every profile was measured by every worker and all workers were removed."""
        return not self.stopped and not self.missing and self.fleet is not None and self.fleet.is_whole


def easy_report(order: EasyOrder, store: RunStore, against: str | None) -> EasyReport:
    """Return the report of a run that begins now, with the earlier easy run it is compared with.

    Args:
        order: what will be made.
        store: where earlier runs are.
        against: id of the earlier run, or enough of it; None: the newest whole one on the same target, if any.

    Raises:
        UsageError: there is no such run, or several are meant.
    """
    earlier = earlier_easy(store, order.target if against is None else None)
    report = EasyReport(f"{datetime.now(UTC):%Y%m%d-%H%M%S}{KIND}{secrets.token_hex(2)}", order)
    if against is None:
        report.against = earlier[-1] if earlier else ""
        return report
    wanted = against.partition(".")[0]
    matches = earlier[-1:] if wanted == "last" else [run_id for run_id in earlier if run_id.startswith(wanted)]
    if len(matches) != 1:
        raise UsageError(
            f"--against {against}",
            found="no such easy run" if not matches else f"{len(matches)} easy runs begin so",
            expected="the id of one, or last",
            advice=f"There are: {', '.join(earlier[-5:]) or 'none'}.",
        )
    report.against = matches[0]
    return report


def earlier_easy(store: RunStore, target: str | None) -> list[str]:
    """Return ids of easy runs all of whose profiles are whole, oldest first; of one target, or of all."""
    whole: dict[str, bool] = {}
    for run in store.list():
        run_id, dot, _ = run.id.partition(".")
        if KIND in run_id and dot and target in (None, run.target):
            whole[run_id] = whole.get(run_id, True) and run.state == "done"
    return [run_id for run_id, is_whole in whole.items() if is_whole]


def run_easy(report: EasyReport, talk: FleetTalk, store: RunStore) -> None:
    """Make the workers, fill their disks, run each profile, remove the workers; the report holds what was measured.

    Raises:
        ToolError: a worker cannot be made, or some could not be removed.
        KeyboardInterrupt: passed on after the removal; what was measured until then is in the report and kept.
    """
    order = report.order
    if order.access is None or order.load is None:
        message = "an order with problems is not carried out"
        raise ValueError(message)
    load = order.load

    def work(addresses: dict[str, str], done: FleetDone) -> None:
        report.fleet = done
        try:
            _measure_all(report, worker_hosts(addresses, load), talk, store)
        except LeadlineError as error:  # the report is written all the same
            report.stopped = str(error)

    report.fleet = with_workers(FleetJob(order.plan, order.access, load, talk, FleetStore(store.folder)), work)


def _measure_all(report: EasyReport, hosts: Sequence[Host], talk: FleetTalk, store: RunStore) -> None:
    workloads = report.order.workloads
    size = max(workload.working_set_bytes(stream) for workload in workloads for stream in workload.io)
    with scratch_folder("fleet") as folder:  # over SSH the tool of each profile fills what it loads
        failed = fill_devices([host for host in hosts if not host.is_ssh], size, folder, talk.say)
    if failed:
        name, why = next(iter(failed.items()))
        raise ToolError(f"worker {name}", found=why, expected="a filled disk", advice="See docs/guides/fleet.md.")
    for number, workload in enumerate(workloads, start=1):
        talk.say(f"profile {number} of {len(workloads)}: {workload.name}")
        profile = _measure(report, f"{report.id}.{number}-{workload.name}", workload, hosts, talk, store)
        report.profiles.append(profile)
        if profile.error is not None:
            report.stopped = f"profile {workload.name}: {profile.error}"
            return


def _measure(
    report: EasyReport, run_id: str, workload: Workload, hosts: Sequence[Host], talk: FleetTalk, store: RunStore
) -> ProfileResult:
    order = report.order
    seed = order.wish.seed
    begun = begun_run(
        workload.name,
        workload.plain(),
        seed=seed,
        tool=workload.tool or "fio",
        target=order.target,
        host=run_conditions(order),
    )
    with keeping(replace(begun, id=run_id), store) as kept:

        def keep(done: HostsResult) -> None:
            kept.run = _with(kept.run, order, done)
            store.save(kept.run, running=True)

        options = HostsOptions(
            keep=keep,
            is_filled=not any(host.is_ssh for host in hosts),
            destroy=tuple(host.path for host in hosts if host.is_blank),
        )
        done = load_hosts(workload, hosts, store.files_of(run_id), seed=seed, say=talk.say, options=options)
        kept.state = "failed" if any(host.error is not None for host in done.hosts) else "done"
    return ProfileResult(kept.run, done, worker_parts(done.hosts), _compared(report, kept, store))


def run_conditions(order: EasyOrder) -> dict[str, str]:
    """Return what must be the same for two easy runs to be alike: workers, disks and services of the datastore."""
    easy = order.easy
    sizes = {} if easy is None else {"workers": str(easy.machine_count), "disks of each": str(easy.disk_count)}
    return {**sizes, "paths": " ".join(order.paths), **{state.name: state.word for state in order.services}}


def _with(run: Run, order: EasyOrder, done: HostsResult) -> Run:
    """The run with what there is by now."""
    notes = [f"{placed.name} on {placed.host.name}, {placed.datastore.name}" for placed in order.plan.placements]
    notes += [state.sentence for state in order.services]
    notes += [] if done.start_sentence() is None else [str(done.start_sentence())]
    if done.warm_up is not None and not done.warm_up.steady:
        notes.append(f"after the warm-up {done.warm_up.sentence()}")
    notes += [f"{host.host.name}: {host.error}" for host in done.hosts if host.error is not None]
    return replace(done.onto(run), notes=tuple(notes))


def worker_parts(hosts: Sequence[HostResult]) -> tuple[WorkerPart, ...]:
    """Return what each worker did, its disks together: rates added, percentiles of the pooled requests."""
    by_worker: defaultdict[str, list[HostResult]] = defaultdict(list)
    for host in hosts:
        by_worker[host.host.name.partition(" ")[0]].append(host)
    return tuple(_worker_part(name, parts) for name, parts in by_worker.items())


def _worker_part(name: str, parts: Sequence[HostResult]) -> WorkerPart:
    histograms = [part.histogram for part in parts if part.histogram is not None]
    merged = Histogram.merged(histograms) if histograms else None
    p95_ms = float("nan") if merged is None else merged.quantile(0.95) * factor(merged.unit, "ms")
    error = next((part.error for part in parts if part.error is not None), None)
    per_s, bytes_per_s = (float(sum(getattr(part, key) for part in parts)) for key in ("per_s", "bytes_per_s"))
    return WorkerPart(name, per_s, bytes_per_s, p95_ms, error)


def _compared(report: EasyReport, kept: Kept, store: RunStore) -> RunComparison | None:
    """The profile beside the same one of the earlier run; None where there is none, or this one is not whole."""
    if not report.against or kept.run.state != "done":
        return None
    earlier = [run for run in store.beginning(f"{report.against}.") if run.name == kept.run.name]
    if not earlier:
        return None
    before, after = [earlier[0]], [kept.run]
    return compare_runs(before, after, history_of(store, before, after))
