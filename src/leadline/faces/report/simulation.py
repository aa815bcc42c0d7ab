"""The page of a simulation: every variant's numbers, what a varied key does, series over time, latencies."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from leadline.core.model.histogram import Histogram
from leadline.core.model.run import percentiles
from leadline.core.model.units import symbol
from leadline.faces.checks import check_cells
from leadline.faces.report import write_page
from leadline.faces.report.distribution import distribution
from leadline.faces.report.lead import Spread
from leadline.faces.report.page import standalone
from leadline.faces.report.xy import Line, Mark, XyChart, drawn
from leadline.faces.simulations import cell, changes, column_legend

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from leadline.app.simulate.checking_results import RealCheck
    from leadline.app.simulate.simulating import PlannedSimulation, Simulated
    from leadline.core.contracts.scenario import Outcome
    from leadline.core.io.outputs import Output

LINES_MAX = 8  # in one chart: more cannot be told apart
DRAWN_MAX = 4  # variants whose series and latencies are drawn
TABLED_MAX = 500
_MARKED = ("p50", "p95", "p99", "p99.9")


def write_simulation(
    output: Output | Path,
    planned: PlannedSimulation,
    simulations: Sequence[Simulated],
    *,
    compared: bool = False,
    checked: RealCheck | None = None,
) -> int:
    """Write the page; returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    return write_page(output, simulation_page(planned, simulations, compared=compared, checked=checked))


def simulation_page(
    planned: PlannedSimulation,
    simulations: Sequence[Simulated],
    *,
    compared: bool = False,
    checked: RealCheck | None = None,
) -> str:
    """The whole page as a string."""
    scenario = planned.scenario
    shown = simulations[:DRAWN_MAX]
    facts = [
        ("System", scenario.system),
        ("Seed", str(scenario.seed)),
        ("Variants", f"{len(simulations):,}"),
        ("Events", f"{sum(simulation.outcome.event_count for simulation in simulations):,}"),
        ("Virtual time", f"{scenario.timing.warm_up_s:g} s, then {scenario.timing.measure_s:g} s measured"),
    ]
    charts = [
        *by_key(planned, simulations),
        *(chart for simulation in shown for chart in over_time(simulation, planned)),
    ]
    columns = planned.system.META.columns
    return standalone(
        "simulation.html.j2",
        scenario=scenario,
        facts=facts,
        sentences=changes(planned, simulations) if compared else [],
        legend=column_legend(planned),
        heads=["", "", *(head for _, head in columns)],
        rows=[
            row for simulation in simulations[:TABLED_MAX] for row in _rows(simulation, [name for name, _ in columns])
        ],
        charts=[chart for chart in map(drawn, charts) if chart is not None],
        spreads=[distribution(spread) for simulation in shown for spread in spreads(simulation)],
        notes=list(dict.fromkeys(note for simulation in simulations for note in simulation.outcome.notes)),
        left_out=max(len(simulations) - DRAWN_MAX, 0),
        checked=checked,
        check_rows=[] if checked is None else [check_cells(row) for row in checked.rows],
        keys=[(key, value) for key, value in scenario.parameters().items() if value != "none"],
    )


def by_key(planned: PlannedSimulation, simulations: Sequence[Simulated]) -> list[XyChart]:
    """A chart of each quantity against the key that varies, when it is one key of numbers; a line for each entity."""
    keys = [key for key, _ in simulations[0].variant.settings]
    if len(keys) != 1 or len(simulations) < 2:
        return []
    values = [simulation.variant.settings[0][1] for simulation in simulations]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 for value in values):
        return []
    charts = []
    for name, _ in planned.system.META.columns:
        shown = [m for simulation in simulations for m in simulation.outcome.measures if m.name == name]
        entities = dict.fromkeys(measure.entity for measure in shown)
        lines = []
        for colour, entity in enumerate(list(entities)[:LINES_MAX]):
            marks = tuple(
                _mark(float(value), simulation.outcome, entity, name)
                for value, simulation in zip(values, simulations, strict=True)
            )
            lines.append(Line(entity, tuple((mark.x, mark.y) for mark in marks), marks, colour))
        if shown:
            charts.append(XyChart(f"{_title(name)} by {keys[0]}", keys[0], symbol(shown[0].unit), tuple(lines)))
    return charts


def _mark(x: float, outcome: Outcome, entity: str, name: str) -> Mark:
    measure = outcome.measure(entity, name)
    low, high = measure.value - measure.half_width, measure.value + measure.half_width
    return Mark(x, measure.value, f"{entity}: {cell(measure)}", low=low, high=high)


def over_time(simulation: Simulated, planned: PlannedSimulation) -> list[XyChart]:
    """A chart of each quantity that has a series over time; a line for each entity, a point for each window."""
    window = planned.scenario.timing.window_s
    charts = []
    for name in dict.fromkeys(part.name for part in simulation.outcome.series):
        series = [part for part in simulation.outcome.series if part.name == name][:LINES_MAX]
        lines = tuple(
            Line(part.entity, tuple(((n + 1) * window, value) for n, value in enumerate(part.values)), (), colour)
            for colour, part in enumerate(series)
        )
        variant = f": {simulation.variant.label}" if simulation.variant.label else ""
        title = f"{_title(name)} over time{variant}"
        charts.append(XyChart(title, "seconds measured", symbol(series[0].unit), lines))
    return charts


def _title(name: str) -> str:
    """A measure's name as a title: latency_ms_mean is Mean latency, latency_ms_p99 is Latency p99."""
    words = ["IOPS" if word == "iops" else word for word in name.split("_") if word not in ("ms", "pct")]
    if words[-1] == "mean":
        words = ["mean", *words[:-1]]
    return " ".join([words[0][0].upper() + words[0][1:], *words[1:]]).replace("Co stop", "Co-stop")


def spreads(simulation: Simulated) -> list[Spread]:
    """Latency histogram of each job, reads and writes together, with percentiles as marks."""
    latencies = []
    for result in simulation.outcome.results[:LINES_MAX]:
        histograms = [operation.histogram for operation in result.operations if operation.histogram is not None]
        if histograms:
            merged = Histogram.merged(histograms)
            known = percentiles(merged)
            marks = tuple((name, known[name][0]) for name in _MARKED if name in known)
            label = f", {simulation.variant.label}" if simulation.variant.label else ""
            latencies.append(Spread(f"{result.job}{label}", merged, marks))
    return latencies


def _rows(simulation: Simulated, names: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for entity in simulation.outcome.entities():
        measures = [simulation.outcome.measure(entity, name) for name in names]
        if not any(isfinite(measure.value) for measure in measures):
            continue
        cells = [
            f"{cell(m)} ± {m.half_width:.2g}"
            if isfinite(m.half_width) and m.half_width > 0
            else cell(m).replace("-", "–")
            for m in measures
        ]
        rows.append({"label": simulation.variant.label, "entity": entity, "cells": cells, "run": simulation.run.id})
    return rows
