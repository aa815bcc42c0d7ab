"""What the diagnosis decides of every view of every recording, kept as a table, so that a later difference is seen.

A decision is the answer to "is it the disk?", the first finding's rule and entity, and the state of each layer: values,
no sentences. ``decisions.tsv`` holds those that were accepted last.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from benches.incidents.judging import Judgement

TABLE = Path(__file__).with_name("decisions.tsv")
KEY = ("kind", "variant", "view")
COLUMNS = ("disk", "rule", "entity", "states")
Decisions = dict[tuple[str, ...], tuple[str, ...]]


def decisions_of(judgements: Iterable[Judgement]) -> Decisions:
    """The decision of each view, by kind, variant and view."""
    return {
        (one.kind, str(one.variant), one.view): (one.disk, one.rule or "", one.entity or "", " ".join(one.states))
        for one in judgements
    }


def kept_decisions(path: Path = TABLE) -> Decisions:
    """The decisions of a table; none where there is no file."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {tuple(row[name] for name in KEY): tuple(row[name] for name in COLUMNS) for row in rows}


def keep_decisions(decisions: Decisions, path: Path = TABLE) -> None:
    """Write decisions as a table, by kind, variant and view."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow((*KEY, *COLUMNS))
        rows.writerows((*key, *decisions[key]) for key in sorted(decisions))


def differences(kept: Decisions, now: Decisions) -> Iterator[str]:
    """A line for each column that differs, of views that both have; then how many there are."""
    count = 0
    for key in sorted(kept.keys() & now.keys()):
        for column, before, after in zip(COLUMNS, kept[key], now[key], strict=True):
            if before != after:
                count += 1
                yield f"{' '.join(key)}: {column} {before or '-'} -> {after or '-'}"
    yield f"{count} differences from the kept decisions in {len(kept.keys() & now.keys())} views"
