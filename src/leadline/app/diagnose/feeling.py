"""Whether users suffered through all of a recording: what is asked where no part can be compared with another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.answer import Feeling, Felt, Sign
from leadline.core.model.result import Subject

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture
    from leadline.core.model.incident import Incident

    Floats = NDArray[np.float64]

READS = frozenset({"db_schedule_lag_ms", "db_tps", "db_qps", "db_latency_ms"})
FINE_MS, SUFFERED_MS = 5.0, 100.0  # Judgement: of a mean transaction; between them it depends on the work
LAG_MS = 50.0  # Judgement: a load generator that starts this late has its sessions all waiting
STOP_RATIO = 0.1  # of the usual throughput
NORMAL_S_MIN = 20.0  # Judgement: shorter, and slow itself, it may be the same trouble
CLEAR_NORMAL_S_MIN, CLEAR_RATIO = 12.0, 2.0  # Judgement: unless the incident is so much worse
STOP_S = 2.0  # Judgement: a standstill that people notice


def feeling_of(capture: Capture) -> Feeling:
    """What users felt, from latency, lag and throughput of transactions; unknown where they were not recorded."""
    lag = _samples(capture, "db_schedule_lag_ms")
    if len(lag) and float(np.median(lag)) > LAG_MS:
        return Feeling(Felt.SUFFERED, Sign.LATE_START, float(np.median(lag)))
    stopped_s = max((_stopped_s(capture, metric) for metric in ("db_tps", "db_qps")), default=0.0)
    if stopped_s >= STOP_S:
        return Feeling(Felt.SUFFERED, Sign.STANDSTILL, stopped_s)
    latency = _samples(capture, "db_latency_ms")
    if not len(latency):
        latency = _of_results(capture)
    if not len(latency):
        return Feeling(Felt.UNKNOWN)
    usual, slow = float(np.median(latency)), float(np.quantile(latency, 0.9))
    if usual > SUFFERED_MS:
        return Feeling(Felt.SUFFERED, Sign.LATENCY, usual)
    if usual <= FINE_MS and slow <= 2.0 * FINE_MS:
        return Feeling(Felt.FINE, Sign.LATENCY, usual)
    return Feeling(Felt.UNKNOWN)


def suffered_before(incident: Incident) -> bool:
    """Whether what is taken for the normal of an incident was slow as well."""
    limits = {"db_latency_ms": SUFFERED_MS, "db_schedule_lag_ms": LAG_MS}
    return any(change.normal > limits.get(change.metric, float("inf")) for change in incident.symptoms)


def is_comparable(incident: Incident) -> bool:
    """Whether its normal is one: a short time that was slow too is rather a part of the same trouble.

    It is one all the same where the incident is far worse: then little is known of the normal, but it is another state.
    """
    normal_s = sum(window.duration_s for window in incident.normal)
    if normal_s >= NORMAL_S_MIN or not suffered_before(incident):
        return True
    ratios = (change.worsening for change in incident.symptoms)
    return normal_s >= CLEAR_NORMAL_S_MIN and max(ratios, default=1.0) >= CLEAR_RATIO


def _samples(capture: Capture, metric: str) -> Floats:
    rows = [group.values[np.isfinite(group.values)].astype(np.float64) for group in capture.of(metric)]
    return np.concatenate(rows) if rows else np.zeros(0)


def _of_results(capture: Capture) -> Floats:
    """The mean of each run of a load tool on a database, where nothing over time was recorded."""
    runs = (result.measured(Subject.DATABASE) for result in capture.results)
    return np.array([operations[0].mean_ms for operations in runs if operations], dtype=np.float64)


def _stopped_s(capture: Capture, metric: str) -> float:
    """The longest sum of seconds in which hardly anything was done between times in which something was."""
    longest = 0.0
    for group in capture.of(metric):
        if not np.isfinite(group.interval_s):
            continue
        for row in group.values:
            values = np.nan_to_num(row.astype(np.float64))
            works = np.flatnonzero(values > 0)
            if not len(works):
                continue
            between = values[works[0] : works[-1] + 1]
            stopped = between < STOP_RATIO * np.median(between[between > 0])
            longest = max(longest, float(np.count_nonzero(stopped)) * group.interval_s)
    return longest
