"""Tables for a terminal of 80 columns."""

from __future__ import annotations

from math import isfinite
from os.path import commonprefix
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from leadline.core.model.finding import iso
from leadline.core.model.units import duration, show
from leadline.faces.describing import describe, sparkline
from leadline.faces.visible import one_line

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.result import Operation

_SPARK_WIDTH = 20


def plain_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table in the house style; columns named in ``right`` hold numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def sources_table(capture: Capture) -> Table:
    """What each recording holds; the folder they share is left out of their names."""
    table = plain_table("recording", "read as", "series", "from (UTC)", "length", right=("series", "length"))
    common = _common_folder([source.name for source in capture.sources])
    for source in capture.sources:
        start = "no time" if source.start_ns is None else iso(source.start_ns)
        length = ""
        if source.start_ns is not None and source.end_ns is not None:
            length = duration((source.end_ns - source.start_ns) / 1e9)
        name = _shortened(one_line(source.name.removeprefix(common)))
        table.add_row(name, source.importer, f"{source.series_count:,}", start, length)
    return table


def results_table(capture: Capture, count_max: int | None = None) -> Table:
    """Results of load tools, a row per operation that was measured, or for the first so many."""
    table = plain_table("result", "operation", "per s", "mean", "p99", right=("per s", "mean", "p99"))
    for result in capture.results:
        for operation in result.operations:
            is_full = count_max is not None and table.row_count >= count_max
            if not is_full and (isfinite(operation.per_s) or isfinite(operation.mean_ms)):
                cells = (_cell(operation.per_s, "count"), _cell(operation.mean_ms, "ms"), p99_cell(operation))
                table.add_row(_shortened(one_line(f"{result.tool} {result.job}")), operation.name, *cells)
    return table


def p99_cell(operation: Operation) -> str:
    """The 99th percentile, marked where the tool's histogram ends there; a dash where it was not measured."""
    value = operation.p99_ms
    least = "≥ " if operation.is_clipped(value) else ""
    return f"{least}{_cell(value, 'ms')}"


def series_table(chosen: list[tuple[SeriesGroup, int]]) -> Table:
    """Series with statistics and a picture, by metric; quantiles are of the tool's interval averages."""
    table = plain_table("", "p50", "p95", "max", "over time", right=("p50", "p95", "max"))
    by_metric: dict[str, list[tuple[SeriesGroup, int]]] = {}
    for group, row in chosen:
        by_metric.setdefault(group.metric, []).append((group, row))
    for metric, members in by_metric.items():
        table.add_row(Text(metric, style="bold"))
        for group, row in members:
            values = group.measured().values[row]
            marks = describe(values)
            shown = [_cell(marks[name], group.unit) for name in ("p50", "p95", "max")]
            table.add_row(f"  {_shortened(group.entities[row].label())}", *shown, sparkline(values, _SPARK_WIDTH))
    return table


def _cell(value: float, unit: str) -> str:
    """A value, or a dash where nothing was measured."""
    return show(value, unit) if isfinite(value) else "-"


def _shortened(name: str, width: int = 30) -> str:
    """The end of a long name: folders matter less than the file."""
    return name if len(name) <= width else f"…{name[1 - width :]}"


def _common_folder(names: list[str]) -> str:
    """The folder or archive all names begin with, its separator included; nothing for a single name."""
    if len(names) < 2:
        return ""
    common = commonprefix(names)  # noqa: RUF071 - members of archives are divided by "!" too
    return common[: max(common.rfind("/"), common.rfind("!")) + 1]
