"""`leadline bench fleet`: worker VMs made through vCenter, loaded together and removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.consent import DryRun, Yes, agree, show_plan
from leadline.faces.cli.options import CaFile, Json, Quiet
from leadline.faces.cli.outputs import Force, output_file

if TYPE_CHECKING:
    from leadline.app.fleet.fleet import FleetDone, FleetTalk, WorkerLoad
    from leadline.app.fleet.model import FleetPlan
    from leadline.core.contracts.collector import Access

EPILOG = """\
Examples:

  leadline bench fleet --clean

  LEADLINE_PASSWORD=... leadline bench fleet examples/fleet.yaml --dry-run

  LEADLINE_PASSWORD=... leadline bench fleet examples/fleet.yaml --yes

  LEADLINE_PASSWORD=... leadline bench fleet --easy --vcenter https://me@vc --cluster c1 --datastore ds1 --template t
"""
FAILED = 4
MANY = 40  # workers in the plan; Judgement: beyond, places are counted
SCHEMA = "leadline.bench-fleet/1"
MIB = 1024**2
LABELS = {"size": "set-size"}
NEEDED = ("vcenter", "cluster", "datastore", "template")
EASY = (
    *NEEDED,
    *("user", "insecure", "ca_file", "network", "folder", "inventory", "profile", "workers", "path", "size", "seconds"),
    *("rounds", "warm_up", "fio_port", "address_wait", "against", "html", "tool"),
    *("ssh_user", "ssh_port"),
)


def command(
    ctx: typer.Context,
    spec: Annotated[
        str | None, typer.Argument(help="A fleet file; with --clean a fleet's id.", show_default=False)
    ] = None,
    *,
    password_file: Annotated[
        Path | None,
        typer.Option(
            help="Its first line is the password. [default: as the file says, LEADLINE_PASSWORD, or asked]",
            show_default=False,
        ),
    ] = None,
    easy: Annotated[
        bool, typer.Option("--easy", help="Without a file: choose workers, disks, sizes and load.")
    ] = False,
    vcenter: Annotated[str | None, typer.Option(help="With --easy: https://USER@HOST.", show_default=False)] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="Of vCenter, instead of USER@.", show_default=False)
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Do not check vCenter's certificate.")] = False,
    ca_file: CaFile = None,
    cluster: Annotated[str | None, typer.Option(help="Its hosts run the workers.", show_default=False)] = None,
    datastore: Annotated[str | None, typer.Option(help="Which is measured.", show_default=False)] = None,
    template: Annotated[str | None, typer.Option(help="Which is cloned.", show_default=False)] = None,
    network: Annotated[
        str | None, typer.Option(help="Of the workers. [default: the template's]", show_default=False)
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Of the workers. [default: the template's]", show_default=False)
    ] = None,
    inventory: Annotated[
        list[Path] | None,
        typer.Option(help="Says which services are on where vCenter does not. Repeatable.", show_default=False),
    ] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="A workload or job file of fio or vdbench. [default: the four]", show_default=False),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many. [default: as the plan says]", show_default=False)
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(help="In each worker, as /dev/nvme0n1. [default: the added disks]", show_default=False),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--set-size", help="Working set of each path, as 4g.", show_default=False)
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=1, help="Length of a round.", show_default=False)] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of a profile.", show_default=False)] = None,
    warm_up: Annotated[
        float | None, typer.Option("--warm-up", min=0, help="Seconds before the first round.", show_default=False)
    ] = None,
    fio_port: Annotated[int, typer.Option(min=1, max=65535, help="Of fio's servers.")] = 8765,
    tool: Annotated[
        str | None, typer.Option(help="Loads instead of fio: vdbench, with --ssh-user.", show_default=False)
    ] = None,
    ssh_user: Annotated[
        str | None, typer.Option(help="Log in to workers; without, fio's servers.", show_default=False)
    ] = None,
    ssh_port: Annotated[int, typer.Option(min=1, max=65535, help="Of their SSH servers.")] = 22,
    address_wait: Annotated[float, typer.Option(min=1, help="Seconds until a worker must answer.")] = 600.0,
    against: Annotated[
        str | None,
        typer.Option(help="Earlier easy run, or last. [default: the newest on this datastore]", show_default=False),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="With --easy: write the report as a page.", show_default=False)
    ] = None,
    dry_run: DryRun = False,
    clean: Annotated[bool, typer.Option("--clean", help="Only remove what killed runs left.")] = False,
    yes: Yes = False,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Clone worker VMs, add disks, load them together, remove them.

    The template starts fio's server (`fio --server`) at boot, or an SSH server where the file names `load.ssh_user`
    (fio or vdbench is then started over SSH), and has VMware Tools, which tell its address. All that
    speaks against the fleet is told at once, before anything is made. The workers are removed whatever happens; after
    kill -9 by --clean. Only VMs that carry the fleet's mark are ever removed. Percentiles are of the pooled requests
    of all workers. One that fails is told and the rest kept; the exit status is then 4.

    --easy needs no file: it chooses all from what vCenter says, fills the disks, runs four profiles, reports whether
    deduplication, compression and encryption were on, and compares with the earlier easy run.
    """
    if clean:
        _clean(spec, password_file, json=json, quiet=quiet)
        return
    _require_easy(ctx, easy=easy, spec=spec)
    if easy:
        from leadline.app.fleet.easy_order import PROFILES, EasyWish
        from leadline.faces.cli.verbs.bench._fleet_easy import EasyAsked, run_easy_fleet

        page = output_file(ctx, "html", html, force=force)
        wish = EasyWish(
            str(cluster),
            str(datastore),
            str(template),
            profiles=tuple(profile or PROFILES),
            network=network,
            folder=folder,
            worker_count=workers,
            paths=tuple(path or ()),
            set_bytes=None if size is None else _bytes(size),
            measure_s=seconds,
            rounds=rounds,
            warm_up_s=warm_up,
            fio_port=fio_port,
            address_wait_s=address_wait,
            inventories=tuple(inventory or ()),
            tool=tool,
            ssh_user=ssh_user,
            ssh_port=ssh_port,
        )
        asked = EasyAsked(
            str(vcenter), user, password_file, insecure, ca_file, against, page, dry_run, yes, json, quiet
        )
        run_easy_fleet(wish, asked, _talk(quiet=quiet))
        return
    _from_file(spec, password_file, dry_run=dry_run, yes=yes, json=json, quiet=quiet)


