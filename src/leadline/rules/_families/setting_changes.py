"""Settings of databases that were changed while a recording ran, as rules look at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from leadline.core.contracts.rule import RuleContext

METRIC = "db_setting_changes_per_s"
_NS_PER_S = 1_000_000_000
# A change in the second half of an incident did not bring it about: it is what somebody did against it.
BEGIN_SHARE = 0.5  # Judgement: changes that are read anew take effect within seconds


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A setting that got another value.

    Attributes:
        at_ns: UTC nanoseconds, the end of the sample in which it was logged.
        entity: the setting with its value; its parent is the server.
        value: as it was written; None where it was reset to its default, or is not kept.
    """

    at_ns: int
    entity: Entity
    name: str
    value: str | None
    is_reset: bool
    source: str

    @property
    def evidence(self) -> Evidence:
        """What the log says."""
        return Evidence(
            f"the log says that {self.clause}", metric=METRIC, entity=self.entity, statistic="count", source=self.source
        )

    @property
    def clause(self) -> str:
        """What was done, as the end of a sentence."""
        if self.is_reset:
            return f"{self.name} was reset to its default"
        return f"{self.name} was changed" if self.value is None else f"{self.name} was changed to {self.value}"


def setting_changes(context: RuleContext) -> list[LoggedChange]:
    """Every change that was recorded, in order of time."""
    return sorted(_every(context), key=lambda change: change.at_ns)


def _every(context: RuleContext) -> Iterator[LoggedChange]:
    inventory = context.inventory
    for group in context.of(METRIC, EntityKind.SETTING):
        for entity, values in zip(group.entities, group.values, strict=True):
            name = inventory.get(entity, "setting")
            if name is None:
                continue
            value, is_reset = (inventory.get(entity, fact) for fact in ("value", "is_reset"))
            shown = None if value is None else str(value)
            for place in np.flatnonzero(values > 0).tolist():
                at_ns = int(group.times_ns[place])
                yield LoggedChange(at_ns, entity, str(name), shown, bool(is_reset), context.source_name(group))


def in_force(context: RuleContext, database: Entity, name: str) -> LoggedChange | None:
    """The last change of a setting before an incident, or in its first half; in all of a recording without one.

    None where it was not changed.
    """
    last_ns = None
    if context.incident is not None:
        window = context.incident.window
        last_ns = window.start_ns + round(BEGIN_SHARE * window.duration_s * _NS_PER_S)
    return next(
        (
            change
            for change in reversed(setting_changes(context))
            if change.name.casefold() == name
            and change.entity.parent == database
            and (last_ns is None or change.at_ns <= last_ns)
        ),
        None,
    )
