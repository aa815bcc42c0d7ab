"""`leadline bench run`: load a target with a workload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.consent import Destroy, Yes, agree
from leadline.faces.cli.options import Html, Json, Most, Quiet, most_of, said_report
from leadline.faces.cli.outputs import Force, output_file
from leadline.faces.cli.verbs.bench._many import HOSTS_HELP, PASSWORD_HELP, Asked, load_many
from leadline.faces.cli.verbs.bench._workload import changed

if TYPE_CHECKING:
    from leadline.app.measure.baselines import Judgement
    from leadline.core.contracts.benchmark import LoadPlan
    from leadline.core.model.run import Run
    from leadline.faces.theoretical import Theoretical
    from leadline.stores.runs import RunStore

EPILOG = """\
Examples:

  leadline bench run hci-8k-50-50 --on scratch --set-size 32m --seconds 2 --rounds 1 --html run.html --yes

  leadline bench run hci-4k-read --on scratch --set-size 8m --seconds 1 --warm-up 0 --repeat 3 --keep quiet --yes

  LEADLINE_HOME=runs leadline bench run my.yaml --on /dev/sdx --destroy-data /dev/sdx

  LEADLINE_HOME=runs leadline bench run network --on db2

  LEADLINE_HOME=runs leadline bench run web-pages --on new

  LEADLINE_HOME=runs leadline bench run hci-4k-read --on lab:examples/lab/pvscsi-vs-lsi.yaml:lsi --set-size 64m

  leadline bench run hci-8k-50-50 --hosts hosts.txt --set-size 8m --seconds 2 --rounds 1 --warm-up 0 --yes
"""
WORSE = 1
_SERVERS = ("network", "web")  # kinds of workloads that load a server, and fill nothing


def command(
    ctx: typer.Context,
    workload: Annotated[str, typer.Argument(help="A shipped workload, a file, or a fio or vdbench job file.")],
    *,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            help="Folder, file, device, nbd://HOST:PORT/EXPORT, a LUN as iscsi://HOST/IQN/LUN, a guest as "
            "lab:FILE:GUEST/DISK; for a database `new`, a folder or a DSN; for a network `new` or HOST; for the web "
            "`new`, a folder or http://HOST/PAGE.",
            show_default=False,
        ),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option("--hosts", help=f"Many machines, as `bench hosts`. {HOSTS_HELP}", show_default=False),
    ] = None,
    wal: Annotated[
        str | None,
        typer.Option(
            "--wal",
            help="Where streams of role wal, or a new PostgreSQL's WAL, go; of a guest: DISK.",
            show_default=False,
        ),
    ] = None,
    destroy: Destroy = None,
    size: Annotated[str | None, typer.Option("--set-size", help="Working set, as 4g.", show_default=False)] = None,
    seconds: Annotated[float | None, typer.Option(help="Length of a round.", show_default=False)] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds to measure.", show_default=False)] = None,
    warm_up: Annotated[
        float | None, typer.Option("--warm-up", help="Seconds at most until steady.", show_default=False)
    ] = None,
    tool: Annotated[
        str | None,
        typer.Option(
            "--tool", help="Makes the load of disks: fio, or vdbench in LEADLINE_VDBENCH.", show_default=False
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Whole runs one after the other, filled once.")] = 1,
    keep_as: Annotated[
        str | None, typer.Option("--keep", metavar="NAME", help="Keep it as a baseline.", show_default=False)
    ] = None,
    fail_on_worse: Annotated[
        bool, typer.Option("--fail-on-worse", help="Exit 1 when worse than a baseline, surely.")
    ] = False,
    theoretical: Most = None,
    ask_password: Annotated[bool, typer.Option("--ask-password", help=PASSWORD_HELP)] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the load.", show_default=False)] = None,
    yes: Yes = False,
    html: Html = None,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fill, warm up until steady, measure rounds, and keep the run.

    The plan is printed first. What is made is removed again, also after Ctrl-C; what was measured until then is kept:
    see `leadline runs`. It is judged against every baseline of the same load, target and host (`leadline runs
    baseline keep`).
    """
    from leadline.app.measure.baselines import check_name, judge, keep
    from leadline.app.measure.benching import plan, run_repeated
    from leadline.app.measure.workloads import driven_by, workload_of
    from leadline.core.contracts.load_target import Target
    from leadline.core.model.errors import UsageError
    from leadline.faces.cli.running import talking
    from leadline.faces.run_page import write_run_page
    from leadline.stores.runs import RunStore

    most = most_of(theoretical)
    wanted = changed(driven_by(workload_of(workload), tool), "bench run", size, seconds, rounds, warm_up)
    if hosts is not None:
        _refuse_with_hosts(wal=wal, html=html, keep=keep_as, repeat=repeat > 1, fail_on_worse=fail_on_worse)
        named = () if destroy is None else (destroy,)
        folder = "/tmp" if on is None else on
        load_many(wanted, hosts, folder, named, Asked("bench run", seed, ask_password, most, yes, json, quiet))
        return
    if on is None:
        raise UsageError(
            "bench run", found="no target", expected="--on or --hosts", advice="For example --on /srv/scratch."
        )
    if keep_as is not None:
        check_name(keep_as)
    page = output_file(ctx, "html", html, force=force)
    load_plan = plan(wanted, Target(on, destroy, {"wal": wal} if wal else {}))
    agree("bench run", _plan_lines(load_plan, repeat), yes=yes, quiet=quiet)
    store = RunStore()
    with talking(quiet=quiet) as talk:
        done = run_repeated(load_plan, store, repeat, seed=seed, talk=talk)
    judgements = judge(store, done)
    if keep_as is not None:
        keep(store, keep_as, done)
    if page is not None:
        said_report(page.path, write_run_page(page, done[-1], store, judgements, done[:-1]), quiet=quiet)
    _show(done, judgements, store, most, json=json)
    if fail_on_worse and any(judgement.comparison.worse for judgement in judgements):
        raise typer.Exit(WORSE)


