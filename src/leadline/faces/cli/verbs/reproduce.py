"""`leadline reproduce`: published figures, each beside what Leadline gets for it."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Html, Json, Quiet, said_report
from leadline.faces.cli.outputs import Force, output_file

QUESTION = "if"
EPILOG = """\
Examples:

  leadline reproduce iops-cap-latency

  leadline reproduce mclock-fig3 parda-table3 --html figures.html

  leadline reproduce load-average-queue --json
"""


def command(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Figures; all when none is named.", show_default=False),
    ] = None,
    *,
    html: Html = None,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Put published figures beside what Leadline gets for them, with the error.

    Each is calculated or simulated anew, on all cores; the same version gives the same numbers on every machine.
    Nothing is loaded, changed or kept. Exit status 0 when all ran, whatever came out; 2 for a figure there is not.
    `leadline explain experiments` lists them.
    """
    from leadline.app.simulate.reproducing import reproduce
    from leadline.faces.cli.output import print_json, share_progress
    from leadline.faces.report.reproduction import write_reproductions
    from leadline.faces.reproductions import document, show_reproductions

    page = output_file(ctx, "html", html, force=force)
    with share_progress("reproducing", quiet=quiet, parts="figures") as progress:
        reproductions = reproduce(ids or [], progress)
    if page is not None:
        said_report(page.path, write_reproductions(page, reproductions), quiet=quiet or json)
    if json:
        print_json("leadline.reproduction/1", **document(reproductions))
    else:
        show_reproductions(reproductions)
