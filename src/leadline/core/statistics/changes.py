"""What a series did inside an incident and outside it, and whether that is more than chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.derived import Recorded, derived
from leadline.core.model.finding import Window
from leadline.core.model.incident import Change, Incident

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.vocabulary import EntityKind

SAME_RATIO = 1.1  # Judgement: a level within 10 % of the normal one is the normal one
LIKE_RATIO = 1.3  # Judgement: so is one within 30 %, unless the incident parts the series clearly
OTHER_RATIO = 3.0  # Judgement: bursts that make it so much more are another level, however the rest is parted
SAME_SHARE, CLEAR_SHARE = 0.1, 0.4  # of the variance; what parts a series by less than the first is chance
# What is counted, time among it, comes in bursts: its mean tells how much it was. Of a level the median tells how it
# usually was. The normal leaves out the samples at both ends of their order: an incident's ends are never sharp, and
# what little of it is taken for normal must not hide it.
_COUNTED = frozenset({"per_s", "bytes_per_s", "kib_per_s", "mib_per_s", "mbit_per_s", "pct"})
_LEFT_OUT = 0.15  # Judgement: at each end


@derived()
def changes_by_entity(reader: Recorded, metric: str, incident: Incident) -> Mapping[Entity, list[Change]]:
    """What each series of a metric did inside an incident and outside, by entity; of those recorded in both."""
    by_entity: dict[Entity, list[Change]] = {}
    for group in reader.of(metric):
        for row, entity in enumerate(group.entities):
            change = change_in(group, row, incident)
            if change is not None:
                by_entity.setdefault(entity, []).append(change)
    return by_entity


def changes_of(recorded: Recorded, metric: str, incident: Incident, *kinds: EntityKind) -> list[Change]:
    """The changes of the series of a metric, of some kinds of entities or of all; none where nothing compares."""
    known = recorded.table(changes_by_entity, metric, incident)
    return [change for entity, some in known.items() if not kinds or entity.kind in kinds for change in some]


def change_of(recorded: Recorded, metric: str, incident: Incident, entity: Entity) -> Change | None:
    """The change of one entity's series, of the first recording; None where it was not recorded in both."""
    return next(iter(recorded.table(changes_by_entity, metric, incident).get(entity, ())), None)


def change_in(group: SeriesGroup, row: int, incident: Incident) -> Change | None:
    """What one series of a group did inside and outside an incident; None where it was not recorded in both."""
    values = group.values[row].astype(np.float64)
    inside = _within(group.times_ns, (incident.window,)) & np.isfinite(values)
    outside = _within(group.times_ns, incident.normal) & np.isfinite(values)
    if np.count_nonzero(inside) < 2 or np.count_nonzero(outside) < 2:
        return None
    during, normal = values[inside], values[outside]
    noise = 1.4826 * float(np.median(np.abs(normal - np.median(normal))))
    is_counted = group.unit in _COUNTED
    return Change(
        group.entities[row],
        group.metric,
        group.unit,
        _usual(normal) if is_counted else float(np.median(normal)),
        float(np.mean(during) if is_counted else np.median(during)),
        noise,
        share_of(during, normal),
    )


def _usual(values: NDArray[np.floating[Any]]) -> float:
    cut = int(_LEFT_OUT * len(values))
    return float(np.mean(np.sort(values)[cut : len(values) - cut]))


def is_same(change: Change) -> bool:
    """Whether the level inside is that outside: as high within its noise, or parted no more than by chance."""
    low, high = sorted((abs(change.normal), abs(change.during)))
    if change.share < SAME_SHARE and high < OTHER_RATIO * low:
        return True
    return high <= (SAME_RATIO if change.share >= CLEAR_SHARE else LIKE_RATIO) * low


def _within(times_ns: NDArray[np.int64], windows: tuple[Window, ...]) -> NDArray[np.bool_]:
    inside = np.zeros(len(times_ns), dtype=bool)
    for window in windows:
        inside |= (times_ns > window.start_ns) & (times_ns <= window.end_ns)
    return inside


def share_of(during: NDArray[np.floating[Any]], normal: NDArray[np.floating[Any]]) -> float:
    """The share of the variance of ranks that parting the two explains."""
    whole = np.concatenate((during, normal))
    order = np.argsort(np.argsort(whole, kind="stable"), kind="stable").astype(np.float64)
    deviation = float(order.std())
    if deviation == 0.0 or np.ptp(whole) == 0.0:
        return 0.0
    inside = (order[: len(during)] - order.mean()).sum() / deviation
    return float(inside**2 / (len(during) * len(normal)))