def _from_file(
    spec: str | None, password_file: Path | None, *, dry_run: bool, yes: bool, json: bool, quiet: bool
) -> None:
    """Look at the fleet of a file; then show its plan, or make, load and remove it.

    Raises:
        UsageError: no file is named, or there is nobody to ask.
    """
    from leadline.app.fleet.file import GUIDE, read_fleet
    from leadline.app.fleet.order import prepare
    from leadline.core.model.errors import UsageError
    from leadline.faces.cli.passwords import password_of
    from leadline.faces.cli.verbs.bench._fleet_plans import show_problems

    if spec is None:
        raise UsageError("bench fleet", found="no file", expected="a fleet file, or --clean", advice=f"See {GUIDE}.")
    file = read_fleet(Path(spec))
    secret = password_file or file.vcenter.password_file
    account = f"{file.vcenter.user} at {file.vcenter.host}"
    prepared = prepare(file, Path(spec).parent, lambda: password_of(account, secret))
    if prepared.problems or prepared.load is None or prepared.access is None:
        show_problems(prepared.plan, SCHEMA, json=json)
        raise typer.Exit(prepared.exit_status)
    if dry_run:
        _show_dry_run(prepared.plan, prepared.load, json=json)
        return
    _run(prepared.plan, prepared.access, prepared.load, yes=yes, json=json, quiet=quiet)


