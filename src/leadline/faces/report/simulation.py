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
from leadline.faces.simulations import cell, changes, told

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
    found: Sequence[Simulated],
    *,
    compared: bool = False,
    checked: RealCheck | None = None,
) -> int:
    """Write the page; returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    return write_page(output, simulation_page(planned, found, compared=compared, checked=checked))


def simulation_page(
    planned: PlannedSimulation, found: Sequence[Simulated], *, compared: bool = False, checked: RealCheck | None = None
) -> str:
    """The whole page as a string."""
    scenario = planned.scenario
    shown = found[:DRAWN_MAX]
    facts = [
        ("System", scenario.system),
        ("Seed", str(scenario.seed)),
        ("Variants", f"{len(found):,}"),
        ("Events", f"{sum(own.outcome.event_count for own in found):,}"),
        ("Virtual time", f"{scenario.timing.warm_up_s:g} s, then {scenario.timing.measure_s:g} s measured"),
    ]
    charts = [*by_key(planned, found), *(chart for own in shown for chart in over_time(own, planned))]
    columns = planned.system.META.columns
    return standalone(
        "simulation.html.j2",
        scenario=scenario,
        facts=facts,
        sentences=changes(planned, found) if compared else [],
        told=told(planned),
        heads=["", "", *(head for _, head in columns)],
        rows=[row for own in found[:TABLED_MAX] for row in _rows(own, [name for name, _ in columns])],
        charts=[own for own in map(drawn, charts) if own is not None],
        spreads=[distribution(spread) for own in shown for spread in spreads(own)],
        notes=list(dict.fromkeys(note for own in found for note in own.outcome.notes)),
        left_out=max(len(found) - DRAWN_MAX, 0),
        checked=checked,
        check_rows=[] if checked is None else [check_cells(row) for row in checked.rows],
        keys=[(key, value) for key, value in scenario.parameters().items() if value != "none"],
    )


def by_key(planned: PlannedSimulation, found: Sequence[Simulated]) -> list[XyChart]:
    """Each quantity against the value of the one key that takes numbers; a line for each entity."""
    keys = [key for key, _ in found[0].variant.settings]
    if len(keys) != 1 or len(found) < 2:
        return []
    values = [own.variant.settings[0][1] for own in found]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 for value in values):
        return []
    charts = []
    for name, _ in planned.system.META.columns:
        shown = [m for own in found for m in own.outcome.measures if m.name == name]
        entities = dict.fromkeys(measure.entity for measure in shown)
        lines = []
        for colour, entity in enumerate(list(entities)[:LINES_MAX]):
            marks = tuple(
                _mark(float(value), own.outcome, entity, name) for value, own in zip(values, found, strict=True)
            )
            lines.append(Line(entity, tuple((mark.x, mark.y) for mark in marks), marks, colour))
        if shown:
            charts.append(XyChart(f"{_title(name)} by {keys[0]}", keys[0], symbol(shown[0].unit), tuple(lines)))
    return charts


def _mark(x: float, outcome: Outcome, entity: str, name: str) -> Mark:
    measure = outcome.measure(entity, name)
    low, high = measure.value - measure.half_width, measure.value + measure.half_width
    return Mark(x, measure.value, f"{entity}: {cell(measure)}", low=low, high=high)


def over_time(own: Simulated, planned: PlannedSimulation) -> list[XyChart]:
    """Every quantity that has a series, a line for each entity, window by window."""
    window = planned.scenario.timing.window_s
    charts = []
    for name in dict.fromkeys(part.name for part in own.outcome.series):
        series = [part for part in own.outcome.series if part.name == name][:LINES_MAX]
        lines = tuple(
            Line(part.entity, tuple(((n + 1) * window, value) for n, value in enumerate(part.values)), (), colour)
            for colour, part in enumerate(series)
        )
        variant = f": {own.variant.label}" if own.variant.label else ""
        title = f"{_title(name)} over time{variant}"
        charts.append(XyChart(title, "seconds measured", symbol(series[0].unit), lines))
    return charts


def _title(name: str) -> str:
    """A measure's name as a title: latency_ms_mean is Mean latency, latency_ms_p99 is Latency p99."""
    words = ["IOPS" if word == "iops" else word for word in name.split("_") if word not in ("ms", "pct")]
    if words[-1] == "mean":
        words = ["mean", *words[:-1]]
    return " ".join([words[0][0].upper() + words[0][1:], *words[1:]]).replace("Co stop", "Co-stop")


def spreads(own: Simulated) -> list[Spread]:
    """Latencies of each job, reads and writes together."""
    found = []
    for result in own.outcome.results[:LINES_MAX]:
        held = [operation.histogram for operation in result.operations if operation.histogram is not None]
        if held:
            merged = Histogram.merged(held)
            known = percentiles(merged)
            marks = tuple((name, known[name][0]) for name in _MARKED if name in known)
            label = f", {own.variant.label}" if own.variant.label else ""
            found.append(Spread(f"{result.job}{label}", merged, marks))
    return found


def _rows(own: Simulated, names: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for entity in own.outcome.entities():
        measures = [own.outcome.measure(entity, name) for name in names]
        if not any(isfinite(measure.value) for measure in measures):
            continue
        cells = [
            f"{cell(m)} ± {m.half_width:.2g}"
            if isfinite(m.half_width) and m.half_width > 0
            else cell(m).replace("-", "–")
            for m in measures
        ]
        rows.append({"label": own.variant.label, "entity": entity, "cells": cells, "run": own.run.id})
    return rows
