"""Rules that say which program took what the database needs: processes of pidstat or top, added up by their name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.finding import Evidence
from leadline.core.model.units import show

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Window

DATABASES = re.compile(
    r"postgres|postmaster|mysqld|mariadbd|ora_|oracle|tnslsnr|sqlservr|irisdb|cache$|mongod|db2sysc", re.IGNORECASE
)
# Threads of the kernel work for others; whom they work for is not recorded.
_KERNEL = re.compile(r"kworker|k?swapd|jbd2|xfs|loop\d|md\d|dm|ksoftirqd|migration|rcu|writeback|flush|kcompactd|nbd\d")
SHOWN_COUNT = 3


@dataclass(frozen=True, slots=True)
class Consumer:
    """One program: the mean of what all its processes together used, inside the windows and outside."""

    name: str
    entity: Entity  # the busiest of its processes
    unit: str
    metric: str
    during: float
    normal: float  # NaN where everything is inside
    most: float  # what the busiest of its processes used inside

    @property
    def is_database(self) -> bool:
        """Whether it is a database server."""
        return DATABASES.match(self.name) is not None

    @property
    def more(self) -> float:
        """How much more it used inside than outside; all of it where nothing is outside."""
        return self.during - (self.normal if np.isfinite(self.normal) else 0.0)

    def with_more(self, other: Consumer) -> Consumer:
        """The program with the processes of another recorded part of it."""
        busiest = max((self, other), key=lambda one: one.most)
        return replace(busiest, during=self.during + other.during, normal=self.normal + other.normal)

    @property
    def evidence(self) -> Evidence:
        """What it used."""
        before = "" if not np.isfinite(self.normal) else f", {show(self.normal, self.unit)} in the normal time"
        return Evidence(
            f"{self.name}: {show(self.during, self.unit)}{before}",
            metric=self.metric,
            entity=self.entity,
            statistic="mean",
            value=self.during,
            unit=self.unit,
        )


def programs(context: RuleContext, metric: str, windows: Sequence[Window]) -> list[Consumer]:
    """Programs that used something in the windows, the busiest first; threads of the kernel left out."""
    by_name: dict[str, Consumer] = {}
    by_source: dict[int, list[SeriesGroup]] = {}
    for group in context.of(metric):
        by_source.setdefault(group.source, []).append(group)
    for groups in by_source.values():
        for program in _of_source(groups, windows):
            known = by_name.get(program.name)
            if known is None or known.during < program.during:
                by_name[program.name] = program
    return sorted(by_name.values(), key=lambda program: -program.during)


def _of_source(groups: Sequence[SeriesGroup], windows: Sequence[Window]) -> list[Consumer]:
    """The programs of one recording; a process that a sample does not list used nothing in it."""
    moments = np.unique(np.concatenate([group.times_ns for group in groups]))
    inside = _is_inside(moments, windows)
    counts = (int(np.count_nonzero(inside)), int(np.count_nonzero(~inside)))
    if not counts[0]:
        return []
    by_name: dict[str, Consumer] = {}
    for program in (program for group in groups for program in _of_group(group, windows, counts)):
        known = by_name.get(program.name)
        by_name[program.name] = program if known is None else known.with_more(program)
    return list(by_name.values())


def _is_inside(times_ns: NDArray[np.int64], windows: Sequence[Window]) -> NDArray[np.bool_]:
    inside = np.zeros(len(times_ns), dtype=bool)
    for window in windows:
        inside |= (times_ns > window.start_ns) & (times_ns <= window.end_ns)
    return inside


def _of_group(group: SeriesGroup, windows: Sequence[Window], counts: tuple[int, int]) -> list[Consumer]:
    """The programs of a group; ``counts`` are the samples of its recording inside the windows and outside."""
    names = [entity.name.split("[")[0] for entity in group.entities]
    values, inside = np.nan_to_num(group.values.astype(np.float64)), _is_inside(group.times_ns, windows)
    during = values[:, inside].sum(axis=1) / counts[0]
    normal = values[:, ~inside].sum(axis=1) / counts[1] if counts[1] else np.full(len(names), np.nan)
    every = []
    for name in dict.fromkeys(names):
        if _KERNEL.match(name):
            continue
        rows = [row for row, other in enumerate(names) if other == name]
        busiest = max(rows, key=lambda row: float(during[row]))
        every.append(
            Consumer(
                name,
                group.entities[busiest],
                group.unit,
                group.metric,
                float(during[rows].sum()),
                float(normal[rows].sum()),
                float(during[busiest]),
            )
        )
    return [program for program in every if program.during > 0]
