"""`leadline bench sweep`: one workload at many loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from leadline.faces.cli.consent import Destroy, DryRun, Yes, agree, show_plan
from leadline.faces.cli.options import Json, Quiet, said_report
from leadline.faces.cli.outputs import Force, output_file
from leadline.faces.cli.verbs.bench._workload import changed

if TYPE_CHECKING:
    from leadline.app.measure.easy import Easy
    from leadline.app.sweep.sweeping import PlannedSweep, SweepOutcome
    from leadline.core.io.outputs import Output
    from leadline.core.model.workload import Workload
    from leadline.stores.runs import RunStore

Number = TypeVar("Number", int, float)

EPILOG = """\
Examples:

  leadline bench sweep hci-4k-read --on scratch --oio 1,4 --set-size 16m --seconds 1 --warm-up 0 --yes

  leadline bench sweep hci-8k-50-50 --on scratch --oio 1,2 --jobs 1,2 --set-size 16m --seconds 1 --yes --html s.html

  leadline bench sweep --easy --on scratch --dry-run

  leadline bench sweep --easy --inventory examples/easy/inventory.yaml --storage prod --latency-target 5ms

  leadline bench sweep --resume last

  LEADLINE_HOME=runs leadline bench sweep hci-4k-read --on lab:examples/lab/pvscsi-vs-lsi.yaml:lsi --set-size 64m
"""


def command(
    ctx: typer.Context,
    workload: Annotated[str | None, typer.Argument(help="A shipped workload, or a file.", show_default=False)] = None,
    *,
    on: Annotated[
        str | None,
        typer.Option("--on", help="Target, as of `bench run`; with --resume only for a password.", show_default=False),
    ] = None,
    oio: Annotated[
        str | None, typer.Option(help="Outstanding I/O: 1,2,4 or 1..64. [default: 1..256]", show_default=False)
    ] = None,
    clients: Annotated[
        str | None, typer.Option(help="Of a database: 1,2,4 or 1..64. [default: 1..128]", show_default=False)
    ] = None,
    block: Annotated[str | None, typer.Option(help="Block sizes, as 4k,64k.", show_default=False)] = None,
    read_pct: Annotated[
        str | None, typer.Option("--read-pct", help="Read shares, as 100,70,0.", show_default=False)
    ] = None,
    jobs: Annotated[str | None, typer.Option(help="Jobs of each stream, as 1,2,4.", show_default=False)] = None,
    latency_target: Annotated[
        str | None, typer.Option("--latency-target", help="Find the best load within it, as 5ms.", show_default=False)
    ] = None,
    percentile: Annotated[str, typer.Option(help="That the target is of: p50 to p99.99, or mean.")] = "p99",
    wal: Annotated[
        str | None, typer.Option("--wal", help="Where streams of role wal go instead.", show_default=False)
    ] = None,
    destroy: Destroy = None,
    size: Annotated[str | None, typer.Option("--set-size", help="Working set, as 4g.", show_default=False)] = None,
    seconds: Annotated[
        float | None, typer.Option(min=1, help="Length of a round. [default: 15]", show_default=False)
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of a point. [default: 1]", show_default=False)
    ] = None,
    warm_up: Annotated[
        float | None,
        typer.Option("--warm-up", min=0, help="Seconds at most until steady. [default: 15]", show_default=False),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of load and order.", show_default=False)] = None,
    easy: Annotated[bool, typer.Option("--easy", help="Choose what is not named, and say why.")] = False,
    inventory: Annotated[
        Path | None, typer.Option(help="With --easy: plan for what it describes.", show_default=False)
    ] = None,
    storage: Annotated[
        str | None, typer.Option(help="With --inventory: which cluster or datastore.", show_default=False)
    ] = None,
    hosts: Annotated[
        Path | None, typer.Option(help="With --inventory: machines there are, as of bench hosts.", show_default=False)
    ] = None,
    dry_run: DryRun = False,
    resume: Annotated[str | None, typer.Option(help="Go on with a sweep: its id, or last.", show_default=False)] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page with its figures.", show_default=False)
    ] = None,
    yes: Yes = False,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Load a target at more and more outstanding I/O (or clients) until operations stop growing.

    The target is filled once. Found are the knee, the best load within a latency target and the universal scalability
    law. Every point is a run, kept as soon as it is measured; --resume measures what is left. --easy chooses size and
    load; without --on it only says what it would do.
    """
    from leadline.app.sweep.sweeping import SweepWish, plan_rest, plan_sweep, point_timing, run_sweep
    from leadline.core.contracts.load_target import Target
    from leadline.stores.runs import RunStore

    page = output_file(ctx, "html", html, force=force)
    target_ms = _target_ms(latency_target)
    store = RunStore()
    _require_easy(easy=easy, resume=resume, inventory=inventory, storage=storage, hosts=hosts)
    chosen = None
    if inventory is not None:
        _plan_others(inventory, storage, hosts, workload, has_target=target_ms is not None, json=json)
        return
    if easy:
        chosen = _choose(on, workload, quiet=quiet, is_plan=on is None or dry_run, json=json)
        if on is None:
            return
        workload = chosen.workload
        size, jobs = size or str(chosen.disk_bytes), jobs or str(chosen.jobs)
        oio = oio or f"1..{chosen.oio_max}"
    _require(workload, on, resume)
    if resume is not None:
        planned = plan_rest(store, resume, on, destroy)
    else:
        point_workload = point_timing(_sized(str(workload), size), seconds, rounds, warm_up)
        lists = (_sizes(block), _numbers(read_pct, "--read-pct", 100.0), _counts(jobs))
        wish = SweepWish(_loads(point_workload, oio, clients), *lists, target_ms, percentile, seed)
        planned = plan_sweep(point_workload, Target(str(on), destroy, {"wal": wal} if wal else {}), wish)
    if dry_run:
        _show_dry(planned, chosen, json=json)
        return
    agree("bench sweep", plan_lines(planned), yes=yes or planned.point_count_max <= 0, quiet=quiet)
    _run_and_show(planned, store, run_sweep, page=page, json=json, quiet=quiet)


