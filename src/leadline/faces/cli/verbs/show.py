"""`leadline show`: series with statistics and a picture; export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Date, Json, Offsets, Paths, Quiet, Timezone, offsets_of, read_paths

EPILOG = """\
Examples:

  leadline show esxtop.csv --metric cpu_ready_pct --entity vm:db01

  leadline show iostat.txt --metric 'guest_disk_await*' --json

  leadline show incident.parquet --metric disk_iops -o iops.csv
"""


def command(
    paths: Paths,
    *,
    metric: Annotated[list[str] | None, typer.Option("--metric", "-m", help="Metric or pattern. Repeatable.")] = None,
    entity: Annotated[list[str] | None, typer.Option("--entity", "-e", help="Entity or pattern. Repeatable.")] = None,
    top: Annotated[int, typer.Option(help="Show at most so many, the highest p95 first.")] = 30,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Export to .parquet or .csv.", show_default=False)
    ] = None,
    json: Json = False,
    timezone: Timezone = None,
    date: Date = None,
    clock_offset: Offsets = None,
    quiet: Quiet = False,
) -> None:
    """Show series by entity and metric: statistics, a picture over time, export.

    Quantiles are of the samples the tool printed, which are averages of an interval, not of single operations.
    """
    from leadline.app.showing import choose, export, only
    from leadline.core.statistics import describe
    from leadline.faces.cli.output import console, print_json

    offsets = offsets_of(clock_offset)
    imported = read_paths(paths, timezone=timezone, date=date, offsets=offsets, quiet=quiet)
    capture = imported.capture
    chosen = choose(capture, metric or [], entity or [])
    if output is not None:
        export(only(capture, chosen), output)
    marks = [(group, row, describe(group.measured().values[row])) for group, row in chosen]
    marks.sort(key=lambda item: -item[2]["p95"] if item[2]["count"] else float("inf"))
    if json:
        series = [
            {"entity": str(g.entities[r]), "metric": g.metric, "unit": g.unit, "interval_s": g.interval_s, **m}
            for g, r, m in marks
        ]
        print_json("leadline.series/1", series=series)
        return
    from leadline.faces.tables import series_table

    out = console()
    out.print(series_table([(group, row) for group, row, _ in marks[:top]]))
    if len(marks) > top:
        out.print(f"{len(marks) - top:,} more: narrow with --metric and --entity, or raise --top.", style="dim")
