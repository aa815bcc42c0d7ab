"""`leadline lab run`: boot the guests of a lab file, load them, and keep the runs."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Html, Json, Quiet, said_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leadline.app.lab import LabPlan
    from leadline.lab.specification import Guest

EPILOG = """\
Examples:

  LEADLINE_HOME=runs leadline lab run examples/lab/pvscsi-vs-lsi.yaml

  LEADLINE_HOME=runs leadline lab run examples/lab/pvscsi-vs-lsi.yaml --plan

  LEADLINE_HOME=runs leadline lab run my.yaml --repeats 1 --wait
"""


def command(
    file: Annotated[Path, typer.Argument(help="A lab file.")],
    *,
    plan_only: Annotated[bool, typer.Option("--plan", help="Show what would be done, and stop.")] = False,
    repeats: Annotated[int | None, typer.Option(min=1, help="Instead of the file's.", show_default=False)] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Keep the guests until Ctrl-C, for lab console.")] = False,
    html: Html = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Boot guests with the devices the file names, load them, compare.

    Needs QEMU and an unpacked kernel package, no privilege and no network. KVM is used when a guest boots with it,
    software emulation otherwise; every result says which. Nothing outside the lab's own folder is written; Ctrl-C ends
    and removes the guests. Loads are runs: see leadline runs.
    """
    from leadline.app.lab import plan_lab, run_lab
    from leadline.faces.cli.output import print_json
    from leadline.faces.labs import lab_document, show_lab
    from leadline.faces.report import check_writable
    from leadline.lab.specification import read_lab
    from leadline.stores.runs import RunStore

    if html is not None:
        check_writable(html)
    lab = read_lab(file)
    if repeats is not None:
        lab = lab.model_copy(update={"repeats": repeats})
    made = plan_lab(lab)
    if plan_only or not quiet:
        _show_plan(made, err=not plan_only)
    if plan_only:
        return
    from leadline.app.lab_results import outcome

    store = RunStore()
    with _progress(quiet=quiet) as (say, done):
        then = {"wait": lambda: _until_ctrl_c(made)} if wait or not made.loaded else {}
        found = run_lab(made, store, say=say, done=done, **then)
    result = outcome(found, store)
    if html is not None:
        from leadline.faces.report import write_page
        from leadline.faces.report.lab import lab_page

        said_report(html, write_page(html, lab_page(result)), quiet=quiet)
    if json:
        print_json("leadline.lab/1", **lab_document(result))
    else:
        show_lab(result)
    if any(load.error for load in found.loads):
        raise typer.Exit(4)


def _show_plan(made: LabPlan, *, err: bool) -> None:
    def line(text: str) -> None:
        typer.echo(text, err=err)

    line(f"Plan: {made.lab.name}: {made.lab.question}" if made.lab.question else f"Plan: {made.lab.name}")
    for guest in made.machines:
        disks = ", ".join(f"{disk.name} on {_adapter(guest, disk.adapter)}" for disk in guest.disks)
        line(f"  {guest.name}: {guest.vcpus} vCPUs, {guest.memory / 2**20:.0f} MiB; {disks or 'no disks'}")
    for left_out in made.left_out:
        line(f"  {left_out}")
    line(f"  by {made.accelerator.name}: {made.accelerator.reason}")
    line(f"  {made.disk_bytes / 2**30:.2f} GiB of disks, removed at the end; at most {made.expected_s / 60.0:.1f} min")


def _adapter(guest: Guest, name: str) -> str:
    return next(adapter.type for adapter in guest.adapters if adapter.name == name)


def _until_ctrl_c(made: LabPlan) -> None:
    """Keep the guests until Ctrl-C, which then is no failure."""
    import time

    typer.echo(f"Guests run until Ctrl-C: {', '.join(guest.name for guest in made.machines)}", err=True)
    typer.echo("A shell in one: leadline lab console GUEST", err=True)
    try:
        while True:
            time.sleep(1.0)
    except KeyboardInterrupt:
        typer.echo("", err=True)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """What happens, on stderr: a bar on a terminal, a line per step otherwise."""
    if quiet:
        yield (lambda _: None), (lambda _, __: None)
        return
    if not sys.stderr.isatty():
        yield (lambda text: typer.echo(text, err=True)), (lambda _, __: None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from leadline.faces.cli.output import console

    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield (
            lambda text: bar.update(task, description=text),
            lambda number, whole: bar.update(task, completed=number, total=whole),
        )
