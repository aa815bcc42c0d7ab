"""`leadline runs baseline list`: every baseline."""

from __future__ import annotations

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline runs baseline list
"""


def command(*, json: Json = False) -> None:
    """List the baselines: which runs they hold, of what, and how fast that was."""
    from leadline.app.measure.baselines import baselines
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table
    from leadline.stores.runs import RunStore

    runs_by_baseline = baselines(RunStore())
    if json:
        fields = ("id", "name", "tool", "target", "started")
        plain = {
            name: [{**{field: getattr(run, field) for field in fields}, "per_s": run.per_s().mean} for run in runs]
            for name, runs in runs_by_baseline.items()
        }
        print_json("leadline.baselines/1", baselines=plain)
        return
    out = console()
    if not runs_by_baseline:
        out.print("No baseline was kept yet.")
        return
    table = plain_table("baseline", "runs", "load", "target", "per s", "last", right=("runs", "per s"))
    for name, runs in runs_by_baseline.items():
        rates = [run.per_s().mean for run in runs]
        latest = max(run.started for run in runs)[:16].replace("T", " ")
        table.add_row(name, str(len(runs)), runs[0].name, runs[0].target, f"{sum(rates) / len(rates):,.0f}", latest)
    out.print(table)
