"""`leadline import`: recordings into one file that Polars, DuckDB and pandas read."""

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

QUESTION = "record"
EPILOG = """\
Examples:

  leadline import esxtop.csv iostat.txt -o incident.parquet

  leadline import bundle.tar.gz -o incident.parquet --timezone Europe/Berlin

  leadline import esxtop.csv

  leadline import --suggest-map export.csv -o export.map.yaml

  leadline import --map export.map.yaml export.csv -o export.parquet
"""


def command(
    ctx: typer.Context,
    paths: Paths,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Parquet file to write; only a summary without it.", show_default=False),
    ] = None,
    map_file: MapFile = None,
    suggest_map: Annotated[
        bool, typer.Option("--suggest-map", help="Write the first draft of a map for a table instead.")
    ] = False,
    json: Json = False,
    timezone: Timezone = None,
    date: Date = None,
    clock_offset: Offsets = None,
    since: Since = None,
    until: Until = None,
    vm: OfMachine = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Read recordings, say what is in them, save them as one capture.

    The file has one row per series (entity, metric, unit, times, values) and is read back by every verb.
    """
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.documents import not_read_document, result_document, source_document

    if suggest_map:
        _suggest(ctx, paths, output, force=force)
        return
    offsets = offsets_of(clock_offset)
    file = output_file(ctx, "output", output, force=force, reads=paths)
    imported = read_paths(
        ctx,
        paths,
        timezone=timezone,
        date=date,
        offsets=offsets,
        map_file=map_file,
        quiet=quiet,
        notes="",
        stored=stored_part(since, until, vm, timezone),
    )
    capture = imported.capture
    if file is not None:
        from leadline.core.io.parquet import save

        save(capture, file)
    if json:
        print_json(
            "leadline.import/1",
            output=None if output is None else str(output),
            sources=[source_document(source) for source in capture.sources],
            results=[result_document(result) for result in capture.results],
            metrics=capture.metrics(),
            series_count=capture.series_count,
            **not_read_document(imported),
        )
        return
    from leadline.faces.tables import results_table, sources_table

    out = console()
    out.print(sources_table(capture))
    if capture.results:
        out.print(results_table(capture))
    if output is not None:
        out.print(f"saved {capture.series_count:,} series to {output}", markup=False)


def _suggest(ctx: typer.Context, paths: list[Path], output: Path | None, *, force: bool) -> None:
    from leadline.app.read.suggesting import suggest
    from leadline.core.model.errors import UsageError

    if len(paths) != 1:
        raise UsageError(
            "--suggest-map", found=f"{len(paths)} files", expected="one table", advice="A map fits every table like it."
        )
    file = output_file(ctx, "output", output, force=force, reads=paths)
    draft = suggest(paths[0])
    if file is None:
        typer.echo(draft, nl=False)
    else:
        with file.aside() as beside:
            beside.write_text(draft, encoding="utf-8")
