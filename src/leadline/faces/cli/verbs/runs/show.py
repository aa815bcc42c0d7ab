"""`leadline runs show`: one run."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Most, most_of

EPILOG = """\
Examples:

  leadline runs show last

  leadline runs show last --theoretical 24x550000
"""


def command(
    run: Annotated[str, typer.Argument(help="Its id, enough of it, a baseline's name, or last.")],
    *,
    theoretical: Most = None,
    json: Json = False,
) -> None:
    """Show what a run measured, how sure that is, and what to beware of."""
    from leadline.app.benching import diagnosis_of
    from leadline.app.hosts_runs import hosts_of
    from leadline.faces.cli.output import print_json
    from leadline.faces.hosts import hosts_document, share_of
    from leadline.faces.runs import show_run
    from leadline.stores.runs import RunStore, document

    most = most_of(theoretical)
    store = RunStore()
    found = store.get(run)
    hosts = hosts_of(found)
    if json:
        more: dict[str, object] = {} if most is None else {"theoretical_share": share_of(found, most)}
        if hosts is not None:
            more = {"together": hosts_document(hosts, most)}
        print_json("leadline.run/1", run=document(found), files=str(store.files_of(found.id)), **more)
    else:
        show_run(found, diagnosis_of(found.id, store), hosts=hosts, most=most)
