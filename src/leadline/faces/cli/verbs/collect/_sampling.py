"""What the verbs that sample over time share."""

from __future__ import annotations

from pathlib import Path

import typer


def sample(
    source: str,
    target: str,
    output: Path,
    every: float,
    seconds: float,
    *,
    json: bool,
    quiet: bool,
    **options: int | str,
) -> None:
    """Record and say what came of it; options are the collector's own."""
    from leadline.app.measure.recording import record
    from leadline.faces.cli.output import print_json, work_progress

    with work_progress("recording", quiet=quiet) as progress:
        done = record(source, target, output, every_s=every, seconds=seconds, progress=progress, **options)
    for note in done.notes if not quiet else ():
        typer.echo(f"{source}: {note}", err=True)
    if json:
        print_json("leadline.recording/1", output=str(output), samples=done.sample_count, notes=list(done.notes))
    else:
        typer.echo(f"{output}: {done.sample_count} samples; next: leadline diagnose {output}")
