"""`leadline runs show`: one run."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Html, Json, Most, most_of, said_report
from leadline.faces.cli.outputs import Force, output_file

EPILOG = """\
Examples:

  leadline runs show last

  leadline runs show last --html run.html

  leadline runs show last --theoretical 24x550000
"""


def command(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="Its id, enough of it, a baseline's name, or last.")],
    *,
    html: Html = None,
    theoretical: Most = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show what a run measured, how sure that is, and what to beware of.

    The report adds percentiles and histograms, the run second by second, and the run beside its baselines.
    """
    from leadline.app.bench.hosts import hosts_of
    from leadline.app.measure.baselines import judge
    from leadline.app.measure.benching import diagnosis_of
    from leadline.faces.cli.output import print_json
    from leadline.faces.hosts import hosts_document, share_of
    from leadline.faces.run_page import write_run_page
    from leadline.faces.runs import show_run
    from leadline.stores.runs import RunStore, document

    most = most_of(theoretical)
    page = output_file(ctx, "html", html, force=force)
    store = RunStore()
    stored_run = store.get(run)
    hosts = hosts_of(stored_run)
    if page is not None:
        judgements = judge(store, [stored_run]) if stored_run.rounds else ()
        said_report(page.path, write_run_page(page, stored_run, store, judgements), quiet=json)
    if json:
        more: dict[str, object] = {} if most is None else {"theoretical_share": share_of(stored_run, most)}
        if hosts is not None:
            more = {"together": hosts_document(hosts, most)}
        print_json("leadline.run/1", run=document(stored_run), files=str(store.files_of(stored_run.id)), **more)
    else:
        show_run(stored_run, diagnosis_of(stored_run.id, store), hosts=hosts, most=most)
