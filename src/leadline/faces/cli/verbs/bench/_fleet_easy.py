"""`leadline bench fleet --easy`: from a vCenter to the finished comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import typer

from leadline.faces.cli.consent import agree, show_plan

if TYPE_CHECKING:
    from pathlib import Path

    from leadline.app.fleet.easy_order import EasyOrder, EasyWish
    from leadline.app.fleet.easy_run import EasyReport
    from leadline.app.fleet.fleet import FleetTalk
    from leadline.core.io.outputs import Output
    from leadline.stores.runs import RunStore

PLAN_SCHEMA, SCHEMA = "leadline.easy-fleet-plan/1", "leadline.easy-fleet/1"
FAILED = 4
MANY = 40  # workers in the plan; Judgement: beyond, places are counted


@dataclass(frozen=True, slots=True)
class EasyAsked:
    """What the command line asked for, but for what is loaded."""

    vcenter: str
    user: str | None
    password_file: Path | None
    insecure: bool
    ca_file: Path | None
    against: str | None
    page: Output | None
    dry_run: bool
    yes: bool
    json: bool
    quiet: bool


def run_easy_fleet(wish: EasyWish, asked: EasyAsked, talk: FleetTalk) -> None:
    """Plan, ask, make, load, compare, remove and report; ends with status 4 when anything is missing.

    Raises:
        UsageError: the address is none, there is no such earlier run, or nobody to ask.
        ToolError: a worker cannot be made, or some could not be removed.
    """
    from leadline.app.fleet.easy_order import order_easy
    from leadline.app.fleet.easy_run import easy_report
    from leadline.core.contracts.collector import Access
    from leadline.faces.cli.output import print_json
    from leadline.faces.cli.passwords import password_of
    from leadline.faces.cli.verbs.bench._fleet_plans import show_problems
    from leadline.faces.fleets import order_document
    from leadline.stores.runs import RunStore

    user, host, port = vcenter_of(asked.vcenter, asked.user)
    account = f"{user} at {host}"

    def access() -> Access:
        password = password_of(account, asked.password_file)
        ca_file = "" if asked.ca_file is None else str(asked.ca_file.absolute())
        return Access(host, user, password, port, not asked.insecure, ca_file=ca_file)

    order = order_easy(wish, host, access)
    if order.problems:
        show_problems(order.plan, PLAN_SCHEMA, json=asked.json)
        raise typer.Exit(order.exit_status)
    store = RunStore()
    report = easy_report(order, store, asked.against)
    if asked.dry_run and asked.json:
        print_json(PLAN_SCHEMA, problems=[], plan=order_document(order), against=report.against or None)
        return
    if asked.dry_run:
        show_plan(plan_lines(report), err=False)
        typer.echo("Nothing was made.")
        return
    agree("bench fleet --easy", plan_lines(report), yes=asked.yes, quiet=asked.quiet)
    _measure(report, asked, talk, store)


def vcenter_of(text: str, user: str | None) -> tuple[str, str, int]:
    """Return user, host and port of an address of a vCenter.

    >>> vcenter_of("https://bench@vsphere.local@vc.example:8443", None)
    ('bench@vsphere.local', 'vc.example', 8443)

    Raises:
        UsageError: it is none, names no user, or holds a password.
    """
    from leadline.core.model.errors import UsageError
    from leadline.core.system.addresses import address_of, without_password

    address = address_of(text)
    if address.secret:
        raise UsageError(
            "--vcenter",
            found="a password",
            expected="an address without it",
            advice="Leave it out, and change it: others may have seen it in the list of processes.",
        )
    plain = address.text if "://" in text else without_password(text)
    try:
        parts = urlsplit(plain if "://" in plain else f"https://{plain}")
        host, port = parts.hostname, parts.port or 443
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    account = user or unquote(parts.username or "")
    if host is None or parts.scheme != "https" or not account:
        raise UsageError(
            "--vcenter",
            found="no vCenter" if host is None or parts.scheme != "https" else "no user",
            expected="https://USER@HOST, or --user beside it",
            advice="The password is read from LEADLINE_PASSWORD or --password-file, or asked for.",
        )
    return account, host, port


def plan_lines(report: EasyReport) -> Iterator[str]:
    """Yield what was chosen and what will be made, for people."""
    from leadline.core.model.units import duration

    order: EasyOrder = report.order
    easy, plan = order.easy, order.plan
    if easy is None:
        return
    yield f"Plan: easy run on {order.target}"
    for choice in easy.choices:
        yield f"  {choice.what}: {choice.value}"
        yield from _folded(choice.why, "      ")
    for state in order.services:
        yield from _folded(state.sentence, "  ")
    for placed in plan.placements[:MANY]:
        yield f"  make {placed.name} on {placed.host.name}, {placed.datastore.name}"
    if len(plan.placements) > MANY:
        yield f"  ... and {len(plan.placements) - MANY} more, in turn"
    size = max(load.working_set_bytes(stream) for load in order.workloads for stream in load.io)
    yield f"  fill {size / 2**30:.2f} GiB on each of {', '.join(order.paths)}"
    devices = [path for path in order.paths if path.startswith("/dev/")]
    if devices:
        yield f"  OVERWRITE in the workers: {', '.join(devices)}"
    total_s = 0.0
    for load in order.workloads:
        timing = load.timing
        total_s += timing.warm_up_s + timing.rounds * timing.measure_s
        yield f"  then {load.name}: {timing.rounds} x {timing.measure_s:.0f} s"
    yield f"  {duration(total_s)} of load at most after the filling; then remove all workers"
    yield f"  compare with {report.against or 'nothing: no earlier easy run on this datastore'}"


def _folded(text: str, indent: str) -> Iterator[str]:
    from textwrap import wrap

    yield from wrap(text, 80, initial_indent=indent, subsequent_indent=indent)


def _measure(report: EasyReport, asked: EasyAsked, talk: FleetTalk, store: RunStore) -> None:
    """Measure, and show what was measured, whatever ended it."""
    from leadline.app.fleet.easy_run import run_easy
    from leadline.core.system.interrupts import Interrupted

    try:
        run_easy(report, talk, store)
    except KeyboardInterrupt:
        report.stopped = "Ctrl-C"
        _show(report, asked)
        message = f"what was measured is kept as runs {report.id}.*, and all workers are removed"
        raise Interrupted(message) from None
    _show(report, asked)
    if not report.is_whole:
        raise typer.Exit(FAILED)


def _show(report: EasyReport, asked: EasyAsked) -> None:
    from leadline.faces.cli.options import said_report
    from leadline.faces.cli.output import print_json
    from leadline.faces.fleets import easy_report_document, show_easy

    if asked.page is not None:
        from leadline.faces.report.fleet import write_easy

        said_report(asked.page.path, write_easy(asked.page, report), quiet=asked.quiet)
    if asked.json:
        print_json(SCHEMA, **easy_report_document(report))
    else:
        show_easy(report)
