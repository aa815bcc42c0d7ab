"""A calibrated scenario simulated beside its recording: rate, mean latency and 95th percentile at every load.

The scenario is simulated as written. Where the recording has several loads, it is also simulated with the rate or the
number outstanding of each. The results are compared with the windows that the fit did not use; resampling these windows
gives the intervals. A difference above `NEAR_PCT` becomes a warning that names the likely reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from leadline.app.measure.simulated import simulated, system_of
from leadline.app.simulate.calibrating_fits import LATENCY, P95, RATE, WEAK_PCT, WORDS, Compared, Fitted, scenario_of
from leadline.app.simulate.calibrating_laws import AnyLaw, Points, Queue, most_of, tried
from leadline.app.simulate.calibrating_loads import Array, LoadLevel, sums_of
from leadline.core.contracts.scenario import Outcome, VirtualTiming
from leadline.scenarios.storage_path import StoragePath

NEAR_PCT = 5.0  # Judgement: within it, a simulation counts as equal to its recording; beyond it, a warning says so
REQUESTS = (100_000, 1_600_000)  # simulated at first, and at most where latencies vary so much that these say little
SURE_SHARE = 0.01  # of the mean latency, its 95 % interval: below it no more is simulated
WINDOWS_MAX = 100_000
WINDOWS_MIN = 20  # Judgement: fewer windows give no scatter
EDGES = (0.02, 0.98)  # Judgement: quantiles of the rates of windows; those beyond are chance
DONE_SHARE = 0.98  # of what is asked for; a device that does less has no mean latency
SPREAD_MAX = 3.0
_HALVINGS = 9
AS_WRITTEN = "as written"


@dataclass(frozen=True, slots=True)
class _Model:
    """The scenario of one disk, as it is written; ``interval_s`` of the recording's windows."""

    scenario: StoragePath
    interval_s: float
    requests_max: int = REQUESTS[1]

    def at(self, level: LoadLevel | None, count: int = REQUESTS[0]) -> Outcome:
        """A run with a level's load instead of the file's, long enough for its mean latency to be sure."""
        scenario = self.scenario if level is None else _loaded(self.scenario, level)
        vm = scenario.vms[0]
        if vm.trace is not None:
            return self._ran(scenario)
        rate = _rate_of(scenario) if level is None else level.rate
        while True:
            measure_s = min(max(count / rate, 20.0 * self.interval_s), 1e6, WINDOWS_MAX * self.interval_s)
            times = VirtualTiming(
                warm_up_s=measure_s / 10.0, measure_s=measure_s, window_s=min(self.interval_s, measure_s)
            )
            outcome = self._ran(scenario.model_copy(update={"timing": times}))
            latency = outcome.measure(vm.name, LATENCY)
            sure = not isfinite(latency.half_width) or latency.half_width < SURE_SHARE * latency.value
            if sure or 4 * count > self.requests_max:
                return outcome
            count *= 4

    def spread(self, spread: float) -> _Model:
        """The same with so much around the mean of its device."""
        device = self.scenario.devices[0].model_copy(update={"spread": spread})
        return replace(self, scenario=self.scenario.model_copy(update={"devices": (device,)}))

    @staticmethod
    def _ran(scenario: StoragePath) -> Outcome:
        return simulated(system_of(scenario.system), scenario)


def _loaded(scenario: StoragePath, level: LoadLevel) -> StoragePath:
    """The scenario of a disk with another load of the same kind."""
    (vm,) = scenario.vms
    if vm.workload is None:
        return scenario
    if level.clients:
        changed = {"oio": level.clients, "think_time_s": level.think_s}
        streams = tuple(stream.model_copy(update=changed) for stream in vm.workload.io)
        update: dict[str, Any] = {"workload": vm.workload.model_copy(update={"io": streams})}
    else:
        whole = sum(stream.rate_iops.total for stream in vm.workload.io if stream.rate_iops is not None)
        update = {"load_factor": level.rate / whole}
    return scenario.model_copy(update={"vms": (vm.model_copy(update=update),)})


def _rate_of(scenario: StoragePath) -> float:
    """Return the operations per second of a scenario of one disk; those of a closed loop come from a short run."""
    (vm,) = scenario.vms
    rates = []
    for stream in vm.streams:
        share = 1.0 if stream.burst is None else stream.burst.on_s / (stream.burst.on_s + stream.burst.off_s)
        if stream.rate_iops is not None:
            rates.append(share * stream.rate_iops.total)
    if len(rates) == len(vm.streams):
        return sum(rates)
    short = simulated(system_of(scenario.system), scenario)
    return max(short.measure(vm.name, RATE).value, 0.01)


