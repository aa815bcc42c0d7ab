"""Use case: choose series of a capture and hand them out."""

from __future__ import annotations

import csv
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.core.io.outputs import EXPORT_HEADER, Output
from leadline.core.io.parquet import save
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.similar import similar

if TYPE_CHECKING:
    from collections.abc import Sequence


def choose(capture: Capture, metrics: Sequence[str], entities: Sequence[str]) -> list[tuple[SeriesGroup, int]]:
    """Series whose metric matches one of the patterns and whose entity (path or label) holds one.

    Patterns are shell-like (``*``, ``?``); none matches all. A metric must match as a whole, an entity in some part.

    Raises:
        UsageError: nothing matches; a capture of results alone matches where nothing is asked for.
    """
    chosen = [
        (group, row)
        for group, row in capture.series()
        if (not metrics or any(fnmatchcase(group.metric, pattern) for pattern in metrics))
        and (not entities or _holds(group.entities[row], entities))
    ]
    if not chosen and capture.results and not metrics and not entities:
        return []
    if not chosen and not capture.groups:
        holds = "results and no series" if capture.results else "facts and no series"
        raise UsageError(
            "leadline show",
            found=holds,
            expected="series of the metrics asked for" if metrics or entities else "series or results",
            advice="Leave --metric and --entity out." if capture.results else "leadline audit judges facts.",
        )
    if not chosen:
        known = capture.metrics()
        near = [name for asked in metrics for name in similar(asked, known)] or known
        names = ", ".join(near[:8])
        raise UsageError(
            "leadline show",
            found=f"no series for metric {list(metrics) or 'any'}, entity {list(entities) or 'any'}",
            expected="a metric and entity of the capture",
            advice=f"It has: {names}{', ...' if len(known) > 8 else ''}",
        )
    return chosen


def _holds(entity: Entity, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, f"*{part}*") for text in (str(entity), entity.label()) for part in patterns)


def only(capture: Capture, chosen: list[tuple[SeriesGroup, int]]) -> Capture:
    """A capture of the chosen series alone."""
    rows: dict[int, tuple[SeriesGroup, list[int]]] = {}
    for group, row in chosen:
        rows.setdefault(id(group), (group, []))[1].append(row)
    groups = [group.take(taken_rows) for group, taken_rows in rows.values()]
    return Capture(groups, capture.sources, capture.inventory, capture.results)


def export(capture: Capture, output: Output | Path) -> None:
    """Write series to ``.parquet`` (a row per series) or ``.csv`` (a row per sample).

    A path may only replace what Leadline wrote.

    Raises:
        UsageError: the ending is neither, or it must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    output = Output.of(output)
    check_ending(output.path)
    if output.path.suffix == ".parquet":
        save(capture, output)
    else:
        _export_csv(capture, output)


def check_ending(path: Path) -> None:
    """Refuse a name that does not say what to write.

    Raises:
        UsageError: the ending is neither.
    """
    if path.suffix not in (".parquet", ".csv"):
        raise UsageError(
            "--output", found=path.name, expected="a name ending in .parquet or .csv", advice="Name it so."
        )


def _export_csv(capture: Capture, output: Output) -> None:
    """Long form: a row per sample; an empty value is "not measured", since_boot marks averages since boot."""
    import numpy as np  # noqa: PLC0415 - only exporting needs it

    with output.aside() as path, path.open("w", newline="", encoding="utf-8") as stream:
        out = csv.writer(stream)
        out.writerow(EXPORT_HEADER)
        for group, row in capture.series():
            times = np.datetime_as_string(group.times_ns.astype("datetime64[ns]"), unit="ms")
            entity, unit = str(group.entities[row]), group.unit
            for time, value, is_boot in zip(times, group.values[row], group.boot_marks(), strict=True):
                number = "" if np.isnan(value) else repr(float(value))
                mark = "true" if is_boot else "false"
                out.writerow((f"{time}Z", entity, group.metric, unit, number, mark))
