"""`leadline trace model`: the smallest workload file that gives what a trace has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Paths, Quiet
from leadline.faces.cli.outputs import Force, output_file

EPILOG = """\
Examples:

  leadline trace model db01.vscsi

  leadline trace model db01.vscsi --within 0.3 -o db01.yaml
"""


def command(
    ctx: typer.Context,
    paths: Paths,
    *,
    disk: Annotated[str | None, typer.Option(help="Which disk of the trace.", show_default=False)] = None,
    within: Annotated[float, typer.Option(help="Mean distance, 0 to 1, that is near enough.")] = 0.15,
    seed: Annotated[int, typer.Option(help="Seed of the requests that are compared.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the workload file here.", show_default=False)
    ] = None,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit a workload file to a trace, for `leadline bench run` and the simulator.

    Workloads of one, two and three streams are tried; the smallest that is near enough is printed as a workload file,
    its distance from the trace per characteristic in its comments.
    """
    from leadline.app.traces.modelling import fit
    from leadline.core.io.outputs import mark
    from leadline.faces.cli.output import print_json, reading_progress
    from leadline.faces.traces import show_model

    file = output_file(ctx, "output", output, force=force, reads=paths)
    with reading_progress(quiet=quiet) as step:
        model = fit(paths, disk=disk, within=within, seed=seed, step=step)
    if file is not None:
        file.write((mark("leadline trace model") + model.text()).encode())
    if json:
        print_json("leadline.model/1", **model.to_dict())
        return
    if not quiet:
        show_model(model)
    sys.stdout.write(model.text() if output is None else f"{output}: {model.sentence}\n")
