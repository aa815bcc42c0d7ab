"""`leadline simulate`: what would happen if, before anyone touches production."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Html, Json, Quiet, said_report
from leadline.faces.cli.outputs import Force, output_file

if TYPE_CHECKING:
    from leadline.app.simulate.checking_results import CheckPlan, RealCheck
    from leadline.app.simulate.simulating import Simulated

QUESTION = "if"
EPILOG = """\
Examples:

  leadline simulate iops-cap

  leadline simulate adapter-queue --html queues.html

  leadline simulate noisy-neighbour --compare round-robin

  leadline simulate iops-cap --check-real

  leadline simulate iops-cap --vary vms.db01.iops_limit=100,200,null --seed 7 --json
"""


def command(
    ctx: typer.Context,
    scenario: Annotated[Path, typer.Argument(help="A scenario file, or a shipped one's name.", show_default=False)],
    *,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=A,B,C",
            help="Values of a key, as vms.db01.iops_limit=200,400; again for every combination.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Other policies beside the scenario's own.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Seed instead of the scenario's.", show_default=False)
    ] = None,
    check_real: Annotated[
        bool, typer.Option("--check-real", help="Also do it for real on this machine, and show the distance.")
    ] = False,
    check_seconds: Annotated[float, typer.Option(min=2.0, max=3600.0, help="Of each real run.")] = 10.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Variants that are kept from before are not simulated again.")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A dask.distributed scheduler to simulate on.", show_default=False),
    ] = None,
    html: Html = None,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a system: what a limit, a queue, a scheduler or a load would do.

    The same scenario, seed and version give the same numbers on every machine. Variants run on all cores, see the
    same arrivals and service times, and are kept as runs: see `leadline runs`. Nothing is loaded or changed.

    After Ctrl-C, or worse, --resume goes on with the variants that are missing: the same scenario, seed and version.

    With --check-real limits, streams and copies are done on this machine's user-space block layer, files in a scratch
    folder that is removed; a scenario that names adapters boots guests of a lab. No device is touched.
    """
    from leadline.app.simulate.simulating import plan_simulation, simulate
    from leadline.core.contracts.scenario import parse_axis
    from leadline.faces.checks import check_document, show_check, show_check_plan
    from leadline.faces.cli.output import print_json, share_progress
    from leadline.faces.report.simulation import write_simulation
    from leadline.faces.simulations import document, show_simulation
    from leadline.stores.runs import RunStore

    page = output_file(ctx, "html", html, force=force)
    policies = [] if compare is None else [name.strip() for name in compare.split(",")]
    planned = plan_simulation(scenario, [parse_axis(text) for text in vary or []], policies, seed)
    check_plan = None
    if check_real:
        from leadline.app.simulate.checking_real import plan_check

        check_plan = plan_check(planned, check_seconds)
        if not quiet:
            show_check_plan(check_plan)
    with share_progress("simulating", quiet=quiet) as progress:
        simulations = simulate(planned, RunStore(), progress, resume=resume, cluster=dask)
    checked = None
    if check_plan is not None:
        checked = _check_real(check_plan, simulations, quiet=quiet)
    if page is not None:
        size = write_simulation(page, planned, simulations, compared=bool(policies), checked=checked)
        said_report(page.path, size, quiet=quiet or json)
    if json:
        more = {} if checked is None else {"check": check_document(checked)}
        print_json("leadline.simulation/1", **document(planned, simulations), **more)
    else:
        show_simulation(planned, simulations, compared=bool(policies))
        if checked is not None:
            show_check(checked)


def _check_real(plan: CheckPlan, simulated: Sequence[Simulated], *, quiet: bool) -> RealCheck:
    """Measure a scenario on this machine: on the block layer, or in guests when the scenario names adapters."""
    from leadline.app.lab.lab import run_lab
    from leadline.app.simulate.checking_lab import check_guests
    from leadline.app.simulate.checking_real import check_block_layer
    from leadline.faces.cli.output import share_progress
    from leadline.stores.runs import RunStore

    say = (lambda _: None) if quiet else (lambda text: typer.echo(text, err=True))
    with share_progress("measuring", quiet=quiet) as progress:
        if plan.guests is None:
            return check_block_layer(plan, simulated, RunStore(), say=say, report=progress)
        result = run_lab(
            plan.guests, RunStore(), say=say, done=lambda number, count: progress(number / count, number, count)
        )
        return check_guests(plan, simulated, result)
