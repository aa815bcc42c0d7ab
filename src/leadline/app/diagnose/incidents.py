"""Step one of a verdict: when was it bad? Symptoms that users feel part a recording into an incident and its normal.

Throughput, latency and waiting sessions lead; every other series adds a small vote, since what begins and ends together
belongs together. A span counts only when somebody could have felt it: throughput lower, latency higher or more waiting
sessions by a margin that chance does not make.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.parting import POINT_COUNT_MAX, Spans, ranks, smoothed, votes
from leadline.core.model.finding import Window
from leadline.core.model.incident import Basis, Change, Incident
from leadline.core.statistics.changes import SAME_SHARE, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup

    Floats = NDArray[np.float64]

NS_PER_S = 1_000_000_000
# What users feel, and which way is bad.
THROUGHPUT = ("db_tps", "db_qps", "db_tpm", "job_iops", "job_mib_per_s")
CLIENT_LATENCY = ("db_latency_ms", "db_schedule_lag_ms", "db_component_response_s", "job_latency_ms")
SERVER_LATENCY = ("db_transaction_active_ms",)  # asked only where no client measured what it waited
LATENCY = (*CLIENT_LATENCY, *SERVER_LATENCY)
SESSIONS = ("db_active_sessions_count",)
LATENCY_MS = ("db_latency_ms", "job_latency_ms")
FIRST_COUNT, WAITED_SHARE = 3, 0.5  # Judgement: what ends first after a standstill waited for most of it
FELT = (*THROUGHPUT, *LATENCY, *SESSIONS)
READS = frozenset(FELT)  # what else another step reads has a vote
FELT_WEIGHT = 20.0  # Judgement: what users feel outvotes as many other series
OTHER_COUNT_MAX = 400
POINT_COUNT_MIN = 12
SPAN_COUNT_MIN = 3  # points of an incident
DRIFT_MAX = 0.9  # correlation with time from which a series says only that time went by
ASKED_SHARE = 0.75  # of the usual sessions: with fewer and no throughput, nobody asks for anything
# Whoever samples a server that nobody uses does some transactions a second, too, each of them short.
IDLE_SHARE, BUSY_QUANTILE = 0.05, 0.9  # Judgement: of the throughput when there is work
ONE_SESSION = 0.5  # sessions at work, on average, from which on somebody is served
IDLE_COUNT = 5  # points without work that part what was before from what comes after
SLOWER_RATIO, STOPPED_RATIO, HALVED_RATIO = 1.1, 0.1, 0.6  # Judgement: when fewer transactions are not less work
THROUGHPUT_RATIO, LATENCY_RATIO, SESSIONS_RATIO = 0.85, 4.0 / 3.0, 1.5  # Judgement: what users call slow
APART_RATIO = 4.0  # Judgement: latency in an incident that is told from the normal at each point
LATENCY_MS_MIN, SESSIONS_MIN = 1.0, 2.0  # Judgement: less than that more nobody feels
INCIDENT_COUNT_MAX = 3
SET_ASIDE_MAX = 5  # Judgement: what a window may hold beside what goes on now: older incidents, changes of load
CHANCE = 2.2  # of n points without an incident the best of n^2 / 2 spans explains about 2 ln(n^2 / 2) / n by chance


@dataclass(frozen=True, slots=True)
class Lookout:
    """What a watch asks of its window: whether something is wrong now.

    Attributes:
        since_ns: an incident of now lasts until then or longer, UTC nanoseconds.
        past: earlier incidents, which are over: no normal, and not looked for again.
    """

    since_ns: int
    past: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """One series on the common points, [n]; NaN not measured."""

    metric: str
    group: SeriesGroup
    row: int
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """The common time line: ends [n] of equal steps."""

    ends_ns: NDArray[np.int64]
    step_ns: int

    def of(self, group: SeriesGroup) -> Floats | None:
        """Means [k, n] of a group in the steps; None where its samples are too far apart for them."""
        count = len(self.ends_ns)
        if len(group.times_ns) < POINT_COUNT_MIN:
            return None
        place = np.searchsorted(self.ends_ns + self.step_ns // 2, group.times_ns)
        inside = (place < count) & (group.times_ns > self.ends_ns[0] - self.step_ns * 3 // 2)
        place = place[inside]
        if len(np.unique(place)) < count / 2:
            return None
        values = group.values[:, inside].astype(np.float64)
        known = np.isfinite(values)
        sums, counts = np.zeros((len(values), count)), np.zeros((len(values), count))
        for row in range(len(values)):
            sums[row] = np.bincount(place, np.where(known[row], values[row], 0.0), count)
            counts[row] = np.bincount(place, known[row], count)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(counts > 0, sums / counts, np.nan)

    def window(self, first: int, end: int) -> Window:
        """The time of the points from first to before end."""
        return Window(int(self.ends_ns[first]) - self.step_ns, int(self.ends_ns[end - 1]))


def find_incidents(capture: Capture, lookout: Lookout | None = None) -> tuple[Incident, ...]:
    """The incidents of a capture that users felt, the clearest first.

    None where nothing felt was recorded, or where nothing changed. After the first, what is left is searched again.
    With a lookout only the one that goes on now is looked for: neither an older one nor an earlier change of what users
    ask for hides it.
    """
    groups = (one for group in _felt_groups(capture) for one in _single_runs(group, capture))
    felt = [group for group in groups if len(group.times_ns) >= POINT_COUNT_MIN]
    if not felt:
        return ()
    points = _points(felt)
    series = [one for group in felt for one in _series(points, group)]
    if not series:
        return ()
    normal = _busy(series, points.step_ns / NS_PER_S)
    masks: list[NDArray[np.bool_]] = []
    if lookout is not None:
        normal &= ~_within(points, lookout.past)
        masks, normal = _of_now(capture, points, series, normal, lookout.since_ns)
    while lookout is None and len(masks) < INCIDENT_COUNT_MAX and np.count_nonzero(normal) >= POINT_COUNT_MIN:
        inside, is_felt = _clearest(capture, points, series, normal)
        if inside is None or not is_felt:
            break
        masks.append(inside)
        normal &= ~inside
    normal &= ~_as_bad(series, normal, masks)
    symptoms = ((inside, _symptoms(series, inside, normal)) for inside in masks)
    runs = tuple(_runs(points, normal))
    return tuple(
        Incident(_window(points, inside), runs, Basis.FELT, felt_more) for inside, felt_more in symptoms if felt_more
    )


def _felt_groups(capture: Capture) -> list[SeriesGroup]:
    """What tells of what users felt: what a server says of its transactions counts where no client measured them."""
    is_known = any(capture.of(metric) for metric in CLIENT_LATENCY)
    return [group for metric in FELT if not (is_known and metric in SERVER_LATENCY) for group in capture.of(metric)]


def _single_runs(group: SeriesGroup, capture: Capture) -> Iterator[SeriesGroup]:
    """The group in parts where its source holds several runs of a load tool: two loads are not compared."""
    name = capture.sources[group.source].name
    timed = (one for one in capture.results if one.source.startswith(name) and one.start_ns is not None)
    spans = sorted({(one.start_ns or 0, one.duration_s) for one in timed if one.duration_s > 0})
    apart = all(first + length * NS_PER_S <= after + NS_PER_S for (first, length), (after, _) in pairwise(spans))
    if len(spans) < 2 or not apart:
        yield group
        return
    for start_ns, length_s in spans:
        yield group.between(start_ns, start_ns + round(length_s * NS_PER_S))


def _of_now(
    capture: Capture, points: _Points, series: list[_Series], normal: NDArray[np.bool_], since_ns: int
) -> tuple[list[NDArray[np.bool_]], NDArray[np.bool_]]:
    """The incident [n] that lasts until now, where there is one, and the points [n] of its normal.

    What was clearer and is over, felt or not, is set aside. Where the clearest span lasts until now and nobody felt it,
    users ask for less or more since it began: then the normal is what was since. Where it was felt, too, but a later
    part of it far more, that part is the incident.
    """
    before: tuple[list[NDArray[np.bool_]], NDArray[np.bool_]] | None = None
    before_ratio = 0.0
    for _ in range(SET_ASIDE_MAX):
        inside, is_felt = _clearest(capture, points, series, normal)
        if inside is None:
            break
        goes_on = int(points.ends_ns[inside][-1]) >= since_ns
        if goes_on and is_felt:
            ratio = _worsening(series, inside, normal & ~inside)
            if before is not None and ratio <= before_ratio:
                break
            before, before_ratio = ([inside], normal & ~inside), ratio
        normal = inside if goes_on else normal & ~inside
        if np.count_nonzero(normal) < POINT_COUNT_MIN:
            break
    return before or ([], normal)


def _worsening(series: list[_Series], inside: NDArray[np.bool_], normal: NDArray[np.bool_]) -> float:
    """How many times as long users waited, by the latency that grew most; 1 where none was recorded."""
    ratios = [
        _median(one.values, inside) / usual
        for one in series
        if one.metric in LATENCY and (usual := _median(one.values, normal)) > 0.0
    ]
    return max(ratios, default=1.0)


def _clearest(
    capture: Capture, points: _Points, series: list[_Series], among: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_] | None, bool]:
    """Which points [n] part those of a recording best, and whether it was felt; None where there are too few."""
    rows = np.flatnonzero(among)
    pieces = np.concatenate(([0], np.cumsum(np.diff(rows) > IDLE_COUNT)))
    spans = Spans.of(len(rows), SPAN_COUNT_MIN, pieces)
    if not len(spans.firsts):
        return None, False
    badness = [_badness(one, series)[rows] for one in series]
    shares = [spans.shares(bad) for bad in badness]
    worst = np.max([ranks(smoothed(bad)) for bad in badness], axis=0)
    score = FELT_WEIGHT * (votes(spans.shares(worst)) + np.sum([votes(each) for each in shares], axis=0))
    for values in _others(capture, points, rows):
        score += votes(np.abs(spans.shares(values)))
    best = int(np.argmax(score))
    inside = np.zeros(len(points.ends_ns), dtype=bool)
    inside[rows[int(spans.firsts[best]) : int(spans.ends[best])]] = True
    least = CHANCE * float(np.log(len(rows) ** 2 / 2)) / len(rows)
    clear = (one for one, each in zip(series, shares, strict=True) if float(each[best]) >= least)
    normal = among & ~inside
    clear_changes = [_change(one, inside, normal) for one in clear]
    latency = [_change(one, inside, normal) for one in series if one.metric in LATENCY]
    return inside, any(_is_felt(change, latency) for change in clear_changes)


def _as_bad(series: list[_Series], normal: NDArray[np.bool_], incidents: list[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Points [n] outside the incidents that were felt nearly as much: these are nobody's normal.

    Hardly any work was done at them, as in a standstill, or latency lay nearer to that of an incident, by ratio.
    """
    throughput = [(one.values, _median(one.values, normal)) for one in series if one.metric in THROUGHPUT]
    bad = np.full(len(normal), bool(throughput))
    for values, usual in throughput:
        bad &= np.nan_to_num(values, nan=np.inf) < STOPPED_RATIO * usual
    for one in series:
        usual = _median(one.values, normal)
        worst = max((_median(one.values, inside) for inside in incidents), default=0.0)
        if one.metric in LATENCY and worst >= APART_RATIO * usual > 0.0:
            bad |= np.nan_to_num(one.values) > np.sqrt(usual * worst)
    return bad if np.count_nonzero(normal & ~bad) >= SPAN_COUNT_MIN else np.zeros_like(bad)