def checked(disk: Fitted, *, many: bool = False) -> Fitted:
    """The disk with its scenario simulated beside the recording; its law judged by that, warnings where they differ.

    ``many``: of many disks, each is simulated for a shorter time.
    """
    disk = _spread_fitted(_points_fitted(disk))
    model = _model(disk, REQUESTS[0] if many else REQUESTS[1])
    runs = [model.at(level) for level in _simulated_levels(disk)]
    written = model.at(None) if _as_written(disk) else None
    rows = [row for level, run in zip(_simulated_levels(disk), runs, strict=True) for row in _rows(disk, level, run)]
    if written is not None:
        rows += _rows(disk, None, written)
    line = disk.line
    if line is not None and not disk.is_traced:
        line = _judged(disk, line, model, runs or [written])  # type: ignore[list-item]  # one of them is there
    judged = replace(disk, line=line, compared=tuple(rows))
    return replace(judged, notes=(*disk.notes, *_weak(judged)), warnings=tuple(_warnings(judged)))


def _model(disk: Fitted, requests_max: int) -> _Model:
    return _Model(scenario_of([disk], "check"), disk.seen.interval_s, requests_max)


def _simulated_levels(disk: Fitted) -> tuple[LoadLevel, ...]:
    """The loads that are simulated one by one; none where there is but one, which is that of the file."""
    return disk.loads.levels if len(disk.loads.levels) > 1 and not disk.is_traced else ()


def _as_written(disk: Fitted) -> bool:
    """Whether the file has a load that is none of the levels."""
    return disk.is_traced or len(disk.loads.levels) == 1 or not disk.loads.is_closed


def _rows(disk: Fitted, level: LoadLevel | None, run: Outcome) -> Iterator[Compared]:
    """Compare rate, latency and 95th percentile, recorded and simulated, at a load; None is the load of the file."""
    levels = disk.loads.levels if level is None else (level,)
    seen, load = disk.seen, AS_WRITTEN if level is None else level.words
    if level is not None and disk.loads.is_closed and level is disk.loads.written:
        load = f"{load} ({AS_WRITTEN})"
    held_out_sums = sums_of(seen, [load_level.held_out for load_level in levels])
    known = np.isfinite(seen.rate)
    if level is None and not disk.loads.is_closed:
        rate = float(seen.rate[known].mean())
    else:
        rate = float(
            np.average(
                [load_level.rate for load_level in levels], weights=[len(load_level.held_out) for load_level in levels]
            )
        )
    yield _row(disk, load, RATE, (rate, float("nan"), float("nan")), run)
    latency = held_out_sums.interval() if disk.line is not None else (float("nan"),) * 3
    yield _row(disk, load, LATENCY, latency, run)
    p95 = disk.recorded.p95_ms_all
    if level is not None:
        p95 = disk.recorded.p95_ms[disk.loads.levels.index(level)] if disk.recorded.p95_ms else float("nan")
    yield _row(disk, load, P95, (p95, float("nan"), float("nan")), run)


def _row(disk: Fitted, load: str, measure: str, recorded: tuple[float, float, float], run: Outcome) -> Compared:
    estimate = run.measure(disk.name, measure)
    return Compared(load, measure, *recorded, estimate.value, estimate.half_width)


def _judged(disk: Fitted, line: AnyLaw, model: _Model, runs: list[Outcome]) -> AnyLaw:
    """The law with how far the simulation is from each window held out, and from its own windows by chance."""
    seen, levels = disk.seen, disk.loads.levels
    held_out = np.sort(np.concatenate([level.held_out for level in levels]))
    held_out_loads = (seen.outstanding if disk.loads.is_closed else seen.rate)[held_out]
    points = [
        (level.outstanding if disk.loads.is_closed else level.rate, run.measure(disk.name, LATENCY).value)
        for level, run in zip(levels, runs, strict=True)
    ]
    if len(levels) > 1 and not disk.loads.is_closed:
        points += _ends(disk, model, np.quantile(held_out_loads, EDGES))
    loads, means = np.array(sorted(points)).T
    off, r2 = tried(seen.latency_ms[held_out], np.interp(held_out_loads, loads, means), seen.rate[held_out])
    shares = np.array([float(level.rate * len(level.held_out)) for level in levels])
    scatter = np.array([_scatter(disk, run) for run in runs])
    chance = float(np.average(scatter, weights=shares)) if np.isfinite(scatter).all() else float("nan")
    return replace(line, error_pct=off, r2=r2, chance_pct=chance, window_count=len(held_out))


def _ends(disk: Fitted, model: _Model, rates: Array) -> Iterator[tuple[float, float]]:
    """Rates near the least and the highest of single windows with simulated latencies, where the device can do them."""
    for rate in rates:
        run = replace(model, requests_max=REQUESTS[0]).at(replace(disk.loads.levels[0], rate=float(rate)))
        if run.measure(disk.name, RATE).value > DONE_SHARE * rate:
            yield float(rate), run.measure(disk.name, LATENCY).value


def _scatter(disk: Fitted, run: Outcome) -> float:
    """How far simulated windows are from the simulated mean on average, in percent; NaN of few windows."""
    series = {measure.name: np.array(measure.values) for measure in run.series if measure.entity == disk.name}
    latency, rate = series["latency_ms"], series["iops"]
    known = np.isfinite(latency) & (rate > 0)
    if known.sum() < WINDOWS_MIN:
        return float("nan")
    mean = np.full(int(known.sum()), run.measure(disk.name, LATENCY).value)
    return tried(latency[known], mean, rate[known])[0]


