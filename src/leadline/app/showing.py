"""Use case: choose series of a capture and hand them out."""

from __future__ import annotations

import csv
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.core.capture import Capture, SeriesGroup
from leadline.core.entities import Entity
from leadline.core.errors import UsageError
from leadline.core.parquet import save

if TYPE_CHECKING:
    from collections.abc import Sequence


def choose(capture: Capture, metrics: Sequence[str], entities: Sequence[str]) -> list[tuple[SeriesGroup, int]]:
    """Series whose metric matches one of the patterns and whose entity (path or label) holds one.

    Patterns are shell-like (``*``, ``?``); none matches all. A metric must match as a whole, an entity in some part.

    Raises:
        UsageError: nothing matches.
    """
    chosen = [
        (group, row)
        for group, row in capture.series()
        if (not metrics or any(fnmatchcase(group.metric, pattern) for pattern in metrics))
        and (not entities or _holds(group.entities[row], entities))
    ]
    if not chosen:
        names = ", ".join(capture.metrics()[:8])
        raise UsageError(
            "leadline show",
            found=f"no series for metric {list(metrics) or 'any'}, entity {list(entities) or 'any'}",
            expected="a metric and entity of the capture",
            advice=f"It has: {names}{', ...' if len(capture.metrics()) > 8 else ''}",
        )
    return chosen


def _holds(entity: Entity, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, f"*{part}*") for text in (str(entity), entity.label()) for part in patterns)


def only(capture: Capture, chosen: list[tuple[SeriesGroup, int]]) -> Capture:
    """A capture of the chosen series alone."""
    rows: dict[int, tuple[SeriesGroup, list[int]]] = {}
    for group, row in chosen:
        rows.setdefault(id(group), (group, []))[1].append(row)
    groups = [group.take(own) for group, own in rows.values()]
    return Capture(groups, capture.sources, capture.inventory, capture.results)


def export(capture: Capture, path: Path) -> None:
    """Write series to ``.parquet`` (a row per series) or ``.csv`` (a row per sample).

    Raises:
        UsageError: the ending is neither.
    """
    if path.suffix == ".parquet":
        save(capture, path)
    elif path.suffix == ".csv":
        _export_csv(capture, path)
    else:
        raise UsageError(
            "--output", found=path.name, expected="a name ending in .parquet or .csv", advice="Name it so."
        )


def _export_csv(capture: Capture, path: Path) -> None:
    """Long form: time, entity, metric, unit, value; an empty value is "not measured"."""
    import numpy as np  # noqa: PLC0415 - only exporting needs it

    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("w", newline="", encoding="utf-8") as stream:
            out = csv.writer(stream)
            out.writerow(("time", "entity", "metric", "unit", "value"))
            for group, row in capture.series():
                times = np.datetime_as_string(group.times_ns.astype("datetime64[ns]"), unit="ms")
                entity, unit = str(group.entities[row]), group.unit
                for time, value in zip(times, group.values[row], strict=True):
                    out.writerow(
                        (f"{time}Z", entity, group.metric, unit, "" if np.isnan(value) else repr(float(value)))
                    )
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
