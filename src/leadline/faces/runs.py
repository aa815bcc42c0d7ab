"""Runs and their comparison as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.run import PERCENTILES
from leadline.core.model.vocabulary import Severity
from leadline.faces.cli.output import console
from leadline.faces.describing import sparkline
from leadline.faces.hosts import show_hosts, show_share
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.app.measure.baselines import Judgement
    from leadline.app.measure.comparing_runs import RunComparison
    from leadline.app.measure.hosts import HostsResult
    from leadline.core.model.finding import Diagnosis
    from leadline.core.model.run import Pooled, Run
    from leadline.faces.theoretical import Theoretical


FINDINGS_SHOWN = 5


def show_run(
    run: Run,
    diagnosis: Diagnosis | None = None,
    *,
    hosts: HostsResult | None = None,
    most: Theoretical | None = None,
) -> None:
    """Print the result of a run, its interval, its notes and the findings from the counters recorded meanwhile."""
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
    _show_results(run)
    if hosts is not None:
        show_hosts(hosts, most)
    elif most is not None:
        show_share(run, most)
    failures = () if hosts is None else tuple(f"{result.host.address} failed: {result.error}" for result in hosts.hosts)
    for note in (note for note in run.notes if note not in failures):
        wrapped(out, f"note: {note}", style="yellow")
    shown = [] if diagnosis is None else [f for f in diagnosis.findings if f.severity >= Severity.MEDIUM]
    for finding in shown[:FINDINGS_SHOWN]:
        wrapped(out, f"{finding.summary} [{finding.rule}]", "found  ", style="yellow")


def _show_results(run: Run) -> None:
    """What each job did: rates, latency, and how many requests stand behind the last percentile."""
    out = console()
    pooled = run.pooled()
    names = tuple(PERCENTILES) if any(part.histogram is not None for part in pooled) else ()
    if run.is_network:
        _show_network(pooled)
    else:
        columns = ("per s", "MiB/s", "mean", *names)
        table = plain_table("ms", *columns, right=columns)
        for part in pooled:
            table.add_row(*_row(part, names))
        out.print(table)
    if any(len(part.percentiles_ms) < len(PERCENTILES) for part in pooled if part.histogram is not None):
        wrapped(out, "-: fewer than ten samples above it, so it is not given", style="dim")
    for part in pooled:
        if part.percentiles_ms:
            name, (_, above) = list(part.percentiles_ms.items())[-1]
            wrapped(out, f"{part.name}: {part.count:,.0f} requests, {above:,} of them above {name}", style="dim")


def _show_network(parts: Sequence[Pooled]) -> None:
    """Latency idle and under load side by side; what else was counted, a line each."""
    out = console()
    columns = ("per s", "mean", *PERCENTILES)
    table = plain_table("ms", *columns, right=columns)
    for part in parts:
        if part.mean_ms == part.mean_ms:
            name, rate, _, *latency = _row(part, tuple(PERCENTILES))
            table.add_row(name, rate, *latency)
    out.print(table)
    for part in parts:
        if part.histogram is None and part.bytes_per_s == part.bytes_per_s:
            wrapped(out, f"{part.bytes_per_s * 8.0 / 1e6:,.0f} Mbit/s", f"{part.name}  ")
        elif part.histogram is None and part.count == part.count:
            wrapped(out, f"{part.count:,.0f}", f"{part.name}  ")


def _row(part: Pooled, names: Sequence[str]) -> list[str]:
    shown = [_number(part.percentiles_ms.get(name, (float("nan"), 0))[0]) for name in names]
    throughput = "-" if part.bytes_per_s != part.bytes_per_s else f"{part.bytes_per_s / 2**20:,.1f}"
    rate = "-" if part.per_s != part.per_s else f"{part.per_s:,.0f}"
    return [part.name, rate, throughput, _number(part.mean_ms), *shown]


def _number(value: float) -> str:
    if value != value:  # noqa: PLR0124 - NaN is not measured
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _share(value: float) -> str:
    """A change as percent with its sign; without decimals where they say nothing."""
    if value != value:  # noqa: PLR0124
        return "-"
    return f"{100 * value:+,.0f}" if abs(value) >= 1.0 else f"{100 * value:+.1f}"


def show_comparison(comparison: RunComparison) -> None:
    """Print what differs between the runs before and after, with the interval of each change."""
    out = console()
    for word, runs in (("before", comparison.before), ("after", comparison.after)):
        wrapped(out, ", ".join(run.id for run in runs), f"{word:<7}")
    for text in comparison.unlike:
        wrapped(out, f"not alike: {text}", style="yellow")
    columns = ("before", "after", "change %", "from", "to")
    table = plain_table("", *columns, "", right=columns)
    for part in comparison.metrics:
        shares = [_share(value) for value in (part.change, part.low, part.high)]
        table.add_row(part.name, _number(part.before), _number(part.after), *shares, part.word)
    out.print(table)
    if comparison.certain:
        spread = next((p.spread_pct for p in comparison.metrics if p.spread_pct == p.spread_pct), float("nan"))
        wrapped(out, f"{comparison.basis} ({_number(spread)} % from run to run)", style="dim")
    wrapped(out, comparison.sentence, style="bold")


def show_judgements(judgements: Sequence[Judgement]) -> None:
    """Print how the runs compare with each baseline, on what that rests, and what was not alike."""
    out = console()
    for judgement in judgements:
        wrapped(out, judgement.sentence, style="bold")
        if judgement.comparison.certain:
            wrapped(out, judgement.comparison.basis, style="dim")
        for text in judgement.comparison.unlike:
            wrapped(out, f"not alike: {text}", style="yellow")