def _median(values: Floats, among: NDArray[np.bool_]) -> float:
    known = values[among & np.isfinite(values)]
    return float(np.median(known)) if len(known) else 0.0


def _symptoms(series: list[_Series], inside: NDArray[np.bool_], normal: NDArray[np.bool_]) -> tuple[Change, ...]:
    """What was felt in an incident, the clearest first."""
    changes = [_change(one, inside, normal) for one in series]
    latency = [change for change in changes if change.metric in LATENCY]
    felt = (change for change in changes if change.share >= SAME_SHARE and _is_felt(change, latency))
    return tuple(sorted(felt, key=lambda change: -change.share))


def _window(points: _Points, inside: NDArray[np.bool_]) -> Window:
    rows = np.flatnonzero(inside)
    return points.window(int(rows[0]), int(rows[-1]) + 1)


def told_incident(capture: Capture, window: Window, normal: Window | None = None) -> Incident:
    """The incident whose time was given, with what changed of what users feel.

    Args:
        capture: with at least two samples in the window and two outside it.
        window: when it was bad.
        normal: what to compare with; the rest of the recording by default.
    """
    span = capture.span_ns() or (window.start_ns, window.end_ns)
    rest = (Window(span[0], window.start_ns), Window(window.end_ns, span[1]))
    compared = (normal,) if normal is not None else tuple(part for part in rest if part.end_ns > part.start_ns)
    felt = [group for group in _felt_groups(capture) if len(group.times_ns) >= POINT_COUNT_MIN]
    symptoms: tuple[Change, ...] = ()
    if felt:
        points = _points(felt)
        inside = _within(points, (window,))
        outside = _within(points, compared) & ~inside
        if inside.any() and outside.any():
            symptoms = _symptoms([one for group in felt for one in _series(points, group)], inside, outside)
    return Incident(window, compared, Basis.TOLD, symptoms)


