"""`leadline bench density`: how many instances of a workload fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.consent import Destroy, Yes, agree
from leadline.faces.cli.options import Json, Quiet
from leadline.faces.cli.outputs import Force, output_file

if TYPE_CHECKING:
    from leadline.app.density.density import DensityPlan
    from leadline.app.density.results import Density
    from leadline.core.io.outputs import Output
    from leadline.stores.runs import RunStore

EPILOG = """\
Examples:

  leadline bench density hci-8k-50-50 --on scratch --rate 40 --set-size 4m --max 2 \
--service-level 'p95<=2s' --seconds 11 --rounds 1 --warm-up 0 --yes

  LEADLINE_HOME=runs leadline bench density my.yaml --on /srv/scratch \
--service-level 'p95<=20ms, per_s>=0.95 of offered' --html density.html

  LEADLINE_HOME=runs leadline bench density my.yaml --on lab:examples/lab/density.yaml --rate 200 --max 8 \
--service-level 'p95<=50ms, per_s>=0.95 of offered'

  LEADLINE_HOME=runs leadline bench density pgbench --on /srv/scratch --rate 40 --cpus 0.5 --memory 512m \
--service-level 'p95<=50ms, per_s>=0.9 of offered' --rounds 5

  LEADLINE_HOME=runs leadline bench density --compare 20260101 last
