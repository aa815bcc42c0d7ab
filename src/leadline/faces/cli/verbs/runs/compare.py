"""`leadline runs compare`: two runs side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline runs compare last last
"""


def command(
    before: Annotated[str, typer.Argument(help="A run, or the name of a baseline.")],
    after: Annotated[str, typer.Argument(help="A run.")] = "last",
    *,
    json: Json = False,
) -> None:
    """Compare two runs: change and 95 % interval per metric, and what was not alike.

    Exit status 1 when anything became worse beyond chance and by more than 2 %.
    """
    from leadline.app.comparing_runs import compare_runs
    from leadline.faces.cli.output import print_json
    from leadline.faces.runs import show_comparison
    from leadline.stores.runs import RunStore

    store = RunStore()
    found = compare_runs(store.get(before), store.get(after))
    if json:
        print_json("leadline.run-comparison/1", **found.to_dict())
    else:
        show_comparison(found)
    if found.worse:
        raise typer.Exit(1)
