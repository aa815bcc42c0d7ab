"""Jobs, such as backups, that run while the database is busy."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.estate.derived.jobs import in_busy_hours, job_windows


def job_in_busy_hours(context: RuleContext, entity: Entity, job: str, summary: str) -> Iterator[Finding]:
    """One finding of an entity whose job of this kind ran in its busy hours, with the windows of each time."""
    busy = list(in_busy_hours(context, entity, job_windows(context.inventory, entity, job)))
    if busy:
        yield context.finding(
            entity, summary, [evidence for _, evidence in busy], windows=[window for window, _ in busy]
        )
