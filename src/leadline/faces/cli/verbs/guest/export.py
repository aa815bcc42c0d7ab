"""`leadline guest export`: a file to run or import on a Windows guest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.core.model.errors import UsageError
from leadline.faces.cli.options import Quiet
from leadline.faces.cli.outputs import Force, output_file
from leadline.faces.cli.verbs.guest._options import All, Leave, Take

if TYPE_CHECKING:
    from leadline.app.optimising import Script

EPILOG = """\
Examples:

  leadline guest export

  leadline guest export --take rss -o database.ps1

  leadline guest export --from template.xml -o vdi.ps1

  leadline guest export --template windows-10-1809-1909 --build 18363 -o vdi.cmd

  leadline guest export -o database.reg --before before.reg --revert-to back.reg

  leadline guest export --leave no-prefetch --save desktop.yaml -o desktop.ps1
"""


def command(
    ctx: typer.Context,
    *,
    template: Annotated[
        str,
        typer.Option(
            "--template",
            "-t",
            help="windows-database, windows-10-1507-1803, windows-10-1809-1909, or a file (.yaml) of --save.",
        ),
    ] = "windows-database",
    origin: Annotated[
        Path | None, typer.Option("--from", help="An OS Optimization Tool template (XML).", show_default=False)
    ] = None,
    take: Take = None,
    leave: Leave = None,
    every: All = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--as", help="ps1, reg or cmd. [default: by the ending of --output, else ps1]", show_default=False
        ),
    ] = None,
    build: Annotated[
        int | None,
        typer.Option(
            min=1, help="Build of the guest's Windows (`ver`); refuses a template for others.", show_default=False
        ),
    ] = None,
    before: Annotated[
        list[Path] | None,
        typer.Option(help="Export of the guest's registry made before (`reg export`). Repeatable.", show_default=False),
    ] = None,
    revert_to: Annotated[
        Path | None,
        typer.Option(help="File (.reg) to write that restores what --before holds.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Template file (.yaml) to write with the chosen items.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. [default: stdout]", show_default=False)
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a file that does on Windows what a template intends: a script (ps1, cmd) or registry values (reg).

    Leadline does not run it and has not tested it on Windows. A ps1 shows what it would change; with -Apply it keeps a
    journal and changes it, with -Revert it goes back. For a reg or cmd, export the guest's registry first: from that
    --revert-to makes the file that takes the registry values back.
    """
    from leadline.app import optimising

    form = form or _form_of(output)
    if bool(before) != bool(revert_to):
        raise UsageError(
            "--before and --revert-to",
            found="one without the other",
            expected="both: what was there before, and the file that restores it",
            advice="Run `reg export KEY before.reg` on the guest first.",
        )
    if revert_to and form == "ps1":
        raise UsageError(
            "--revert-to",
            found="--as ps1",
            expected="--as reg or cmd",
            advice="A ps1 keeps a journal: run it with -Revert.",
        )
    file = output_file(ctx, "output", output, force=force)
    back = output_file(ctx, "revert_to", revert_to, force=force)
    kept = output_file(ctx, "save", save, force=force)
    script = optimising.export(template, origin, take or [], leave or [], every=every, form=form)
    if build is not None:
        optimising.check_build(script, build)
    restoring = optimising.way_back(script, before) if before else b""
    if kept:
        kept.write(optimising.saved(script).encode())
    if back:
        back.write(restoring)
    if file is None:
        typer.echo(script.text, nl=False)
    else:
        file.write(script.encoded)
    if not quiet:
        _report(script)


def _form_of(output: Path | None) -> str:
    from leadline.app.optimising import FORMS

    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    return ending if ending in FORMS else "ps1"


def _report(script: Script) -> None:
    typer.echo(f"{len(script.items)} item(s) written; not tested on Windows: read it first", err=True)
    for name, why in script.unheld:
        typer.echo(f"not in this file: {name}: {why}", err=True)
    for untaken in script.left:
        typer.echo(f"left out: {untaken.step.name[:60]}: {untaken.why}", err=True)
