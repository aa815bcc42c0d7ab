"""The measuring loop by itself: steps, seeds, what is kept and when, and how it ends early."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from leadline.app.measure.rounds import WARM_UP, Carried, Course, Progress, measure_rounds
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.honoured import LoadCheck, LoadState
from leadline.core.model.errors import ToolError
from leadline.core.model.result import Operation, Result, Tick, Watch
from leadline.core.model.workload import Workload

RESULT = Result("fio", "io", (Operation("read", 100.0),))
WORKLOAD = Workload.model_validate({"name": "loop", "io": [{}], "timing": {"measure_s": 5, "rounds": 3}})


@dataclass
class Scripted:
    """A carrier that gives what a script says of each step, and a rate of 100 per second for every second."""

    script: dict[str, Carried | None] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    seconds: int = 0

    def carry(self, step: Step, watch: Watch) -> Carried | None:
        self.steps.append(step)
        for second in range(round(step.duration_s)):
            self.seconds += 1
            if not watch(Tick(second + 1.0, 100.0)):
                break
        return self.script.get(step.label, Carried((RESULT,), (Tick(1.0, 100.0),), (("fio", step.label),), "3.33"))


def measured(carrier: Scripted, course: Course) -> tuple[Progress, list[Progress]]:
    kept: list[Progress] = []
    return measure_rounds(course, carrier, keep=kept.append), kept


def test_steps_have_seeds_apart_and_are_kept_one_by_one() -> None:
    carrier = Scripted()
    done, kept = measured(carrier, Course(WORKLOAD, 7, 2.0, seed_stride=1000))
    assert [(step.label, step.duration_s, step.seed) for step in carrier.steps] == [
        (WARM_UP, 2.0, 7),
        ("round-1", 5.0, 1007),
        ("round-2", 5.0, 2007),
        ("round-3", 5.0, 3007),
    ]
    assert [len(progress.rounds) for progress in kept] == [0, 1, 2, 3]
    assert kept[-1] == done
    assert done.commands == tuple(("fio", step.label) for step in carrier.steps)


@pytest.mark.parametrize(("until_steady", "seconds"), [(True, 9), (False, 60)])
def test_a_steady_warm_up_ends_early_where_that_is_asked_for(until_steady: bool, seconds: int) -> None:
    carrier = Scripted({"round-1": None})
    done, _ = measured(carrier, Course(WORKLOAD, 1, 60.0, until_steady=until_steady))
    assert carrier.seconds == seconds + 5
    assert done.warm_up is not None
    assert done.warm_up.steady


def test_nothing_left_to_be_loaded_ends_it_without_an_error() -> None:
    done, kept = measured(Scripted({WARM_UP: None, "round-1": None}), Course(WORKLOAD, 1, 2.0))
    assert (done.rounds, done.warm_up, kept) == ((), None, [])


def test_the_last_round_of_a_load_that_cannot_go_on_is_kept() -> None:
    carrier = Scripted({"round-2": Carried((RESULT,), is_last=True)})
    done, _ = measured(carrier, Course(WORKLOAD, 1, 0.0))
    assert [part.label for part in done.rounds] == ["round-1", "round-2"]


def test_a_cut_round_is_kept_as_such_before_the_interruption_goes_on() -> None:
    carrier = Scripted({"round-2": Carried((RESULT,), is_cut=True)})
    kept: list[Progress] = []
    with pytest.raises(KeyboardInterrupt):
        measure_rounds(Course(WORKLOAD, 1, 0.0), carrier, keep=kept.append)
    assert [part.label for part in kept[-1].rounds] == ["round-1", "round-2, cut short"]


def test_a_load_that_was_another_one_fails_after_its_round_is_kept() -> None:
    broken = LoadCheck("io", "rate_iops", "100/s", "250/s", LoadState.BROKEN)
    carrier = Scripted({"round-1": Carried((RESULT,), checks=(broken,))})
    kept: list[Progress] = []
    with pytest.raises(ToolError, match="measured 250/s"):
        measure_rounds(Course(WORKLOAD, 1, 0.0), carrier, keep=kept.append)
    assert [part.label for part in kept[-1].rounds] == ["round-1"]
    assert kept[-1].notes == ("round-1: load was not honoured: io: rate_iops: asked 100/s, measured 250/s",)
