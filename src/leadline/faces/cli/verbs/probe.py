"""`leadline probe`: is it the disk?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Html, Json, Quiet, said_report

if TYPE_CHECKING:
    from leadline.app.probing import Probed, ProbePlan

EPILOG = """\
Examples:

  leadline probe --on scratch --seconds 2 --pulse 3 --set-size 16m --yes -o probed --html probe.html

  leadline probe --observe-only --on scratch --seconds 2 -o watched

  leadline probe --from iostat.txt --from iostat.txt
"""


def command(
    *,
    on: Annotated[str, typer.Option("--on", help="Folder, file or device of the disk in question.")] = ".",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the recordings.")] = Path("leadline-probe"),
    seconds: Annotated[float, typer.Option(help="Round 1: how long to watch the workload.")] = 600.0,
    pulse: Annotated[float, typer.Option(help="Round 2: length of each pulse.")] = 30.0,
    limit: Annotated[
        float | None, typer.Option("--iops-limit", help="The limit the disk is provisioned with.", show_default=False)
    ] = None,
    outstanding: Annotated[int, typer.Option("--oio", help="Outstanding requests of the pulses.")] = 32,
    size: Annotated[str, typer.Option("--set-size", help="Size of the file the pulses use.")] = "1g",
    destroy: Annotated[
        str | None,
        typer.Option("--destroy-data", help="The very same target again: its data may go.", show_default=False),
    ] = None,
    observe_only: Annotated[bool, typer.Option("--observe-only", help="Round 1 alone; never writes to it.")] = False,
    origin: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Offline: a recording of the workload, then one of pulses.", show_default=False),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; the workload is off when round 2 begins.")
    ] = False,
    html: Html = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Is it the disk? Watch the workload, then pulse the disk with known load.

    Round 1 watches. Round 2, with the workload off, pulses: as hard as possible, then at 70 % of what came out, and at
    the provisioned limit when it is named. Below a limit a disk shows its true latency; above it, latency is what
    Little's law makes of the queue.
    """
    from leadline.app.probing import plan, probe
    from leadline.core.benchmark import Target
    from leadline.core.errors import UsageError
    from leadline.faces.cli.running import talking
    from leadline.faces.probe_page import write_probe_page

    _check_report(html, origin)
    if origin:
        _offline(origin, limit, json=json)
        return
    made = plan(
        Target(on, destroy),
        output,
        seconds=(seconds, 0.0 if observe_only else pulse),
        limit=limit,
        size=size,
        outstanding=outstanding,
    )
    if not quiet:
        _show_plan(made)
    if made.load is not None and not yes and not sys.stdin.isatty():
        raise UsageError("probe", found="nobody to ask", expected="--yes", advice="Look at the plan, then add it.")

    def ready() -> None:
        if not yes:
            typer.confirm("Round 1 is over. Is the workload off?", abort=True, err=True)

    with talking(quiet=quiet) as talk:
        done = probe(made, talk, ready)
    _show(done, made, json=json)
    if html is not None:
        said_report(html, write_probe_page(html, done, made), quiet=quiet)


def _check_report(html: Path | None, origin: list[Path] | None) -> None:
    from leadline.core.errors import UsageError
    from leadline.faces.report import check_writable

    if html is None:
        return
    if origin:
        raise UsageError(
            "--html",
            found="recordings that were made before",
            expected="a probe that is made now",
            advice="`leadline diagnose RECORDINGS --html report.html` draws both on one time line.",
        )
    check_writable(html)


def _show_plan(made: ProbePlan) -> None:
    typer.echo(f"Plan: watch for {made.observe_s:.0f} s, recordings to {made.folder}", err=True)
    if made.load is not None:
        place = made.load.places["probe"]
        what = "make, fill and remove" if place.made else "OVERWRITE"
        typer.echo(
            f"  then {what} {place.path} ({place.size_bytes / 2**30:.2f} GiB), pulses of {made.pulse_s:.0f} s", err=True
        )


def _show(done: Probed, made: ProbePlan, *, json: bool) -> None:
    from dataclasses import asdict

    from leadline.core.vocabulary import Severity
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table
    from leadline.faces.terminal import wrapped

    if json:
        print_json(
            "leadline.probe/1",
            observed=None if done.observed is None else asdict(done.observed),
            pulses=[asdict(pulse) for pulse in done.pulses],
            verdict=None if done.verdict is None else done.verdict.to_dict(),
            findings=[] if done.diagnosis is None else [finding.summary for finding in done.diagnosis.findings],
            notes=list(done.notes),
        )
        return
    out = console()
    if done.verdict is not None:
        wrapped(out, done.verdict.sentence, "Is it the disk? ", style="bold")
    elif done.observed is not None:
        own = done.observed
        wrapped(out, f"{own.disk}: {own.iops_p95:,.0f} IOPS (p95) at {own.await_ms:.3g} ms; nothing was pulsed.")
    if done.pulses:
        table = plain_table("pulse", "IOPS", "mean ms", "p99 ms", right=("IOPS", "mean ms", "p99 ms"))
        for pulse in done.pulses:
            name = (
                f"{pulse.outstanding} outstanding"
                if pulse.offered_per_s is None
                else f"{pulse.offered_per_s:,.0f} per s"
            )
            table.add_row(name, f"{pulse.per_s:,.0f}", f"{pulse.mean_ms:.3g}", f"{pulse.p99_ms:.3g}")
        out.print(table)
    for reason in done.verdict.reasons if done.verdict is not None else ():
        wrapped(out, reason, "  ")
    found = [] if done.diagnosis is None else [f for f in done.diagnosis.findings if f.severity >= Severity.MEDIUM]
    for finding in found[:5]:
        wrapped(out, f"{finding.summary} [{finding.rule}]", "found  ")
    wrapped(out, f"The recordings of both rounds: {made.folder}", style="dim")


def _offline(origin: list[Path], limit: float | None, *, json: bool) -> None:
    from dataclasses import asdict

    from leadline.app.probing import judge_recordings
    from leadline.core.errors import UsageError
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.terminal import wrapped

    if len(origin) != 2:
        raise UsageError(
            "--from",
            found=f"{len(origin)} recording(s)",
            expected="two: of the workload, then of the pulses",
            advice="leadline probe --from iostat-1.json --from iostat-2.json",
        )
    used, most, sentence = judge_recordings(origin[0], origin[1], limit)
    if json:
        print_json("leadline.probe/1", observed=asdict(used), pulsed=asdict(most), sentence=sentence)
    else:
        wrapped(console(), sentence)
