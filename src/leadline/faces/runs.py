"""Runs and their comparison as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leadline.core.run import PERCENTILES
from leadline.core.statistics import sparkline
from leadline.core.vocabulary import Severity
from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from leadline.app.comparing_runs import RunComparison
    from leadline.core.finding import Diagnosis
    from leadline.core.run import Pooled, Run


FINDINGS_SHOWN = 5


def show_run(run: Run, diagnosis: Diagnosis | None = None) -> None:
    """A run: what came out, how sure it is, what to beware of, and what the machine's counters say of it."""
    out = console()
    wrapped(out, f"{run.name} on {run.target}, {run.tool} {run.tool_version or ''}, {run.started}", f"{run.id}  ")
    if run.state != "done":
        wrapped(out, f"{run.state}: only what was measured until then is here", style="yellow")
    if run.warm_up is not None:
        wrapped(out, f"warm-up: {run.warm_up.sentence()}", style="" if run.warm_up.steady else "yellow")
    seconds = np.array([tick.per_s for part in run.rounds for tick in part.ticks])
    if len(seconds):
        interval, unit = (run.mbit_per_s(), "Mbit/s") if run.is_network else (run.per_s(), "operations/s")
        between = "too few samples for an interval"
        if not interval.too_few:
            between = f"95 % between {interval.low:,.0f} and {interval.high:,.0f}"
        wrapped(out, f"{interval.mean:,.0f} {unit} ({between}; spread over seconds {interval.cv_pct:.1f} %)")
        out.print(f"per second  {sparkline(seconds, 60)}", markup=False)
    if run.is_network:
        _show_network(run)
    else:
        columns = ("per s", "MiB/s", "mean", *PERCENTILES)
        table = plain_table("ms", *columns, right=columns)
        for part in run.pooled():
            table.add_row(*_row(part))
        out.print(table)
    if any(len(part.percentiles_ms) < len(PERCENTILES) for part in run.pooled() if part.histogram is not None):
        wrapped(out, "-: fewer than ten samples above it, so it is not given", style="dim")
    for note in run.notes:
        wrapped(out, f"note: {note}", style="yellow")
    shown = [] if diagnosis is None else [f for f in diagnosis.findings if f.severity >= Severity.MEDIUM]
    for finding in shown[:FINDINGS_SHOWN]:
        wrapped(out, f"{finding.summary} [{finding.rule}]", "found  ", style="yellow")


def _show_network(run: Run) -> None:
    """Latency idle and under load side by side; what else was counted, a line each."""
    out = console()
    columns = ("per s", "mean", *PERCENTILES)
    table = plain_table("ms", *columns, right=columns)
    parts = run.pooled()
    for part in parts:
        if part.mean_ms == part.mean_ms:
            name, rate, _, *latency = _row(part)
            table.add_row(name, rate, *latency)
    out.print(table)
    for part in parts:
        if part.histogram is None and part.bytes_per_s == part.bytes_per_s:
            wrapped(out, f"{part.bytes_per_s * 8.0 / 1e6:,.0f} Mbit/s", f"{part.name}  ")
        elif part.histogram is None and part.count == part.count:
            wrapped(out, f"{part.count:,.0f}", f"{part.name}  ")


def _row(part: Pooled) -> list[str]:
    shown = [_number(part.percentiles_ms.get(name, (float("nan"), 0))[0]) for name in PERCENTILES]
    throughput = "-" if part.bytes_per_s != part.bytes_per_s else f"{part.bytes_per_s / 2**20:,.1f}"
    rate = "-" if part.per_s != part.per_s else f"{part.per_s:,.0f}"
    return [part.name, rate, throughput, _number(part.mean_ms), *shown]


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.3g}"  # noqa: PLR0124


def show_comparison(found: RunComparison) -> None:
    """What differs between two runs, and how surely."""
    out = console()
    wrapped(out, f"before {found.before.id}, after {found.after.id}")
    for text in found.unlike:
        wrapped(out, f"not alike: {text}", style="yellow")
    table = plain_table("", "before", "after", "change", "95 % between", "")
    for part in found.metrics:
        between = "-" if part.low != part.low else f"{100 * part.low:+.1f} .. {100 * part.high:+.1f} %"
        change = "-" if part.change != part.change else f"{100 * part.change:+.1f} %"
        table.add_row(part.name, _number(part.before), _number(part.after), change, between, part.word)
    out.print(table)
    wrapped(out, found.sentence, style="bold")
