"""`leadline trace characterise`: what the requests of a trace are like."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Paths, Quiet

EPILOG = """\
Examples:

  leadline trace characterise db01.vscsi

  leadline trace characterise traces --no-histograms

  leadline trace characterise db01.vscsi --json
"""


def command(
    paths: Paths,
    *,
    histograms: Annotated[bool, typer.Option(help="Print vscsiStats' histograms.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sizes, distances, latencies, streams, bursts, working set, per disk.

    Reads vscsiStats command traces (.vscsi and CSV), blktrace, blkparse text, fio iologs, and CSV as that of MSR,
    Alibaba and Tencent, gzipped or not. The files blktrace writes per CPU are read as one trace.
    """
    from leadline.app.traces.tracing import characterise
    from leadline.faces.cli.output import print_json, reading_progress
    from leadline.faces.traces import show_traces

    with reading_progress(quiet=quiet) as step:
        reports, passed = characterise(paths, step)
    if json:
        print_json("leadline.trace/2", traces=[report.to_dict() for report in reports], unrecognised=passed)
        return
    if not quiet:
        for report in reports:
            for message, count in report.notes:
                sys.stderr.write(f"{report.files.name}: {message} ({count:,}x)\n")
        if passed:
            sys.stderr.write(f"not recognised, left out: {len(passed)} file(s)\n")
    show_traces(reports, histograms=histograms)
