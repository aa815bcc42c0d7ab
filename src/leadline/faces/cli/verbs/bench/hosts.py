"""`leadline bench hosts`: the same load on many machines at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

if TYPE_CHECKING:
    from leadline.app.hosts import HostsResult

EPILOG = """\
Examples:

  LEADLINE_HOME=runs leadline bench hosts hci-8k-50-50 --hosts hosts.txt --in /srv/scratch
"""
FAILED = 4


def command(
    workload: Annotated[str, typer.Argument(help="A shipped workload, a file, or a fio or vdbench job file.")],
    *,
    hosts: Annotated[Path, typer.Option("--hosts", help="File: a line HOST[,PORT] [FOLDER] per machine.")],
    folder: Annotated[str, typer.Option("--in", help="Folder on each machine to make files in.")] = "/tmp",
    size: Annotated[str | None, typer.Option("--set-size", help="Working set, as 4g.", show_default=False)] = None,
    seconds: Annotated[float | None, typer.Option(min=1, help="Length of a round.", show_default=False)] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds to measure.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the load.")] = 1,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Load many machines at once through fio's servers (`fio --server` on each).

    Percentiles are of the pooled requests of all machines; machines far from the others are marked. One that fails is
    told and the rest kept; the exit status is then 4.
    """
    import tempfile

    from leadline.app.hosts import load_hosts, read_hosts, require_fio, shortened
    from leadline.app.workloads import notes_in_short, workload_of
    from leadline.core.errors import UsageError
    from leadline.core.workload import size_of

    wanted = workload_of(workload)
    if wanted.kind != "io":
        raise UsageError(
            f"workload {wanted.name}", found=f"kind {wanted.kind}", expected="io", advice="fio's servers do I/O only."
        )
    try:
        wanted = shortened(wanted, None if size is None else size_of(size), seconds, rounds)
    except ValueError as error:
        raise UsageError("--set-size", found=str(error), expected="a size as 4g", advice="For example 512m.") from error
    machines = read_hosts(hosts, folder)
    require_fio()
    if not quiet:
        total = sum(wanted.working_set_bytes(stream) for stream in wanted.io) / 2**30
        typer.echo(
            f"Plan: {wanted.name} on {len(machines)} machines: make, fill and remove {total:.2f} GiB on each", err=True
        )
        for machine in machines:
            typer.echo(f"  {machine.address}  {machine.path}", err=True)
        for note in notes_in_short(wanted):
            typer.echo(f"  note: {note}", err=True)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "bench hosts", found="nobody to ask", expected="--yes", advice="Look at the plan, then add it."
            )
        typer.confirm("Go?", abort=True, err=True)
    with tempfile.TemporaryDirectory(prefix="leadline-hosts-") as work:
        say = (lambda _: None) if quiet else (lambda text: typer.echo(text, err=True))
        done = load_hosts(wanted, machines, Path(work), seed=seed, say=say)
    _show(done, json=json)
    if any(own.error is not None for own in done.hosts):
        raise typer.Exit(FAILED)


def _show(done: HostsResult, *, json: bool) -> None:
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table
    from leadline.faces.terminal import wrapped

    outliers = {own.host.address for own in done.outliers()}
    if json:
        print_json(
            "leadline.bench-hosts/1",
            per_s=done.per_s,
            percentiles_ms={name: ms for name, (ms, _) in done.percentiles_ms().items()},
            hosts=[
                {
                    "host": own.host.address,
                    "per_s": own.per_s,
                    "p95_ms": own.p95_ms,
                    "outlier": own.host.address in outliers,
                    "error": own.error,
                }
                for own in done.hosts
            ],
        )
        return
    out = console()
    table = plain_table("machine", "per s", "p95 ms", "", right=("per s", "p95 ms"))
    for own in done.hosts:
        if own.error is not None:
            table.add_row(own.host.address, "-", "-", own.error)
        else:
            mark = "far from the others" if own.host.address in outliers else ""
            table.add_row(own.host.address, f"{own.per_s:,.0f}", f"{own.p95_ms:.3g}", mark)
    out.print(table)
    shown = "  ".join(f"{name} {ms:.3g}" for name, (ms, _) in done.percentiles_ms().items())
    wrapped(out, f"{done.per_s:,.0f} operations/s in all; pooled, ms: {shown}")
