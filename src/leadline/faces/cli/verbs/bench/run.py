"""`leadline bench run`: load a target with a workload."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

if TYPE_CHECKING:
    from leadline.core.benchmark import Plan
    from leadline.core.workload import Workload

EPILOG = """\
Examples:

  leadline bench run hci-8k-50-50 --on scratch --set-size 32m --seconds 2 --rounds 1 --yes

  LEADLINE_HOME=runs leadline bench run my.yaml --on /dev/sdx --destroy-data /dev/sdx

  LEADLINE_HOME=runs leadline bench run network --on db2
"""


def command(
    workload: Annotated[str, typer.Argument(help="A shipped workload, a file, or a fio or vdbench job file.")],
    *,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            help="Folder, file, device, nbd://HOST:PORT/EXPORT; for a database `new`, a folder or a DSN; "
            "for a network `new` or HOST.",
        ),
    ],
    wal: Annotated[
        str | None, typer.Option("--wal", help="Where streams of role wal go instead.", show_default=False)
    ] = None,
    destroy: Annotated[
        str | None,
        typer.Option("--destroy-data", help="The very same target again: its data may go.", show_default=False),
    ] = None,
    size: Annotated[str | None, typer.Option("--set-size", help="Working set, as 4g.", show_default=False)] = None,
    seconds: Annotated[float | None, typer.Option(help="Length of a round.", show_default=False)] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds to measure.", show_default=False)] = None,
    warm_up: Annotated[
        float | None, typer.Option("--warm-up", help="Seconds at most until steady.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the load.", show_default=False)] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fill, warm up until steady, measure rounds, and keep the run.

    The plan is printed first. What is made is removed again, also after Ctrl-C; what was measured until then is kept:
    see `leadline runs`.
    """
    from leadline.app.benching import diagnosis_of, plan, run
    from leadline.app.workloads import workload_of
    from leadline.core.benchmark import Target
    from leadline.core.errors import UsageError
    from leadline.faces.cli.output import print_json
    from leadline.faces.cli.running import talking
    from leadline.faces.runs import show_run
    from leadline.stores.runs import RunStore, document

    wanted = _changed(workload_of(workload), size, seconds, rounds, warm_up)
    made = plan(wanted, Target(on, destroy, {"wal": wal} if wal else {}))
    if not quiet:
        _show_plan(made)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "bench run", found="nobody to ask", expected="--yes", advice="Look at the plan, then add it."
            )
        typer.confirm("Go?", abort=True, err=True)
    store = RunStore()
    with talking(quiet=quiet) as talk:
        done = run(made, store, seed=seed, talk=talk)
    if json:
        print_json("leadline.run/1", run=document(done), files=str(store.files_of(done.id)))
    else:
        show_run(done, diagnosis_of(done.id, store))


def _changed(
    workload: Workload, size: str | None, seconds: float | None, rounds: int | None, warm_up: float | None
) -> Workload:
    """The workload with what was asked for on the command line; checked like a file."""
    from pydantic import ValidationError

    from leadline.core.errors import UsageError
    from leadline.core.workload import Workload

    plain = workload.plain()
    if size is not None:
        plain["io_settings"] = {**plain.get("io_settings", {}), "working_set": size}
        plain["io"] = [{k: v for k, v in stream.items() if k != "working_set"} for stream in plain.get("io", [])]
    timing = {"measure_s": seconds, "rounds": rounds, "warm_up_s": warm_up}
    plain["timing"] = {**plain.get("timing", {}), **{k: v for k, v in timing.items() if v is not None}}
    try:
        return Workload.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            "bench run",
            found=f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}",
            expected="sizes as 4g, seconds of at least 1, rounds of at least 1",
            advice="See `leadline bench run --help`.",
        ) from error


def _show_plan(made: Plan) -> None:
    from leadline.app.benching import expected_s
    from leadline.app.workloads import notes_in_short

    typer.echo(f"Plan: {made.workload.name} on {made.target.name}", err=True)
    for name, place in made.places.items():
        if made.workload.kind == "network":
            server = "start and end a server" if place.made else "the server"
            typer.echo(f"  {name}: {server} at {place.path}", err=True)
            continue
        what = "make, fill and remove" if place.made else "read" if made.read_only else "OVERWRITE"
        typer.echo(f"  {name}: {what} {place.path} ({place.size_bytes / 2**30:.2f} GiB)", err=True)
    for note in (*made.notes, *notes_in_short(made.workload)):
        typer.echo(f"  note: {note}", err=True)
    timing = made.workload.timing
    filling = f"filling {made.written_bytes / 2**30:.2f} GiB, then " if made.workload.kind != "network" else ""
    typer.echo(
        f"  time: {filling}at most {expected_s(made.workload):.0f} s "
        f"(warm-up up to {timing.warm_up_s:.0f} s, {timing.rounds} x {timing.measure_s:.0f} s)",
        err=True,
    )