def _require_easy(
    *, easy: bool, resume: str | None, inventory: Path | None, storage: str | None, hosts: Path | None
) -> None:
    from leadline.core.model.errors import UsageError

    conflict = expected = ""
    if not easy and inventory is not None:
        conflict, expected = "no --easy", "--easy beside --inventory"
    elif inventory is None and (storage is not None or hosts is not None):
        conflict, expected = "no --inventory", "the inventory that says what lies below"
    elif easy and resume is not None:
        conflict, expected = "--easy and --resume", "one of them: a sweep that goes on has its plan"
    if conflict:
        raise UsageError("bench sweep", found=conflict, expected=expected, advice="See docs/guides/sweep.md.")


def _choose(on: str | None, workload: str | None, *, quiet: bool, is_plan: bool, json: bool) -> Easy:
    """What to do on this machine; shown as the plan when there is no folder to do it in, else as talk."""
    from leadline.app.sweep.easy_plans import easy_here
    from leadline.faces.cli.output import print_json
    from leadline.faces.easy import command_here, easy_document, show_choices

    chosen = easy_here(on, workload)
    if on is None and json:
        print_json("leadline.sweep-plan/1", easy=easy_document(chosen), run=command_here(chosen))
    elif not json and (is_plan or not quiet):
        show_choices(chosen.choices, err=not is_plan)
        if on is None:
            typer.echo(f"Nothing was written. To do it:\n  {command_here(chosen)}")
    return chosen


def _plan_others(
    inventory: Path, storage: str | None, hosts: Path | None, workload: str | None, *, has_target: bool, json: bool
) -> None:
    """The plan for other machines: shown, not done, since they are not this one."""
    from leadline.app.measure.hosts import read_hosts
    from leadline.app.sweep.easy_plans import easy_for
    from leadline.faces.cli.output import print_json
    from leadline.faces.easy import commands_there, easy_document, show_choices

    machines = None if hosts is None else len(read_hosts(hosts, "."))
    store, chosen = easy_for([inventory], storage, machines, workload, has_target=has_target)
    commands = commands_there(chosen, hosts)
    if json:
        print_json("leadline.sweep-plan/1", storage=store.name, easy=easy_document(chosen), run=commands)
        return
    typer.echo(f"Plan for {store.name} ({store.kind}); nothing was written.")
    show_choices(chosen.choices)
    for line in commands:
        typer.echo(line)


def _show_dry(planned: PlannedSweep, chosen: Easy | None, *, json: bool) -> None:
    from dataclasses import asdict

    from leadline.faces.cli.output import print_json
    from leadline.faces.easy import easy_document

    if not json:
        show_plan(plan_lines(planned), err=False)
        return
    choices = None if chosen is None else easy_document(chosen)
    plain = {**asdict(planned.sweep), "points_max": planned.point_count_max, "seconds_max": planned.seconds_max}
    print_json("leadline.sweep-plan/1", easy=choices, sweep=plain, written_bytes=planned.load_plan.written_bytes)


def plan_lines(planned: PlannedSweep) -> list[str]:
    """Return the plan of a sweep as lines for people."""
    from leadline.core.model.units import duration

    sweep, plan = planned.sweep, planned.load_plan
    loads = f"{sweep.loads[0]} to {sweep.loads[-1]}, until operations stop growing"
    if not sweep.grows:
        loads = ", ".join(map(str, sweep.loads))
    lines = [f"Plan: {sweep.workload['name']} on {plan.target.name}", f"  sweep {sweep.id}", f"  {sweep.axis}: {loads}"]
    labels = [variant.label() for variant in sweep.variants]
    if any(labels):
        lines.append(f"  {len(labels)} variant{'s' if len(labels) > 1 else ''}: {'; '.join(labels)}")
    if planned.done_count:
        lines.append(f"  {planned.done_count} points are measured already")
    if planned.point_count_max <= 0:
        return lines
    for name, place in plan.places.items():
        action = "make, fill and remove" if place.is_made else "read" if plan.read_only else "OVERWRITE"
        lines.append(f"  {name}: {action} {place.path} ({place.size_bytes / 2**30:.2f} GiB)")
    lines += [f"  note: {note}" for note in plan.notes]
    timing = planned.workload.timing
    lines += [
        f"  time: filling {plan.written_bytes / 2**30:.2f} GiB once, then at most {planned.point_count_max} points in "
        f"{duration(planned.seconds_max)}",
        f"    (warm-up up to {timing.warm_up_s:.0f} s, {timing.rounds} x {timing.measure_s:.0f} s each)",
    ]
    order = "rising load by load; the lowest once more at the end" if sweep.grows else "drawn by the seed"
    return [*lines, f"  order: {order}"]


