"""A run as the first part of an HTML report: result, percentiles with the samples behind them, seconds, baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.measure.benching import capture_of
from leadline.app.read.importing import Imported
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.errors import LeadlineError
from leadline.core.model.finding import Window
from leadline.core.model.run import BEHIND_MIN, PERCENTILES
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.report import write_measured
from leadline.faces.report.figures import Chart
from leadline.faces.report.lead import Lead, Phase, Section, Spread, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from leadline.app.measure.baselines import Judgement
    from leadline.app.measure.comparing_runs import MetricChange
    from leadline.core.io.outputs import Output
    from leadline.core.model.run import Pooled, Round, Run
    from leadline.stores.runs import RunStore

_MARKED = ("p50", "p95", "p99", "p99.9")
_FACTS = {"kernel": "Kernel", "machine": "Architecture", "cpu_count": "CPUs"}
_RULES = "The rules looked at what this machine's counters showed from the filling to the last round."


def write_run_page(
    output: Output | Path, run: Run, store: RunStore, judgements: Sequence[Judgement] = (), others: Sequence[Run] = ()
) -> int:
    """Write the report of a run; ``others`` were made with it. Returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    try:
        capture = capture_of(run.id, store)
    except LeadlineError:  # nothing was recorded, or the files are gone: what was measured is in the store
        capture = Capture()
    return write_measured(output, diagnose(capture), Imported(capture), run_lead(run, capture, judgements, others))


def run_lead(run: Run, capture: Capture, judgements: Sequence[Judgement] = (), others: Sequence[Run] = ()) -> Lead:
    """Return the part of a run's page that stands above the diagnosis."""
    pooled = run.pooled()
    phases = tuple(Phase(part.label.replace("-", " "), (window,)) for part, window in _windows(run))
    sections = [_result(run, pooled), _latency(pooled), _seconds(run, capture)]
    sections += [_repeats([*others, run])] if others else []
    sections += [_baseline(number, judgement) for number, judgement in enumerate(judgements, 1)]
    rate = run.per_s()
    headline = f"{run.name} on {run.target}: {show(rate.mean, 'per_s').removesuffix('/s')} operations per second"
    if rate.mean != rate.mean:
        headline = f"{run.name} on {run.target}: nothing was measured"
    answers = [("How sure is that?", _sureness(run))]
    answers += [(f"Against {judgement.baseline}", judgement.comparison.sentence) for judgement in judgements]
    facts = [("Tool", f"{run.tool} {run.tool_version or ''}".strip()), ("Run", run.id)]
    facts += [(name, str(run.host[key])) for key, name in _FACTS.items() if key in run.host]
    return Lead("run", headline, tuple(answers), tuple(facts), tuple(sections), phases, _RULES)


def _sureness(run: Run) -> str:
    rate = run.per_s()
    parts = [] if run.state == "done" else [f"the run is {run.state}: only what was measured until then is here"]
    if rate.mean == rate.mean:
        between = "too few seconds for an interval"
        if not rate.too_few:
            between = f"95 % between {rate.low:,.0f} and {rate.high:,.0f} per second"
        parts.append(f"{between}; seconds spread by {rate.cv_pct:.1f} %, over {len(run.rounds)} rounds")
    if run.warm_up is not None:
        parts.append(f"warm-up: {run.warm_up.sentence()}")
    text = "; ".join(parts) or "no whole round was measured"
    return f"{text[0].upper()}{text[1:]}."


def _result(run: Run, pooled: Sequence[Pooled]) -> Section:
    rows = tuple(
        (
            part.name,
            _cell(part.per_s, "per_s"),
            "–" if part.bytes_per_s != part.bytes_per_s else f"{part.bytes_per_s / 2**20:,.1f} MiB/s",
            "–" if part.count != part.count else f"{part.count:,.0f}",
            _cell(part.mean_ms, "ms"),
            *(_cell(part.percentiles_ms.get(name, (float("nan"), 0))[0], "ms") for name in ("p50", "p95", "p99")),
        )
        for part in pooled
    )
    columns = ("operation", "rate", "throughput", "requests", "mean", "p50", "p95", "p99")
    notes = (f"Seed {run.seed}.", *(f"{note[0].upper()}{note[1:]}." for note in run.notes if note))
    return Section(
        "result",
        "Result",
        "All rounds together: the tool's own rates, averaged over rounds, and latencies from the merged histograms. "
        "The number on top is the mean over all seconds that were whole.",
        (Table(columns, rows),),
        notes=notes,
        details=("Commands", tuple(" ".join(words) for words in run.commands)),
    )


def _latency(pooled: Sequence[Pooled]) -> Section:
    measured = [part for part in pooled if part.histogram is not None]
    columns = ("percentile", *(text for part in measured for text in (part.name, "samples above it")))
    rows = [
        (name, *(text for part in measured for text in _percentile(part, name)))
        for name in PERCENTILES
        if any(name in part.percentiles_ms for part in measured)
    ]
    rows.append(("requests", *(text for part in measured for text in ("", f"{part.count:,.0f}"))))
    spreads = tuple(Spread(p.name, p.histogram, _marks(p)) for p in measured if p.histogram is not None)
    return Section(
        "latency",
        "Latency",
        f"Percentiles of the pooled requests; one with fewer than {BEHIND_MIN} samples above it is not given.",
        (Table(columns, tuple(rows)),) if measured else (),
        spreads,
        notes=() if measured else ("The tool gave no histogram of latencies.",),
    )