def _within(points: _Points, windows: tuple[Window, ...]) -> NDArray[np.bool_]:
    """Whether each point [n] ends in a window, up to half a step over its end."""
    slack = points.step_ns // 2
    inside = np.zeros(len(points.ends_ns), dtype=bool)
    for window in windows:
        inside |= (points.ends_ns > window.start_ns) & (points.ends_ns - slack <= window.end_ns)
    return inside


def _points(felt: list[SeriesGroup]) -> _Points:
    """The time line of the series that was sampled most often."""
    finest = max(felt, key=lambda group: len(group.times_ns))
    times = finest.times_ns
    step = int(np.median(np.diff(times)))
    count = round((int(times[-1]) - int(times[0])) / step) + 1
    step *= max(-(-count // POINT_COUNT_MAX), 1)
    return _Points(np.arange(int(times[0]), int(times[-1]) + step // 2, step, dtype=np.int64), step)


def _series(points: _Points, group: SeriesGroup) -> Iterator[_Series]:
    values = points.of(group)
    if values is None:
        return
    for row in range(len(values)):
        if np.count_nonzero(np.isfinite(values[row])) >= POINT_COUNT_MIN:
            yield _Series(group.metric, group, row, values[row])


def _busy(series: list[_Series], step_s: float) -> NDArray[np.bool_]:
    """Points [n] at which somebody asked for something: work was done, or as many sessions as usual waited for it."""
    throughput = [one.values for one in series if one.metric in THROUGHPUT]
    sessions = [one.values for one in series if one.metric in SESSIONS]
    if not throughput:
        return np.ones(len(series[0].values), dtype=bool)
    done = np.nan_to_num(np.max(throughput, axis=0))
    works = done > 0
    if not sessions:
        return ~_before_work(works, [one.values for one in series if one.metric in LATENCY_MS], step_s)
    waiting = np.nan_to_num(np.max(sessions, axis=0))
    works &= (done > IDLE_SHARE * float(np.quantile(done, BUSY_QUANTILE))) | (waiting >= ONE_SESSION)
    usual = float(np.median(waiting[works])) if works.any() else 0.0
    asked = works | (waiting >= ASKED_SHARE * usual)
    busy: NDArray[np.bool_] = smoothed(asked.astype(np.float64), 5) > 0.5
    return busy


def _before_work(works: NDArray[np.bool_], latency_ms: list[Floats], step_s: float) -> NDArray[np.bool_]:
    """Points [n] before the first work, where nobody asked for any yet.

    Work that was asked for from the start would end with a latency as long as nothing ended.
    """
    before = np.cumsum(works) == 0
    first = int(np.count_nonzero(before))
    ended = [values[first : first + FIRST_COUNT] for values in latency_ms]
    waited_ms = max((float(np.nanmax(some)) for some in ended if np.isfinite(some).any()), default=0.0)
    is_standstill = waited_ms >= WAITED_SHARE * first * step_s * 1e3
    return np.zeros_like(before) if first in (0, len(works)) or is_standstill else before


def _badness(one: _Series, series: list[_Series]) -> Floats:
    """The series [n] as high where it is bad; latency without a transaction that ended is worse than any."""
    if one.metric in THROUGHPUT:
        return -np.nan_to_num(one.values)
    values = one.values.copy()
    if one.metric in LATENCY:
        values[_stopped(one, series)] = 2.0 * np.nanmax(values) + 1.0
    return np.where(np.isfinite(values), values, np.nanmedian(values))


def _stopped(one: _Series, series: list[_Series]) -> NDArray[np.bool_]:
    """Points [n] at which no transaction ended: of the database of a latency, or of all that its source recorded.

    A server has databases that nobody uses (template1, postgres): they say nothing of the one beside them.
    """
    beside = [other for other in series if other.metric in THROUGHPUT and other.group.source == one.group.source]
    same = [other for other in beside if other.group.entities[other.row] == one.group.entities[one.row]]
    stopped = np.full(len(one.values), bool(beside))
    for other in same or beside:
        stopped &= other.values == 0.0
    return stopped


def _others(capture: Capture, points: _Points, rows: NDArray[np.int64]) -> Iterator[Floats]:
    """Every other series [len(rows)] that moves and does not only drift."""
    count = 0
    clock = np.linspace(0.0, 1.0, len(rows))
    for group in capture.groups:
        if group.metric in FELT or count + len(group.entities) > OTHER_COUNT_MAX:
            continue
        values = points.of(group.measured())
        if values is None:
            continue
        for row in values[:, rows]:
            known = np.isfinite(row)
            if np.count_nonzero(known) < 0.9 * len(row):
                continue
            filled = np.where(known, row, np.median(row[known]))
            ranked = ranks(filled)
            if np.ptp(filled) == 0.0 or abs(float(np.corrcoef(ranked, clock)[0, 1])) > DRIFT_MAX:
                continue
            count += 1
            yield filled


def _change(one: _Series, inside: NDArray[np.bool_], normal: NDArray[np.bool_]) -> Change:
    values = one.values
    if one.metric in LATENCY:  # zero where no transaction ended
        values = np.where(values > 0.0, values, np.nan)
    during, before = values[inside], values[normal]
    during, before = during[np.isfinite(during)], before[np.isfinite(before)]
    middle = float(np.median(before)) if len(before) else float("nan")
    noise = 1.4826 * float(np.median(np.abs(before - middle))) if len(before) else float("nan")
    level = float(np.median(during)) if len(during) else float("nan")
    share = share_of(during, before) if len(during) and len(before) else 0.0
    return Change(one.group.entities[one.row], one.metric, one.group.unit, middle, level, noise, share)


def _is_felt(change: Change, latency: list[Change]) -> bool:
    """Whether users would have called it slow; fewer transactions that are as quick as ever were not asked for."""
    if change.metric in THROUGHPUT:
        done = change.during / change.normal if change.normal > 0 else 1.0
        slower = any(one.during >= SLOWER_RATIO * one.normal for one in latency)
        is_known = any(one.metric in CLIENT_LATENCY for one in latency)  # a server does not see what clients wait for
        return done <= (THROUGHPUT_RATIO if slower else STOPPED_RATIO if is_known else HALVED_RATIO)
    more = change.during - change.normal
    if change.metric in SESSIONS:
        return more >= SESSIONS_MIN and change.during >= SESSIONS_RATIO * change.normal
    least = LATENCY_MS_MIN / (1000.0 if change.unit == "s" else 1.0)
    return more >= least and change.during >= LATENCY_RATIO * change.normal


def _runs(points: _Points, met: NDArray[np.bool_]) -> Iterator[Window]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], met, [False])).astype(np.int8)))
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield points.window(first, end)
