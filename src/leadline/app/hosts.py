"""Use case: the same I/O load on many machines at once, through fio's own servers, pooled and compared.

Every machine has a client process of its own, all started together, so that one that fails takes nothing with it.
Percentiles of all machines are those of the pooled samples: averaging them hides the slow one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leadline.app.importing import import_paths
from leadline.benchmarks import fio
from leadline.core.benchmark import Place, Plan, Step, Target
from leadline.core.errors import InputError, LeadlineError, ToolError
from leadline.core.histogram import Histogram
from leadline.core.importer import Request
from leadline.core.processes import POLL_S, running
from leadline.core.result import Operation
from leadline.core.run import percentiles
from leadline.core.tools import find_program
from leadline.core.workload import Workload

OUTLIER = 3.0  # Judgement: a machine whose p95 is three times the median of all, or a third of its rate
GUIDE = "docs/guides/workloads.md"


@dataclass(frozen=True, slots=True)
class Host:
    """A machine with a fio server: its address as fio's client takes it (``host`` or ``host,port``) and its target.

    ``is_blank`` says that the target is a device with nothing on it, made for this load: it is filled and overwritten.
    """

    address: str
    path: str
    is_blank: bool = False


@dataclass(frozen=True, slots=True)
class HostResult:
    """What one machine did; ``error`` says why it did not."""

    host: Host
    per_s: float
    histogram: Histogram | None
    error: str | None = None

    @property
    def p95_ms(self) -> float:
        """95th percentile of its requests; NaN when it failed."""
        return float("nan") if self.histogram is None else self.histogram.quantile(0.95)


@dataclass(frozen=True, slots=True)
class HostsResult:
    """All machines together."""

    hosts: tuple[HostResult, ...]

    @property
    def histogram(self) -> Histogram | None:
        """The requests of all machines."""
        parts = [own.histogram for own in self.hosts if own.histogram is not None]
        return Histogram.merged(parts) if parts else None

    @property
    def per_s(self) -> float:
        """Operations per second of all machines that did not fail."""
        return float(sum(own.per_s for own in self.hosts if own.error is None))

    def percentiles_ms(self) -> dict[str, tuple[float, int]]:
        """Of the pooled requests: name -> (ms, samples above it)."""
        whole = self.histogram
        return {} if whole is None else percentiles(whole)

    def outliers(self) -> list[HostResult]:
        """Machines far from the median of all that did not fail."""
        good = [own for own in self.hosts if own.error is None]
        if len(good) < 3:
            return []
        p95, rate = (float(np.median([getattr(own, name) for own in good])) for name in ("p95_ms", "per_s"))
        return [own for own in good if own.p95_ms > OUTLIER * p95 or own.per_s * OUTLIER < rate]


def read_hosts(path: Path, default: str) -> list[Host]:
    """The machines a file names, a line each: ``HOST[,PORT] [FOLDER]``; ``#`` begins a comment.

    Raises:
        InputError: not readable, a line of more words, a machine named twice, or none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(str(path), f"not readable ({error})") from error
    found: dict[str, Host] = {}
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) > 2 or words[0] in found or words[0].startswith("-"):
            raise _wrong(f"{path}:{number}", f"{line.strip()[:60]!r}")
        found[words[0]] = Host(words[0], words[1] if len(words) > 1 else default)
    if not found:
        raise _wrong(str(path), "no machine")
    return list(found.values())


def _wrong(where: str, found: str) -> InputError:
    return InputError(where, found=found, expected="lines of HOST[,PORT] [FOLDER], each once", advice=f"See {GUIDE}.")


def load_hosts(
    workload: Workload, hosts: Sequence[Host], folder: Path, *, seed: int, say: Callable[[str], None]
) -> HostsResult:
    """Fill, load and clean all machines together; those that fail are kept apart with the reason.

    Raises:
        ToolError: fio is missing here.
        KeyboardInterrupt: passed on after every client was stopped.
    """
    plans = [_plan(workload, host) for host in hosts]
    errors: dict[int, str] = {}
    results: dict[int, list[Operation]] = {index: [] for index in range(len(hosts))}

    def together(label: str, texts: Sequence[str], seconds: float) -> dict[int, Path]:
        live = [index for index in range(len(hosts)) if index not in errors]
        reports, failed = _together(label, [(i, hosts[i].address, texts[i]) for i in live], folder, seconds)
        errors.update(failed)
        return reports

    say(f"filling on {len(hosts)} machines")
    try:
        together("fill", [_fill_job(plan) for plan in plans], 3600.0)
        timing = workload.timing
        for number in range(timing.rounds + 1):
            label = "warm-up" if number == 0 else f"round-{number}"
            seconds = min(timing.warm_up_s, timing.measure_s) if number == 0 else timing.measure_s
            if seconds <= 0:
                continue
            say(f"{label} on {len(hosts) - len(errors)} machines, {seconds:.0f} s")
            texts = [fio.job_file(p, Step(label, seconds, seed + number * 1000 + i)) for i, p in enumerate(plans)]
            for index, report in together(label, texts, seconds).items():
                if number > 0:
                    results[index] += _operations(report, errors, index)
    finally:
        say("removing what was made")
        _together("clean", [(i, h.address, _clean_job(plans[i])) for i, h in enumerate(hosts)], folder, 30.0)
    return HostsResult(tuple(_host_result(h, results[i], errors.get(i), workload) for i, h in enumerate(hosts)))


