"""`leadline diagnose`: why is it slow, is it the disk?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import (
    Date,
    FailOn,
    Html,
    Json,
    MapFile,
    Offsets,
    OfMachine,
    Paths,
    ProfileFile,
    Quiet,
    Since,
    Timezone,
    Until,
    fails,
    offsets_of,
    profile_of,
    read_paths,
    said_report,
    stored_part,
)
from leadline.faces.cli.outputs import Force, output_file

QUESTION = "slow"
EPILOG = """\
Examples:

  leadline diagnose examples/incidents/throttled-wal-disk

  leadline diagnose esxtop.csv iostat.txt inventory.yaml --json

  leadline diagnose bundle.tar.gz --fail-on high

  leadline diagnose esxtop.csv --incident 120s..170s --normal 0s..100s

  leadline diagnose esxtop.csv --baseline incident.parquet

  leadline diagnose esxtop.csv iostat.txt --html report.html --anonymize
"""
FINDINGS_EXIT = 1


def command(
    ctx: typer.Context,
    paths: Paths,
    *,
    json: Json = False,
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 when a finding is at least this severe.")] = FailOn.NEVER,
    all_findings: Annotated[
        bool, typer.Option("--all", help="Show minor findings, symptoms and skipped rules.")
    ] = False,
    baseline: Annotated[
        list[Path] | None,
        typer.Option(help="Recordings of another time: say what changed since. Repeatable.", show_default=False),
    ] = None,
    incident: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO",
            help="When it was bad: times, or seconds from the start. [default: found in what users feel]",
            show_default=False,
        ),
    ] = None,
    normal: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO",
            help="What to compare --incident with. [default: the rest of the recording]",
            show_default=False,
        ),
    ] = None,
    html: Html = None,
    anonymize: Annotated[bool, typer.Option("--anonymize", help="Replace names and addresses in all it says.")] = False,
    profile: ProfileFile = None,
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
    """Why is it slow, is it the disk? A verdict per layer, with evidence.

    Reads the recordings of the tools you have (esxtop, perfmon, iostat, vmstat, sar, fio, pgbench, ...), puts them on
    one time line, runs the rules and says which layer is convicted, suspected, cleared or was not examined.

    Times of --incident and --normal are 2026-11-20T10:00:36Z, 10:00:36 on the recording's day, or 120s (2m) from its
    start. One without a zone is in --timezone, else UTC.
    """
    from leadline.app.diagnose.diagnosing import diagnose, metrics_read
    from leadline.app.diagnose.spans import asked_spans
    from leadline.faces.cli.output import say_sources

    report = output_file(ctx, "html", html, force=force, reads=[*paths, *(baseline or [])])
    site = profile_of(profile)
    # The report lets every series be looked at; without it only what the verdict reads is worth the reading.
    metrics = metrics_read() if html is None else None
    offsets = {**site.clock_offsets, **offsets_of(clock_offset)}
    reading = partial(
        read_paths, ctx, metrics=metrics, map_file=map_file, timezone=timezone, date=date, offsets=offsets, quiet=quiet
    )
    stored = stored_part(since, until, vm, timezone)
    imported = reading(paths, notes=None, else_all=True, stored=stored)
    spans = asked_spans(imported.capture, incident, normal, timezone)
    diagnosis = diagnose(imported.capture, site, incident=spans[0], normal=spans[1])
    comparison, earlier = None, None
    if baseline:
        from leadline.app.compare.comparing import compare

        earlier = reading(baseline, notes=None)
        comparison = compare(imported.capture, earlier.capture, diagnosis, diagnose(earlier.capture, site))
    if report is not None:  # first: whoever reads stdout may leave early
        from leadline.faces.report import write_report

        size_bytes = write_report(report, diagnosis, imported, site, comparison=comparison, anonymize=anonymize)
        said_report(report.path, size_bytes, quiet=quiet)
    if anonymize:
        from leadline.faces.report.anonymize import anonymized

        diagnosis, imported, comparison = anonymized(diagnosis, imported, comparison)
    if json:
        from leadline.faces.cli.output import print_json
        from leadline.faces.documents import diagnosis_document

        compared = {} if comparison is None else {"comparison": comparison.to_dict()}
        print_json("leadline.diagnosis/2", **diagnosis_document(diagnosis, imported), **compared)
    else:
        from leadline.faces.cli.output import console
        from leadline.faces.terminal import show_comparison, show_diagnosis

        out = console()
        show_diagnosis(out, diagnosis, imported.capture, everything=all_findings)
        if comparison is not None:
            show_comparison(out, comparison, everything=all_findings)
    say_sources(imported, quiet=quiet, everything=all_findings, lists="--all")
    if earlier is not None and not anonymize:
        say_sources(earlier, quiet=quiet, everything=all_findings, lists="--all")
    if fails(diagnosis, fail_on):
        raise typer.Exit(FINDINGS_EXIT)
