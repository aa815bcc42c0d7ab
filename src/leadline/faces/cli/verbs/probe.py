"""`leadline probe`: is it the disk?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.consent import Destroy, Yes, agree, ask
from leadline.faces.cli.options import Html, Json, Quiet, said_report
from leadline.faces.cli.outputs import Force, output_file

if TYPE_CHECKING:
    from leadline.app.probe.probing import Probed, ProbePlan

QUESTION = "slow"
EPILOG = """\
Examples:

  leadline probe --on scratch --seconds 2 --pulse 3 --set-size 16m --yes -o probed --html probe.html

  leadline probe --on scratch --article --seconds 2 --pulse 2 --set-size 16m --yes -o pulsed

  leadline probe --observe-only --on scratch --seconds 2 -o watched

  leadline probe --from probed

  leadline probe --from iostat.txt --from iostat.txt
"""


def command(
    ctx: typer.Context,
    *,
    on: Annotated[str, typer.Option("--on", help="Folder, file or device of the disk in question.")] = ".",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the recordings.")] = Path("leadline-probe"),
    seconds: Annotated[float, typer.Option(help="Round 1: how long to watch the workload.")] = 600.0,
    pulse: Annotated[float | None, typer.Option(help="Round 2: length of each pulse.", show_default="30")] = None,
    limit: Annotated[
        float | None, typer.Option("--iops-limit", help="The limit the disk is provisioned with.", show_default=False)
    ] = None,
    outstanding: Annotated[
        int | None, typer.Option("--oio", help="Outstanding requests of the pulses.", show_default="32")
    ] = None,
    article: Annotated[
        bool, typer.Option("--article", help="Pulses of 4k, 256 outstanding, 90 s, three times within ten minutes.")
    ] = False,
    size: Annotated[str, typer.Option("--set-size", help="Size of the file the pulses use.")] = "1g",
    destroy: Destroy = None,
    observe_only: Annotated[bool, typer.Option("--observe-only", help="Round 1 alone; never writes to it.")] = False,
    origin: Annotated[
        list[Path] | None,
        typer.Option(
            "--from", help="A probe's folder; or a recording of the workload, then one of pulses.", show_default=False
        ),
    ] = None,
    yes: Yes = False,
    html: Html = None,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Is it the disk? Watch the workload, then pulse the disk with known load.

    Round 1 watches. Round 2, with the workload off, pulses: as hard as possible, then at 70 % of what came out, and at
    the provisioned limit when it is named. Below a limit a disk shows its true latency; above it, latency is what
    Little's law makes of the queue.
    """
    from dataclasses import replace

    from leadline.app.probe.probing import ARTICLE, PulseShape, plan, probe
    from leadline.app.probe.recordings import judge_recordings
    from leadline.core.contracts.load_target import Target
    from leadline.faces.cli.running import talking
    from leadline.faces.probe_page import write_probe_page

    page = output_file(ctx, "html", html, force=force, reads=origin or [])
    if origin:
        recorded, known, imported = judge_recordings(origin, limit)
        _show(recorded, known, json=json)
        if page is not None:
            said_report(page.path, write_probe_page(page, recorded, known, imported), quiet=quiet)
        return
    usual = ARTICLE if article else PulseShape()
    shape = replace(usual, outstanding=usual.outstanding if outstanding is None else outstanding)
    pulse = shape.seconds if pulse is None else pulse
    probe_plan = plan(
        Target(on, destroy),
        output,
        seconds=(seconds, 0.0 if observe_only else pulse),
        limit=limit,
        size=size,
        shape=shape,
    )
    agree("probe", _plan_lines(probe_plan), yes=yes or probe_plan.load is None, quiet=quiet)
    with talking(quiet=quiet) as talk:
        done = probe(probe_plan, talk, lambda: ask("Round 1 is over. Is the workload off?", yes=yes))
    if page is not None:
        said_report(page.path, write_probe_page(page, done, probe_plan), quiet=quiet)
    _show(done, probe_plan, json=json)


def _ms(value: float) -> str:
    return f"{value:.3g}" if value == value else "–"  # noqa: PLR0124 - NaN is not measured


def _at(latency_ms: float) -> str:
    return f" at {latency_ms:.3g} ms" if latency_ms == latency_ms else ""  # noqa: PLR0124 - NaN is not measured


def _plan_lines(plan: ProbePlan) -> Iterator[str]:
    yield f"Plan: watch for {plan.observe_s:.0f} s, recordings to {plan.folder}"
    if plan.load is not None:
        place = plan.load.places["probe"]
        action = "make, fill and remove" if place.is_made else "OVERWRITE"
        times = "" if plan.shape.repeats == 1 else f", {plan.shape.repeats} times"
        size = f"{place.size_bytes / 2**30:.2f} GiB"
        yield f"  then {action} {place.path} ({size}), pulses of {plan.pulse_s:.0f} s{times}"


def _show(done: Probed, plan: ProbePlan, *, json: bool) -> None:
    from dataclasses import asdict

    from leadline.core.model.vocabulary import Severity
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
        observed = done.observed
        wrapped(
            out, f"{observed.disk}: {observed.iops_p95:,.0f} IOPS (p95){_at(observed.await_ms)}; nothing was pulsed."
        )
    if done.pulses:
        table = plain_table("pulse", "IOPS", "mean ms", "p99 ms", right=("IOPS", "mean ms", "p99 ms"))
        for pulse in done.pulses:
            name = (
                f"{pulse.outstanding} outstanding"
                if pulse.offered_per_s is None
                else f"{pulse.offered_per_s:,.0f} per s"
            )
            table.add_row(name, f"{pulse.per_s:,.0f}", _ms(pulse.mean_ms), _ms(pulse.p99_ms))
        out.print(table)
    for reason in done.verdict.reasons if done.verdict is not None else ():
        wrapped(out, reason, "  ")
    findings = [] if done.diagnosis is None else [f for f in done.diagnosis.findings if f.severity >= Severity.MEDIUM]
    for finding in findings[:5]:
        wrapped(out, f"{finding.summary} [{finding.rule}]", "found  ")
    both = str(plan.folder) if plan.observed in (None, plan.folder) else f"{plan.observed} and {plan.folder}"
    wrapped(out, f"The recordings of both rounds: {both}", style="dim")
