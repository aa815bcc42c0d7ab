"""A probe as the first part of an HTML report: the verdict, and both rounds on one time line, pulses as humps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.probe.model import Ruling
from leadline.app.probe.probing import disk_line, pulse_line, recorded
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.report import write_measured
from leadline.faces.report.figures import Chart, Limit, inside_windows
from leadline.faces.report.lead import Lead, Phase, Section, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.app.probe.model import ProbeVerdict, Pulse
    from leadline.app.probe.probing import Probed, ProbePlan
    from leadline.app.read.importing import Imported
    from leadline.core.io.outputs import Output

    Floats = NDArray[np.float64]

WIDE = 8.0  # Judgement: on one linear scale an eighth of the height is hardly seen
_RULES = "The rules looked at round 1, the real workload; the pulses of round 2 load the disk on purpose."
_RULES_ALONE = "The workload was not watched: the rules looked at the pulses, which load the disk on purpose."


def write_probe_page(output: Output | Path, done: Probed, plan: ProbePlan, imported: Imported | None = None) -> int:
    """Write the report of a probe, or of recordings that were made before. Returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
        InputError: nothing was recorded.
    """
    imported = recorded(plan.folder) if imported is None else imported
    diagnosis = done.diagnosis or diagnose(imported.capture)
    return write_measured(output, diagnosis, imported, probe_lead(done, plan, imported.capture))


def probe_lead(done: Probed, plan: ProbePlan, capture: Capture) -> Lead:
    """Return the part of a probe's page that stands above the diagnosis of its recordings."""
    disk = done.disk or (None if done.observed is None else done.observed.disk)
    observed = done.observed
    if done.verdict is not None:
        headline, answer = _headline(done.verdict), done.verdict.sentence
    elif observed is not None:
        headline = f"{observed.disk}: {observed.iops_p95:,.0f} IOPS (p95){_at(observed.await_ms)}; nothing was pulsed"
        answer = "Not examined: only pulses tell what the disk could do."
    else:
        headline, answer = f"No disk was recorded behind {plan.target}", "Not examined."
    sections = [_time_line(done, plan, capture, disk)]
    sections += [_pulses(done)] if done.pulses else []
    facts = [("Target", plan.target), ("Disk", disk or "not known")]
    facts += [("Provisioned limit", show(plan.limit, "per_s"))] if plan.limit is not None else []
    known = done.pulses and not np.isnan(done.read_pct)
    facts += [("Read share of the pulses", f"{done.read_pct:.0f} %")] if known else []
    return Lead(
        "probe",
        headline,
        (("Is it the disk?", answer),),
        tuple(facts),
        tuple(sections),
        (*_observed_phase(done, capture), *(Phase(f"pulse, {n}", (w,)) for n, w in _windows(done, capture))),
        _RULES if observed is not None else _RULES_ALONE,
    )


def _at(latency_ms: float) -> str:
    return "" if np.isnan(latency_ms) else f" at {show(latency_ms, 'ms')}"


def _headline(verdict: ProbeVerdict) -> str:
    return "Not decided" if verdict.ruling is Ruling.UNDECIDED else f"The disk is {verdict.ruling.value}"


def _pulses(done: Probed) -> Section:
    rows = tuple(
        (
            _name(pulse),
            "–" if pulse.offered_per_s is None else show(pulse.offered_per_s, "per_s"),
            show(pulse.per_s, "per_s"),
            f"{pulse.cv_pct:.1f} %",
            show(pulse.mean_ms, "ms"),
            show(pulse.p99_ms, "ms"),
            f"{show(pulse.little_ms, 'ms')}" if pulse.offered_per_s is None else "–",
        )
        for pulse in done.pulses
    )
    columns = ("pulse", "offered", "came out", "spread of seconds", "mean", "p99", "outstanding / rate")
    reasons = () if done.verdict is None else tuple(f"{r[0].upper()}{r[1:]}." for r in done.verdict.reasons)
    return Section(
        "pulses",
        "What the pulses measured",
        "As hard as possible the latency is what the outstanding requests and the rate make it (Little's law, last "
        "column); below the ceiling it is the disk's own.",
        (Table(columns, rows),),
        notes=(*reasons, *(f"{note[0].upper()}{note[1:]}." for note in done.notes if note)),
    )


def _name(pulse: Pulse) -> str:
    if pulse.offered_per_s is None:
        return f"as hard as possible, {pulse.outstanding} outstanding"
    return f"{pulse.offered_per_s:,.0f} per second"


