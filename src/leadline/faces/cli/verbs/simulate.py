"""`leadline simulate`: what would happen if, before anyone touches production."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Html, Json, Quiet, said_report

EPILOG = """\
Examples:

  leadline simulate examples/scenarios/iops-cap.yaml

  leadline simulate examples/scenarios/adapter-queue.yaml --html queues.html

  leadline simulate examples/scenarios/noisy-neighbour.yaml --compare round-robin

  leadline simulate examples/scenarios/iops-cap.yaml --vary vms.db01.iops_limit=100,200,null --seed 7 --json
"""


def command(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", show_default=False)],
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
    html: Html = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a system: what a limit, a queue, a scheduler or a load would do.

    The same scenario, seed and version give the same numbers on every machine. Variants run on all cores, see the
    same arrivals and service times, and are kept as runs: see `leadline runs`. Nothing is loaded or changed.
    """
    from leadline.app.simulating import plan_simulation, simulate
    from leadline.core.scenario import parse_axis
    from leadline.faces.cli.output import print_json, share_progress
    from leadline.faces.report import check_writable
    from leadline.faces.report.simulation import write_simulation
    from leadline.faces.simulations import document, show_simulation
    from leadline.stores.runs import RunStore

    if html is not None:
        check_writable(html)
    policies = [] if compare is None else [name.strip() for name in compare.split(",")]
    planned = plan_simulation(scenario, [parse_axis(text) for text in vary or []], policies, seed)
    with share_progress("simulating", quiet=quiet) as told:
        found = simulate(planned, RunStore(), told)
    if json:
        print_json("leadline.simulation/1", **document(planned, found))
    else:
        show_simulation(planned, found, compared=bool(policies))
    if html is not None:
        said_report(html, write_simulation(html, planned, found, compared=bool(policies)), quiet=quiet or json)
