"""The load of many hosts by vdbench, where the user has it on each: its parameters for each step, what it reports.

Everything else is as with fio: hosts are reached over SSH, looked at, loaded together and compared by the same code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from leadline.app.measure.fio_servers import ServersStep
from leadline.app.measure.honouring import broken_or_none
from leadline.app.measure.remote_hosts import RemoteMachine
from leadline.app.measure.vdbench_servers import VdbenchFleet
from leadline.app.read.importing import import_paths
from leadline.benchmarks import vdbench
from leadline.core.contracts.benchmark import LoadPlan, Place, Step
from leadline.core.contracts.importer import Request
from leadline.core.model.errors import LeadlineError, UsageError
from leadline.core.model.result import Result, Tick
from leadline.core.model.workload import Stream, Workload
from leadline.core.system.opened import printable
from leadline.core.system.ssh import SCHEME
from leadline.core.system.tools import VDBENCH_VARIABLE
from leadline.formats.vdbench.flatfile import average_of, has_bucket

_PLAIN = re.compile(r"/[A-Za-z0-9/_.-]{1,400}")


@dataclass(frozen=True, slots=True)
class VdbenchHosts:
    """vdbench on many hosts, each reached over SSH.

    Raises:
        UsageError: vdbench cannot do what the workload asks, or the variable that names its folder is no plain path.
    """

    workload: Workload
    align = vdbench.ALIGN
    stream: Stream = field(init=False)
    remote_program: str = field(init=False)

    def __post_init__(self) -> None:
        """Look at the workload and the variable."""
        object.__setattr__(self, "stream", vdbench.only_stream(self.workload))
        named = os.environ.get(VDBENCH_VARIABLE)
        if named and _PLAIN.fullmatch(named) is None:
            raise UsageError(
                VDBENCH_VARIABLE,
                found=printable(named),
                expected="a path from / of letters, digits and . _ - /, the same on every host",
                advice=f"Unpack vdbench there on every host, for example {VDBENCH_VARIABLE}=/opt/vdbench50407.",
            )
        object.__setattr__(self, "remote_program", named or vdbench.META.program)

    def require(self, targets: Sequence[tuple[str, str]]) -> None:
        """Refuse hosts that vdbench is not started on, and targets it does not open.

        Raises:
            UsageError: a host that is a fio server, an export, or a device that is to be buffered.
        """
        for address, path in targets:
            problem = ""
            if not address.startswith(SCHEME):
                problem, expected = "a fio server, which starts no vdbench", "ssh://[USER@]HOST, where vdbench is"
            elif "://" in path:
                problem, expected = "an export", "a folder or block device, which is all that vdbench opens"
            elif path.startswith("/dev/") and self.workload.io_settings.buffered:
                problem, expected = "a device with buffered: true", "direct I/O, without which vdbench opens no device"
            if problem:
                raise UsageError(
                    f"{address} {printable(path)}",
                    found=problem,
                    expected=expected,
                    advice="See docs/guides/hosts.md, or leave tool: vdbench out: fio loads these hosts.",
                )

    def fleet(self, addresses: Sequence[str], folder: Path) -> VdbenchFleet:
        """Return the hosts, each behind SSH."""
        return VdbenchFleet(addresses, folder)

    def placed(self, plan: LoadPlan, machine: RemoteMachine) -> LoadPlan:
        """Return the plan of a host that was looked at, with the target as vdbench there is given it."""
        target = machine.ready_at.partition(" ")[2]
        is_device = machine.checked.kind == "device"
        places = {
            name: Place(target, place.size_bytes, is_made=not is_device, is_device=is_device, link=vdbench.LINK)
            for name, place in plan.places.items()
        }
        return replace(plan, places=places)

    def fill_text(self, plan: LoadPlan) -> str:
        """Return the parameters that write every block of the target once."""
        return vdbench.fill_text(self._disk(plan))

    def step_text(self, plan: LoadPlan, step: Step) -> str:
        """Return the parameters of a step, which are those of `leadline bench run`."""
        return vdbench.run_text(self.stream, step, self._disk(plan))

    def _disk(self, plan: LoadPlan) -> vdbench.VdbenchDisk:
        (place,) = plan.places.values()
        return vdbench.VdbenchDisk(place.path, place.size_bytes, self.workload.io_settings.buffered)

    def clean_text(self, plan: LoadPlan) -> str:
        """Return nothing: what was made goes with the connection."""
        del plan
        return ""

    def extra_s(self) -> float:
        """Seconds that vdbench leaves out of every average."""
        return float(vdbench.LEAD_S)

    def results(self, report: Path, name: str) -> tuple[list[Result], str | None]:
        """Return the reads and writes of a host's reports, under its name, or why there are none."""
        flat, histogram = (report / file_name for file_name in vdbench.REPORTS[:2])
        if histogram.exists() and not has_bucket(_text_of(histogram)):
            histogram.unlink()
        try:
            files = [path for path in (flat, histogram) if path.exists()]
            results = import_paths(files, Request(metrics=frozenset())).capture.results if files else ()
        except LeadlineError as error:
            return [], f"its report: {error.found}"
        if files and not average_of(_text_of(flat)):
            return [], "its report has no average"
        version = vdbench.version_of(_text_of(report.with_suffix(".txt")))
        loaded = []
        for result in vdbench.joined(results):
            operations = tuple(o for o in result.operations if o.name in ("read", "write") and o.count > 0)
            if operations:
                loaded.append(replace(result, operations=operations, host=name, tool_version=version))
        return loaded, None if loaded else "it did no I/O"

    def ticks(self, done: ServersStep) -> list[Tick]:
        """Return operations of all hosts per second, of the measured seconds all of them have."""
        hosts: list[dict[float, Tick]] = []
        for index in done.reports:
            rows = [vdbench.tick_of(line) for path in done.logs[index] for line in _text_of(path).splitlines()]
            hosts.append({tick.elapsed_s: tick for tick in rows if tick is not None})
        common = sorted(set.intersection(*(set(rows) for rows in hosts))) if hosts else []
        return [Tick(second, sum(rows[second].per_s for rows in hosts)) for second in common]

    def broken(self, report: Path) -> str | None:
        """Return which key of the workload a host did not honour; None when it honoured all."""
        average = average_of(_text_of(report / vdbench.REPORTS[0]))
        return broken_or_none(self.workload, [vdbench.load_of(self.stream, average)]) if average else None


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