def _require_easy(ctx: typer.Context, *, easy: bool, spec: str | None) -> None:
    """Refuse options of an easy fleet without --easy, and an easy fleet without what it cannot choose.

    Raises:
        UsageError: one is missing, or one has no use.
    """
    from leadline.core.model.errors import UsageError

    given = [name for name in EASY if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    missing = [f"--{name}" for name in NEEDED if name not in given] if easy else []
    conflict = expected = ""
    if easy and spec is not None:
        conflict, expected = "a file beside --easy", "one of them"
    elif missing:
        conflict, expected = f"no {', '.join(missing)}", "vCenter, cluster, datastore and template beside --easy"
    elif given and not easy:
        conflict, expected = (
            f"--{LABELS.get(given[0], given[0]).replace('_', '-')} without --easy",
            "--easy beside it, or keys of the file",
        )
    if conflict:
        raise UsageError("bench fleet", found=conflict, expected=expected, advice="See docs/guides/fleet.md.")


def _bytes(text: str) -> int:
    from leadline.core.model.errors import UsageError
    from leadline.core.model.workload import size_of

    try:
        size = size_of(text)
    except ValueError:
        size = 0
    if size < MIB:
        raise UsageError("--set-size", found=text, expected="a size of at least 1m", advice="For example 4g.")
    return size


def _run(plan: FleetPlan, access: Access, load: WorkerLoad, *, yes: bool, json: bool, quiet: bool) -> None:
    from leadline.app.fleet.fleet import run_fleet

    agree("bench fleet", _plan_lines(plan, load), yes=yes, quiet=quiet)
    done = run_fleet(plan, access, load, _talk(quiet=quiet))
    _show(done, json=json)
    if not done.is_whole:
        raise typer.Exit(FAILED)


def _talk(*, quiet: bool) -> FleetTalk:
    from leadline.app.fleet.fleet import FleetTalk

    if quiet:
        return FleetTalk(lambda _: None, lambda _, __: None)
    return FleetTalk(
        lambda text: typer.echo(text, err=True), lambda name, state: typer.echo(f"  {name}: {state}", err=True)
    )


def _show_dry_run(plan: FleetPlan, load: WorkerLoad, *, json: bool) -> None:
    from leadline.faces.cli.output import print_json

    if not json:
        show_plan(_plan_lines(plan, load), err=False)
        typer.echo("Nothing was made.")
        return
    print_json(
        SCHEMA,
        problems=[],
        plan={
            "template": plan.spec.template,
            "worker_bytes": plan.worker_bytes,
            "disk_bytes": plan.spec.disk_bytes,
            "disks_by_controller": plan.controllers,
            "workers": [
                {"worker": placement.name, "host": placement.host.name, "datastore": placement.datastore.name}
                for placement in plan.placements
            ],
            "workload": load.workload.name,
            "paths": list(load.paths),
        },
    )


def _plan_lines(plan: FleetPlan, load: WorkerLoad) -> Iterator[str]:
    spec, gib = plan.spec, 2**30
    size = plan.worker_bytes / gib
    yield f"Plan: {spec.count} clones of {spec.template}, at most {size:.1f} GiB each, {load.parallel} at a time"
    if plan.controllers:
        spread = ", ".join(map(str, plan.controllers))
        yield f"  disks: {spec.disk_count} x {spec.disk_bytes / gib:.2f} GiB on pvscsi controllers: {spread}"
    for placement in plan.placements[:MANY]:
        yield f"  make {placement.name} on {placement.host.name}, {placement.datastore.name}"
    if len(plan.placements) > MANY:
        yield f"  ... and {len(plan.placements) - MANY} more, in turn"
    timing = load.workload.timing
    total = sum(load.workload.working_set_bytes(stream) for stream in load.workload.io) * len(load.paths)
    yield f"  then {load.workload.name} on {', '.join(load.paths)} of each:"
    yield f"  fill {total / gib:.2f} GiB on each, {timing.rounds} x {timing.measure_s:.0f} s; then remove them all"
    devices = [path for path in load.paths if path.startswith("/dev/")]
    if devices:
        yield f"  OVERWRITE in the workers: {', '.join(devices)}"


def _show(done: FleetDone, *, json: bool) -> None:
    from leadline.app.measure.hosts import HostsResult
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table
    from leadline.faces.terminal import wrapped

    pooled = done.hosts or HostsResult(())
    far = {id(result) for result in pooled.outliers()}
    rows = list(zip(done.names, pooled.hosts, strict=True))
    if json:
        print_json(
            SCHEMA,
            fleet=done.id,
            run=done.run_id,
            per_s=pooled.per_s,
            percentiles_ms={name: ms for name, (ms, _) in pooled.percentiles_ms().items()},
            workers=[
                {
                    "worker": name,
                    "address": result.host.address,
                    "path": result.host.path,
                    "per_s": result.per_s,
                    "p95_ms": result.p95_ms,
                    "outlier": id(result) in far,
                    "error": result.error,
                }
                for name, result in rows
            ],
            failed=done.failed,
            left=done.left,
        )
        return
    out = console()
    table = plain_table("worker", "per s", "p95 ms", "", right=("per s", "p95 ms"))
    for name, result in rows:
        if result.error is not None:
            table.add_row(name, "-", "-", result.error)
        else:
            p95_ms = "-" if result.histogram is None else f"{result.p95_ms:.3g}"
            table.add_row(name, f"{result.per_s:,.0f}", p95_ms, "far from the others" if id(result) in far else "")
    for name, why in done.failed.items():
        table.add_row(name, "-", "-", why)
    out.print(table, markup=False)
    shown = "  ".join(f"{name} {ms:.3g}" for name, (ms, _) in pooled.percentiles_ms().items())
    wrapped(out, f"{pooled.per_s:,.0f} operations/s in all; pooled, ms: {shown or 'not measured'}")
    wrapped(out, f"kept as run {done.run_id}")
    for name, why in done.left.items():
        wrapped(out, f"NOT REMOVED: {name} ({why}); leadline bench fleet --clean {done.id}", style="bold")


def _clean(fleet: str | None, password_file: Path | None, *, json: bool, quiet: bool) -> None:
    from leadline.app.fleet.fleet import clean
    from leadline.core.contracts.collector import Access
    from leadline.faces.cli.output import print_json
    from leadline.faces.cli.passwords import password_of
    from leadline.stores.fleets import FleetStore

    store = FleetStore()
    journals = (
        [store.get(fleet)] if fleet is not None else [journal for journal in store.list() if not journal.is_in_use]
    )
    left: dict[str, dict[str, str]] = {}
    for journal in journals:
        account = f"{journal.user} at {journal.vcenter}"
        password = password_of(account, password_file)
        access = Access(journal.vcenter, journal.user, password, journal.port, journal.verify, ca_file=journal.ca_file)
        left[journal.id] = clean(journal, access, _talk(quiet=quiet), store).left
    if json:
        print_json(SCHEMA, cleaned=[key for key, names in left.items() if not names], left=left)
    for key, names in left.items() if not json else ():
        typer.echo(f"fleet {key}: {'nothing left' if not names else f'could not remove {names}'}")
    if not journals and not json:
        typer.echo("no fleet was left by a killed run")
    if any(left.values()):
        raise typer.Exit(FAILED)
