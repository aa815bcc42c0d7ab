"""`leadline runs baseline keep`: runs as baseline."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline runs baseline keep tonight last

  leadline runs baseline keep tonight last --add
"""


def command(
    name: Annotated[str, typer.Argument(help="Name of the baseline.")],
    runs: Annotated[list[str], typer.Argument(help="Runs; last:3 are the last three alike.")],
    *,
    add: Annotated[bool, typer.Option("--add", help="Besides what the baseline holds, not instead.")] = False,
    json: Json = False,
) -> None:
    """Keep runs as a baseline; later runs of the same load, target and host are judged.

    Three runs or more tell what changes from run to run, best made at different hours.
    """
    from leadline.app.measure.baselines import FEW_RUNS, keep, side
    from leadline.core.statistics.between_runs import HISTORY_COUNT_MIN
    from leadline.faces.cli.output import print_json
    from leadline.stores.runs import RunStore

    store = RunStore()
    kept = keep(store, name, [run for word in runs for run in side(store, word)], add=add)
    if json:
        print_json("leadline.baseline/1", name=name, runs=[run.id for run in kept])
        return
    typer.echo(f"baseline {name}: {', '.join(run.id for run in kept)}")
    if len(kept) < HISTORY_COUNT_MIN:
        typer.echo(FEW_RUNS)
