"""Use case: published figures, each beside what Leadline gets for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from leadline.app.measure.simulated import simulated, system_of
from leadline.app.simulate.parallel import side_by_side
from leadline.core.contracts.discovery import load_unit, unit_modules
from leadline.core.contracts.docstrings import sections, title
from leadline.core.contracts.experiment import Experiment, ExperimentMeta, FigureVerdict, Findings, Simulated, verdict
from leadline.core.contracts.scenario import Outcome, Progress
from leadline.core.model.errors import InputError

ShareReport = Callable[[float, int, int], object]


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A scenario that an experiment ran: enough to see that it ran the same elsewhere."""

    name: str
    system: str
    seed: int
    trace: str
    event_count: int


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A published figure with what came out.

    Attributes:
        sections: the headings of the experiment's own text: Setup, Run, Limits.
        runs: the scenarios it simulated, in order; empty for arithmetic.
    """

    name: str
    title: str
    meta: ExperimentMeta
    sections: dict[str, str]
    findings: Findings
    verdict: FigureVerdict
    runs: tuple[SimulatedRun, ...]


def figures() -> list[str]:
    """Names of all published figures with an experiment."""
    return list(unit_modules("experiment"))


def reproduce(names: Sequence[str] = (), report: ShareReport = lambda *_: None) -> list[Reproduction]:
    """Reproduce these figures, or all, on the cores there are; in the order asked for.

    ``report`` is called with the share of all that is done, the number of figures done and the number of figures. The
    result does not depend on the other figures, nor on how many cores there are.

    Raises:
        UsageError: a name is no figure's.
        InputError: the simulator refuses a scenario of an experiment: a defect of the experiment.
        KeyboardInterrupt: passed on when all have stopped; nothing is kept.
    """
    wanted = list(dict.fromkeys(name.replace("_", "-") for name in names)) or figures()
    modules = [load_unit("experiment", name) for name in wanted]
    reproductions: dict[int, Reproduction] = {}

    def work(index: int, progress: Progress) -> Reproduction:
        return _reproduction(wanted[index], modules[index], progress)

    for index, reproduction in side_by_side(
        len(wanted), work, lambda share: report(share, len(reproductions), len(wanted))
    ):
        reproductions[index] = reproduction  # noqa: PERF403 - counted while it grows
    return [reproductions[index] for index in range(len(wanted))]


def _reproduction(name: str, module: Any, progress: Progress) -> Reproduction:  # noqa: ANN401 - a unit
    experiment = cast("Experiment", module)
    runs: list[SimulatedRun] = []
    findings = experiment.reproduce(_simulating(name, runs, progress))
    parts = {heading: text for heading, text in sections(module.__doc__).items() if heading}
    judgement = verdict(experiment.META, findings)
    return Reproduction(name, title(module.__doc__), experiment.META, parts, findings, judgement, tuple(runs))


def _simulating(name: str, runs: list[SimulatedRun], progress: Progress) -> Simulated:
    """What an experiment simulates with; how much is to come is not known: progress only listens for a stop."""

    def ran(plain: Mapping[str, Any]) -> Outcome:
        system = system_of(str(plain.get("system", "")))
        try:
            scenario = system.MODEL.model_validate({"name": name, **plain})
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"experiment {name}",
                found=f"{'.'.join(str(part) for part in first['loc'])}: {first['msg'].removeprefix('Value error, ')}",
                expected=f"a scenario of {plain.get('system')}",
                advice="This is a defect of the experiment; please report it.",
            ) from error
        outcome = simulated(system, scenario, lambda _: progress(0.0))
        runs.append(SimulatedRun(scenario.name, scenario.system, scenario.seed, outcome.trace, outcome.event_count))
        return outcome

    return ran
