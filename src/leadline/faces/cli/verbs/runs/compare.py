"""`leadline runs compare`: runs before and after, side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline runs compare last last

  leadline runs compare before-upgrade after-upgrade

  leadline runs compare last last --no-history --json
"""
_SIDE = "A run, several with commas between, a baseline, or last:3."


def command(
    before: Annotated[str, typer.Argument(help=_SIDE)],
    after: Annotated[str, typer.Argument(help=_SIDE)] = "last",
    *,
    history: Annotated[
        bool, typer.Option("--history/--no-history", help="Learn from like runs how much runs differ.")
    ] = True,
    json: Json = False,
) -> None:
    """Compare runs: change and 95 % interval per metric, and what was not alike.

    With several runs on a side the interval knows what changes from run to run. Exit status 1 when anything became
    worse beyond chance and by more than 2 %; two single runs without three like ones kept earlier never prove that.
    """
    from leadline.app.measure.baselines import side
    from leadline.app.measure.comparing_runs import compare_runs, history_of
    from leadline.faces.cli.output import print_json
    from leadline.faces.runs import show_comparison
    from leadline.stores.runs import RunStore

    store = RunStore()
    sides = side(store, before), side(store, after)
    comparison = compare_runs(*sides, history_of(store, *sides) if history else ())
    if json:
        print_json("leadline.run-comparison/2", **comparison.to_dict())
    else:
        show_comparison(comparison)
    if comparison.worse:
        raise typer.Exit(1)
