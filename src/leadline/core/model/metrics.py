"""The metric catalogue: the one list of names that series may have, with unit, layer, direction and meaning.

The list itself is ``metrics.csv`` beside this file. Where each tool reports a metric is said by the tool's importer
(its ``META.fields``); for tools that have no importer yet, by ``metric_sources.csv``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import Better, EntityKind, Layer

RAW_PREFIX = "raw."  # a tool's own counter that has no canonical name; kept under the tool's name, never used by rules


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: canonical name, unit (a key of ``units.UNITS``), layer, which direction is good, who has it."""

    name: str
    unit: str
    layer: Layer
    better: Better
    kinds: tuple[EntityKind, ...]
    meaning: str


@cache
def metrics() -> dict[str, Metric]:
    """Every metric by name."""
    text = resources.files(__package__).joinpath("metrics.csv").read_text(encoding="utf-8")
    return {
        row["metric"]: Metric(
            row["metric"],
            row["unit"],
            Layer(row["layer"]),
            Better(row["better"]),
            tuple(EntityKind(kind) for kind in row["kinds"].split()),
            row["meaning"],
        )
        for row in csv.DictReader(text.splitlines())
    }


def metric(name: str) -> Metric:
    """The metric of a name; a tool's own counter (``raw.…``) gets an unknown unit.

    Raises:
        UsageError: there is no such metric.
    """
    entry = metrics().get(name)
    if entry is not None:
        return entry
    if name.startswith(RAW_PREFIX):
        return Metric(name, "unknown", Layer.HOST, Better.NEUTRAL, (), "A counter of the tool without a canonical name")
    raise UsageError(
        f"metric {name}",
        found="not in the catalogue",
        expected="a canonical name",
        advice="`leadline metrics` lists them.",
    )


@cache
def foreign_sources() -> tuple[tuple[str, str, str], ...]:
    """Fields of tools without an importer: (metric, tool, field)."""
    text = resources.files(__package__).joinpath("metric_sources.csv").read_text(encoding="utf-8")
    return tuple((row["metric"], row["tool"], row["field"]) for row in csv.DictReader(text.splitlines()))
