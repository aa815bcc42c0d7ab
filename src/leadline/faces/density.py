"""Density runs and their comparison as text: the answer, the evidence, the curve."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from rich.text import Text

from leadline.app.density.model import CountState
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from leadline.app.density.comparison import DensityComparison
    from leadline.app.density.model import CountLevel
    from leadline.app.density.results import Density

_BAR_WIDTH = 22
_STYLE = {CountState.HELD: "green", CountState.BROKE: "red", CountState.UNSURE: "yellow", CountState.FAILED: "bold red"}


def show_density(out: Console, density: Density) -> None:
    """Print how many instances fit, a row per count, the curve, and why the other counts did not surely hold."""
    wrapped(out, density.answer.sentence, style="bold")
    wrapped(out, f"{density.id}: {density.name} on {density.where}, {density.started}")
    wrapped(out, ", ".join(density.clauses), "service level of each instance: ")
    if density.are_limited and density.limits.words():
        wrapped(out, density.limits.words(), "each instance limited to ")
    levels = density.by_count
    if levels:
        out.print()
        out.print(_table(levels))
        name = levels[0].latency_name
        text = f"/s: operations per second of all, of the median and of the worst instance. {name} ms: of the pooled"
        wrapped(out, f"{text} requests; worst ms: of the worst instance. Fairness: Jain's index.", style="dim")
        out.print()
        _curve(out, density, levels)
        _evidence(out, levels)
    for note in density.notes:
        wrapped(out, f"note: {note}", style="yellow")
    if not density.is_done:
        wrapped(out, f"To go on: leadline bench density --resume {density.id}", style="bold")


def _table(levels: list[CountLevel]) -> Table:
    name = levels[0].latency_name
    columns = ("count", "all/s", "median/s", "worst/s", f"{name} ms", "worst ms", "fairness")
    table = plain_table(*columns, "", right=columns)
    for level in levels:
        table.add_row(
            str(level.count),
            *(_rate(value) for value in (level.per_s.mean, level.median_per_s, level.worst_per_s)),
            *(_ms(value) for value in (level.pooled_ms, level.worst_ms)),
            f"{level.fairness:.3f}" if isfinite(level.fairness) else "-",
            Text(level.state.value, style=_STYLE[level.state]),
        )
    return table


def _curve(out: Console, density: Density, levels: list[CountLevel]) -> None:
    """Print bars of the throughput of all and of the worst instance's latency for each count, a bound in ms marked."""
    name = levels[0].latency_name
    bound = next((p.bound for level in levels for p in level.clauses if p.unit == "ms"), float("nan"))
    most = max((level.per_s.mean for level in levels if isfinite(level.per_s.mean)), default=0.0)
    slowest = max((level.worst_ms for level in levels if isfinite(level.worst_ms)), default=0.0)
    scale = min(slowest, 3.0 * bound) if isfinite(bound) else slowest  # far above the bound is all the same
    scale = max(scale, bound) if isfinite(bound) else scale
    out.print(Text(f"{'instances':>9}  {'per s, all':<{_BAR_WIDTH + 9}}{name} of the worst instance", style="dim"))
    for level in levels:
        rate = f"{_bar(level.per_s.mean, most)} {_rate(level.per_s.mean)}"
        waited = _marked(_bar(level.worst_ms, scale), bound, scale)
        line = f"{level.count:>9}  {rate:<{_BAR_WIDTH + 9}}"
        out.print(Text.assemble(line, (f"{waited} {_ms(level.worst_ms)} ms", _STYLE[level.state])))
    if isfinite(bound) and scale > 0.0:
        out.print(Text(f"{'':>9}  {'':<{_BAR_WIDTH + 9}}┊ {bound:.4g} ms is asked", style="dim"))
    if isfinite(density.offered_per_s):
        wrapped(out, f"Each instance asks for {density.offered_per_s:.4g}/s.", style="dim")


def _bar(value: float, most: float) -> str:
    if not isfinite(value) or most <= 0.0:
        return ""
    return "█" * max(min(round(value / most * _BAR_WIDTH), _BAR_WIDTH), 1)


def _marked(bar: str, bound: float, scale: float) -> str:
    """The bar with the bound drawn into it or behind it."""
    if not isfinite(bound) or scale <= 0.0:
        return bar
    at = min(round(bound / scale * _BAR_WIDTH), _BAR_WIDTH)
    padded = f"{bar:<{max(len(bar), at + 1)}}"
    return f"{padded[:at]}┊{padded[at + 1 :]}"


def _evidence(out: Console, levels: list[CountLevel]) -> None:
    """How many instances broke what; the answer names the worst one."""
    for level in levels:
        parts = [f"{p.broke_count} of {level.count} broke {p.clause}" for p in level.clauses if p.broke_count]
        parts += [f"of {p.unsure_count} it cannot be told for {p.clause}" for p in level.clauses if p.unsure_count]
        if level.state is not CountState.HELD:
            wrapped(out, "; ".join(level.failures or parts), f"{level.count}: ", style=_STYLE[level.state])
        for note in level.notes:
            wrapped(out, note, f"{level.count}: ", style="yellow")


def show_density_comparison(out: Console, comparison: DensityComparison) -> None:
    """Print how many instances fit in each run, what differs between the setups, and equal counts side by side."""
    wrapped(out, comparison.sentence, style="bold")
    for text in comparison.unlike:
        wrapped(out, f"not alike: {text}", style="yellow")
    if not comparison.counts:
        wrapped(out, "No count was measured in both.", style="dim")
        return
    columns = ("instances", "per s before", "after", "change", "worst ms before", "after ")
    table = plain_table(*columns, "", right=columns)
    for part in comparison.counts:
        change = f"{100 * part.per_s.change:+.1f} %" if isfinite(part.per_s.change) else "-"
        states = part.before.value if part.before is part.after else f"{part.before.value}, {part.after.value}"
        rates = (_rate(part.per_s.before), _rate(part.per_s.after), change)
        table.add_row(str(part.count), *rates, _ms(part.before_ms), _ms(part.after_ms), states)
    out.print(table)


def _rate(value: float) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ms(value: float) -> str:
    return f"{value:.3g}" if isfinite(value) and value < 1000 else f"{value:,.0f}" if isfinite(value) else "-"