_ALONE = {
    "wal": "A host of the file has one target.",
    "html": "The run is kept: leadline runs show ID --html FILE.",
    "keep": "The run is kept: leadline runs baseline keep NAME ID.",
    "repeat": "Set --rounds.",
    "fail_on_worse": "The run is kept: leadline runs compare.",
}


def _refuse_with_hosts(**given: object) -> None:
    """Refuse what is for one target, rather than leave it out silently."""
    from leadline.core.model.errors import UsageError

    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(option, found="with --hosts", expected="one of them", advice=_ALONE[name])


def _show(
    done: list[Run], judgements: list[Judgement], store: RunStore, most: Theoretical | None, *, json: bool
) -> None:
    from leadline.app.measure.benching import diagnosis_of
    from leadline.faces.cli.output import print_json
    from leadline.faces.hosts import share_of
    from leadline.faces.runs import show_judgements, show_run
    from leadline.stores.runs import document

    if json:
        last = done[-1]
        print_json(
            "leadline.run/1",
            run=document(last),
            files=str(store.files_of(last.id)),
            runs=[run.id for run in done],
            judgements=[judgement.to_dict() for judgement in judgements],
            **({} if most is None else {"theoretical_share": share_of(last, most)}),
        )
        return
    for run in done:
        show_run(run, diagnosis_of(run.id, store), most=most)
    show_judgements(judgements)


def _plan_lines(plan: LoadPlan, repeat: int) -> Iterator[str]:
    from leadline.app.measure.benching import expected_s
    from leadline.app.measure.workloads import notes_in_short

    yield f"Plan: {plan.workload.name} on {plan.target.name}"
    for name, place in plan.places.items():
        if plan.workload.kind in _SERVERS:
            server = "start and end a server" if place.is_made else "the server"
            yield f"  {name}: {server} at {place.path}"
            continue
        action = "make, fill and remove" if place.is_made else "read" if plan.read_only else "OVERWRITE"
        yield f"  {name}: {action} {place.path} ({place.size_bytes / 2**30:.2f} GiB)"
    for note in (*plan.notes, *notes_in_short(plan.workload)):
        yield f"  note: {note}"
    timing = plan.workload.timing
    filling = f"filling {plan.written_bytes / 2**30:.2f} GiB, then " if plan.workload.kind not in _SERVERS else ""
    yield (
        f"  time: {filling}at most {expected_s(plan.workload):.0f} s "
        f"(warm-up up to {timing.warm_up_s:.0f} s, {timing.rounds} x {timing.measure_s:.0f} s)"
        f"{f', and all but the filling {repeat} times' if repeat > 1 else ''}"
    )
