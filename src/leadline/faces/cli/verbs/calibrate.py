"""`leadline calibrate`: a scenario fitted to recordings, to ask what would happen to one's own system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Paths, Quiet
from leadline.faces.cli.outputs import Force, output_file

QUESTION = "if"
EPILOG = """\
Examples:

  leadline calibrate examples/incidents/throttled-wal-disk/iostat.txt --entity loop1 -o mine.yaml

  leadline simulate mine.yaml --vary vms.db01-loop1.iops_limit=null,200
"""


def command(
    ctx: typer.Context,
    paths: Paths,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The scenario file to write.")],
    entity: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only the disks of this machine, or this disk.", show_default=False),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="The requests of a trace are the load, one by one as recorded.")
    ] = False,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit a scenario to recordings: what each disk is asked for, how its latency grows with the load.

    Arrival rates, sizes, share of reads and requests outstanding are those of the recording; the device is a law of its
    latency, fitted to every other interval. The scenario is then simulated beside the other intervals, at every load
    of the recording, and the distance in throughput, mean and p95 latency is printed, with a warning above 5 %. An I/O
    trace (vscsiStats, blktrace, blkparse, MSR-style CSV) also says how bursty requests come, or is replayed. Then
    ask with leadline simulate.
    """
    from leadline.app.simulate.calibrating import calibrate
    from leadline.core.io.outputs import mark
    from leadline.faces.calibrations import calibration_document, show_calibration
    from leadline.faces.cli.output import print_json, share_progress

    file = output_file(ctx, "output", output, force=force, reads=paths)
    with share_progress("simulating", quiet=quiet, parts="disks") as progress:
        calibrated = calibrate(paths, entity, output.stem, replay=replay, report=progress)
    file.write((mark("leadline calibrate") + calibrated.text).encode())
    if json:
        print_json("leadline.calibration/1", **calibration_document(calibrated, output))
    else:
        show_calibration(calibrated, output, quiet=quiet)
