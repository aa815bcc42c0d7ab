"""The measuring loop: a warm-up, then rounds of the same length; who makes the load is behind a seam.

What makes the load is a `Carrier`: a driver on this machine or in a guest, many hosts, many instances, the disks
of a check. It carries out one step at a time and returns what the step gave. The loop decides everything else: which
steps there are, their seeds, when a warm-up may end, what is kept and when, and how an interruption ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.honoured import LoadCheck, notes_of, require_honoured
from leadline.core.model.result import Result, Tick, Watch
from leadline.core.model.run import Round, Run
from leadline.core.model.workload import Workload
from leadline.core.statistics.steady import SteadyState, steady_state

WARM_UP = "warm-up"


@dataclass(frozen=True, slots=True)
class Talk:
    """How the loop says what it does: a phase begins (its name, its seconds), a second passed, a note."""

    phase: Callable[[str, float], None]
    tick: Callable[[Tick], None]
    note: Callable[[str], None]


SILENT = Talk(lambda _, __: None, lambda _: None, lambda _: None)


@dataclass(frozen=True, slots=True)
class Carried:
    """What one step of a load gave.

    Attributes:
        results: of the tools; none of a warm-up.
        ticks: of about a second each.
        checks: whether the load was the one that was asked for.
        is_cut: Ctrl-C ended the step; what it gave until then is kept.
        is_last: no round may follow, since the load cannot go on.
    """

    results: tuple[Result, ...] = ()
    ticks: tuple[Tick, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    tool_version: str | None = None
    checks: tuple[LoadCheck, ...] = ()
    is_cut: bool = False
    is_last: bool = False


class Carrier(Protocol):
    """What makes the load of a step."""

    def carry(self, step: Step, watch: Watch) -> Carried | None:
        """Carry out a step; None when nothing is left that could be loaded.

        ``watch`` takes each second as it passes, where seconds are known while the load runs, and says whether to go
        on.
        """


@dataclass(frozen=True, slots=True)
class Course:
    """The steps of a measurement.

    Attributes:
        warm_up_s: at most; 0 for none, as of carriers that warm up within each round.
        until_steady: whether the warm-up ends as soon as the rate is steady.
        seed_stride: how far the seeds of two steps lie apart; as many loads can have seeds of their own.
        shown_s: how long a round takes with what the carrier does beside it; None for its measured seconds.
    """

    workload: Workload
    seed: int
    warm_up_s: float
    until_steady: bool = False
    seed_stride: int = 1
    shown_s: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What was measured until now."""

    warm_up: SteadyState | None = None
    rounds: tuple[Round, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    tool_version: str | None = None
    notes: tuple[str, ...] = ()

    def onto(self, run: Run) -> Run:
        """Return a run as it was before its first step, with what was measured since."""
        return replace(
            run,
            warm_up=self.warm_up,
            rounds=self.rounds,
            commands=tuple(dict.fromkeys((*run.commands, *self.commands))),
            tool_version=self.tool_version,
            notes=tuple(dict.fromkeys((*run.notes, *self.notes))),
        )

    def after(self, measured: Carried) -> Progress:
        """Return this with the command and version of a step."""
        return replace(self, commands=(*self.commands, *measured.commands), tool_version=measured.tool_version)


def measure_rounds(
    course: Course, carrier: Carrier, *, keep: Callable[[Progress], None], talk: Talk = SILENT
) -> Progress:
    """Warm up and measure every round; ``keep`` is called after each step with all that was measured.

    Raises:
        ToolError: a tool fails, or its load was not the one that was asked for; what was measured before is kept.
        KeyboardInterrupt: passed on after what was measured is kept.
    """
    progress = Progress()
    timing = course.workload.timing
    if course.warm_up_s > 0:
        talk.phase("warming up", course.warm_up_s)
        warmed = _warm_up(course, carrier, talk)
        if warmed is not None:
            measured, state = warmed
            progress = replace(progress.after(measured), warm_up=state)
            keep(progress)
            _stop_when_cut(measured)
    for number in range(1, timing.rounds + 1):
        shown_s = timing.measure_s if course.shown_s is None else course.shown_s
        talk.phase(f"round {number} of {timing.rounds}", shown_s)
        step = Step(f"round-{number}", timing.measure_s, course.seed + number * course.seed_stride)
        measured_round = carrier.carry(step, _watching(talk))
        if measured_round is None:
            break
        progress = _with_round(progress, step, measured_round)
        keep(progress)
        _stop_when_cut(measured_round)
        require_honoured(course.workload, measured_round.checks)
        if measured_round.is_last:
            break
    return progress


def _warm_up(course: Course, carrier: Carrier, talk: Talk) -> tuple[Carried, SteadyState | None] | None:
    """What the warm-up gave, and how steady it ended; None when nothing is there to be loaded."""
    ticks: list[Tick] = []
    has_bursts = any(stream.burst is not None for stream in course.workload.io)

    def state() -> SteadyState:
        return steady_state([t.elapsed_s for t in ticks], [t.per_s for t in ticks], course.workload.steady)

    def watch(tick: Tick) -> bool:
        ticks.append(tick)
        talk.tick(tick)
        return has_bursts or not course.until_steady or not state().steady

    measured = carrier.carry(Step(WARM_UP, course.warm_up_s, course.seed), watch)
    if measured is None:
        return None
    ticks = ticks or list(measured.ticks)  # of some tools the seconds are known in the end
    return measured, state() if ticks or course.until_steady else None


def _watching(talk: Talk) -> Watch:
    def watch(tick: Tick) -> bool:
        talk.tick(tick)
        return True

    return watch


def _with_round(progress: Progress, step: Step, measured: Carried) -> Progress:
    notes = tuple(f"{step.label}: {note}" for note in notes_of(measured.checks))
    progress = replace(progress.after(measured), notes=(*progress.notes, *notes))
    if not measured.results:
        return progress
    label = f"{step.label}, cut short" if measured.is_cut else step.label
    return replace(progress, rounds=(*progress.rounds, Round(label, measured.results, measured.ticks)))


def _stop_when_cut(measured: Carried) -> None:
    if measured.is_cut:
        raise KeyboardInterrupt
