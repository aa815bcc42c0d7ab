"""Use case: a scenario simulated, in one or many variants side by side; every variant is kept as a run."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from leadline import __version__
from leadline.app.measure.comparing_runs import SIMULATION
from leadline.app.measure.simulated import simulated, system_of
from leadline.app.simulate.parallel import side_by_side
from leadline.app.simulate.simulating_dask import outcomes_on
from leadline.app.simulate.simulating_effects import with_idle_keys
from leadline.app.simulate.simulating_kept import FILE, kept_outcomes, key_of
from leadline.core.contracts.scenario import (
    Axis,
    Outcome,
    Progress,
    Scenario,
    System,
    Variant,
    places,
    read_scenario,
    variants,
)
from leadline.core.io.outputs import keep
from leadline.core.io.private import PRIVATE
from leadline.core.io.shipped import shipped
from leadline.core.model.errors import UsageError
from leadline.core.model.run import Round, Run
from leadline.core.model.similar import similar
from leadline.core.model.workload import Steadiness
from leadline.core.statistics.steady import SteadyState, steady_state
from leadline.core.system.interrupts import kept
from leadline.stores.runs import RunStore

ShareReport = Callable[[float, int, int], object]
SCENARIOS = Path("examples", "scenarios")


@dataclass(frozen=True, slots=True)
class PlannedSimulation:
    """What will be simulated: the system, its scenario as the file has it, and the variants."""

    system: System
    scenario: Scenario
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class Simulated:
    """A variant with what came out of it, and the run it is kept as."""

    variant: Variant
    outcome: Outcome
    run: Run


def plan_simulation(
    path: Path, axes: Sequence[Axis] = (), policies: Sequence[str] = (), seed: int | None = None
) -> PlannedSimulation:
    """The variants of a scenario file; ``axes`` replace those of the file, ``policies`` stand beside its own.

    Raises:
        InputError: the file is no scenario, or has a key without effect in all variants; with line and column.
        UsageError: a key or a value is none of the scenario's, or a varied key has no effect.
    """
    path = scenario_file(path)
    system, scenario = read_scenario(path, system_of)
    if seed is not None:
        scenario = scenario.model_copy(update={"seed": seed})
    wanted = list(axes) or [Axis(key, tuple(values)) for key, values in scenario.vary.items()]
    if policies:
        wanted = [axis for axis in wanted if axis.key != system.META.policy_key]
        wanted.append(_policies(system, scenario, policies))
    scenario_variants = variants(scenario, wanted)
    return PlannedSimulation(system, scenario, tuple(with_idle_keys(path, scenario, scenario_variants)))


def scenario_file(path: Path) -> Path:
    """The file of a scenario: ``path`` itself, or the shipped scenario of that name, as ``iops-cap``.

    Raises:
        UsageError: it is neither, and a shipped scenario has a name like it.
    """
    if path.exists() or path.suffix or len(path.parts) != 1:
        return shipped(path)
    file = shipped(SCENARIOS / f"{path}.yaml")
    near = similar(str(path), (one.stem for one in file.parent.glob("*.yaml")))
    if not file.is_file() and near:
        raise UsageError(
            f"scenario {path}",
            found="no file and no shipped scenario of that name",
            expected="one of them",
            advice=f"Did you mean {near[0]}?",
        )
    return file if file.is_file() else path


def _policies(system: System, scenario: Scenario, policies: Sequence[str]) -> Axis:
    key = system.META.policy_key
    unknown = [name for name in policies if name not in system.META.policies]
    file_policies = list(dict.fromkeys(node[at] for node, at in places(scenario.plain(), key)))
    if unknown or len(file_policies) != 1:
        raise UsageError(
            f"--compare {','.join(policies)}",
            found=f"no policy {unknown[0]}" if unknown else f"a scenario with {', '.join(file_policies)}",
            expected=f"one of {', '.join(system.META.policies)}" if unknown else f"one policy at {key}",
            advice=f"`--vary {key}=...` sets it as you like.",
        )
    return Axis(key, tuple(dict.fromkeys((file_policies[0], *policies))))


def simulate(
    planned: PlannedSimulation,
    store: RunStore,
    report: ShareReport = lambda *_: None,
    *,
    resume: bool = False,
    cluster: str | None = None,
) -> list[Simulated]:
    """Simulate every variant on the cores there are; each is kept as soon as it is done.

    ``report`` is called with the share of all that is done, the number of variants done and the number of variants.
    The outcome of a variant does not depend on the others, nor on where it is simulated. With ``resume`` those that
    are kept from before (same scenario, seed and version) are not done again; ``cluster`` is the address of a
    scheduler of dask.distributed.

    Raises:
        InputError: the simulator refuses a variant; those that were done are kept.
        ToolError: there is no such cluster.
        KeyboardInterrupt: passed on when all have stopped, within a second; those that were done are kept.
    """
    began = datetime.now(UTC)
    name = f"{began:%Y%m%d-%H%M%S}-{planned.scenario.name}-{secrets.token_hex(2)}"
    count = len(planned.variants)
    digits = len(str(count - 1))
    simulations = _kept(planned, store) if resume else {}

    def left() -> str:
        return (
            f"{len(simulations)} of {count} variants are kept; go on with the same command and --resume"
            if simulations
            else ""
        )

    with kept(left):
        for index, bare in _outcomes(
            planned, set(simulations), lambda share: report(share, len(simulations), count), cluster
        ):
            variant = planned.variants[index]
            outcome = replace(bare, notes=(*bare.notes, *variant.idle))
            run_name = name if count == 1 else f"{name}.v{index:0{digits}}"
            run = _run(run_name, began, variant, outcome)
            _keep(store, run, variant, outcome)
            simulations[index] = Simulated(variant, outcome, run)
    return [simulations[index] for index in range(count)]


def _kept(planned: PlannedSimulation, store: RunStore) -> dict[int, Simulated]:
    """Variants that were simulated before, by number."""
    keys = [key_of(variant.scenario) for variant in planned.variants]
    outcomes = kept_outcomes(planned.scenario.name, set(keys), store)
    return {
        index: Simulated(variant, outcomes[key][1], outcomes[key][0])
        for index, (variant, key) in enumerate(zip(planned.variants, keys, strict=True))
        if key in outcomes
    }


def _outcomes(
    planned: PlannedSimulation, done: set[int], report: Callable[[float], object], cluster: str | None
) -> Iterator[tuple[int, Outcome]]:
    """Variants but those that are ``done``, as they are; the rest is stopped when anything ends this."""
    left = [index for index in range(len(planned.variants)) if index not in done]
    already, whole = len(done), len(planned.variants)

    def heard(share: float) -> None:
        report((already + share * len(left)) / whole)

    if cluster is not None:
        plains = [(index, planned.variants[index].scenario.plain()) for index in left]
        yield from outcomes_on(cluster, plains, heard)
        return

    def work(position: int, progress: Progress) -> Outcome:
        return simulated(planned.system, planned.variants[left[position]].scenario, progress)

    for position, outcome in side_by_side(len(left), work, heard):
        yield left[position], outcome


def _run(name: str, began: datetime, variant: Variant, outcome: Outcome) -> Run:
    """A variant as a run: the load of its workloads, its parameters as conditions, its numbers as one round."""
    scenario = variant.scenario
    start_ns = round((began.timestamp() + sum(tick.elapsed_s for tick in outcome.warm_up[-1:])) * 1e9)
    results = tuple(replace(result, start_ns=start_ns) for result in outcome.results)
    notes = (*([f"variant: {variant.label}"] if variant.settings else []), *outcome.notes)
    return Run(
        id=name,
        name=scenario.name,
        state="done",
        tool=SIMULATION,
        target=f"simulated {scenario.system}",
        started=began.isoformat(timespec="seconds"),
        seed=scenario.seed,
        workload={"name": scenario.name, "io": scenario.loads()},
        tool_version=__version__,
        warm_up=_steady(scenario, outcome),
        rounds=(Round("round-1", results, outcome.ticks),),
        host=scenario.parameters(),
        notes=notes,
    )


def _steady(scenario: Scenario, outcome: Outcome) -> SteadyState | None:
    """How steady the warm-up ended; None without one."""
    if not outcome.warm_up:
        return None
    timing = scenario.timing
    bounds = Steadiness(window_s=max(2.0 * timing.window_s, 1.0))
    times, rates = zip(*((tick.elapsed_s, tick.per_s) for tick in outcome.warm_up), strict=True)
    return steady_state(times, rates, bounds)


def _keep(store: RunStore, run: Run, variant: Variant, outcome: Outcome) -> None:
    """The run, and in its folder the scenario as it was and every number that a run has no place for."""
    folder = store.files_of(run.id)
    document = {
        "scenario": variant.scenario.plain(),
        "settings": dict(variant.settings),
        "trace": outcome.trace,
        "event_count": outcome.event_count,
        "measures": [asdict(measure) for measure in outcome.measures],
        "series": [asdict(series) for series in outcome.series],
    }
    keep(folder / FILE, json.dumps(_known(document), allow_nan=False).encode(), mode=PRIVATE)
    store.save(run)


def _known(value: Any) -> Any:  # noqa: ANN401 - plain data
    """Plain data with None where nothing was measured: JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_known(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