def _marks(part: Pooled) -> tuple[tuple[str, float], ...]:
    return tuple((name, part.percentiles_ms[name][0]) for name in _MARKED if name in part.percentiles_ms)


def _percentile(part: Pooled, name: str) -> tuple[str, str]:
    if name not in part.percentiles_ms:
        return "–", "–"
    ms, above = part.percentiles_ms[name]
    return show(ms, "ms"), f"{above:,}"


def _seconds(run: Run, capture: Capture) -> Section:
    windows = tuple(window for _, window in _windows(run))
    is_database = run.workload.get("database") is not None
    rate, latency = ("db_tps", "db_latency_ms_p99") if is_database else ("job_iops", "job_latency_ms")
    drawn = [
        ("Operations per second, all jobs", _line(run, rate, "per_s")),
        ("99th percentile of each second's latencies", _line(run, latency, "p99_ms")),
    ]
    if drawn[1][1] is None and is_database:
        drawn[1] = ("Mean latency of each second", _recorded_line(run, "db_latency_ms", capture))
    charts = tuple(
        Chart(line.metric, line.unit, (line,), (), windows, heading, (run.name,), "measured rounds")
        for heading, line in drawn
        if line is not None
    )
    return Section(
        "seconds",
        "Second by second",
        "Shaded are the measured rounds; before them come filling and warm-up.",
        charts=charts,
        notes=() if charts else ("The tool did not say when its seconds were.",),
    )


def _recorded_line(run: Run, metric: str, capture: Capture) -> SeriesGroup | None:
    """A series the tool's own recordings hold of every round, as one; None when they do not."""
    groups = sorted(capture.of(metric, EntityKind.JOB), key=lambda group: int(group.times_ns[0]))
    times: list[int] = []
    values: list[float] = []
    for group in groups:
        if times and int(group.times_ns[0]) <= times[-1]:
            continue  # the same seconds from another file
        times += [*group.times_ns.tolist(), int(group.times_ns[-1]) + 1]
        values += [*group.values[0].tolist(), float("nan")]
    return _series(run, metric, times, values)


def _line(run: Run, metric: str, field: str) -> SeriesGroup | None:
    """The seconds of all rounds as one series, with a gap between rounds; None when there is nothing to draw."""
    times: list[int] = []
    values: list[float] = []
    for part, window in _windows(run):
        times_ns = [window.start_ns + round(tick.elapsed_s * NS_PER_S) for tick in part.ticks]
        times += [*times_ns, max(window.end_ns, *times_ns) + 1] if times_ns else []
        values += [*(getattr(tick, field) for tick in part.ticks), float("nan")] if times_ns else []
    return _series(run, metric, times, values)


def _series(run: Run, metric: str, times_ns: list[int], values: list[float]) -> SeriesGroup | None:
    if not np.isfinite(values).any():
        return None
    order = np.argsort(times_ns, kind="stable")
    moments, measured = np.array(times_ns, dtype=np.int64)[order], np.array([values])[:, order]
    return SeriesGroup(metric, [Entity(EntityKind.JOB, run.name)], moments, measured, 1.0)


def _windows(run: Run) -> list[tuple[Round, Window]]:
    """Return every round with its time span; rounds whose tool gave no start time are left out."""
    timed_rounds = []
    for part in run.rounds:
        starts = [result.start_ns for result in part.results if result.start_ns is not None]
        if starts:
            start = min(starts)
            lengths = [r.duration_s for r in part.results if r.duration_s == r.duration_s]
            lengths += [part.ticks[-1].elapsed_s] if part.ticks else []
            timed_rounds.append((part, Window(start, start + round(max(lengths, default=1.0) * NS_PER_S))))
    return timed_rounds


def _repeats(runs: Sequence[Run]) -> Section:
    rows = []
    for run in sorted(runs, key=lambda repeat: repeat.id):
        rate = run.per_s()
        between = "–" if rate.too_few else f"{rate.low:,.0f} to {rate.high:,.0f}"
        rows.append((run.id, _cell(rate.mean, "per_s"), between, f"{rate.cv_pct:.1f} %", run.state))
    columns = ("run", "rate", "95 % within the run", "spread of seconds", "state")
    return Section(
        "repeats",
        "Repeated runs",
        "What differs between these runs is what a single one cannot tell. This page is of the last.",
        (Table(columns, tuple(rows), frozenset({4})),),
    )


def _baseline(number: int, judgement: Judgement) -> Section:
    comparison = judgement.comparison
    rows = tuple(_change(part) for part in comparison.metrics)
    columns = ("metric", "baseline", "now", "change", "95 % between", "")
    return Section(
        f"baseline-{number}",
        f"Against {judgement.baseline}",
        f"{comparison.sentence} {comparison.basis[0].upper()}{comparison.basis[1:]}."
        if comparison.certain
        else comparison.sentence,
        (Table(columns, rows, frozenset({5})),),
        notes=tuple(f"Not alike: {text}." for text in comparison.unlike),
    )


def _change(part: MetricChange) -> tuple[str, ...]:
    between = "–" if part.low != part.low else f"{part.low:+.1%} to {part.high:+.1%}"
    change = "–" if part.change != part.change else f"{part.change:+.1%}"
    return part.name, _cell(part.before, part.unit), _cell(part.after, part.unit), change, between, part.word


def _cell(value: float, unit: str) -> str:
    """A value, or a dash where nothing was measured."""
    return show(value, unit) if value == value else "–"  # noqa: PLR0124 - NaN is not measured