"""
_NAME = "bench density"
FAILED = 4


def command(
    ctx: typer.Context,
    workload: Annotated[str | None, typer.Argument(help="A shipped workload, or a file.", show_default=False)] = None,
    *,
    level: Annotated[
        str | None,
        typer.Option(
            "--service-level",
            metavar="TEXT",
            help="Of each instance, by commas: p50 ... p99.99 <= TIME; per_s >= RATE or SHARE of offered.",
            show_default=False,
        ),
    ] = None,
    on: Annotated[
        str, typer.Option("--on", help="Folder, file, device, nbd://..., lab:FILE, or `new` for servers; {n}: number.")
    ] = ".",
    destroy: Destroy = None,
    rate: Annotated[
        float | None, typer.Option(help="Operations per second an instance asks for.", show_default=False)
    ] = None,
    start: Annotated[int, typer.Option(help="First count of instances.")] = 1,
    step: Annotated[int, typer.Option(help="How close the answer is sought.")] = 1,
    growth: Annotated[float, typer.Option(help="Factor upwards; 1: by --step.")] = 2.0,
    most: Annotated[int, typer.Option("--max", help="Most instances.")] = 64,
    cpus: Annotated[float | None, typer.Option(help="CPUs of an instance, as 0.5.", show_default=False)] = None,
    memory: Annotated[str | None, typer.Option(help="Memory of an instance, as 512m.", show_default=False)] = None,
    iops: Annotated[
        int | None, typer.Option(help="Reads, and writes, per second an instance may do.", show_default=False)
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(help="Instances are machines: a line HOST[,PORT] [FOLDER] each.", show_default=False),
    ] = None,
    folder: Annotated[str, typer.Option("--in", help="With --hosts: folder on each to make files in.")] = "/tmp",
    size: Annotated[
        str | None, typer.Option("--set-size", help="Working set of an instance, as 4g.", show_default=False)
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Length of a round.", show_default=False)] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds at each count.", show_default=False)] = None,
    warm_up: Annotated[
        float | None, typer.Option("--warm-up", help="Seconds before each round.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the load.", show_default=False)] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Go on with one that was cut, or `last`.", show_default=False)
    ] = None,
    compare: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Two density runs side by side.", show_default=False)
    ] = None,
    require: Annotated[
        int | None, typer.Option(help="Exit status 1 when fewer surely fit.", show_default=False)
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the curve as a page too.", show_default=False)] = None,
    yes: Yes = False,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """How many such VMs fit? Add instances until the service level of one breaks.

    The count doubles until the service level surely breaks, then the gap is halved. Instances of I/O are processes of
    fio with data of their own, guests of a lab, or machines. Instances of a database or of web pages are servers, each
    in namespaces of its own, with a client beside it. Control groups limit them when asked. Every count is kept as a
    run.
    """
    from leadline.app.density.density import DensityRequest, make_plan, resume_plan
    from leadline.app.density.model import parse_service_level
    from leadline.app.density.requests import bytes_of, changed
    from leadline.app.density.steps import StepRule
    from leadline.app.measure.hosts import read_hosts
    from leadline.app.measure.workloads import workload_of
    from leadline.core.contracts.load_target import Target
    from leadline.core.system.cgroups import InstanceLimits
    from leadline.stores.runs import RunStore

    _require_one(workload, level, resume, compare)
    page = output_file(ctx, "html", html, force=force)
    store = RunStore()
    if compare is not None:
        _compare(store, compare, page, json=json)
        return
    if resume is not None:
        plan, before = resume_plan(store, resume, destroy)
    else:
        wanted = changed(
            workload_of(workload or ""),
            size=size,
            rate_per_s=rate,
            measure_s=seconds,
            rounds=rounds,
            warm_up_s=warm_up,
        )
        request = DensityRequest(
            wanted,
            Target(on, destroy),
            parse_service_level(level or ""),
            StepRule(start, step, growth, most),
            InstanceLimits(cpus, bytes_of(memory, "--memory"), iops),
            () if hosts is None else tuple(read_hosts(hosts, folder)),
        )
        plan, before = make_plan(request), None
    agree(_NAME, _plan_lines(plan, before), yes=yes, quiet=quiet)
    _run(plan, before, store, page, (seed, require), json=json, quiet=quiet)


def _require_one(workload: str | None, level: str | None, resume: str | None, compare: tuple[str, str] | None) -> None:
    from leadline.core.model.errors import UsageError

    chosen = [name for name, given in (("WORKLOAD", workload), ("--resume", resume), ("--compare", compare)) if given]
    if len(chosen) != 1:
        raise UsageError(
            _NAME,
            found=" and ".join(chosen) or "nothing to do",
            expected="one of WORKLOAD, --resume and --compare",
            advice="See `leadline bench density --help`.",
        )
    if workload and not level:
        raise UsageError(
            _NAME,
            found="no --service-level",
            expected="what every instance must have",
            advice="For example --service-level 'p95<=20ms, per_s>=0.95 of offered'.",
        )


def _plan_lines(plan: DensityPlan, before: Density | None) -> Iterator[str]:
    from leadline.app.density.steps import count_most
    from leadline.core.model.units import duration

    request, site = plan.request, plan.site
    yield from _wrapped(f"{request.workload.name}, {', '.join(map(str, plan.clauses))} for every instance", "Plan: ")
    for line in _places(plan):
        yield from _wrapped(line)
    if site is not None and plan.groups is not None and request.limits.controllers:
        yield from _wrapped(f"each limited to {request.limits.words()} (control groups v{plan.groups.version})")
    timing, rule = request.workload.timing, plan.rule
    at_each, counts = timing.rounds * plan.round_s, count_most(rule)
    yield from _wrapped(
        f"up to {rule.most} instances in about {counts} counts of {duration(at_each)} ({timing.rounds} x "
        f"{timing.measure_s:.0f} s, each after {timing.warm_up_s:.0f} s): {duration(at_each * counts)}, and the time "
        f"of {'booting' if site is not None and site.kind == 'guests' else 'filling'}"
    )
    if before is not None:
        kept = ", ".join(str(level.count) for level in before.by_count) or "none"
        yield from _wrapped(f"goes on with {before.id}; counts kept: {kept}")
    for note in plan.notes:
        yield from _wrapped(f"note: {note}")


def _wrapped(text: str, lead: str = "  ") -> Iterator[str]:
    from textwrap import wrap

    from leadline.faces.cli.output import WIDTH

    indent = " " * len(lead)
    yield from wrap(text, WIDTH, initial_indent=lead, subsequent_indent=indent, break_on_hyphens=False)


def _places(plan: DensityPlan) -> list[str]:
    request, site = plan.request, plan.site
    if site is None:
        size = sum(request.workload.working_set_bytes(stream) for stream in request.workload.io) / 2**30
        hosts = [f"{host.address}  {host.path}" for host in request.hosts]
        return [f"make, fill and remove {size:.2f} GiB on each machine:", *hosts]
    each, most = site.each_bytes / 2**20, site.each_bytes * plan.rule.most / 2**30
    if site.kind == "folder":
        return [f"makes a folder of its own in {request.target.name}: {each:,.0f} MiB each, at most {most:.2f} GiB"]
    if site.kind == "servers":
        place = f"makes a folder of its own in {request.target.name if request.target.name != 'new' else 'TMPDIR'}"
        apart = "in namespaces of its own" if site.is_apart else "beside the others"
        limits = "; its client is outside of its limits" if request.limits.controllers else ""
        return [
            f"{place}: {each:,.0f} MiB each, at most {most:.2f} GiB",
            f"starts a server for each instance, {apart}{limits}",
            *site.plan.notes[:1],
        ]
    if site.kind == "guests":
        return [*site.plan.notes[:1], f"boots such guests as they are needed, {each:,.0f} MiB of disks each"]
    action = "reads" if site.plan.read_only else "OVERWRITES"
    if site.kind == "each":
        return [f"{action} {request.target.name}, {each:,.0f} MiB of each"]
    return [f"{action} stretches of {request.target.name}, {each:,.0f} MiB each, at most {most:.2f} GiB"]


def _run(
    plan: DensityPlan,
    before: Density | None,
    store: RunStore,
    page: Output | None,
    wanted: tuple[int | None, int | None],
    *,
    json: bool,
    quiet: bool,
) -> None:
    from leadline.app.density.density import run_density
    from leadline.app.density.model import CountState
    from leadline.core.system.interrupts import Interrupted
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.cli.running import talking
    from leadline.faces.density import show_density
    from leadline.faces.report import write_page
    from leadline.faces.report.density import density_page

    seed, require = wanted
    with talking(quiet=quiet) as talk:
        done = run_density(plan, store, seed=seed, talk=talk, before=before)
    if page is not None:
        write_page(page, density_page([done]))
    if json:
        print_json("leadline.density/1", density=done.to_dict())
    else:
        show_density(console(), done)
    if not done.is_done:
        raise Interrupted(f"what was measured is kept; go on with: leadline bench density --resume {done.id}")
    if all(level.state is CountState.FAILED for level in done.levels):
        raise typer.Exit(FAILED)
    if require is not None and done.answer.last_held < require:
        raise typer.Exit(1)


def _compare(store: RunStore, names: tuple[str, str], page: Output | None, *, json: bool) -> None:
    from leadline.app.density.comparing import compare_density
    from leadline.app.density.results import stored
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.density import show_density_comparison
    from leadline.faces.report import write_page
    from leadline.faces.report.density import density_page

    runs = [stored(store, name) for name in names]
    comparison = compare_density(*runs)
    if page is not None:
        write_page(page, density_page(runs, comparison))
    if json:
        print_json("leadline.density-comparison/1", **comparison.to_dict())
    else:
        show_density_comparison(console(), comparison)
    if comparison.worse:
        raise typer.Exit(1)
