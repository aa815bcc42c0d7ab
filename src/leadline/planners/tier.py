"""Which limit of IOPS and throughput to buy for what a disk is asked.

Answers:
    Latency and queue of a recorded demand behind each limit, as a curve; the least limit whose 95th percentile is
    accepted; the least tier of each cloud and storage policy that does it, with its burst credit.

Method:
    Each interval of the demand is filled with its requests at random moments, and each request passes a limit when the
    limit's bucket of tokens has its tokens (exactly, for each request); the device's own time, as recorded, comes on
    top, spread around its mean. A burst begins with full credit; a tier below the mean rate is none, as credit ends.
    Operations count as the seller counts them: each of up to 256 KiB as one at AWS and Azure, units of 32 KiB at
    vSphere. The least limit is found by bisection.
    From a recording: rate, size and latency of each interval of the busiest disk, or of the one named.

Assumptions:
    Requests come as they were recorded, whatever waits: an application that waits for its disk asks for less, and
    latency grows less far. Within an interval requests come at random: from samples 20 s apart the answer is the least
    there may be. The recorded rate is taken for what is wanted; a disk that was held back wants more.

Bends:
    A limit below the mean rate: the queue never ends. A recording of less than a day. Samples further apart than 5 s.

Sources:
    Le Boudec and Thiran, "Network Calculus" (2001), section 1.5. Microsoft, Azure managed disk types. AWS, EBS volume
    types. C. Hogan, "Storage I/O Control v2 in vSphere 6.5" (2016).
"""

from __future__ import annotations

from typing import Annotated, cast

import numpy as np
from pydantic import BaseModel, Field

from leadline.core.contracts.planner import (
    STRICT,
    Bend,
    Figure,
    Infeasible,
    Plan,
    PlanContext,
    PlanInput,
    PlannerMeta,
    Sheet,
)
from leadline.core.model.picture import Curve, Picture
from leadline.planners._tier.offers import TierOffer, offers
from leadline.planners._tier.recorded import RecordedDemand, recorded_demand
from leadline.planners._tier.shaping import Behind, DiskDemand, Requests, TokenLimit, behind

REQUESTS_MAX = 3_000_000  # some seconds of work; of more the busiest stretch
CURVE_COUNT = 16
WITHIN = 0.01  # of the least limit
DAY_S, COARSE_S = 86_400.0, 5.0
WANTED = "The recorded rate is taken for what is wanted; a disk that was held back wants more."
SHAPED = "tokens of a limit, request by request"
Positive = Annotated[float, Field(gt=0)]


class DemandSpan(BaseModel):
    """A span of time in which a disk is asked for the same."""

    model_config = STRICT

    seconds: Positive
    iops: Annotated[float, Field(ge=0)]
    block_kib: Positive = 8.0


class Tier(PlanInput):
    """What a disk is asked for, and which latency is accepted."""

    demand: Annotated[
        tuple[DemandSpan, ...], Field(min_length=1, description="Spans of time with their rate and size.")
    ] = (DemandSpan(seconds=50, iops=400), DemandSpan(seconds=10, iops=1600))
    latency_ms: Annotated[float, Field(gt=0, description="Mean time of an operation without a limit, ms.")] = 1.0
    accepted_ms: Annotated[float, Field(gt=0, description="95th percentile of latency that is accepted, ms.")] = 10.0
    disk: Annotated[str, Field(description="Which disk of a recording; the busiest where it is empty.")] = ""
    size_gib: Annotated[float | None, Field(gt=0, description="What must fit, GiB; tiers below are left out.")] = None
    limit_mib_per_s: Annotated[float | None, Field(gt=0, description="Throughput limit of the curve.")] = None
    limit_held_s: Annotated[
        float, Field(ge=0, le=3600, description="What a limit of the curve lets pass at once after idling, s of it.")
    ] = 0.0
    unit_kib: Annotated[float | None, Field(gt=0, description="An operation counts as one for each of these.")] = None


META = PlannerMeta(
    about="Which limit of IOPS and throughput to buy for what a disk is asked: latency and queue at each.",
    example={
        "demand": [{"seconds": 50, "iops": 400}, {"seconds": 10, "iops": 1600}],
        "latency_ms": 1.0,
        "accepted_ms": 10.0,
    },
    grows=(("latency_ms", "p95 without a limit"),),
    reads="operations per second of disks over time",
)

