"""`leadline diagnose`: why is it slow, is it the disk?"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from leadline.faces.cli.options import (
    Date,
    Json,
    Offsets,
    Paths,
    ProfileFile,
    Quiet,
    Timezone,
    offsets_of,
    profile_of,
    read_paths,
)

EPILOG = """\
Examples:

  leadline diagnose examples/incidents/throttled-wal-disk

  leadline diagnose esxtop.csv iostat.txt inventory.yaml --json

  leadline diagnose bundle.tar.gz --fail-on high
"""
FINDINGS_EXIT = 1


class FailOn(StrEnum):
    """Severities a build can fail on."""

    NEVER = "never"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


def command(
    paths: Paths,
    *,
    json: Json = False,
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 when a finding is at least this severe.")] = FailOn.NEVER,
    all_findings: Annotated[
        bool, typer.Option("--all", help="Show minor findings, symptoms and skipped rules.")
    ] = False,
    profile: ProfileFile = None,
    timezone: Timezone = None,
    date: Date = None,
    clock_offset: Offsets = None,
    quiet: Quiet = False,
) -> None:
    """Why is it slow, is it the disk? A verdict per layer, with evidence.

    Reads the recordings of the tools you have (esxtop, perfmon, iostat, vmstat, sar, fio, pgbench, ...), puts them on
    one time line, runs the rules and says which layer is convicted, suspected, cleared or was not examined.
    """
    from leadline.app.diagnosing import diagnose, metrics_of_rules
    from leadline.core.vocabulary import Severity

    site = profile_of(profile)
    imported = read_paths(
        paths,
        metrics=metrics_of_rules(),
        timezone=timezone,
        date=date,
        offsets={**site.clock_offsets, **offsets_of(clock_offset)},
        quiet=quiet,
    )
    diagnosis = diagnose(imported.capture, site)
    if json:
        from leadline.faces.cli.output import print_json
        from leadline.faces.documents import diagnosis_document

        print_json("leadline.diagnosis/1", **diagnosis_document(diagnosis, imported))
    else:
        from leadline.faces.cli.output import console
        from leadline.faces.terminal import show_diagnosis

        show_diagnosis(console(), diagnosis, imported.capture, everything=all_findings)
    if fail_on is not FailOn.NEVER:
        limit = Severity[fail_on.value.upper()]
        if any(f.severity >= limit and not f.is_symptom for f in diagnosis.findings):
            raise typer.Exit(FINDINGS_EXIT)
