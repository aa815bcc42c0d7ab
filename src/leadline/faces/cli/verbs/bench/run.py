"""`leadline bench run`: load a target with a workload."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Json, Most, Quiet, most_of
from leadline.faces.cli.verbs.bench._many import HOSTS_HELP, PASSWORD_HELP, Asked, load_many
from leadline.faces.cli.verbs.bench._workload import changed

if TYPE_CHECKING:
    from leadline.core.benchmark import Plan

EPILOG = """\
Examples:

  leadline bench run hci-8k-50-50 --on scratch --set-size 32m --seconds 2 --rounds 1 --yes

  LEADLINE_HOME=runs leadline bench run my.yaml --on /dev/sdx --destroy-data /dev/sdx

  leadline bench run hci-8k-50-50 --hosts hosts.txt --set-size 8m --seconds 2 --rounds 1 --warm-up 0 --yes
"""


def command(
    workload: Annotated[str, typer.Argument(help="A shipped workload, or a file.")],
    *,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            help="Folder, file, device, nbd://HOST:PORT/EXPORT; for a database `new`, a folder or a DSN.",
            show_default=False,
        ),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option("--hosts", help=f"Many machines, as `bench hosts`. {HOSTS_HELP}", show_default=False),
    ] = None,
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
    theoretical: Most = None,
    ask_password: Annotated[bool, typer.Option("--ask-password", help=PASSWORD_HELP)] = False,
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
    from leadline.core.benchmark import Target
    from leadline.core.errors import UsageError
    from leadline.core.workload import find_workload
    from leadline.faces.cli.output import print_json
    from leadline.faces.cli.running import talking
    from leadline.faces.hosts import share_of
    from leadline.faces.runs import show_run
    from leadline.stores.runs import RunStore, document

    most = most_of(theoretical)
    wanted = changed(find_workload(workload), "bench run", size, seconds, rounds, warm_up)
    if hosts is not None:
        if wal is not None:
            raise UsageError(
                "--wal", found="--hosts", expected="one of them", advice="A host of the file has one target."
            )
        named = () if destroy is None else (destroy,)
        load_many(wanted, Asked(hosts, on or "/tmp", named, seed, ask_password, most, yes, json, quiet, "bench run"))
        return
    if on is None:
        raise UsageError(
            "bench run", found="no target", expected="--on or --hosts", advice="For example --on /srv/scratch."
        )
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
        share = {} if most is None else {"theoretical_share": share_of(done, most)}
        print_json("leadline.run/1", run=document(done), files=str(store.files_of(done.id)), **share)
    else:
        show_run(done, diagnosis_of(done.id, store), most=most)


def _show_plan(made: Plan) -> None:
    from leadline.app.benching import expected_s

    typer.echo(f"Plan: {made.workload.name} on {made.target.name}", err=True)
    for name, place in made.places.items():
        what = "make, fill and remove" if place.made else "read" if made.read_only else "OVERWRITE"
        typer.echo(f"  {name}: {what} {place.path} ({place.size_bytes / 2**30:.2f} GiB)", err=True)
    for note in made.notes:
        typer.echo(f"  note: {note}", err=True)
    timing = made.workload.timing
    typer.echo(
        f"  time: filling {made.written_bytes / 2**30:.2f} GiB, then at most {expected_s(made.workload):.0f} s "
        f"(warm-up up to {timing.warm_up_s:.0f} s, {timing.rounds} x {timing.measure_s:.0f} s)",
        err=True,
    )