MODEL = Tier


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return latency and queue behind each limit, and the least limit and tiers that are accepted."""
    inputs = cast("Tier", inputs)  # read with MODEL
    recorded = None if context.capture is None else recorded_demand(context.capture, inputs.disk)
    whole = _given(inputs) if recorded is None or "demand" in inputs.model_fields_set else recorded.demand
    if "latency_ms" in inputs.model_fields_set:
        whole = DiskDemand(whole.seconds, whole.iops, whole.bytes, np.full(len(whole.iops), inputs.latency_ms))
    demand = whole.busiest(REQUESTS_MAX)
    requests = Requests.of(demand)
    free = behind(requests, TokenLimit(None))
    mean, peak = demand.count / float(demand.seconds.sum()), float(demand.iops.max())
    curve = _curve(inputs, requests, mean, peak)
    least = None if free.p95_ms > inputs.accepted_ms else _least(inputs, requests, mean, 2.0 * peak)
    rows = tuple(_row(f"{limit:,.0f}", result) for limit, result in curve)
    offered = [_best(family, some, inputs, requests, mean) for family, some in offers().items()]
    figures = (
        Figure("mean rate", round(mean, 1), "per_s", f"{demand.count:,.0f} / {demand.seconds.sum():,.0f} s"),
        Figure("highest rate", round(peak, 1), "per_s", f"of {len(demand.iops)} intervals"),
        Figure("p95 without a limit", round(free.p95_ms, 2), "ms", "time at the device"),
        *(() if least is None else _least_figures(inputs, requests, *least, mean)),
    )
    return Plan(
        headline=_headline(inputs, least, mean, peak),
        figures=figures,
        sheets=(
            Sheet("Behind each limit", _COLUMNS, rows),
            Sheet("The least tier of each that is accepted", _OFFERED, tuple(offered)),
        ),
        assumptions=(
            "Requests come as recorded, whatever waits, and at random within an interval.",
            *(() if recorded is None else (WANTED,)),
            *(
                ()
                if demand is whole
                else (f"Of the recording the busiest {demand.seconds.sum() / 60:,.0f} minutes are used.",)
            ),
        ),
        bends=tuple(_bends(recorded, least, mean)),
        pictures=(_picture(inputs, curve),),
        evidence=() if recorded is None else (recorded.origin,),
        infeasible=None
        if least is not None
        else Infeasible(
            f"p95 of {free.p95_ms:.3g} ms without any limit, {inputs.accepted_ms:g} ms accepted",
            f"accept {free.p95_ms * 1.1:.3g} ms, or a faster device",
        ),
    )


_Cells = tuple[str | float | int, ...]
_OFFERED = ("of", "tier", "limits", "p95 ms", "p99 ms", "queue at most")
_COLUMNS = ("IOPS limit", "p50 ms", "p95 ms", "p99 ms", "queue at most", "% that wait")


def _given(inputs: Tier) -> DiskDemand:
    spans = inputs.demand
    columns = [(span.seconds, span.iops, span.block_kib * 1024.0, inputs.latency_ms) for span in spans]
    return DiskDemand(*np.array(columns, dtype=np.float64).T)


def _limit(inputs: Tier, iops: float) -> TokenLimit:
    return TokenLimit(iops, inputs.limit_mib_per_s, inputs.unit_kib, held_s=inputs.limit_held_s)


def _curve(inputs: Tier, requests: Requests, mean: float, peak: float) -> list[tuple[float, Behind]]:
    """Latency behind limits from just above the mean rate to beyond the highest."""
    limits = np.geomspace(1.02 * mean, max(1.3 * peak, 1.5 * mean), CURVE_COUNT)
    return [(float(limit), behind(requests, _limit(inputs, float(limit)))) for limit in limits]


def _least(inputs: Tier, requests: Requests, low: float, high: float) -> tuple[float, Behind] | None:
    """The least limit that is accepted, by bisection, and what is behind it; None where the highest is not."""
    result = behind(requests, _limit(inputs, high))
    if result.p95_ms > inputs.accepted_ms:
        return None
    while high - low > WITHIN * high:
        middle = (low + high) / 2.0
        tried = behind(requests, _limit(inputs, middle))
        if tried.p95_ms <= inputs.accepted_ms:
            high, result = middle, tried
        else:
            low = middle
    return high, result


def _least_figures(inputs: Tier, requests: Requests, limit: float, result: Behind, mean: float) -> tuple[Figure, ...]:
    size = float(requests.bytes.mean())
    return (
        Figure("least limit", round(limit), "per_s", f"p95 {result.p95_ms:.3g} of {inputs.accepted_ms:g} ms", SHAPED),
        Figure("of the mean rate", round(limit / mean, 2), "ratio", f"{limit:,.0f} / {mean:,.0f}"),
        Figure("throughput at it", round(limit * size / 1024.0**2, 1), "MiB/s", f"{size / 1024.0:.3g} KiB on average"),
        Figure("queue at most", result.queue_most, "", "requests that wait at the limit", SHAPED),
    )


def _best(family: str, some: tuple[TierOffer, ...], inputs: Tier, requests: Requests, mean: float) -> _Cells:
    """The row of the least tier of a family that is accepted; of the highest where none is.

    A tier whose limit is below the mean rate lives on credit, which ends.
    """
    size = inputs.size_gib
    fitting = [one for one in some if size is None or one.size_gib is None or one.size_gib >= size]
    if not fitting:
        return (family, "none is large enough", "", "", "", "")
    lasting = [one for one in fitting if one.limit.iops is None or one.limit.iops >= mean]
    for offer in lasting:
        result = behind(requests, offer.limit)
        if result.p95_ms <= inputs.accepted_ms:
            return _offered(offer, offer.tier, result)
    return _offered(fitting[-1], f"none; {fitting[-1].tier}", behind(requests, fitting[-1].limit))


def _offered(offer: TierOffer, tier: str, result: Behind) -> _Cells:
    _, _, p95, p99, queue, _ = _row("", result)
    return (offer.family, tier, offer.words, p95, p99, queue)


def _row(name: str, result: Behind) -> _Cells:
    times = (round(result.p50_ms, 2), round(result.p95_ms, 2), round(result.p99_ms, 2))
    return (name, *times, result.queue_most, round(100.0 * result.waited_share, 1))


def _headline(inputs: Tier, least: tuple[float, Behind] | None, mean: float, peak: float) -> str:
    asked = f"asked for {mean:,.0f}/s on average and {peak:,.0f}/s at most"
    if least is None:
        return f"No limit gives a p95 of {inputs.accepted_ms:g} ms: the device alone takes longer; {asked}."
    limit, result = least
    return f"A limit of {limit:,.0f} IOPS gives a p95 of {result.p95_ms:.3g} ms; {asked}."


def _bends(recorded: RecordedDemand | None, least: tuple[float, Behind] | None, mean: float) -> list[Bend]:
    bends = []
    if least is not None and least[0] < mean:
        bends.append(Bend("a limit is above the mean rate", "the queue never ends"))
    if recorded is not None and float(recorded.demand.seconds.sum()) < DAY_S:
        hours = float(recorded.demand.seconds.sum()) / 3600.0
        bends.append(Bend("a recording is a day or longer", f"{hours:.2g} hours: others may be worse"))
    if recorded is not None and float(np.median(recorded.demand.seconds)) > COARSE_S:
        apart = float(np.median(recorded.demand.seconds))
        bends.append(Bend("samples are at most 5 s apart", f"{apart:g} s: shorter bursts are not seen; add for them"))
    return bends


def _picture(inputs: Tier, curve: list[tuple[float, Behind]]) -> Picture:
    """Percentiles of latency over the limit."""
    limits = tuple(limit for limit, _ in curve)
    accepted = (inputs.accepted_ms,) * 2
    return Picture(
        "IOPS limit",
        "latency, ms",
        (
            Curve("p95", limits, tuple(result.p95_ms for _, result in curve)),
            Curve("p50", limits, tuple(result.p50_ms for _, result in curve)),
            Curve("accepted", (limits[0], limits[-1]), accepted),
        ),
    )
