"""Charts of a diagnosis: described here, drawn by the report's own script wherever they are shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import UNITS, factor, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Evidence, Finding, Window

LINES_MAX = 4  # in one chart: more cannot be told apart
CHARTS_MAX = 2  # of one finding
_SPLIT = {"disk_iops": ("disk_reads_per_s", "disk_writes_per_s")}  # other metrics have parts named _read and _write
_PARTS = {"_read": "reads", "_write": "writes", "_reads_per_s": "reads", "_writes_per_s": "writes"}


@dataclass(frozen=True, slots=True)
class Limit:
    """A level a finding compares with, in the chart's unit."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Series of one metric over time with the limits and windows of a finding.

    ``lines`` are groups of a single series each; NaN in them is "not measured" and is drawn as a gap. Where the metric
    itself was not recorded they are its parts, as reads and writes. ``heading``, ``names`` (one per line) and
    ``inside`` say in words of their own what is drawn, what the lines are and what the windows are. On a logarithmic
    scale what is below its lowest level, 0 above all, is drawn at that.
    """

    metric: str
    unit: str
    lines: tuple[SeriesGroup, ...]
    limits: tuple[Limit, ...] = ()
    windows: tuple[Window, ...] = ()
    heading: str = ""
    names: tuple[str, ...] = ()
    inside: str = "while it happened"
    is_logarithmic: bool = False

    @property
    def title(self) -> str:
        """What is drawn, in words."""
        if self.heading:
            return self.heading
        known = metric_of(self.metric)
        return known.meaning if known.kinds else self.metric

    def labels(self, capture: Capture) -> list[str]:
        """What each line is called: its entity, and what else tells it from the others."""
        if self.names:
            return list(self.names)
        names = [line.entities[0].label() for line in self.lines]
        parts = [_part(line.metric) for line in self.lines]
        if any(parts):
            names = [f"{name} {part}".strip() for name, part in zip(names, parts, strict=True)]
        files = [capture.sources[line.source].name.rsplit("/", 1)[-1] for line in self.lines]
        return [f"{name} ({file})" if names.count(name) > 1 else name for name, file in zip(names, files, strict=True)]

    def summary(self, capture: Capture) -> list[dict[str, str]]:
        """The chart's numbers as rows: per series median, 95th percentile and highest, inside and outside windows."""
        named = zip(self.labels(capture), self.lines, strict=True)
        return [row for label, group in named for row in _summary_rows(label, group, self.windows, self.inside)]


def finding_charts(finding: Finding, capture: Capture, limits: dict[str, float] | None = None) -> list[Chart]:
    """The charts that show a finding: the series its evidence names, with limit and windows.

    Args:
        finding: any finding; one of a setting, without windows, has no chart.
        capture: where the series are.
        limits: the rule's limits by name, to tell a limit from a number given for comparison.
    """
    if not finding.windows:
        return []
    charts: dict[str, Chart] = {}
    for evidence in finding.evidence:
        if evidence.metric is None or (evidence.metric not in charts and len(charts) >= CHARTS_MAX):
            continue
        lines = _lines_of(evidence, finding, capture)
        if not lines:
            continue
        chart = charts.get(evidence.metric) or Chart(evidence.metric, lines[0].unit, (), windows=finding.windows)
        known = {_identity(line) for line in chart.lines}
        fresh = tuple(line for line in lines if _identity(line) not in known)
        level = _limit_of(evidence, chart.unit, limits or {})
        levels = chart.limits if level is None or level in chart.limits else (*chart.limits, level)
        charts[evidence.metric] = replace(chart, lines=(*chart.lines, *fresh)[:LINES_MAX], limits=levels)
    return list(charts.values())


def series_chart(groups: Sequence[SeriesGroup]) -> Chart:
    """Return the chart of series of one metric, overlaid: of many, the `LINES_MAX` that reach highest."""
    lines = [group.take([row]) for group in groups for row in range(len(group.entities))]
    highest = sorted(lines, key=_highest, reverse=True)[:LINES_MAX]
    return Chart(groups[0].metric, groups[0].unit, tuple(highest))


def _identity(line: SeriesGroup) -> tuple[str, Entity, int]:
    return line.metric, line.entities[0], line.source


def _part(metric: str) -> str:
    return next((word for ending, word in _PARTS.items() if metric.endswith(ending)), "")


def _lines_of(evidence: Evidence, finding: Finding, capture: Capture) -> list[SeriesGroup]:
    """The series of a piece of evidence as groups of one.

    Where they were not recorded: reads and writes, of which rules compute the whole; else the same of its parts.
    """
    entity = evidence.entity or finding.entity
    metric = cast("str", evidence.metric)
    for metrics in ((metric,), _SPLIT.get(metric, (f"{metric}_read", f"{metric}_write"))):
        exact: list[SeriesGroup] = []
        parts: list[SeriesGroup] = []
        for group in (group for name in metrics for group in capture.of(name)):
            if evidence.source is not None and capture.sources[group.source].name != evidence.source:
                continue
            for row, candidate in enumerate(group.entities):
                if candidate == entity:
                    exact.append(group.take([row]))
                elif not exact and entity in candidate.lineage():
                    parts.append(group.take([row]))
        if exact or parts:
            return (exact or sorted(parts, key=_highest, reverse=True))[:LINES_MAX]
    return []


def _highest(group: SeriesGroup) -> float:
    known = group.values[np.isfinite(group.values)]
    return float(known.max()) if known.size else float("-inf")


def _limit_of(evidence: Evidence, unit: str, limits: dict[str, float]) -> Limit | None:
    compared = evidence.normal if evidence.threshold is None else evidence.threshold
    if compared is None or evidence.unit is None:
        return None
    if UNITS[evidence.unit].dimension != UNITS[unit].dimension:
        return None
    value = compared * factor(evidence.unit, unit)
    is_limit = evidence.threshold is not None and any(np.isclose(compared, limit) for limit in limits.values())
    word = "limit" if is_limit else "normal" if evidence.threshold is None else "compared with"
    return Limit(value, f"{word} {show(value, unit)}")


def _summary_rows(
    label: str, group: SeriesGroup, windows: tuple[Window, ...], inside_name: str
) -> list[dict[str, str]]:
    values = np.asarray(group.values[0], dtype=np.float64)
    inside = inside_windows(group.times_ns, windows)
    spans: list[tuple[str, Any]] = [("whole recording", np.ones(len(values), dtype=bool))]
    if windows:
        spans = [(inside_name, inside), ("otherwise", ~inside)]
    rows = []
    for span, chosen in spans:
        known = values[chosen & np.isfinite(values)]
        marks = np.quantile(known, (0.5, 0.95, 1.0)) if len(known) else (np.nan, np.nan, np.nan)
        rows.append(
            {
                "series": label,
                "span": span,
                "samples": f"{len(known):,}",
                **dict(zip(("median", "p95", "highest"), (show(float(m), group.unit) for m in marks), strict=True)),
            }
        )
    return rows


def inside_windows(times_ns: Any, windows: tuple[Window, ...]) -> Any:  # noqa: ANN401 - arrays
    """Whether each time, int64 [n] UTC nanoseconds, lies in a window: bool [n].

    A sample stands for the interval that ends at its time, so a window holds the samples after its start up to its
    end.
    """
    inside = np.zeros(len(times_ns), dtype=bool)
    for window in windows:
        inside |= (times_ns > window.start_ns) & (times_ns <= window.end_ns)
    return inside
