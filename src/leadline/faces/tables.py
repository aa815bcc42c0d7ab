"""Tables for a terminal of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from leadline.core.finding import iso
from leadline.core.statistics import describe, sparkline
from leadline.core.units import duration, show

if TYPE_CHECKING:
    from leadline.core.capture import Capture, SeriesGroup

_SPARK_WIDTH = 16


def plain_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table in the house style; columns named in ``right`` hold numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def sources_table(capture: Capture) -> Table:
    """What each recording holds."""
    table = plain_table("recording", "read as", "series", "from (UTC)", "length", right=("series", "length"))
    for source in capture.sources:
        start = "no time" if source.start_ns is None else iso(source.start_ns)
        length = ""
        if source.start_ns is not None and source.end_ns is not None:
            length = duration((source.end_ns - source.start_ns) / 1e9)
        table.add_row(_shortened(source.name), source.importer, f"{source.series_count:,}", start, length)
    return table


def _shortened(name: str, width: int = 30) -> str:
    """The end of a long name: folders matter less than the file."""
    return name if len(name) <= width else f"…{name[1 - width :]}"


def results_table(capture: Capture) -> Table:
    """Results of load tools, a row per operation."""
    table = plain_table("result", "operation", "per s", "mean", "p99", right=("per s", "mean", "p99"))
    for result in capture.results:
        for operation in result.operations:
            mean = operation.latency_ms.get("mean", float("nan"))
            p99 = operation.latency_ms.get("p99", float("nan"))
            if operation.histogram is not None and operation.histogram.unit == "ms":
                p99 = operation.histogram.quantile(0.99)
            rate = show(operation.per_s, "count")
            table.add_row(f"{result.tool} {result.job}", operation.name, rate, show(mean, "ms"), show(p99, "ms"))
    return table


def series_table(chosen: list[tuple[SeriesGroup, int]]) -> Table:
    """Series with statistics and a picture; quantiles are of the tool's interval averages."""
    table = plain_table("series", "p50", "p95", "max", "over time", right=("p50", "p95", "max"))
    for group, row in chosen:
        values = group.measured().values[row]
        marks = describe(values)
        shown = [show(marks[name], group.unit) for name in ("p50", "p95", "max")]
        entity = group.entities[row]
        table.add_row(f"{entity.label()} {group.metric}", *shown, sparkline(values, _SPARK_WIDTH))
    return table
