"""`leadline generate`: an esxtop capture of known content."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Quiet
from leadline.faces.cli.outputs import Force, output_file

QUESTION = "leadline"
EPILOG = """\
Examples:

  leadline generate cap.csv --vms 8 --minutes 10

  leadline generate cap.csv --fault cpu-contention --fault device-slow:2:120-300

  leadline generate wide.csv --columns 61500 --samples 720
"""


def command(
    ctx: typer.Context,
    output: Annotated[Path, typer.Argument(help="The CSV to write; OUTPUT.truth.yaml says what is in it.")],
    *,
    vms: Annotated[int, typer.Option(help="VMs.")] = 8,
    vcpus: Annotated[int, typer.Option(help="vCPUs of each VM.")] = 4,
    disks: Annotated[int, typer.Option(help="Virtual disks of each VM.")] = 2,
    luns: Annotated[int, typer.Option(help="LUNs the disks lie on.")] = 8,
    minutes: Annotated[float, typer.Option(help="Length.")] = 10.0,
    interval: Annotated[float, typer.Option(help="Seconds between samples.")] = 5.0,
    samples: Annotated[int | None, typer.Option(help="Samples, instead of --minutes.", show_default=False)] = None,
    columns: Annotated[
        int | None, typer.Option(help="Exact width: VMs, vCPUs and LUNs follow from it.", show_default=False)
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="NAME[:TARGET[:START-END]]. Repeatable; `leadline explain faults` lists them."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same capture.")] = 1,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write an esxtop capture of known content, healthy or with faults.

    Use it to try Leadline, to test your own thresholds, or to see what a fault looks like.
    """
    from leadline.app.generating import FaultRequest, generate, outputs_of
    from leadline.faces.cli.output import work_progress
    from leadline.generators.esxtop import shape_for_width
    from leadline.generators.host_model import CaptureShape

    truth = [file.path for file in outputs_of(output)[1:]]
    file = output_file(ctx, "output", output, force=force, beside=truth)
    count = samples if samples is not None else max(round(minutes * 60 / interval), 1)
    if columns is None:
        shape = CaptureShape(vms, vcpus, disks, luns, count, interval, seed)
    else:
        shape = shape_for_width(columns, count, seed)
    requests = [FaultRequest.parse(text) for text in fault or []]
    with work_progress("writing", quiet=quiet) as progress:
        injected = generate(shape, requests, file, columns=columns, progress=progress)
    typer.echo(f"{output}: {shape.vm_count} VMs, {count} samples, seed {seed}")
    for one in injected:
        span = one.window.to_dict()
        typer.echo(f"  {one.fault} on {one.entity}, {span['start']} to {span['end']}")
