"""Variants that were simulated before: found by what they are, read back from their runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from leadline import __version__
from leadline.app.measure.comparing_runs import SIMULATION
from leadline.core.contracts.scenario import Measure, Outcome, Scenario, Series
from leadline.core.model.run import Run
from leadline.stores.runs import RunStore

FILE = "simulation.json"
_NAN = float("nan")
_TOLD = ("about", "source", "vary")  # change nothing of a run


def key_of(scenario: Scenario | Mapping[str, Any]) -> str:
    """What a run is a function of besides the version: the scenario with its seed."""
    plain = scenario.plain() if isinstance(scenario, Scenario) else scenario
    kept = {name: value for name, value in plain.items() if name not in _TOLD}
    return sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def kept_outcomes(name: str, wanted: set[str], store: RunStore) -> dict[str, tuple[Run, Outcome]]:
    """Whole runs of this version of scenarios of that name, by key; those of a key that was not wanted are left out."""
    outcomes: dict[str, tuple[Run, Outcome]] = {}
    for run in store.list():
        if (run.tool, run.name, run.state, run.tool_version) != (SIMULATION, name, "done", __version__):
            continue
        document = _document(run, store)
        key = None if document is None else key_of(document["scenario"])
        if document is not None and key in wanted and key not in outcomes:
            whole = store.get(run.id)
            outcomes[key] = whole, _outcome(whole, document)
    return outcomes


def _document(run: Run, store: RunStore) -> dict[str, Any] | None:
    """The file beside a run; None where it is gone or damaged: then the variant is simulated again."""
    try:
        document = json.loads((store.folder / "runs" / run.id / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    needed = {"scenario", "trace", "event_count", "measures", "series"}
    return document if isinstance(document, dict) and needed <= set(document) else None


def _outcome(run: Run, document: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a simulation that is in the store; windows of the warm-up are not stored."""
    first_round = run.rounds[0]
    return Outcome(
        results=first_round.results,
        warm_up=(),
        ticks=first_round.ticks,
        measures=tuple(Measure(**_numbers(part)) for part in document["measures"]),
        series=tuple(
            Series(**{**part, "values": tuple(_number(value) for value in part["values"])})
            for part in document["series"]
        ),
        trace=document["trace"],
        event_count=document["event_count"],
        notes=tuple(note for note in run.notes if not note.startswith("variant: ")),
    )


def _numbers(part: Mapping[str, Any]) -> dict[str, Any]:
    return {**part, "value": _number(part["value"]), "half_width": _number(part["half_width"])}


def _number(value: float | None) -> float:
    return _NAN if value is None else value