def _plan(workload: Workload, host: Host) -> Plan:
    places = {}
    for stream in workload.io:
        made = "://" not in host.path and not host.is_blank
        remote = f"{host.path.rstrip('/')}/leadline-bench-{stream.name}.dat" if made else host.path
        places[stream.name] = Place(remote, workload.working_set_bytes(stream), made=made, is_device=host.is_blank)
    # What the other kernel allows is not known here; libaio is everywhere.
    return Plan(workload, Target(host.path), places, engine="libaio")


def _fill_job(plan: Plan) -> str:
    lines = ["[global]", "direct=1", "rw=write", "bs=1m", "refill_buffers=1", "end_fsync=1", "ioengine=libaio"]
    for name, place in plan.places.items():
        if place.made or place.is_device:  # devices of hosts are there only when they are blank
            lines += [f"[fill-{name}]", f"filename={place.path}", f"size={place.size_bytes}"]
    return "\n".join([*lines, ""])


def _clean_job(plan: Plan) -> str:
    lines = ["[global]", "rw=read", "bs=4k", "size=4k", "unlink=1", "ioengine=psync"]
    for name, place in plan.places.items():
        if place.made:
            lines += [f"[clean-{name}]", f"filename={place.path}"]
    return "\n".join([*lines, ""])


def _together(
    label: str, work: Sequence[tuple[int, str, str]], folder: Path, seconds: float
) -> tuple[dict[int, Path], dict[int, str]]:
    """A client per machine, started together: reports by machine, and why those failed that did."""
    reports: dict[int, Path] = {}
    failed: dict[int, str] = {}
    with ExitStack() as stack:
        clients = []
        for index, address, text in work:
            if "[" not in text.removeprefix("[global]"):
                continue  # nothing to do there
            base = folder / f"host-{index + 1}-{label}"
            job, report, talk = (base.with_name(f"{base.name}.{end}") for end in ("fio", "json", "txt"))
            job.write_text(text, encoding="utf-8")
            words = ["fio", "--output-format=json+", f"--output={report}", f"--client={address}", str(job)]
            clients.append((index, report, talk, stack.enter_context(running(words, output=talk, folder=folder))))
        deadline = time.monotonic() + seconds + fio.LATE_S
        while any(client.poll() is None for *_, client in clients) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        for index, report, talk, client in clients:
            if client.poll() == 0 and report.exists():
                reports[index] = report
            else:
                said = talk.read_text(errors="replace").strip().splitlines() if talk.exists() else []
                why = "did not end in time" if client.poll() is None else f"ended with {client.returncode}"
                failed[index] = f"{label}: {said[-1][:120] if said else why}"
    return reports, failed


def _operations(report: Path, errors: dict[int, str], index: int) -> list[Operation]:
    try:
        results = import_paths([report], Request(metrics=frozenset())).capture.results
    except LeadlineError as error:
        errors[index] = f"its report: {error.found}"
        return []
    found = [o for result in results for o in result.operations if o.name in ("read", "write") and o.count > 0]
    if not found:
        errors[index] = "it did no I/O"
    return found


def _host_result(host: Host, operations: list[Operation], error: str | None, workload: Workload) -> HostResult:
    histograms = [o.histogram for o in operations if o.histogram is not None and o.histogram.total]
    if error is not None and not histograms:
        return HostResult(host, float("nan"), None, error)
    per_s = sum(operation.per_s for operation in operations) / workload.timing.rounds
    return HostResult(host, per_s, Histogram.merged(histograms) if histograms else None, error)


def require_fio() -> None:
    """Say at once when there is no fio here.

    Raises:
        ToolError: it is not installed.
    """
    if find_program("fio") is None:
        raise ToolError("fio", found="not installed", expected="fio here and on every machine", advice="Install it.")


def shortened(workload: Workload, size: int | None, seconds: float | None, rounds: int | None) -> Workload:
    """The workload with another working set, length or number of rounds."""
    timing = workload.timing.model_copy(
        update={k: v for k, v in (("measure_s", seconds), ("rounds", rounds)) if v is not None}
    )
    settings = workload.io_settings if size is None else workload.io_settings.model_copy(update={"working_set": size})
    streams = workload.io if size is None else tuple(s.model_copy(update={"working_set": None}) for s in workload.io)
    return workload.model_copy(update={"timing": timing, "io_settings": settings, "io": streams})
