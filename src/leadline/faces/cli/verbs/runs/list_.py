"""`leadline runs list`: every run."""

from __future__ import annotations

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline runs list
"""


def command(*, json: Json = False) -> None:
    """List every run, oldest first, with the baselines that were kept."""
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table
    from leadline.stores.runs import RunStore

    store = RunStore()
    runs, marks = store.list(), store.marks()
    if json:
        fields = ("id", "name", "state", "tool", "target", "started")
        print_json(
            "leadline.runs/2", runs=[{name: getattr(run, name) for name in fields} for run in runs], baselines=marks
        )
        return
    out = console()
    if not runs:
        out.print("No run was kept yet.")
        return
    kept: dict[str, list[str]] = {}
    for name, ids in marks.items():
        for run_id in ids:
            kept.setdefault(run_id, []).append(name)
    table = plain_table("run", "state", "tool", "target", "")
    for run in runs:
        table.add_row(
            run.id, run.state, run.tool, run.target, f"baseline {', '.join(kept[run.id])}" if run.id in kept else ""
        )
    out.print(table)
