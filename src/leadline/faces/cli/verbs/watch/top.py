"""`leadline watch top`: who takes most of something."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Since, Timezone, Until
from leadline.faces.cli.verbs.watch._common import Settings, settings_of

EPILOG = """\
Examples:

  leadline watch top guest_disk_util_pct --settings watch.yaml

  leadline watch top guest_disk_util_pct --from 7d --statistic max --count 5
"""
STATISTICS = ("mean", "max", "p50", "p95", "p99")


def command(
    metric: Annotated[str, typer.Argument(help="A metric, as `leadline metrics` lists them.")],
    *,
    statistic: Annotated[str, typer.Option(help=f"By what: {', '.join(STATISTICS)}.")] = "p95",
    count: Annotated[int, typer.Option(help="How many.", min=1, max=1000)] = 20,
    since: Since = None,
    until: Until = None,
    timezone: Timezone = None,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """List who has most of a metric over any time the watch has kept, an hour by default."""
    from rich.text import Text

    from leadline.app.read.stored import StoredPart, top_of
    from leadline.core.model.errors import UsageError
    from leadline.core.model.metrics import metric as metric_of
    from leadline.core.model.units import show
    from leadline.faces.cli.output import console, print_json

    if statistic not in STATISTICS:
        raise UsageError(
            "--statistic", found=statistic, expected=f"one of {', '.join(STATISTICS)}", advice="The usual one is p95."
        )
    unit = metric_of(metric).unit
    store = Path(f"store:{settings_of(settings).store.path()}")
    ranked = top_of(store, StoredPart(since, until, None, timezone), metric, statistic, count)
    if json:
        rows = [{"entity": str(entity), "value": value} for entity, value in ranked]
        print_json("leadline.top/1", metric=metric, unit=unit, statistic=statistic, entities=rows)
        return
    out = console()
    width = max((len(entity.label()) for entity, _ in ranked), default=0)
    for entity, value in ranked:
        out.print(Text(f"{entity.label():<{width}}  {show(value, unit)}"))
