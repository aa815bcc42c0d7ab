"""The time line: when each finding held and what each recording covers, as shares of the whole span."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from leadline.core.model.finding import iso
from leadline.core.model.units import duration, share_text
from leadline.faces.words.findings import group_entity, group_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.app.diagnose.grouping import FindingGroup
    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Window
    from leadline.core.model.incident import Incident
    from leadline.faces.report.lead import Phase

ROWS_MAX = 14
SOURCES_MAX = 12
WINDOWS_MAX = 400  # rectangles of a row; more cannot be told apart
TICKS_MAX = 6
EDGE_SHARE = 0.97  # a label nearer to the edge is written inwards
NS_PER_S = 1_000_000_000
_DAY_S = 86_400
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, _DAY_S, 7 * _DAY_S)


def timeline(
    groups: Sequence[FindingGroup],
    capture: Capture,
    phases: Sequence[Phase] = (),
    incidents: Sequence[Incident] = (),
) -> dict[str, Any] | None:
    """Rows of phases, findings and recordings with positions in percent of the span, and ticks; None without times."""
    span = capture.span_ns()
    if span is None or span[1] <= span[0]:
        return None
    timed = [(number, group) for number, group in enumerate(groups, start=1) if group.windows]
    rows = [
        {
            "number": number,
            "finding": group.lead,
            "summary": group_summary(group),
            "on": group_entity(group),
            "when": when(group.windows, span),
            "bars": [_bar(w.start_ns, w.end_ns, span) for w in group.windows[:WINDOWS_MAX]],
        }
        for number, group in timed[:ROWS_MAX]
    ]
    covered = [s for s in capture.sources if s.start_ns is not None and s.end_ns is not None and s.series_count]
    sources = [{"name": s.name, "bar": _bar(int(s.start_ns or 0), int(s.end_ns or 0), span)} for s in covered]
    return {
        "phases": [{"name": p.name, "bars": [_bar(w.start_ns, w.end_ns, span) for w in p.windows]} for p in phases],
        "rows": rows,
        "more": max(len(timed) - ROWS_MAX, 0),
        "sources": sources[:SOURCES_MAX],
        "more_sources": max(len(sources) - SOURCES_MAX, 0),
        "ticks": ticks(span),
        "incidents": [_bar(i.window.start_ns, i.window.end_ns, span) for i in incidents],
        "day": iso(span[0])[:10],
        "many_days": iso(span[0])[:10] != iso(span[1])[:10],
    }


def ticks(span: tuple[int, int]) -> list[tuple[str, str, str]]:
    """Round moments of a span (UTC nanoseconds): position in percent, label, and which end of it stands there."""
    length_s = (span[1] - span[0]) / NS_PER_S
    step = next((s for s in _STEPS_S if length_s / s <= TICKS_MAX), max(_DAY_S, int(length_s / TICKS_MAX)))
    first = -(-span[0] // (step * NS_PER_S)) * step
    moments = range(first, span[1] // NS_PER_S + 1, step)
    pattern = "%H:%M:%S" if step < 60 else "%H:%M" if step < _DAY_S else "%d %b"
    marked = []
    for moment in moments:
        share = (moment * NS_PER_S - span[0]) / (span[1] - span[0])
        anchor = "end" if share > EDGE_SHARE else "start" if share < 1 - EDGE_SHARE else "middle"
        label = datetime.fromtimestamp(moment, tz=UTC).strftime(pattern)
        marked.append((_share(moment * NS_PER_S, span), label, anchor))
    return marked


def when(windows: Sequence[Window], span: tuple[int, int] | None) -> str:
    """When a finding held, in words; of many times the first three."""
    if not windows:
        return "a setting: always"
    shown = "; ".join(_window(window) for window in windows[:3])
    more = f" and {len(windows) - 3} more times" if len(windows) > 3 else ""
    held_s = sum(window.duration_s for window in windows)
    whole = 0.0 if span is None else (span[1] - span[0]) / NS_PER_S
    share = f", {share_text(min(held_s / whole, 1.0))} of the recording" if whole > 0 else ""
    return f"{shown}{more} UTC ({duration(held_s)}{share})"


def _window(window: Window) -> str:
    start, end = iso(window.start_ns).rstrip("Z"), iso(window.end_ns).rstrip("Z")
    same_day = start[:10] == end[:10]
    return f"{start.replace('T', ' ')} to {end[11:] if same_day else end.replace('T', ' ')}"


def _bar(start_ns: int, end_ns: int, span: tuple[int, int]) -> tuple[str, str]:
    """Left edge and width in percent; what reaches over the span is cut to it."""
    start, end = max(start_ns, span[0]), min(max(end_ns, start_ns), span[1])
    return _share(start, span), f"{100 * max(end - start, 0) / (span[1] - span[0]):.3f}%"


def _share(time_ns: int, span: tuple[int, int]) -> str:
    return f"{100 * (time_ns - span[0]) / (span[1] - span[0]):.3f}%"
