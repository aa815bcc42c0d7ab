"""`leadline guide`: workflows walked with the recordings at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import (
    Json,
    OfMachine,
    ProfileFile,
    Quiet,
    Since,
    Until,
    profile_of,
    read_paths,
    stored_part,
)

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.app.guide.walking import Walk, WalkedStep

QUESTION = "slow"
LISTED_SHOWN = 8
EPILOG = """\
Examples:

  leadline guide

  leadline guide vsan

  leadline guide slow-disk iostat.txt

  leadline guide postgresql-on-vmware inventory.yaml esxtop.csv --json
"""


def command(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Which workflow; without it they are listed.")] = None,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATHS", help="Recordings, inventories and facts, or store:.", show_default=False),
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Every finding, and each check with what it needs.")
    ] = False,
    json: Json = False,
    profile: ProfileFile = None,
    since: Since = None,
    until: Until = None,
    vm: OfMachine = None,
    quiet: Quiet = False,
) -> None:
    """Walk a workflow step by step: what your recordings show at each, what is missing, how to record it."""
    from leadline.faces.cli.output import console, print_json

    if name is None:
        _list(as_json=json)
        return
    from leadline.app.guide.walking import walk
    from leadline.faces.words.guides import document

    walk(name, None)  # an unknown name is said before anything is read
    diagnosis = inventory = None
    if paths:
        from leadline.app.diagnose.diagnosing import diagnose

        imported = read_paths(ctx, paths, quiet=quiet, stored=stored_part(since, until, vm))
        diagnosis = diagnose(imported.capture, profile=profile_of(profile))
        inventory = imported.capture.inventory
    walked = walk(name, diagnosis, inventory)
    if json:
        print_json("leadline.guide/1", **document(walked))
    else:
        _show(console(), walked, everything=everything)


def _list(*, as_json: bool) -> None:
    from typing import cast

    from leadline.core.contracts.discovery import load_units
    from leadline.core.contracts.guide import Guide
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.terminal import wrapped

    abouts = {name: cast("Guide", module).META.about for name, module in load_units("guide").items()}
    if as_json:
        print_json("leadline.guides/1", guides=[{"name": name, "about": about} for name, about in abouts.items()])
        return
    width = max(map(len, abouts)) + 2
    for name, about in abouts.items():
        wrapped(console(), about, name.ljust(width), style="bold")


def _show(out: Console, walked: Walk, *, everything: bool) -> None:
    from leadline.faces.terminal import wrapped
    from leadline.faces.words.guides import headline

    wrapped(out, walked.meta.about, style="bold")
    wrapped(out, headline(walked))
    for place, one in enumerate(walked.steps, 1):
        out.print()
        _show_step(out, place, one, everything=everything)


def _show_step(out: Console, place: int, one: WalkedStep, *, everything: bool) -> None:
    from leadline.app.explain.explaining import advice_text
    from leadline.app.guide.walking import StepState
    from leadline.faces.terminal import SEVERITY_STYLE, wrapped
    from leadline.faces.words.guides import FINDINGS_SHOWN, listed_lines, needs_record, state_words

    colours = {StepState.PROBLEM: "bold red", StepState.MINOR: "bold yellow", StepState.NOTHING: "bold green"}
    style = colours.get(one.state, "bold")
    wrapped(out, state_words(one), f"{place}. {one.step.title}: ", style=style)
    wrapped(out, one.step.look, "   ")
    shown = one.findings if everything else one.findings[:FINDINGS_SHOWN]
    for finding in shown:
        wrapped(
            out,
            f"{finding.summary} [{finding.rule}]",
            f"   {finding.severity.label}: ",
            style=SEVERITY_STYLE[finding.severity],
        )
    if len(shown) < len(one.findings):
        wrapped(out, f"and {len(one.findings) - len(shown)} more: --all", "   ")
    if everything:
        for rule in one.checked:
            wrapped(out, rule, "   nothing found: ", style="green")
        for skipped in one.missing:
            wrapped(out, f"{skipped.rule} needs {', '.join(skipped.needs)}", "   not checked: ", style="dim")
    lines = list(listed_lines(one))
    for label, value in lines if everything else lines[:LISTED_SHOWN]:
        wrapped(out, value, f"   {label}: ", style="bold")
    if len(lines) > LISTED_SHOWN and not everything:
        wrapped(out, f"and {len(lines) - LISTED_SHOWN} more: --all, or --vm NAME", "   ")
    for text in one.step.by_hand:
        wrapped(out, text, "   By hand: ", style="bold")
    for advice in one.step.advice:
        wrapped(out, advice_text(advice), "   - ")
    if needs_record(one) or not one.step.rules:
        for text in one.step.record:
            wrapped(out, text, "   Record: " if one.step.rules else "   Run: ", style="bold")
