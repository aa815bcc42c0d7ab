"""Idle credit: what a bursty machine gains by it, and what it costs the other.

Setup:
    Two machines of equal weight under mClock. One sends some 128 requests at once every 400 ms; the other keeps 64
    outstanding all the time. Idle credit σ of the first from 1 to 64.

Run:
    The storage path with the mClock scheduler, a host queue 32 deep before ten disks of 2,800 requests a second, 400 s
    for each σ.

Limits:
    The burst, the other machine's load and the capacity are not part of the quoted figure and are judgement here; so
    that only the direction is checked: latency falls with σ, throughputs stay. The published latencies are drawn
    beside.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Simulated, Statement
from leadline.core.model.picture import Curve, Picture

from ._mclock import SOURCE, scenario, vm

META = ExperimentMeta(
    claim=(
        "raising the idle credit of a bursty machine from 1 to 64 cuts its latency from 49 to 30.8 ms, while the other "
        "keeps its throughput"
    ),
    source=f"{SOURCE}, table 5",
    verified="read",
    kind="ordering",
    by=("simulation",),
)
CREDITS = (1, 16, 32, 64)
PUBLISHED_MS = (49.0, 30.8)  # at σ 1 and 64. Source: as META
CAPACITY = 2800.0  # Judgement: ten disks with a cache before them
BURST, PERIOD_S, PULSE_S = 128, 0.4, 0.001  # Judgement, see Limits; the burst comes within a millisecond
UNCHANGED = 0.02  # Judgement: "unchanged" throughput


def machines(credit: float) -> list[dict[str, Any]]:
    """The bursty machine with this credit, and the steady one."""
    pulses = {
        "rate_iops": BURST / PULSE_S,
        "arrivals": "even",
        "burst": {"on_s": PULSE_S, "off_s": PERIOD_S - PULSE_S},
    }
    return [vm("bursty", 1.0, pulses, idle_credit=credit), vm("steady", 1.0, {"oio": 64})]


def reproduce(simulated: Simulated) -> Findings:
    """Latency and throughput of both for each credit."""
    outcomes = [simulated(scenario(machines(credit), CAPACITY, measure_s=400.0)) for credit in CREDITS]
    latency = [outcome.measure("bursty", "latency_ms_mean").value for outcome in outcomes]
    steady = [outcome.measure("steady", "iops").value for outcome in outcomes]
    bursty = [outcome.measure("bursty", "iops").value for outcome in outcomes]
    return Findings(
        checks=(
            Statement(
                "the bursty machine's latency falls with every step of its credit",
                all(later < earlier for earlier, later in pairwise(latency)),
                ", ".join(f"σ {credit}: {ms:.1f} ms" for credit, ms in zip(CREDITS, latency, strict=True)),
            ),
            Statement(
                "the other's throughput is unchanged",
                abs(steady[-1] / steady[0] - 1.0) <= UNCHANGED,
                f"{steady[0]:,.0f} and {steady[-1]:,.0f} per second",
            ),
            Statement(
                "so is its own",
                abs(bursty[-1] / bursty[0] - 1.0) <= UNCHANGED,
                f"{bursty[0]:,.0f} and {bursty[-1]:,.0f} per second",
            ),
        ),
        picture=Picture(
            "idle credit, requests",
            "mean latency, ms",
            (
                Curve("bursty machine", tuple(map(float, CREDITS)), tuple(latency)),
                Curve("bursty machine", (1.0, 64.0), PUBLISHED_MS, is_published=True),
            ),
        ),
    )
