"""Instances of a density run that are machines: the first n of a file, each with a fio server.

Only whole rounds of a machine are known here, so every round is asked for by itself and is one sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leadline.app.density.model import Instance, Second
from leadline.app.measure.hosts import Host, HostResult, load_hosts
from leadline.app.measure.rounds import Carried, Talk
from leadline.core.contracts.benchmark import Step
from leadline.core.model.result import Operation, Result, Tick, Watch
from leadline.core.model.workload import Workload


@dataclass(slots=True)
class HostsCarrier:
    """Machines that are loaded together, each round with a warm-up of its own; a machine that fails says so."""

    workload: Workload
    hosts: Sequence[Host]
    folder: Path
    talk: Talk
    measured: list[Sequence[HostResult]] = field(default_factory=list)

    def carry(self, step: Step, watch: Watch) -> Carried:
        """Load all of them; no round follows one in which a machine failed.

        Raises:
            KeyboardInterrupt: passed on after every client was stopped.
        """
        del watch  # only whole rounds are known
        timing = self.workload.timing.model_copy(update={"rounds": 1})
        single = self.workload.model_copy(update={"timing": timing})
        done = load_hosts(single, self.hosts, self.folder, seed=step.seed, say=self.talk.note)
        self.measured.append(done.hosts)
        results, tick = _together(done.hosts, step.duration_s)
        return Carried(results, (tick,), is_last=any(host.error is not None for host in done.hosts))

    def instances(self) -> list[Instance]:
        """What each machine did over the rounds."""
        return [_instance(index, [part[index] for part in self.measured]) for index in range(len(self.hosts))]


def _instance(index: int, parts: Sequence[HostResult]) -> Instance:
    error = next((f"{part.host.address}: {part.error}" for part in parts if part.error is not None), None)
    good = [part for part in parts if part.histogram is not None]
    return Instance(index + 1, tuple((Second(part.per_s, part.histogram),) for part in good), error)


def _together(parts: Sequence[HostResult], seconds: float) -> tuple[tuple[Result, ...], Tick]:
    """Each machine as a result, and the round as one second of all."""
    results = tuple(
        Result(
            "fio",
            part.host.address,
            (Operation("all", part.per_s, count=float(part.histogram.total), histogram=part.histogram),),
            duration_s=seconds,
            host=part.host.address,
        )
        for part in parts
        if part.histogram is not None
    )
    total = sum(part.per_s for part in parts if part.error is None)
    return results, Tick(seconds, total)
