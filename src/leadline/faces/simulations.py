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


def document(planned: PlannedSimulation, found: Sequence[Simulated]) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {
        "scenario": planned.scenario.name,
        "system": planned.scenario.system,
        "seed": planned.scenario.seed,
        "variants": [
            {
                "settings": dict(own.variant.settings),
                "run": own.run.id,
                "trace": own.outcome.trace,
                "event_count": own.outcome.event_count,
                "notes": list(own.outcome.notes),
                "measures": [asdict(measure) for measure in own.outcome.measures],
                "series": [asdict(series) for series in own.outcome.series],
            }
            for own in found
        ],
    }


def show_simulation(planned: PlannedSimulation, found: Sequence[Simulated], *, compared: bool = False) -> None:
    """Every variant with its numbers; with ``compared`` also what changes against the first."""
    out = console()
    scenario = planned.scenario
    wrapped(out, f"{scenario.name}, simulated {scenario.system}, seed {scenario.seed}")
    if scenario.about:
        wrapped(out, scenario.about, style="dim")
    shown = found[:VARIANTS_SHOWN]
    if all(len(_main(planned, own.outcome)) == 1 for own in shown) and len(shown) > 1:
        rows = [(own.variant.label, own, _main(planned, own.outcome)[0]) for own in shown]
        _table(out, planned, rows)
    else:
        for own in shown:
            out.print()
            if own.variant.label:
                out.print(own.variant.label, style="bold", markup=False)
            names = _main(planned, own.outcome)
            _table(out, planned, [(name, own, name) for name in names[:ENTITIES_SHOWN]])
            if len(names) > ENTITIES_SHOWN:
                wrapped(out, f"and {len(names) - ENTITIES_SHOWN} more, with --json", style="dim")
    for own in shown:
        _show_others(out, planned, own)
    if len(found) > len(shown):
        wrapped(out, f"{len(found) - len(shown)} more variants, with --json or --html", style="dim")
    wrapped(out, told(planned), style="dim")
    if compared:
        for sentence in changes(planned, found):
            wrapped(out, sentence, "- ")
    first = found[0].run.id
    wrapped(
        out, f"kept as {first}{f' and {len(found) - 1} more' if len(found) > 1 else ''}: leadline runs", style="dim"
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
    for name, (_, own, entity) in zip(names, rows, strict=True):
        measures = [own.outcome.measure(entity, column) for column, _ in columns]
        cells = [cell(measure) for measure in measures]
        table.add_row(name, cells[0], _half_width(measures[0]), *cells[1:])
    return table


def _show_others(out: Console, planned: PlannedSimulation, own: Simulated) -> None:
    """Entities without a row, and notes."""
    main = _main(planned, own.outcome)
    start = f"{own.variant.label}: " if own.variant.label else ""
    for name in own.outcome.entities():
        told = [m for m in own.outcome.measures if m.entity == name and isfinite(m.value)]
        if name not in main and told:
            words = ", ".join(
                f"{m.name.replace('_pct', '').replace('_', ' ')} {cell(m)}{' %' * (m.unit == 'pct')}" for m in told
            )
            wrapped(out, f"{start}{name}: {words}", style="dim")
    for note in own.outcome.notes:
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


def told(planned: PlannedSimulation) -> str:
    """What the columns of the table mean."""
    own = planned.system.META.told
    return f"{own}; {PLUS_MINUS}" if own else PLUS_MINUS


def changes(planned: PlannedSimulation, found: Sequence[Simulated]) -> list[str]:
    """What each variant changes against the first, entity by entity, where intervals do not overlap."""
    first = found[0].outcome
    names = [name for name, _ in planned.system.META.columns[:2]]
    sentences = []
    for own in found[1:]:
        for entity in own.outcome.entities():
            parts = [
                part
                for name in names
                if (part := _change(first.measure(entity, name), own.outcome.measure(entity, name)))
            ]
            if parts:
                sentences.append(f"{own.variant.label}, {entity}: {'; '.join(parts)}")
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
