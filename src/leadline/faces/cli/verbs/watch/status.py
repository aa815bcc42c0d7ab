"""`leadline watch status`: what the watch is doing now."""

from __future__ import annotations

import typer

from leadline.faces.cli.options import Json
from leadline.faces.cli.verbs.watch._common import Settings, settings_of, show_incidents

EPILOG = """\
Examples:

  leadline watch status

  leadline watch status --json
"""
NOT_RUNNING_EXIT = 1


def command(*, settings: Settings = None, json: Json = False) -> None:
    """Say whether the watch runs, what its sources do, and what is open. Exit 1 when it does not run."""
    from rich.text import Text

    from leadline.app.watch.state import read_state
    from leadline.core.model.units import duration, several
    from leadline.faces.cli.output import console, print_json

    state = read_state(settings_of(settings).store.path())
    if json:
        print_json(state.pop("schema"), **state)
    else:
        out = console()
        store = state["store"]
        runs = "runs" if state["is_running"] else f"does not run; last seen {duration(state['age_s'])} ago"
        out.print(
            Text(f"Watch {runs}: {state['series']:,} series, {state['samples']:,} samples since {state['began']}")
        )
        out.print(Text(f"Store {store['folder']}: {store['bytes'] / 1e6:,.1f} MB, {store['samples']:,} samples"))
        for source in state["sources"]:
            up = {True: "up", False: f"DOWN: {source['error']}", None: "not tried yet"}[source["is_up"]]
            gaps = several(source["gap_count"], "gap")
            if source["gap_count"]:
                gaps += f" of {duration(source.get('gap_s', 0.0))}"
            failures = several(source["failure_count"], "failure")
            counts = f"{several(source['sample_count'], 'sample')}, {gaps}, {failures}"
            out.print(Text(f"  {source['name']} ({source['kind']}, every {source['every_s']:g} s): {up}; {counts}"))
            for note in source["notes"]:
                out.print(Text(f"    {note}", style="dim"))
        for name, why in state["left_out"].items():
            out.print(Text(f"  {name}: {why}", style="dim"))
        for name, receiver in state["notices"].items():
            error = f"; last error: {receiver['error']}" if receiver["error"] else ""
            out.print(Text(f"  told {name}: {receiver['sent_count']} sent, {receiver['waiting_count']} waiting{error}"))
        out.print()
        show_incidents(out, state["open"], "No incident is open.")
    if not state["is_running"]:
        raise typer.Exit(NOT_RUNNING_EXIT)
