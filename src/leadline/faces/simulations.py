"""Simulations as text and as plain data: what each variant gave, and what a policy changes."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from leadline.core.model.units import show
from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from leadline.app.simulate.simulating import PlannedSimulation, Simulated
    from leadline.core.contracts.scenario import Measure, Outcome

VARIANTS_SHOWN, ENTITIES_SHOWN = 24, 12
UNBOUND = 10_000  # columns of a terminal no table reaches
PLUS_MINUS = "±: half of the 95 % interval"


def document(planned: PlannedSimulation, simulations: Sequence[Simulated]) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {
        "scenario": planned.scenario.name,
        "system": planned.scenario.system,
        "seed": planned.scenario.seed,
        "variants": [
            {
                "settings": dict(simulation.variant.settings),
                "run": simulation.run.id,
                "trace": simulation.outcome.trace,
                "event_count": simulation.outcome.event_count,
                "notes": list(simulation.outcome.notes),
                "measures": [asdict(measure) for measure in simulation.outcome.measures],
                "series": [asdict(series) for series in simulation.outcome.series],
            }
            for simulation in simulations
        ],
    }


def show_simulation(planned: PlannedSimulation, simulations: Sequence[Simulated], *, compared: bool = False) -> None:
    """Print every variant with its numbers; with ``compared`` also what changes against the first."""
    out = console()
    scenario = planned.scenario
    wrapped(out, f"{scenario.name}, simulated {scenario.system}, seed {scenario.seed}")
    if scenario.about:
        wrapped(out, scenario.about, style="dim")
    shown = simulations[:VARIANTS_SHOWN]
    if all(len(_main(planned, simulation.outcome)) == 1 for simulation in shown) and len(shown) > 1:
        rows = [(simulation.variant.label, simulation, _main(planned, simulation.outcome)[0]) for simulation in shown]
        _table(out, planned, rows)
    else:
        for simulation in shown:
            out.print()
            if simulation.variant.label:
                out.print(simulation.variant.label, style="bold", markup=False)
            names = _main(planned, simulation.outcome)
            _table(out, planned, [(name, simulation, name) for name in names[:ENTITIES_SHOWN]])
            if len(names) > ENTITIES_SHOWN:
                wrapped(out, f"and {len(names) - ENTITIES_SHOWN} more, with --json", style="dim")
    for simulation in shown:
        _show_others(out, planned, simulation)
    if len(simulations) > len(shown):
        wrapped(out, f"{len(simulations) - len(shown)} more variants, with --json or --html", style="dim")
    wrapped(out, column_legend(planned), style="dim")
    if compared:
        for sentence in changes(planned, simulations):
            wrapped(out, sentence, "- ")
    first = simulations[0].run.id
    wrapped(
        out,
        f"kept as {first}{f' and {len(simulations) - 1} more' if len(simulations) > 1 else ''}: leadline runs",
        style="dim",
    )


def _main(planned: PlannedSimulation, outcome: Outcome) -> list[str]:
    """Entities that are rows of the table."""
    first = planned.system.META.columns[0][0]
    return [name for name in outcome.entities() if any((m.entity, m.name) == (name, first) for m in outcome.measures)]


def _table(out: Console, planned: PlannedSimulation, rows: Sequence[tuple[str, Simulated, str]]) -> None:
    """A row for each; where their names make it too wide they are numbered, and told above it."""
    names = [label for label, _, _ in rows]
    keys = {name.partition("=")[0] for name in names if "=" in name and ", " not in name}
    head = keys.pop() if len(keys) == 1 and all("=" in name for name in names) else ""
    table = _filled(planned, rows, head, [name.partition("=")[2] for name in names] if head else names)
    if out.measure(table, options=out.options.update(width=UNBOUND)).maximum > out.width:
        numbers = [str(number) for number in range(1, len(rows) + 1)]
        for number, (label, _, _) in zip(numbers, rows, strict=True):
            wrapped(out, label, f"{number}: ")
        table = _filled(planned, rows, "", numbers)
    out.print(table)


def _filled(
    planned: PlannedSimulation, rows: Sequence[tuple[str, Simulated, str]], first: str, names: Sequence[str]
) -> Table:
    columns = planned.system.META.columns
    heads = [head for _, head in columns]
    table = plain_table(first, heads[0], "±", *heads[1:], right=(heads[0], "±", *heads[1:]))
    for name, (_, simulation, entity) in zip(names, rows, strict=True):
        measures = [simulation.outcome.measure(entity, column) for column, _ in columns]
        cells = [cell(measure) for measure in measures]
        table.add_row(name, cells[0], _half_width(measures[0]), *cells[1:])
    return table


def _show_others(out: Console, planned: PlannedSimulation, simulation: Simulated) -> None:
    """Print the measures of entities that have no row in the table, then the notes."""
    main = _main(planned, simulation.outcome)
    start = f"{simulation.variant.label}: " if simulation.variant.label else ""
    for name in simulation.outcome.entities():
        measures = [m for m in simulation.outcome.measures if m.entity == name and isfinite(m.value)]
        if name not in main and measures:
            words = ", ".join(
                f"{m.name.replace('_pct', '').replace('_', ' ')} {cell(m)}{' %' * (m.unit == 'pct')}" for m in measures
            )
            wrapped(out, f"{start}{name}: {words}", style="dim")
    for note in simulation.outcome.notes:
        wrapped(out, f"note: {start}{note}", style="yellow")


def cell(measure: Measure) -> str:
    """A number as a table shows it; a dash where nothing was measured."""
    value = measure.value
    if not isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _half_width(measure: Measure) -> str:
    if not isfinite(measure.half_width) or measure.value <= 0:
        return "-"
    share = 100.0 * measure.half_width / measure.value
    return f"{share:.2g} %" if share >= 0.005 else "0 %"


def column_legend(planned: PlannedSimulation) -> str:
    """Return what the columns of the table mean, as one line below it."""
    legend = planned.system.META.legend
    return f"{legend}; {PLUS_MINUS}" if legend else PLUS_MINUS


def changes(planned: PlannedSimulation, simulations: Sequence[Simulated]) -> list[str]:
    """What each variant changes against the first, entity by entity, where intervals do not overlap."""
    first = simulations[0].outcome
    names = [name for name, _ in planned.system.META.columns[:2]]
    sentences = []
    for simulation in simulations[1:]:
        for entity in simulation.outcome.entities():
            parts = [
                part
                for name in names
                if (part := _change(first.measure(entity, name), simulation.outcome.measure(entity, name)))
            ]
            if parts:
                sentences.append(f"{simulation.variant.label}, {entity}: {'; '.join(parts)}")
    return sentences


def _change(before: Measure, after: Measure) -> str:
    if not (isfinite(before.value) and isfinite(after.value)) or before.value <= 0:
        return ""
    word = (
        after.name.removesuffix("_mean")
        .removesuffix("_ms")
        .removesuffix("_pct")
        .removesuffix("_per_s")
        .removesuffix("_s")
        .replace("_", " ")
    )
    apart = abs(after.value - before.value) > sum(m.half_width for m in (before, after) if isfinite(m.half_width))
    values = f"{show(before.value, before.unit)} to {show(after.value, after.unit)}"
    if not apart or before.value == after.value:
        return f"{word} as before ({show(after.value, after.unit)})"
    return f"{word} {100.0 * (after.value / before.value - 1.0):+,.3g} % ({values})"
