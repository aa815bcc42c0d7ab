"""`leadline runs keep`: runs as baseline."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline runs keep tonight last

  leadline runs keep --forget passing
"""


def command(
    name: Annotated[str, typer.Argument(help="Name of the baseline.")],
    runs: Annotated[list[str] | None, typer.Argument(help="Runs. [default: last]", show_default=False)] = None,
    *,
    add: Annotated[bool, typer.Option("--add", help="Besides what the baseline holds, not instead.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove the baseline; its runs stay.")] = False,
    json: Json = False,
) -> None:
    """Keep runs as a baseline; later runs of the same load, target and host are judged.

    Three runs or more tell what changes from run to run, best made at different hours.
    """
    from leadline.app.baselines import keep, side
    from leadline.core.errors import UsageError
    from leadline.faces.cli.output import print_json
    from leadline.stores.runs import RunStore

    store = RunStore()
    if forget:
        if runs or add or name not in store.marks():
            raise UsageError(
                f"--forget {name}",
                found="runs to keep as well" if runs or add else "no such baseline",
                expected="the name of a baseline, alone",
                advice="`leadline runs list` shows them.",
            )
        store.mark(name, [])
        kept = []
    else:
        kept = keep(store, name, [run for word in runs or ["last"] for run in side(store, word)], add=add)
    if json:
        print_json("leadline.baseline/1", name=name, runs=[run.id for run in kept])
    elif forget:
        typer.echo(f"{name} is no baseline any more; its runs are kept")
    else:
        typer.echo(f"baseline {name}: {', '.join(run.id for run in kept)}")
        if len(kept) < 3:
            typer.echo("fewer than three runs: what changes from run to run is hardly known; --add more")
