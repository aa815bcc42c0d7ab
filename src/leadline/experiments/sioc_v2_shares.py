"""Shares, limits and reservations of Storage I/O Control, version 2, against version 1.

Setup:
    Five machines with shares 300, 200, 100, 100 and 100 on one datastore.

Run:
    Version 2: the storage path with its scheduler, each machine with more outstanding than it can get done; again with
    a limit of 50 IOPS on the first while the array is all but idle, and with a reservation of 600 for the last. Version
    1: five hosts with a machine each before one array, once at 16 ms, once beyond the threshold of 30 ms, where windows
    take some minutes to settle.

Limits:
    That version 2 schedules by mClock's tags in units of 32 KB is what its description says, not what its code could be
    seen to do. The array's rates are judgement: version 2 divides any alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.core.contracts.scenario import Outcome
from leadline.core.model.picture import Curve, Picture

META = ExperimentMeta(
    claim=(
        "of five machines with shares 300, 200, 100, 100 and 100 the first gets three times the IOPS of the last; "
        "limits and reservations hold at any time, whereas version 1 acts only above its latency threshold of 30 ms"
    ),
    source="vmgu.ru, on Storage I/O Control version 2",
    verified="read",
    kind="numeric",
    by=("simulation",),
    tolerance=0.02,
)
SHARES = {"vm1": 300, "vm2": 200, "vm3": 100, "vm4": 100, "vm5": 100}  # Source: as META
CAPACITY = 4000.0  # requests per second. Judgement
SLOTS = 16  # Judgement
LIMIT, IDLE_RATE = 50, 80.0  # IOPS on the first, and what each asks for while the array is all but idle. Judgement
RESERVATION = 600  # IOPS of the last, more than its shares give it. Judgement
CALM, CONGESTED = 10_000.0, 2_000.0  # arrays before which 160 outstanding take 16 and 80 ms by Little's law
SETTLE_S = {CALM: 60.0, CONGESTED: 600.0}  # windows near the threshold follow with a time constant of 100 s
NEAR = 0.02  # what counts as kept, as META


def version_2(io: Mapping[str, Any], disks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Five machines under version 2; ``disks`` has limits and reservations by machine."""
    return {
        "system": "storage-path",
        "timing": {"warm_up_s": 10, "measure_s": 120, "window_s": 5},
        "vms": [
            {"name": name, "shares": shares, "workload": {"io": [{"block": "8k", **io}]}, **disks.get(name, {})}
            for name, shares in SHARES.items()
        ],
        "hosts": [{"name": "esx01", "queue_depth": 32, "scheduler": "sioc-v2"}],
        "devices": [
            {"name": "array", "parallelism": SLOTS, "service": {"kind": "exponential", "mean": SLOTS / CAPACITY}}
        ],
    }


def version_1(capacity: float, settle_s: float) -> dict[str, Any]:
    """The same machines on a host each under version 1, before an array of this capacity, let settle."""
    load = {"io": [{"block": "8k", "oio": 32}]}
    return {
        "system": "parda",
        "control": "sioc-v1",
        "timing": {"warm_up_s": settle_s, "measure_s": settle_s, "window_s": 4},
        "hosts": [
            {"name": f"esx-{name}", "vms": [{"name": name, "shares": shares, "workload": load}]}
            for name, shares in SHARES.items()
        ],
        "array": {"slots": SLOTS, "service": {"kind": "exponential", "mean": SLOTS / capacity}},
    }


def reproduce(simulated: Simulated) -> Findings:
    """Shares, then limits and reservations, then version 1 on either side of its threshold."""
    busy: Mapping[str, Any] = {"oio": 32}
    shared = _rates(simulated(version_2(busy, {})))
    calm = simulated(version_2({"rate_iops": IDLE_RATE}, {"vm1": {"iops_limit": LIMIT}}))
    limited = _rates(calm)
    reserved = _rates(simulated(version_2(busy, {"vm5": {"reservation_iops": RESERVATION}})))
    first, second = (simulated(version_1(capacity, settle_s)) for capacity, settle_s in SETTLE_S.items())
    below, above = _rates(first), _rates(second)
    latencies = [outcome.measure("array", "array_ms_mean").value for outcome in (first, second)]
    numbers = tuple(float(n) for n in range(1, len(SHARES) + 1))
    return Findings(
        (Published("first against last", 3.0, shared["vm1"] / shared["vm5"], "times"),),
        (
            Statement(
                "a limit holds although the array is all but idle",
                abs(limited["vm1"] / LIMIT - 1.0) <= NEAR and limited["vm2"] > LIMIT,
                f"limit {LIMIT}: {limited['vm1']:.1f} per second of {IDLE_RATE:.0f} asked for, the second "
                f"{limited['vm2']:.1f}; the array is {calm.measure('array', 'utilisation_pct').value:.0f} % busy",
            ),
            Statement(
                "a reservation above its shares holds although the array is full",
                reserved["vm5"] >= (1.0 - NEAR) * RESERVATION > shared["vm5"],
                f"{shared['vm5']:.0f} by shares, {reserved['vm5']:.0f} per second with {RESERVATION} reserved",
            ),
            Statement(
                "version 1 does nothing below its threshold",
                below["vm1"] <= (1.0 + NEAR) * below["vm5"],
                f"at {latencies[0]:.0f} ms {below['vm1']:,.0f} and {below['vm5']:,.0f} per second",
            ),
            Statement(
                "version 1 goes by shares above it",
                abs(above["vm1"] / above["vm5"] / 3.0 - 1.0) <= 0.1,
                f"at {latencies[1]:.0f} ms {above['vm1']:,.0f} and {above['vm5']:,.0f} per second",
            ),
        ),
        Picture(
            "machine",
            "requests per second",
            tuple(
                Curve(name, numbers, tuple(rates.values()))
                for name, rates in (
                    ("version 2", shared),
                    ("version 1 below its threshold", below),
                    ("version 1 above it", above),
                )
            ),
        ),
    )


def _rates(outcome: Outcome) -> dict[str, float]:
    return {name: outcome.measure(name, "iops").value for name in SHARES}
