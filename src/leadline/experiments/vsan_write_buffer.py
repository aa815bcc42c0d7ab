"""A burst of writes into disk groups: at the cache devices' speed until the buffers are full, then at the drain's.

Setup:
    The source gives a formula and what raises and lowers its terms, not one machine. Groups of a cache device of 400
    GB (2,080 MB/s) before two to seven flash devices (490 MB/s), data sheets of 2017 to 2018; two copies of
    everything; writes of 64 KiB, 1,024 outstanding. Destaging from the first byte and no congestion before the buffer
    is full, as the formula has it.

Run:
    The system cache-tiers, once for each change. Filling time and throughput afterwards are beside the formula; the
    rest are comparisons between the runs.

Limits:
    A fluid: the formula and the simulation share the balance of bytes, not the steps, the outstanding requests nor
    the caps. Real buffers slow writes before they are full, see the system's page.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.core.contracts.scenario import Outcome, Series
from leadline.core.model.errors import LeadlineError
from leadline.core.model.picture import Curve, Picture
from leadline.experiments._vsan import FAST_CACHE, FLASH_DEVICE, FRONT_END, MB, MIB, group, tiers

META = ExperimentMeta(
    claim=(
        "a burst is absorbed at device speed until the write buffer is full, then throughput falls to the destage "
        "rate; a faster buffer of the same size fills sooner, a larger one later; more groups, more or faster devices "
        "raise the destage rate; at most 600 GB a group, 5 groups a host and 7 capacity devices a group are used"
    ),
    source="VMware vSAN cache and capacity tiers, as told on vmgu.ru",
    verified="read",
    kind="numeric",
    by=("simulation", "arithmetic"),
    tolerance=0.02,
)
COPIES = 2
MEASURE_S, WINDOW_S = 1500.0, 5.0
SETUPS: dict[str, dict[str, Any]] = {
    "400 GB, 2 devices": {},
    "400 GB, 3 devices": {"devices": 3},
    "half full": {"fill_pct": 50},
    "slower buffer": {"cache": {"mb_per_s": 1500}},
    "faster devices": {"device": {"mb_per_s": 700}},
    "600 GB": {"cache_gb": 600},
    "1,600 GB": {"cache_gb": 1600},
    "2 groups": {"count": 2},
}


def reproduce(simulated: Simulated) -> Findings:
    """Filling times and throughputs against the formula, then each change against the first setup."""
    runs = {name: simulated(_scenario(**change)) for name, change in SETUPS.items()}
    comparisons = [
        comparison for name, change in SETUPS.items() for comparison in _against_formula(name, change, runs[name])
    ]
    first = runs["400 GB, 2 devices"]
    series = _write_rates(first)
    times = tuple((n + 1) * WINDOW_S for n in range(len(series.values)))
    curve = Curve("400 GB before 2 devices", times, series.values)
    return Findings(
        comparisons=tuple(comparisons),
        checks=(*_orders(runs), *_caps(simulated, runs)),
        picture=Picture("seconds", "MiB/s of guests' writes", (curve,)),
    )


def _scenario(cache_gb: float = 400, devices: int = 2, **change: Any) -> dict[str, Any]:  # noqa: ANN401
    return tiers(group(cache_gb, devices, **change), measure_s=MEASURE_S, window_s=WINDOW_S)


def _against_formula(name: str, change: dict[str, Any], outcome: Outcome) -> list[Published]:
    """``t_full = B (1 - f0) / (rate x copies - drain)``, and drain / copies afterwards."""
    cache = {**FAST_CACHE, **change.get("cache", {})}
    device = {**FLASH_DEVICE, **change.get("device", {})}
    groups, devices = change.get("count", 1), change.get("devices", 2)
    buffer_mb = min(change.get("cache_gb", 400), 600) * 1000 * (1 - change.get("fill_pct", 0) / 100)
    drain = device["mb_per_s"] * devices
    # The outstanding writes keep the cache device busy: rate x copies is its speed.
    full_s = buffer_mb / (cache["mb_per_s"] - drain)
    after = drain * groups / COPIES * MB / MIB
    return [
        Published(f"{name}: full after", full_s, _full_s(outcome), "s"),
        Published(f"{name}: throughput afterwards", after, _after(outcome), "mib_per_s"),
    ]


def _full_s(outcome: Outcome) -> float:
    return outcome.measure(FRONT_END, "slowed_after_s").value


def _write_rates(outcome: Outcome) -> Series:
    """The guests' writes over time, MiB/s."""
    return next(series for series in outcome.series if (series.entity, series.name) == (FRONT_END, "mib_per_s"))


def _after(outcome: Outcome) -> float:
    """The guests' writes at the end, MiB/s."""
    return _write_rates(outcome).values[-1]


def _at_first(outcome: Outcome) -> float:
    """The guests' writes before the buffer is full, MiB/s."""
    return _write_rates(outcome).values[0]


def _orders(runs: dict[str, Outcome]) -> tuple[Statement, ...]:
    base = runs["400 GB, 2 devices"]
    slow, large, two = runs["slower buffer"], runs["600 GB"], runs["2 groups"]
    more, faster = runs["400 GB, 3 devices"], runs["faster devices"]
    rates = [_after(outcome) for outcome in (two, more, faster)]
    speed = FAST_CACHE["mb_per_s"] * MB / MIB / COPIES  # type: ignore[operator]
    return (
        Statement(
            "a burst runs at the cache device's speed before the buffer is full",
            abs(_at_first(base) / speed - 1.0) < META.tolerance,
            f"{_at_first(base):,.0f} MiB/s at first, {_after(base):,.0f} MiB/s at last, device {speed:,.0f} MiB/s",
        ),
        Statement(
            "a faster buffer of the same size fills sooner",
            _full_s(base) < _full_s(slow) and _after(base) == _after(slow),
            f"{_full_s(base):.0f} s at 2,080 MB/s, {_full_s(slow):.0f} s at 1,500 MB/s",
        ),
        Statement(
            "a larger buffer lasts longer",
            _full_s(base) < _full_s(large),
            f"{_full_s(base):.0f} s with 400 GB, {_full_s(large):.0f} s with 600 GB",
        ),
        Statement(
            "more groups, more or faster capacity devices destage faster",
            min(rates) > _after(base),
            f"{_after(base):,.0f} MiB/s, then {', '.join(f'{rate:,.0f}' for rate in rates)} MiB/s",
        ),
    )


def _caps(simulated: Simulated, runs: dict[str, Outcome]) -> tuple[Statement, ...]:
    full = [_full_s(runs[name]) for name in ("600 GB", "1,600 GB")]
    return (
        Statement(
            "of a larger cache device 600 GB buffer writes", full[0] == full[1], f"{full[0]:.0f} and {full[1]:.0f} s"
        ),
        Statement("a host has at most 5 groups", *_most(simulated, {"count": 5}, {"count": 6})),
        Statement("a group has at most 7 capacity devices", *_most(simulated, {"devices": 7}, {"devices": 8})),
    )


def _most(simulated: Simulated, most: dict[str, Any], more: dict[str, Any]) -> tuple[bool, str]:
    """Whether the one runs and the other is refused; what was said."""
    simulated(_scenario(**most))
    try:
        simulated(_scenario(**more))
    except (LeadlineError, ValueError) as error:
        return True, f"{more} is refused: {type(error).__name__}"
    return False, f"{more} runs"
