"""`leadline audit`: configuration rules alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import (
    FailOn,
    Json,
    OfMachine,
    Paths,
    ProfileFile,
    Quiet,
    Since,
    Until,
    fails,
    profile_of,
    read_paths,
    stored_part,
)
from leadline.faces.cli.outputs import Force, output_file

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.core.model.entities import Inventory
    from leadline.core.model.finding import Diagnosis, Finding

QUESTION = "size"
EPILOG = """\
Examples:

  leadline audit inventory.yaml

  leadline audit inventory.yaml --fail-on high --sarif audit.sarif

  leadline audit inventory.yaml --json

  leadline audit inventory.yaml --allocations
"""
SHOWN_PER_RULE = 8


def command(
    ctx: typer.Context,
    paths: Paths,
    *,
    json: Json = False,
    sarif: Annotated[
        Path | None, typer.Option(help="Also write SARIF 2.1.0 for CI systems.", show_default=False)
    ] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 when a finding is at least this severe.")] = FailOn.NEVER,
    all_findings: Annotated[bool, typer.Option("--all", help="Every entity and every skipped rule.")] = False,
    allocations: Annotated[
        bool, typer.Option("--allocations", help="List limits, reservations and shares instead.")
    ] = False,
    profile: ProfileFile = None,
    since: Since = None,
    until: Until = None,
    vm: OfMachine = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Check how hosts, VMs, guests and databases are configured; no recording needed.

    Reads inventories, .vmx files and facts; captures give their facts too. Only rules that need settings run.
    """
    from leadline.app.diagnose.auditing import audit
    from leadline.app.diagnose.diagnosing import rule_modules
    from leadline.faces.cli.output import console, print_json

    file = output_file(ctx, "sarif", sarif, force=force, reads=paths)
    imported = read_paths(
        ctx,
        paths,
        metrics=frozenset(),
        quiet=quiet,
        notes="" if all_findings else "--all",
        stored=stored_part(since, until, vm),
    )
    if allocations:
        _show_allocations(imported.capture.inventory, as_json=json)
        return
    diagnosis = audit(imported.capture, profile_of(profile))
    if file is not None:
        from leadline.faces.cli.output import write_json
        from leadline.faces.sarif import sarif_document

        write_json(file, sarif_document(diagnosis.findings, rule_modules()))
    if json:
        from leadline.faces.documents import audit_document

        print_json("leadline.audit/1", **audit_document(diagnosis, imported))
    else:
        _show(console(), diagnosis, len(imported.capture.inventory.facts), everything=all_findings)
    if fails(diagnosis, fail_on):
        raise typer.Exit(1)


def _show_allocations(inventory: Inventory, *, as_json: bool) -> None:
    """Who may have how much of what."""
    from dataclasses import asdict

    from leadline.estate.knowledge.allocations import allocations
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table

    listed = allocations(inventory)
    if as_json:
        rows = [{**asdict(one), "entity": str(one.entity)} for one in listed]
        print_json("leadline.allocations/1", allocations=rows)
        return
    if not listed:
        console().print("No limit, reservation or share is in what was read.")
        return
    table = plain_table("of", "resource", "limit", "reservation", "shares", right=("limit", "reservation", "shares"))
    for one in listed:
        limit, reservation = (
            "none" if value is None else f"{value:,.0f} {one.unit}" for value in (one.limit, one.reservation)
        )
        table.add_row(
            one.entity.label(), one.resource, limit, reservation, "" if one.shares is None else f"{one.shares:,.0f}"
        )
    console().print(table)


def _show(out: Console, diagnosis: Diagnosis, entity_count: int, *, everything: bool) -> None:
    from rich.text import Text

    from leadline.app.diagnose.auditing import by_rule

    count = len(diagnosis.findings)
    ran = len(diagnosis.rules_run)
    out.print(
        Text(f"{entity_count:,} entities, {ran} rules, {count:,} finding{'s' if count != 1 else ''}", style="bold")
    )
    for findings in by_rule(diagnosis.findings).values():
        _show_rule(out, findings, everything=everything)
    if diagnosis.skipped:
        out.print()
        if not everything:
            out.print(f"{len(diagnosis.skipped)} rules skipped for lack of settings: see them with --all.", style="dim")
            return
        for skipped in diagnosis.skipped:
            out.print(Text(f"skipped {skipped.rule}: needs {', '.join(skipped.needs)}", style="dim"))


def _show_rule(out: Console, findings: list[Finding], *, everything: bool) -> None:
    from leadline.faces.terminal import SEVERITY_STYLE, wrapped

    first = findings[0]
    out.print()
    lead = f"{first.severity.label}: "
    wrapped(out, f"{first.rule} [{first.code}], {len(findings)}x", lead, style=SEVERITY_STYLE[first.severity])
    shown = findings if everything else findings[:SHOWN_PER_RULE]
    for finding in shown:
        wrapped(out, finding.summary, "   - ")
    if len(shown) < len(findings):
        wrapped(out, f"and {len(findings) - len(shown)} more: --all", "   ")
    wrapped(out, first.remedy, "   Do: ", style="bold")