def _points_fitted(disk: Fitted) -> Fitted:
    """The disk with points at which the simulation has the latencies that were fitted.

    The requests of a loop that thinks find now more and now fewer others; what they meet on average is not the point.
    """
    line = disk.line
    if not isinstance(line, Points) or disk.is_traced or len(line.points) != len(disk.loads.levels):
        return disk
    wanted = sums_of(disk.seen, [level.fitted for level in disk.loads.levels]).means()[1]
    for _ in range(2):
        model = _model(disk, REQUESTS[0])
        means_ms = [model.at(level, REQUESTS[0] // 2).measure(disk.name, LATENCY).value for level in disk.loads.levels]
        pairs = zip(line.points, wanted, means_ms, strict=True)
        line = replace(line, points=tuple((n, ms * float(want) / mean_ms) for (n, ms), want, mean_ms in pairs))
        disk = replace(disk, line=line, device=line.device(disk.device["spread"]))
    return disk


def _spread_fitted(disk: Fitted) -> Fitted:
    """The disk with the spread with which the simulation has the 95th percentile that was recorded, if it was."""
    if disk.line is None or disk.is_traced or isinstance(disk.line, Queue):
        return disk
    known = [
        (level if len(disk.loads.levels) > 1 else None, p95)
        for level, p95 in zip(disk.loads.levels, disk.recorded.p95_ms, strict=False)
        if isfinite(p95)
    ]
    if disk.loads.is_closed:  # of several loads that of the file is to be right
        known = [one for one in known if one[0] is None or one[0] is disk.loads.written] or known
    if not known:
        return disk
    model, low, high = _model(disk, REQUESTS[0]), 0.0, SPREAD_MAX
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        ratios = [
            model.spread(middle).at(level, REQUESTS[0] // 2).measure(disk.name, P95).value / p95 for level, p95 in known
        ]
        low, high = (middle, high) if np.log(ratios).mean() < 0 else (low, middle)
    spread = round((low + high) / 2.0, 3)
    fitted_note = f"spread {spread:g} around the mean, fitted to the 95th percentile that was recorded"
    notes = tuple(fitted_note if "is assumed" in note and note.startswith("spread") else note for note in disk.notes)
    return replace(disk, device={**disk.device, "spread": spread}, notes=notes)


def _weak(disk: Fitted) -> Iterator[str]:
    line = disk.line
    if line is None or not line.error_pct > WEAK_PCT:
        return
    if not line.error_pct < 2.0 * line.chance_pct:
        yield "latency hardly follows the load seen here: something else decides it, and predictions are weak"


def _warnings(disk: Fitted) -> Iterator[str]:
    """What is further away than `NEAR_PCT`, and the likely reason."""
    for row in disk.compared:
        if abs(row.distance_pct) > NEAR_PCT:
            unit = "/s" if row.measure == RATE else " ms"
            yield (
                f"{row.load}: {WORDS[row.measure]} is simulated at {row.simulated:.4g}{unit}, recorded at "
                f"{row.recorded:.4g}{unit} ({row.distance_pct:+.1f} %, bound {NEAR_PCT:g} %): {_reason(disk, row)}"
            )


def _reason(disk: Fitted, row: Compared) -> str:
    """Why a simulation is probably off."""
    levels = disk.loads.levels
    if row.measure == P95:
        return "the file has one spread for all loads, around a lognormal; this load probably has another"
    if row.measure == RATE and not disk.loads.is_closed and row.simulated < row.recorded:
        return f"the fitted device does at most {most_of(disk.device):,.0f}/s"
    if row.measure == LATENCY and not isfinite(row.low):
        return "may be chance (few intervals of this load were recorded); record longer"
    if row.low <= row.simulated <= row.high:
        return f"may be chance (95 % interval {row.low:.4g} to {row.high:.4g} ms); record longer"
    if row.load == AS_WRITTEN and len(levels) > 1:
        low, high = levels[0].words, levels[-1].words
        return f"the load went from {low} to {high}, and this is its mean all the time; compare the loads one by one"
    if any(_weak(disk)):
        return "something else than the load probably decides this latency (a neighbour, a limit, a fault)"
    if disk.is_traced:
        return "requests probably come in another rhythm than that of the source in the file; try --replay"
    return "the device probably does not follow the fitted law at this load"


def worst_of(disk: Fitted) -> dict[str, float]:
    """The largest distance of each measure, in percent; NaN of what was not recorded."""
    worst: dict[str, Any] = {}
    for measure in (LATENCY, RATE, P95):
        distances = np.array([row.distance_pct for row in disk.compared if row.measure == measure], dtype=np.float64)
        known: Array = distances[np.isfinite(distances)]
        worst[measure] = float(known[np.argmax(np.abs(known))]) if len(known) else float("nan")
    return worst
