"""The load of many hosts by fio: its jobs for each step, and what its reports and logs say."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.app.measure.fio_servers import Fleet, ServersStep
from leadline.app.measure.honouring import broken_or_none
from leadline.app.measure.remote_hosts import RemoteMachine
from leadline.app.read.importing import import_paths
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import LoadPlan, Place, Step
from leadline.core.contracts.importer import Request
from leadline.core.model.errors import LeadlineError
from leadline.core.model.result import Result, Tick
from leadline.core.model.workload import Workload
from leadline.core.system.tools import require_program
from leadline.formats.fio.load import last_report, loads_of


@dataclass(frozen=True, slots=True)
class FioHosts:
    """fio on many hosts; with ``raw_latencies`` the latency of every request is logged instead of rates per second."""

    workload: Workload
    raw_latencies: bool = False
    remote_program = ""
    align = 1

    def require(self, targets: Sequence[tuple[str, str]]) -> None:
        """Refuse when there is no fio here.

        Raises:
            ToolError: it is not installed.
        """
        del targets
        require_fio()

    def fleet(self, addresses: Sequence[str], folder: Path) -> Fleet:
        """Return the hosts as fio's servers."""
        return Fleet(addresses, folder)

    def placed(self, plan: LoadPlan, machine: RemoteMachine) -> LoadPlan:
        """Return the plan of a host that was looked at: on a device, which is there already, nothing is made."""
        return _device_plan(plan) if machine.checked.kind == "device" else plan

    def fill_text(self, plan: LoadPlan) -> str:
        """Return the job that fills what reads would find empty; empty when there is nothing to fill."""
        return _fill_job(plan)

    def step_text(self, plan: LoadPlan, step: Step) -> str:
        """Return the job of a step, with logs of every second or request."""
        log_options = ["write_lat_log"] if self.raw_latencies else ["write_iops_log", "log_avg_msec"]
        values = {"write_lat_log": step.label, "write_iops_log": step.label, "log_avg_msec": "1000"}
        lines = "\n".join(f"{name}={values[name]}" for name in log_options)
        return fio.job_file(plan, step).replace("[global]", f"[global]\n{lines}", 1)

    def clean_text(self, plan: LoadPlan) -> str:
        """Return the job that removes the files that were made; empty when none was."""
        return _clean_job(plan)

    def extra_s(self) -> float:
        """Seconds that a step takes beside its own."""
        return fio.late_s(self.workload) - fio.LATE_S

    def results(self, report: Path, name: str) -> tuple[list[Result], str | None]:
        """Return the reads and writes of a host's report, under its name, or why there are none."""
        return _results(report, name)

    def ticks(self, done: ServersStep) -> list[Tick]:
        """Return operations of all hosts per second; none where every request was logged."""
        return [] if self.raw_latencies else _ticks(done)

    def broken(self, report: Path) -> str | None:
        """Return which key of the workload a host did not honour; None when it honoured all."""
        last = last_report(report)
        return None if last is None else broken_or_none(self.workload, loads_of(last))


def _device_plan(plan: LoadPlan) -> LoadPlan:
    """The same on a device, which is there already."""
    there = plan.target.name
    places = {
        name: Place(there, p.size_bytes, is_made=False, is_device=True, link="t0") for name, p in plan.places.items()
    }
    return replace(plan, places=places)


def _fill_job(plan: LoadPlan) -> str:
    lines = ["[global]", "thread=1", "direct=1", "rw=write", "bs=1m", "refill_buffers=1", "end_fsync=1"]
    # An export whose workload only reads is not written to; one that is overwritten was named by the user.
    writes = any(stream.read_pct < 100.0 for stream in plan.workload.io)
    written = (p for p in plan.places.values() if p.is_made or p.is_device or (writes and p.path.startswith("nbd")))
    places = {place.path: place for place in written}
    for number, place in enumerate(places.values()):
        is_export = place.path.startswith("nbd")
        where = [fio.where(place), "ioengine=nbd" if is_export else "ioengine=libaio"]
        if place.is_device:  # a name that no device has would become a file in the memory of the machine
            where.append("allow_file_create=0")
        lines += [f"[fill-{number}]", *where, f"size={place.size_bytes}"]
    return "\n".join([*lines, ""]) if places else ""


def _clean_job(plan: LoadPlan) -> str:
    lines = ["[global]", "thread=1", "rw=read", "bs=4k", "size=4k", "unlink=1", "ioengine=psync"]
    new_places = [place for place in plan.places.values() if place.is_made]
    for number, place in enumerate(new_places):
        lines += [f"[clean-{number}]", fio.where(place)]
    return "\n".join([*lines, ""]) if new_places else ""


def _results(report: Path, name: str) -> tuple[list[Result], str | None]:
    """The reads and writes of a machine's report, under its name."""
    try:
        results = import_paths([report], Request(metrics=frozenset())).capture.results
    except LeadlineError as error:
        return [], f"its report: {error.found}"
    loaded = []
    for result in results:
        operations = tuple(o for o in result.operations if o.name in ("read", "write") and o.count > 0)
        if operations:
            loaded.append(replace(result, operations=operations, host=name))
    return loaded, None if loaded else "it did no I/O"


def _ticks(done: ServersStep) -> list[Tick]:
    """Operations of all machines per second, of the seconds all of them have; NaN-free.

    Source: fio, Log File Formats: time (ms), value, direction, block size, offset, priority.
    """
    hosts: list[dict[int, float]] = []
    for index in done.reports:
        seconds: dict[int, float] = defaultdict(float)
        for path in done.logs.get(index, ()):
            for stamp, value in _log_lines(path):
                seconds[round(stamp / 1000.0)] += value
        hosts.append(seconds)
    if not hosts:
        return []
    common = sorted(set.intersection(*(set(seconds) for seconds in hosts)))
    return [Tick(float(second), sum(seconds[second] for seconds in hosts)) for second in common if second > 0]


def _log_lines(path: Path) -> Iterator[tuple[float, float]]:
    with contextlib.suppress(OSError), path.open(encoding="ascii", errors="replace") as stream:
        for line in stream:
            stamp, _, rest = line.partition(",")
            with contextlib.suppress(ValueError):
                yield float(stamp), float(rest.partition(",")[0])


def require_fio() -> None:
    """Say at once when there is no fio here.

    Raises:
        ToolError: it is not installed.
    """
    require_program("fio", "fio here and on every machine")
