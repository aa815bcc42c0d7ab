"""`leadline lab run`: boot the guests of a lab file, load them, and keep the runs."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.consent import show_plan
from leadline.faces.cli.options import Html, Json, Quiet, said_report
from leadline.faces.cli.outputs import Force, output_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leadline.app.measure.guests import LabPlan
    from leadline.lab.specification import Guest

EPILOG = """\
Examples:

  LEADLINE_HOME=runs leadline lab run examples/lab/pvscsi-vs-lsi.yaml

  LEADLINE_HOME=runs leadline lab run examples/lab/pvscsi-vs-lsi.yaml --plan

  LEADLINE_HOME=runs leadline lab run my.yaml --repeats 1 --wait
"""


def command(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A lab file.")],
    *,
    plan_only: Annotated[bool, typer.Option("--plan", help="Show what would be done, and stop.")] = False,
    repeats: Annotated[int | None, typer.Option(min=1, help="Instead of the file's.", show_default=False)] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Keep the guests until Ctrl-C, for lab console.")] = False,
    html: Html = None,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Boot guests with the devices the file names, load them, compare.

    Needs QEMU and an unpacked kernel package, no privilege and no network. KVM is used when a guest boots with it,
    software emulation otherwise; every result says which. Nothing outside the lab's own folder is written; Ctrl-C ends
    and removes the guests. Loads are runs: see leadline runs.
    """
    from leadline.app.lab.lab import run_lab
    from leadline.app.measure.guests import plan_lab
    from leadline.faces.cli.output import print_json
    from leadline.faces.labs import lab_document, show_lab
    from leadline.lab.specification import read_lab
    from leadline.stores.runs import RunStore

    page = output_file(ctx, "html", html, force=force)
    lab = read_lab(file)
    if repeats is not None:
        lab = lab.model_copy(update={"repeats": repeats})
    plan = plan_lab(lab)
    if plan_only or not quiet:
        show_plan(_plan_lines(plan), err=not plan_only)
    if plan_only:
        return
    from leadline.app.lab.results import outcome

    store = RunStore()
    with _progress(quiet=quiet) as (say, done):
        then = {"wait": lambda: _until_ctrl_c(plan)} if wait or not plan.loaded else {}
        lab_result = run_lab(plan, store, say=say, done=done, **then)
    result = outcome(lab_result, store)
    if page is not None:
        from leadline.faces.report import write_page
        from leadline.faces.report.lab import lab_page

        said_report(page.path, write_page(page, lab_page(result)), quiet=quiet)
    if json:
        print_json("leadline.lab/1", **lab_document(result))
    else:
        show_lab(result)
    if any(load.error for load in lab_result.loads):
        raise typer.Exit(4)


def _plan_lines(plan: LabPlan) -> Iterator[str]:
    yield f"Plan: {plan.lab.name}: {plan.lab.question}" if plan.lab.question else f"Plan: {plan.lab.name}"
    for guest in plan.machines:
        disks = ", ".join(f"{disk.name} on {_adapter(guest, disk.adapter)}" for disk in guest.disks)
        yield f"  {guest.name}: {guest.vcpus} vCPUs, {guest.memory / 2**20:.0f} MiB; {disks or 'no disks'}"
    for left_out in plan.left_out:
        yield f"  {left_out}"
    yield f"  by {plan.accelerator.name}: {plan.accelerator.reason}"
    yield f"  {plan.disk_bytes / 2**30:.2f} GiB of disks, removed at the end; at most {plan.expected_s / 60.0:.1f} min"


def _adapter(guest: Guest, name: str) -> str:
    return next(adapter.type for adapter in guest.adapters if adapter.name == name)


def _until_ctrl_c(plan: LabPlan) -> None:
    """Keep the guests until Ctrl-C, which then does not count as an interruption."""
    import time

    typer.echo(f"Guests run until Ctrl-C: {', '.join(guest.name for guest in plan.machines)}", err=True)
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
