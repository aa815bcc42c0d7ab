"""Rules that say which program took what the database needs: processes of pidstat or top, added up by their name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
    for group in context.of(metric):
        inside = np.zeros(len(group.times_ns), dtype=bool)
        for window in windows:
            inside |= (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
        if np.any(inside):
            for program in _of_group(group, inside):
                known = by_name.get(program.name)
                if known is None or known.during < program.during:
                    by_name[program.name] = program
    return sorted(by_name.values(), key=lambda program: -program.during)


def _of_group(group: SeriesGroup, inside: NDArray[np.bool_]) -> list[Consumer]:
    names = [entity.name.split("[")[0] for entity in group.entities]
    values = np.nan_to_num(group.values.astype(np.float64))  # a process that was not there used nothing
    during = values[:, inside].mean(axis=1)
    normal = values[:, ~inside].mean(axis=1) if not inside.all() else np.full(len(names), np.nan)
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
