"""A lab's result as text and as plain data."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from leadline.app.lab.results import SHOWN, crowds
from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from leadline.app.lab.results import LabOutcome, LabRow

BAR = 24


def show_lab(outcome: LabOutcome) -> None:
    """The table, a bar per row, the guests beside the first one, and what it means."""
    out = console()
    lab = outcome.result.lab
    if lab.question:
        wrapped(out, lab.question, style="bold")
    for line in accelerators(outcome):
        wrapped(out, line, "by ")
    _show_table(outcome)
    for sentence in outcome.sentences:
        wrapped(out, sentence)
    for finding in outcome.findings:
        wrapped(out, finding, "found  ", style="yellow")
    for error in outcome.errors:
        wrapped(out, error, "failed  ", style="red")
    of_first = next((load.run.notes for load in outcome.result.loads if load.run is not None), ())
    for note in (*outcome.result.notes, *of_first):
        wrapped(out, f"note: {note}", style="yellow")
    if lab.means:
        wrapped(out, lab.means, "In production: ")
    if lab.does_not_mean:
        wrapped(out, lab.does_not_mean, "Not shown: ")
    if outcome.rows:
        wrapped(out, "Each load is a run: leadline runs list, runs show RUN --html.", style="dim")


def _show_table(outcome: LabOutcome) -> None:
    lab = outcome.result.lab
    columns = ("per s", "95 %", "mean", *SHOWN)
    keys = tuple(lab.cases()[0])
    table = plain_table("guest", *keys, *columns, "", right=(*keys, *columns))
    most = max((row.per_s for row in outcome.rows), default=1.0)
    for row in outcome.rows:
        table.add_row(*_cells(row), "█" * round(BAR * row.per_s / most) if most > 0 else "")
    console().print(table)


def accelerators(outcome: LabOutcome) -> list[str]:
    """Return the accelerators the guests ran on: one line where all used the same, else a line per guest."""
    result = outcome.result
    names = {accelerator.name for accelerator in result.accelerators.values()} or {result.accelerator.name}
    if len(names) == 1 and result.accelerator.name in names:
        return [f"{result.accelerator.name}: {result.accelerator.reason}"]
    return [
        f"{accelerator.name} for {guest}: {accelerator.reason}" for guest, accelerator in result.accelerators.items()
    ]


def _cells(row: LabRow) -> list[str]:
    span = f"{row.low:,.0f}–{row.high:,.0f}" if isfinite(row.low) else "-"
    latency = [_number(row.mean_ms), *(_number(row.percentiles_ms.get(name, float("nan"))) for name in SHOWN)]
    return [row.guest, *map(str, row.variant.values()), f"{row.per_s:,.0f}", span, *latency]


def _number(value: float) -> str:
    return f"{value:.3g}" if isfinite(value) else "-"


def lab_document(outcome: LabOutcome) -> dict[str, Any]:
    """A lab's result as plain data."""
    result = outcome.result
    return {
        "name": result.lab.name,
        "accelerator": {"name": result.accelerator.name, "reason": result.accelerator.reason},
        "accelerators": {guest: accelerator.name for guest, accelerator in result.accelerators.items()},
        "boot_s": result.boot_s,
        "rows": [{name: getattr(row, name) for name in row.__dataclass_fields__} for row in outcome.rows],
        "ratios": [
            {**{name: getattr(ratio, name) for name in ratio.__dataclass_fields__}, "word": ratio.word}
            for ratio in outcome.ratios
        ],
        "changes": [
            {name: getattr(change, name) for name in change.__dataclass_fields__} for change in outcome.changes
        ],
        "moved": [{name: getattr(move, name) for name in move.__dataclass_fields__} for move in outcome.moved],
        "crowds": [
            {name: getattr(crowd, name) for name in crowd.__dataclass_fields__} for crowd in crowds(outcome.rows)
        ],
        "sentences": outcome.sentences,
        "findings": list(outcome.findings),
        "errors": outcome.errors,
        "notes": list(result.notes),
    }
