"""`leadline metrics`: the catalogue of metrics."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.faces.cli.options import Json

QUESTION = "leadline"
EPILOG = """\
Examples:

  leadline metrics

  leadline metrics latency

  leadline metrics --json
"""


def command(
    part: Annotated[str, typer.Argument(help="Only names that hold this.", show_default=False)] = "",
    *,
    json: Json = False,
) -> None:
    """List the metrics with unit, layer and meaning; `explain NAME` says which tools report one."""
    from leadline.app.explain.explaining import where_reported
    from leadline.core.model.metrics import metrics
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table

    chosen = [metric for name, metric in metrics().items() if part in name]
    if json:
        listed = [
            {
                "name": m.name,
                "unit": m.unit,
                "layer": m.layer.value,
                "better": m.better.value,
                "kinds": [kind.value for kind in m.kinds],
                "meaning": m.meaning,
                "reported_by": where_reported(m.name),
            }
            for m in chosen
        ]
        print_json("leadline.metrics/1", metrics=listed)
        return
    table = plain_table("metric", "unit", "meaning")
    for m in chosen:
        table.add_row(m.name, m.unit, m.meaning)
    console().print(table)