def _short(pulse: Pulse) -> str:
    return "as hard as possible" if pulse.offered_per_s is None else f"{pulse.offered_per_s:,.0f} per second"


def _time_line(done: Probed, plan: ProbePlan, capture: Capture, disk: str | None) -> Section:
    """Rate and latency of the disk as the kernel counted, and of the pulses as fio did, over both rounds."""
    lines: dict[str, list[tuple[SeriesGroup, str]]] = {"rate": [], "latency": []}
    counted = None if disk is None else disk_line(capture, disk)
    if counted is not None and disk is not None:
        entity = Entity(EntityKind.BLOCK_DEVICE, disk)
        named = f"{disk}, the kernel's counters"
        lines["rate"].append((_group("disk_iops", entity, counted.times_ns, counted.iops), named))
        lines["latency"].append((_group("guest_disk_await_ms", entity, counted.times_ns, counted.await_ms), named))
    pulsed = pulse_line(capture)
    if pulsed is not None:
        entity = Entity(EntityKind.JOB, "probe")
        times, rate, latency = pulsed
        lines["rate"].append((_group("job_iops", entity, times, rate), "pulses, as fio counted"))
        lines["latency"].append((_group("job_latency_ms", entity, times, latency), "pulses, as fio counted"))
    windows = tuple(window for _, window in _windows(done, capture))
    limits = () if plan.limit is None else (Limit(plan.limit, f"provisioned limit {show(plan.limit, 'per_s')}"),)
    charts = [
        _chart("Operations per second, both rounds", lines["rate"], windows, limits),
        _chart("Latency of a request, both rounds", lines["latency"], windows, ()),
    ]
    introduction = "Round 1 is the real workload. " if done.observed is not None else ""
    return Section(
        "rounds",
        "Both rounds" if done.pulses and done.observed is not None else "What was recorded",
        f"{introduction}{'Shaded are the pulses of round 2, with the workload off.' if windows else ''}".strip(),
        charts=tuple(chart for chart in charts if chart is not None),
    )


def _chart(
    heading: str, named: list[tuple[SeriesGroup, str]], windows: tuple[Window, ...], limits: tuple[Limit, ...]
) -> Chart | None:
    measured = [(line, name) for line, name in named if np.isfinite(line.values).any()]
    if not measured:
        return None
    lines, names = tuple(line for line, _ in measured), tuple(name for _, name in measured)
    first = lines[0]
    wide = _is_wide(lines, windows)
    heading += ", logarithmic" if wide else ""
    chart = Chart(first.metric, first.unit, lines, limits, windows, heading=heading, names=names, inside="pulses")
    return replace(chart, is_logarithmic=wide)


def _is_wide(lines: tuple[SeriesGroup, ...], windows: tuple[Window, ...]) -> bool:
    """Whether the highest pulse would leave nothing of the lowest to see."""
    tops = [
        float(np.nanmedian(line.values[0][inside]))
        for line in lines[-1:]
        for inside in (inside_windows(line.times_ns, (window,)) for window in windows)
        if np.isfinite(line.values[0][inside]).any()
    ]
    return len(tops) > 1 and max(tops) > WIDE * min(tops)


def _group(metric: str, entity: Entity, times_ns: NDArray[np.int64], values: Floats) -> SeriesGroup:
    return SeriesGroup(metric, [entity], times_ns, values[np.newaxis, :], 1.0)


def _windows(done: Probed, capture: Capture) -> list[tuple[str, Window]]:
    """Return every pulse with its time span, in order of time."""
    if done.pulsed_at:
        named = [(_short(pulse), window) for pulse, window in zip(done.pulses, done.pulsed_at, strict=True)]
        return sorted(named, key=lambda entry: entry[1].start_ns)
    windows = []
    for result in capture.results:
        if result.start_ns is not None and result.duration_s == result.duration_s:
            stem = Path(result.source).stem
            name = "as hard as possible" if stem == "hard" else f"{int(stem.removeprefix('rate-')):,} per second"
            end = result.start_ns + round(result.duration_s * NS_PER_S)
            windows.append((name, Window(result.start_ns, end)))
    return sorted(windows, key=lambda entry: entry[1].start_ns)


def _observed_phase(done: Probed, capture: Capture) -> list[Phase]:
    if done.watched_at is not None:
        return [Phase("round 1: the workload", (done.watched_at,))]
    return [
        Phase("round 1: the workload", (Window(source.start_ns, source.end_ns),))
        for source in capture.sources
        if Path(source.name).parent.name == "round-1" and source.start_ns is not None and source.end_ns is not None
    ]
