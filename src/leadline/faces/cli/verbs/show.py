"""`leadline show`: series with statistics and a picture, results; export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import (
    Date,
    Json,
    MapFile,
    Offsets,
    OfMachine,
    Paths,
    Quiet,
    Since,
    Timezone,
    Until,
    offsets_of,
    read_paths,
    stored_part,
)
from leadline.faces.cli.outputs import Force, output_file

QUESTION = "slow"
EPILOG = """\
Examples:

  leadline show esxtop.csv --metric cpu_ready_pct --entity vm:db01

  leadline show iostat.txt --metric 'guest_disk_await*' --json

  leadline show incident.parquet --metric disk_iops -o iops.csv
"""


def command(
    ctx: typer.Context,
    paths: Paths,
    *,
    metric: Annotated[list[str] | None, typer.Option("--metric", "-m", help="Metric or pattern. Repeatable.")] = None,
    entity: Annotated[list[str] | None, typer.Option("--entity", "-e", help="Entity or pattern. Repeatable.")] = None,
    top: Annotated[int, typer.Option(help="Show at most so many, the highest p95 first.")] = 30,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Export to .parquet or .csv.", show_default=False)
    ] = None,
    json: Json = False,
    map_file: MapFile = None,
    timezone: Timezone = None,
    date: Date = None,
    clock_offset: Offsets = None,
    since: Since = None,
    until: Until = None,
    vm: OfMachine = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Show series by entity and metric: statistics, a picture over time, export.

    Quantiles are of the samples the tool printed, which are averages of an interval, not of single operations. An
    average since boot is left out of them; the column since_boot marks it in an exported .csv. Results of load tools
    follow where no metric or entity is asked for.
    """
    from leadline.app.showing import check_ending, choose, export, only
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.describing import describe
    from leadline.faces.documents import result_document

    if output is not None:
        check_ending(output)
    file = output_file(ctx, "output", output, force=force, reads=paths)
    offsets = offsets_of(clock_offset)
    imported = read_paths(
        ctx,
        paths,
        map_file=map_file,
        timezone=timezone,
        date=date,
        offsets=offsets,
        quiet=quiet,
        stored=stored_part(since, until, vm, timezone),
    )
    capture = imported.capture
    chosen = choose(capture, metric or [], entity or [])
    results = [] if metric or entity else capture.results
    if file is not None:
        export(only(capture, chosen), file)
    marks = [(group, row, describe(group.measured().values[row])) for group, row in chosen]
    marks.sort(key=lambda item: -item[2]["p95"] if item[2]["count"] else float("inf"))
    if json:
        series = [
            {
                **{"entity": str(g.entities[r]), "metric": g.metric, "unit": g.unit, "interval_s": g.interval_s},
                **m,
                "since_boot_left_out": int(g.since_boot),
            }
            for g, r, m in marks
        ]
        print_json("leadline.series/1", series=series, results=[result_document(result) for result in results])
        return
    from leadline.faces.tables import results_table, series_table

    out = console()
    if marks:
        out.print(series_table([(group, row) for group, row, _ in marks[:top]]))
    if results:
        out.print(results_table(capture, top))
    booted = sum(group.since_boot for group, _, _ in marks[:top])
    if booted:
        out.print(f"Left out: the first sample of {booted:,} series, an average since boot.", style="dim")
    if len(marks) > top:
        out.print(f"{len(marks) - top:,} more: narrow with --metric and --entity, or raise --top.", style="dim")
