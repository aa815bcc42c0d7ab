"""Episodes beyond two limits in plain NumPy: what the native pass must equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.estate.arithmetic.episodes import Episode, Limits, find_episodes, sample_bounds

Values = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]


class Expected(NamedTuple):
    """One episode as the columns should have it."""

    entity: Entity
    start_ns: int
    end_ns: int
    held_ns: int
    median: float
    lowest: float
    peak: float
    is_critical: bool


def expected_episodes(
    group: SeriesGroup, values: Values, limits: Limits, load: tuple[Sequence[Values], float] | None
) -> list[Expected]:
    """The episodes of a group, those of one entity together."""
    met = beyond(values, limits.warn, limits)
    if load is not None:
        metrics, least = load
        met = met & (np.sum([np.nan_to_num(metric, nan=0.0) for metric in metrics], axis=0) >= least)
    if limits.mostly:
        met = met & majority(group, met, values, limits.duration_s)
    by_entity: dict[Entity, list[Episode]] = {}
    for episode in find_episodes(group, met, values, limits.duration_s):
        by_entity.setdefault(episode.entity, []).append(episode)
    return [expected(episode, limits) for episodes in by_entity.values() for episode in episodes]


def expected(episode: Episode, limits: Limits) -> Expected:
    """An episode and whether it is critical."""
    window, numbers = episode.window, (episode.median, episode.lowest, episode.peak)
    held_ns = round(episode.held_s * 1e9)
    return Expected(
        episode.entity, window.start_ns, window.end_ns, held_ns, *numbers, is_critical=is_critical(episode, limits)
    )


def beyond(values: Values, limit: float, limits: Limits) -> Flags:
    """Whether each value is beyond a limit."""
    with np.errstate(invalid="ignore"):
        met: Flags = values < limit if limits.below else values > limit
        return met | (values == limit) if limits.inclusive else met


def is_critical(episode: Episode, limits: Limits) -> bool:
    """Whether the samples of an episode are beyond the second limit for the duration."""
    if limits.crit is None:
        return True
    group, duration_s = episode.group, limits.duration_s
    met = np.zeros(len(episode.values), dtype=bool)
    met[episode.met_indices] = beyond(episode.met_values, limits.crit, limits)
    if limits.mostly:
        met = met & majority(group, met, episode.values, duration_s)
    starts, ends = sample_bounds(group)
    if float((ends[met] - starts[met]).sum()) / 1e9 < duration_s:
        return False
    one = SeriesGroup(group.metric, [episode.entity], group.times_ns, np.zeros((1, len(met))), group.interval_s)
    return any(True for _ in find_episodes(one, met[np.newaxis, :], one.values, duration_s))


def majority(group: SeriesGroup, met: Flags, values: Values, window_s: float) -> Flags:
    """Whether most of the measured samples within ``window_s`` around each sample meet a condition, [..., n]."""
    reach = 0 if np.isnan(group.interval_s) or group.interval_s <= 0 else int(window_s / group.interval_s) // 2
    if reach == 0:
        return met
    most: Flags = 2 * _around(met, reach) > _around(np.isfinite(values), reach)
    return most


def _around(flags: Flags, reach: int) -> NDArray[np.int64]:
    """How many of the samples up to ``reach`` before and after each one are set, [..., n]."""
    count = flags.shape[-1]
    totals = np.concatenate((np.zeros((*flags.shape[:-1], 1), dtype=np.int64), np.cumsum(flags, axis=-1)), axis=-1)
    at = np.arange(count)
    counts: NDArray[np.int64] = totals[..., np.minimum(at + reach + 1, count)] - totals[..., np.maximum(at - reach, 0)]
    return counts
