"""Use case: a run on many hosts, kept like any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from leadline.app.measure.hosts import Host, HostsOptions, HostsResult, host_result, load_hosts, require_loadable
from leadline.app.measure.kept_runs import begun_run, keeping
from leadline.core.model.run import Run
from leadline.core.model.workload import Workload
from leadline.stores.runs import RunStore

_TARGET, _FAILED = " target", " failed"


def run_hosts(
    workload: Workload,
    hosts: Sequence[Host],
    store: RunStore,
    *,
    say: Callable[[str], None],
    seed: int | None = None,
    options: HostsOptions | None = None,
) -> tuple[Run, HostsResult]:
    """Load many hosts; the run is kept after every round and whatever ends it.

    Raises:
        UsageError: the tool of the workload cannot load these hosts.
        ToolError: fio is to load them, and is missing here.
        KeyboardInterrupt: passed on after every load was stopped; what was measured is kept.
    """
    require_loadable(workload, hosts)
    run = begun_run(
        workload.name,
        workload.plain(),
        seed=seed,
        tool=workload.tool or "fio",
        target=hosts[0].address if len(hosts) == 1 else f"{len(hosts)} hosts",
        host={f"{host.address}{_TARGET}": host.path for host in hosts},
    )
    with keeping(run, store) as kept:

        def keep(done: HostsResult) -> None:
            kept.run = _with(kept.run, done)
            store.save(kept.run, running=True)

        done = load_hosts(
            workload,
            hosts,
            store.files_of(run.id),
            seed=run.seed,
            say=say,
            options=replace(options or HostsOptions(), keep=keep),
        )
        # Some hosts that failed leave a run of the others; a run of none has failed.
        kept.state = "failed" if all(host.error is not None for host in done.hosts) else "done"
    return kept.run, done


def _with(run: Run, done: HostsResult) -> Run:
    """The run with what there is by now."""
    facts = {f"{host.host.address}{_TARGET}": host.host.path for host in done.hosts}
    notes = [] if done.start_sentence() is None else [str(done.start_sentence())]
    if done.warm_up is not None and not done.warm_up.steady:
        notes.append(f"after the warm-up {done.warm_up.sentence()}")
    for host in done.hosts:
        facts |= {f"{host.host.address} {name}": value for name, value in host.facts.items()}
        if host.error is not None:
            facts[f"{host.host.address}{_FAILED}"] = host.error
            notes.append(f"{host.host.address} failed: {host.error}")
        notes += [f"{host.host.address}: {note}" for note in host.notes]
    return replace(done.onto(run), host=facts, notes=tuple(notes))


def hosts_of(run: Run) -> HostsResult | None:
    """What each host did in a run that was kept; None when it was not a run on hosts."""
    addresses = [key.removesuffix(_TARGET) for key in run.host if key.endswith(_TARGET)]
    if not addresses:
        return None
    hosts = (Host(address, run.host[f"{address}{_TARGET}"]) for address in addresses)
    each = (host_result(host, run.rounds, run.host.get(f"{host.address}{_FAILED}")) for host in hosts)
    return HostsResult(tuple(each), run.rounds, run.warm_up)
