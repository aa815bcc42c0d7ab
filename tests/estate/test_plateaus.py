"""Plateaus: limits are found at their value, devices at their own end and steady loads are not taken for limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.estate.arithmetic.plateaus import DiskLoad, PlateauShape, find_plateau

SHAPE = PlateauShape(flat_share=0.05, held_share=0.8, duration_s=60.0, latency_ms_min=2.0, latency_factor=3.0)
NS = 1_000_000_000


def load_of(rate: np.ndarray, latency_ms: np.ndarray, interval_s: float = 1.0) -> DiskLoad:
    ends = (np.arange(1, len(rate) + 1) * interval_s * NS).astype(np.int64)
    return DiskLoad(rate, latency_ms, ends - round(interval_s * NS), ends)


def limited(rng: np.random.Generator, limit: float, sessions: int, free_per_s: float) -> DiskLoad:
    """Sessions in a closed loop for 60 s free, 120 s behind a leaky bucket, 60 s free; samples of one second."""
    free = rng.poisson(free_per_s, 60).astype(float)
    credit = np.diff(np.floor(np.arange(121) * limit + rng.random()))
    under_way = np.clip(rng.normal(sessions, sessions * 0.2, 120), 1.0, None)
    rate = np.concatenate((free, credit, free))
    latency = np.concatenate((1000 * sessions / free, 1000 * under_way / np.maximum(credit, 1), 1000 * sessions / free))
    return load_of(rate, latency)


@example(seed=3_953_512_664, limit=852.0, sessions=4, faster=6.0)
@given(
    seed=st.integers(0, 2**32 - 1),
    limit=st.floats(5.0, 2000.0),
    sessions=st.integers(4, 64),
    faster=st.floats(5.0, 50.0),
)
def test_a_limit_is_found_at_its_value(seed: int, limit: int, sessions: int, faster: float) -> None:
    load = limited(np.random.default_rng(seed), limit, sessions, limit * faster)
    plateau = find_plateau(load, SHAPE)
    in_force = float(np.median(load.latency_ms[60:180]))
    if in_force <= 4.0:  # so little waiting that many samples are below the least latency
        return
    assert plateau is not None
    assert plateau.ceiling_per_s == pytest.approx(limit, rel=0.02)
    # Chance may make a second at an end quick: then the window ends before it.
    slow = 60 + np.flatnonzero(load.latency_ms[60:180] > SHAPE.latency_ms_min)
    assert [(w.start_ns / NS, w.end_ns / NS) for w in plateau.windows] == [(slow[0], slow[-1] + 1)]
    assert plateau.dispersion < 0.3


@given(seed=st.integers(0, 2**32 - 1), served_per_s=st.floats(60.0, 300.0))
def test_a_device_served_by_chance_is_not_regular(seed: int, served_per_s: float) -> None:
    """A disk whose service times vary like chance: its rate scatters by the root of its mean."""
    rng = np.random.default_rng(seed)
    rate = rng.poisson(served_per_s, 120).astype(float)
    load = load_of(np.concatenate((np.full(60, 20.0), rate)), np.concatenate((np.full(60, 4.0), 16_000 / rate)))
    plateau = find_plateau(load, SHAPE)
    assert plateau is None or plateau.dispersion > 0.3


@given(seed=st.integers(0, 2**32 - 1), interval_s=st.sampled_from([1.0, 5.0]))
def test_a_load_that_wanders_has_no_ceiling(seed: int, interval_s: float) -> None:
    """At least twelve samples make a minute: so many within 5 % are not chance."""
    rng = np.random.default_rng(seed)
    rate = rng.uniform(100, 1000, 120)
    latency = np.concatenate((np.full(60, 1.0), np.full(60, 40.0)))
    assert find_plateau(load_of(rate, latency, interval_s), SHAPE) is None


def test_the_slower_of_two_plateaus_is_told() -> None:
    """A first level at 900/s is slow by itself and held longer; behind the limit of 200/s it is slower."""
    rate = np.concatenate((np.linspace(10, 300, 400), np.full(120, 900.0), np.full(90, 200.0)))
    latency = np.concatenate((np.full(400, 0.4), np.full(120, 5.0), np.full(90, 60.0)))
    plateau = find_plateau(load_of(rate, latency), SHAPE)
    assert plateau is not None
    assert plateau.ceiling_per_s == 200.0


def test_a_long_healthy_level_does_not_hide_a_limit() -> None:
    """Two hours at 900/s and 3 ms are this disk's normal; the limit is found though its rate is the rarer one."""
    rate = np.concatenate((np.full(600, 900.0), np.full(90, 200.0)))
    latency = np.concatenate((np.full(600, 3.0), np.full(90, 60.0)))
    plateau = find_plateau(load_of(rate, latency), SHAPE)
    assert plateau is not None
    assert (plateau.ceiling_per_s, plateau.outside_latency_ms) == (200.0, 3.0)


def test_a_level_left_too_often_is_no_plateau() -> None:
    level = np.tile([200.0, 200.0, 90.0], 40)
    rate = np.concatenate((np.linspace(10, 80, 60), level))
    latency = np.concatenate((np.full(60, 0.4), np.full(120, 60.0)))
    assert find_plateau(load_of(rate, latency), SHAPE) is None


@pytest.mark.parametrize(("noise", "found"), [(0.01, False), (0.2, True)])
def test_a_load_that_keeps_its_own_steady_rate_is_not_limited(noise: float, found: bool) -> None:
    """Half an hour at 500/s, quick; then three minutes at 500/s, slow. Only a rate that varied before was stopped."""
    rng = np.random.default_rng(7)
    rate = np.concatenate((500 * rng.normal(1.0, noise, 360), 500 * rng.normal(1.0, 0.004, 36)))
    latency = np.concatenate((np.full(360, 1.0), np.full(36, 60.0)))
    plateau = find_plateau(load_of(rate, latency, interval_s=5.0), SHAPE)
    assert (plateau is not None) is found


def test_short_dips_do_not_end_a_plateau() -> None:
    rate = np.concatenate((np.linspace(10, 90, 60), np.full(40, 200.0), np.full(8, 120.0), np.full(40, 200.0)))
    latency = np.concatenate((np.full(60, 0.4), np.full(88, 60.0)))
    plateau = find_plateau(load_of(rate, latency), SHAPE)
    assert plateau is not None
    assert [(w.start_ns / NS, w.end_ns / NS) for w in plateau.windows] == [(60, 148)]
    assert plateau.held_s == 80.0


def test_what_was_not_measured_is_not_slow() -> None:
    rate, latency = np.full(200, 200.0), np.full(200, np.nan)
    assert find_plateau(load_of(rate, latency), SHAPE) is None
    assert find_plateau(load_of(np.full(200, np.nan), np.full(200, 50.0)), SHAPE) is None


def test_few_samples_are_flat_by_chance() -> None:
    """Five minutes of one-minute samples, and a sixth that is not at the ceiling."""
    rate = np.array([5.0, 9.0, 7.0, 200.0, 200.0, 120.0, 200.0, 200.0, 200.0])
    latency = np.array([1.0, 1.0, 1.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0])
    assert find_plateau(load_of(rate, latency, interval_s=60.0), SHAPE) is None


def test_samples_above_a_ceiling_deny_it() -> None:
    """One sample in nine is well above the level: more is let through, so nothing caps it."""
    level = np.tile([200.0] * 8 + [260.0], 20)
    rate = np.concatenate((np.linspace(10, 90, 60), level))
    latency = np.concatenate((np.full(60, 0.4), np.full(180, 60.0)))
    assert find_plateau(load_of(rate, latency), SHAPE) is None
