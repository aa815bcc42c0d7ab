"""The simulator: the document of a system goes in, what it measured comes out in the types of its scenario.

A document is the `Spec` of the system in ``crates/leadline-sim`` (times in ns, sizes in bytes, shares from 0 to 1); an
outcome is what the `Outcome` beside it serialises. Both sides refuse a key that the other does not know.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import nan
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator

from leadline import _core
from leadline.core.contracts.scenario import Progress, Scenario
from leadline.core.model.errors import UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.workload import Stream
from leadline.scenarios._draws import ns_of

Recorded = _core.TraceRequests | _core.TraceUses


def _number(value: object) -> object:
    return nan if value is None else value


def _column(values: object) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


Number = Annotated[float, BeforeValidator(_number)]  # NaN where there is none
Column = Annotated[NDArray[np.float64], PlainValidator(_column)]


class Figures(BaseModel):
    """Numbers of an outcome."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Outcome(Figures):
    """What every outcome has: the hash over all events, and how many there were."""

    trace: str
    event_count: int


class Buckets(Figures):
    """A histogram, ns."""

    lower: Column
    upper: Column
    count: Column


class Spread(Figures):
    """How long things took, ns."""

    count: int
    mean: Number
    histogram: Buckets


class Completed(Spread):
    """Requests that completed."""

    bytes: int


class Little(Figures):
    """Little's law as measured: requests inside, completions per second, seconds inside, and how far it is off."""

    in_system_mean: Number = nan
    rate_per_second: Number = nan
    residence_seconds_mean: Number = nan
    imbalance: Number = nan


class Interval(Figures):
    """A mean, half of its 95 % interval, and how alike neighbouring batches are."""

    mean: Number = nan
    half_width: Number = nan
    correlation: Number = nan


class IoSeries(Figures):
    """Requests by window."""

    count: Column
    latency_ms: Column
    latency_ms_max: Column
    bytes: Column


class IoFigures(Figures):
    """What is measured of everything that issues requests; ``done`` has reads and writes of each source."""

    little: Little | None
    rate_interval: Interval | None
    latency_interval: Interval | None
    steady_after: int | None
    series: IoSeries
    warm_up: IoSeries
    done: tuple[Completed, ...]


OutcomeT = TypeVar("OutcomeT", bound=Outcome)


def run_system(
    system: str,
    document: dict[str, Any],
    outcome: type[OutcomeT],
    progress: Progress,
    recorded: Sequence[Recorded] = (),
) -> OutcomeT:
    """Run a system on its document; ``progress`` is told the share that is done.

    Raises:
        CoreError: the document makes no run, or the run broke a law.
    """
    text = _core.simulate(system, json.dumps(document, allow_nan=False), list(recorded), progress)
    return outcome.model_validate_json(text)


def timed(scenario: Scenario, spec: dict[str, Any]) -> dict[str, Any]:
    """The document of a system that warms up and is measured."""
    timing = scenario.timing
    warm_up, measured, window = (ns_of(span) for span in (timing.warm_up_s, timing.measure_s, timing.window_s))
    return {"warm_up": warm_up, "measured": measured, "spec": {"seed": scenario.seed, "window": window, **spec}}


def arrivals_of(stream: Stream, rate: float | None) -> dict[str, Any]:
    """How the requests of a stream come: so many outstanding, or at a rate per second."""
    if rate is None:
        return closed(stream, stream.oio * stream.jobs)
    return {"even" if stream.arrivals == "even" else "poisson": rate}


def closed(stream: Stream, outstanding: int) -> dict[str, Any]:
    """So many requests outstanding, with the think time of a stream.

    Raises:
        UsageError: the stream has bursts of so many requests, which are not simulated.
    """
    if stream.request_burst is not None:
        raise UsageError(
            f"stream {stream.name}: request_burst",
            found="a burst by number of requests, which no simulation issues",
            expected="burst or think_time_s",
            advice="Take burst: {on_s, off_s} for the simulation; bench run takes request_burst.",
        )
    return {"closed": {"outstanding": outstanding, "think": ns_of(stream.think_time_s)}}


def pooled(parts: Sequence[Spread]) -> Histogram | None:
    """One histogram of all, ns; None when nothing was done."""
    columns = [part.histogram for part in parts if part.count]
    histograms = [Histogram.of(column.lower, column.upper, column.count, "ns") for column in columns]
    return Histogram.merged(histograms) if histograms else None
