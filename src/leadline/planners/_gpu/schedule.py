"""Groups of jobs by the hour of the day: how many overlap, and what each group takes longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from leadline.core.contracts.planner import STRICT, Figure, Sheet

HOURS = 24


class JobGroup(BaseModel):
    """Jobs that run at the same hours each day."""

    model_config = STRICT

    name: str
    jobs: Annotated[int, Field(ge=1, le=1000)] = 1
    start_h: Annotated[int, Field(ge=0, lt=HOURS)] = 0
    hours: Annotated[int, Field(ge=1, le=HOURS)] = 1

    def runs_at(self, hour: int) -> bool:
        """Whether it runs in the hour that begins then."""
        return (hour - self.start_h) % HOURS < self.hours


def by_hour(groups: Sequence[JobGroup]) -> list[int]:
    """Jobs at once in each hour of the day."""
    return [sum(group.jobs for group in groups if group.runs_at(hour)) for hour in range(HOURS)]


def sheet(groups: Sequence[JobGroup], slow: Callable[[int], float], closed: Callable[[int], float], how: str) -> Sheet:
    """Hours in which jobs run: which, how many, and how many times as long they take."""
    rows = tuple(
        (
            f"{hour:02d}:00",
            count,
            ", ".join(group.name for group in groups if group.runs_at(hour)),
            round(slow(count), 2),
            round(closed(count), 2),
        )
        for hour, count in enumerate(by_hour(groups))
        if count
    )
    return Sheet("Times as long as alone, by hour", ("hour", "jobs", "groups", "simulated", how), rows)


def figures(groups: Sequence[JobGroup], slow: Callable[[int], float], source: str) -> list[Figure]:
    """Return the slowdown of each group: its hours divided by the hours of work done in them."""
    counts = by_hour(groups)
    figures = []
    for group in groups:
        hourly_jobs = [counts[hour] for hour in range(HOURS) if group.runs_at(hour)]
        done = sum(1.0 / slow(count) for count in hourly_jobs)
        parts = " + ".join(f"{hourly_jobs.count(count)} / {slow(count):.2f}" for count in sorted(set(hourly_jobs)))
        arithmetic = f"{group.hours} h / ({parts}): {done:.2f} h of work alone get done"
        figures.append(Figure(f"slowdown of {group.name}", round(group.hours / done, 3), "", arithmetic, source))
    return figures
