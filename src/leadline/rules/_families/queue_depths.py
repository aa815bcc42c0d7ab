"""The queue depth of a device that was cut while the recording ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.finding import Evidence
from leadline.estate.derived.series import places_by_entity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Window

DEPTH = "disk_queue_depth_count"
CUT_SHARE_MIN = 0.25  # Judgement: Storage I/O Control and adaptive queueing halve it, or cut it step by step
USED_SHARE = 0.8  # Judgement: a depth holds commands back where most of its slots are in use
READS = (DEPTH, "disk_active_count", "disk_queued_count")


@dataclass(frozen=True, slots=True)
class DepthCut:
    """From which queue depth to which a device was cut."""

    entity: Entity
    before: float
    least: float

    def __str__(self) -> str:
        return f"{self.before:.0f} to {self.least:.0f}"

    def evidence(self) -> Evidence:
        """That it was cut, as evidence."""
        return Evidence(
            f"the queue depth of {self.entity.label()} was cut from {self} meanwhile",
            metric=DEPTH,
            entity=self.entity,
            statistic="lowest",
            value=self.least,
            normal=self.before,
            unit="count",
        )


def cut_shares(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """The share, in percent, by which a queue depth lies below what it was before, [k, n]; 0 where it holds nothing
    back: the slots are not in use and nothing waits for one. NaN where the depth was not measured.
    """
    depths = group.values.astype(np.float64)
    before = np.fmax.accumulate(depths, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cut_pct = np.where(before > 0, 100.0 * (1.0 - depths / before), 0.0)
    active, queued = (context.aligned(group, metric) for metric in READS[1:])
    if active is None and queued is None:
        return cut_pct
    binds = np.zeros(depths.shape, dtype=bool)
    if active is not None:
        binds |= active >= USED_SHARE * depths
    if queued is not None:
        binds |= queued >= 1.0
    return np.where(binds | np.isnan(depths), cut_pct, 0.0)


def depth_cut(context: RuleContext, device: Entity, windows: Sequence[Window]) -> DepthCut | None:
    """The cut of a device's queue depth within some windows; None where it was not cut by more than `CUT_SHARE_MIN`."""
    for place in context.table(places_by_entity, DEPTH).get(device, ()):
        part = place.alone()
        cut_pct = cut_shares(context, part)[0]
        inside = np.zeros(cut_pct.shape, dtype=bool)
        for window in windows:
            inside |= (part.times_ns > window.start_ns) & (part.times_ns <= window.end_ns)
        is_cut = inside & (np.nan_to_num(cut_pct) > 100.0 * CUT_SHARE_MIN)
        if is_cut.any():
            depths = part.values[0]
            return DepthCut(device, float(np.nanmax(depths[: int(np.argmax(is_cut)) + 1])), float(depths[is_cut].min()))
    return None
