"""`leadline runs show`: one run."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline runs show last
"""


def command(
    run: Annotated[str, typer.Argument(help="Its id, enough of it, a baseline's name, or last.")], *, json: Json = False
) -> None:
    """Show what a run measured, how sure that is, and what to beware of."""
    from leadline.app.benching import diagnosis_of
    from leadline.faces.cli.output import print_json
    from leadline.faces.runs import show_run
    from leadline.stores.runs import RunStore, document

    store = RunStore()
    found = store.get(run)
    if json:
        print_json("leadline.run/1", run=document(found), files=str(store.files_of(found.id)))
    else:
        show_run(found, diagnosis_of(found.id, store))
