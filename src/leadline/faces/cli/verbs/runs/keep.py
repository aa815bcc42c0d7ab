"""`leadline runs keep`: a run as baseline."""

from __future__ import annotations

from typing import Annotated

import typer

EPILOG = """\
Examples:

  leadline runs keep last --as before-upgrade
"""


def command(
    run: Annotated[str, typer.Argument(help="The run.")],
    *,
    name: Annotated[str, typer.Option("--as", help="Name of the baseline.")] = "baseline",
) -> None:
    """Keep a run as a baseline, to compare every later one against: `leadline runs compare baseline`."""
    from leadline.stores.runs import RunStore

    store = RunStore()
    found = store.get(run)
    store.mark(name, found.id)
    typer.echo(f"{found.id} is the baseline {name}")