def _require(workload: str | None, on: str | None, resume: str | None) -> None:
    from leadline.core.model.errors import UsageError

    if resume is not None and workload is not None:
        raise UsageError(
            "bench sweep --resume",
            found=f"a workload ({workload})",
            expected="the sweep alone, which has its own",
            advice="Leave the workload out.",
        )
    if resume is None and (workload is None or on is None):
        raise UsageError(
            "bench sweep",
            found="no WORKLOAD" if workload is None else "no --on",
            expected="both, or --resume",
            advice="`leadline bench workloads` lists the shipped ones.",
        )


def _run_and_show(
    planned: PlannedSweep,
    store: RunStore,
    run_sweep: Callable[..., SweepOutcome],
    *,
    page: Output | None,
    json: bool,
    quiet: bool,
) -> None:
    """Measure, and show what was measured, whatever ended it."""
    from leadline.app.sweep.sweeping import outcome
    from leadline.core.model.errors import LeadlineError
    from leadline.core.system.interrupts import Interrupted
    from leadline.faces.cli.running import talking

    kept = f"what was measured is kept; go on with: leadline bench sweep --resume {planned.sweep.id}"
    try:
        with talking(quiet=quiet) as talk:
            done = run_sweep(planned, store, talk=talk)
    except KeyboardInterrupt:
        _show(outcome(planned.sweep, store), page=page, json=json, quiet=quiet)
        raise Interrupted(kept) from None
    except LeadlineError:
        if not quiet:
            typer.echo(kept, err=True)
        raise
    _show(done, page=page, json=json, quiet=quiet)


def _show(done: SweepOutcome, *, page: Output | None, json: bool, quiet: bool) -> None:
    from leadline.faces.cli.output import print_json
    from leadline.faces.sweeps import show_sweep

    if page is not None:
        from leadline.faces.report.sweep import write_sweep

        said_report(page.path, write_sweep(page, done), quiet=quiet)
    if json:
        print_json("leadline.sweep/1", **done.to_dict())
    else:
        show_sweep(done)


def _sized(name: str, size: str | None) -> Workload:
    from leadline.app.measure.workloads import workload_of

    return changed(workload_of(name), "bench sweep", size, None, None, None)


def _loads(workload: Workload, oio: str | None, clients: str | None) -> str | None:
    from leadline.core.model.errors import UsageError

    wrong = clients if workload.kind == "io" else oio
    if wrong is not None:
        name, right = ("--clients", "--oio") if workload.kind == "io" else ("--oio", "--clients")
        raise UsageError(
            name,
            found=f"a workload of kind {workload.kind}",
            expected=right,
            advice="I/O is swept over outstanding I/O, a database over its clients.",
        )
    return oio or clients


def _sizes(text: str | None, option: str = "--block") -> tuple[int, ...]:
    from leadline.core.model.workload import size_of

    return _list(text, option, size_of, "sizes such as 4k,64k")


def _counts(text: str | None) -> tuple[int, ...]:
    def count(part: str) -> int:
        if not 1 <= int(part) <= 1024:
            raise ValueError
        return int(part)

    return _list(text, "--jobs", count, "numbers from 1 to 1024 such as 1,2,4")


def _numbers(text: str | None, option: str, most: float) -> tuple[float, ...]:
    def number(part: str) -> float:
        if not 0.0 <= float(part) <= most:
            raise ValueError
        return float(part)

    return _list(text, option, number, f"numbers from 0 to {most:g} such as 100,70,0")


def _target_ms(text: str | None) -> float | None:
    from leadline.core.model.workload import seconds_of

    targets_s = _list(text, "--latency-target", seconds_of, "a time such as 5ms or 800us")
    return targets_s[0] * 1000.0 if targets_s else None


def _list(text: str | None, option: str, of: Callable[[str], Number], expected: str) -> tuple[Number, ...]:
    """Parse values separated by commas; each is kept once, in the order given."""
    from leadline.core.model.errors import UsageError

    try:
        values = tuple(dict.fromkeys(of(part) for part in text.split(","))) if text is not None else ()
    except ValueError as error:
        raise UsageError(option, found=str(text), expected=expected, advice="See --help for examples.") from error
    if option == "--block" and any(size < 512 or size % 512 for size in values):
        raise UsageError(option, found=str(text), expected="multiples of 512 bytes", advice="For example 4k,64k.")
    return values
