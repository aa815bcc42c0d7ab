"""Instances of a density run that are machines: the first n of a file, each with a fio server.

Only whole rounds of a machine are known here, so every round is asked for by itself and is one sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.app.density.model import Instance, Second
from leadline.app.measure.hosts import Host, HostResult, load_hosts
from leadline.app.measure.rounds import Talk
from leadline.core.contracts.benchmark import Tick
from leadline.core.model.result import Operation, Result
from leadline.core.model.run import Round
from leadline.core.model.workload import Workload


@dataclass(frozen=True, slots=True)
class HostsMeasured:
    """What the machines did: as instances, and as rounds of a run."""

    instances: tuple[Instance, ...]
    rounds: tuple[Round, ...]


def measure_hosts(workload: Workload, hosts: Sequence[Host], folder: Path, seed: int, talk: Talk) -> HostsMeasured:
    """Load the machines together, round by round; a machine that fails says so.

    Raises:
        KeyboardInterrupt: passed on after every client was stopped.
    """
    timing = workload.timing
    single = workload.model_copy(update={"timing": timing.model_copy(update={"rounds": 1})})
    rounds: list[Sequence[HostResult]] = []
    for number in range(1, timing.rounds + 1):
        talk.phase(f"{len(hosts)} machines, round {number} of {timing.rounds}", timing.measure_s)
        done = load_hosts(single, hosts, folder, seed=seed + number * 10_000, say=talk.note)
        rounds.append(done.hosts)
        if any(own.error is not None for own in done.hosts):
            break
    instances = tuple(_instance(index, [part[index] for part in rounds]) for index in range(len(hosts)))
    return HostsMeasured(instances, tuple(_round(n, part, timing.measure_s) for n, part in enumerate(rounds, start=1)))


def _instance(index: int, parts: Sequence[HostResult]) -> Instance:
    error = next((f"{part.host.address}: {part.error}" for part in parts if part.error is not None), None)
    good = [part for part in parts if part.histogram is not None]
    return Instance(index + 1, tuple((Second(part.per_s, part.histogram),) for part in good), error)


def _round(number: int, parts: Sequence[HostResult], seconds: float) -> Round:
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
    return Round(f"round-{number}", results, (Tick(seconds, total),))
