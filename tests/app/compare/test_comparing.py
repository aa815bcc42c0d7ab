"""Comparison with a baseline: what changed is told, what did not is not."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.app.compare.comparing import Comparison, compare
from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

HOST = Entity(EntityKind.HOST, "esx01")
VM = Entity(EntityKind.VM, "db01", HOST)
HOUR_S = 3600


def capture(
    levels: np.ndarray, seed: int, *, n: int = 200, step_s: int = 5, start_s: int = 0, cores: int = 8
) -> Capture:
    rng = np.random.default_rng(seed)
    builder = CaptureBuilder("a", "a", "a")
    times = (start_s + step_s * np.arange(1, n + 1, dtype=np.int64)) * 1_000_000_000
    for i, level in enumerate(levels):
        device = Entity(EntityKind.DEVICE, f"naa.{i}", HOST)
        builder.add_series("disk_device_latency_ms", device, times, level * rng.lognormal(0.0, 0.3, n))
    builder.inventory.add(HOST, "a", core_count=cores)
    return builder.build()


def compared(now: Capture, before: Capture) -> Comparison:
    return compare(now, before, diagnose(now), diagnose(before))


def test_noise_is_not_a_change() -> None:
    levels = np.full(400, 1.0)
    found = compared(capture(levels, 1), capture(levels, 2))
    assert found.compared_count == 400
    assert len(found.changes) <= 4


def test_a_change_is_told_with_its_interval_and_direction() -> None:
    before, now = np.full(50, 2.0), np.full(50, 2.0)
    now[7], now[9] = 3.0, 1.0
    found = compared(capture(now, 3), capture(before, 4))
    by_name = {change.entity.name: change for change in found.changes}
    assert {"naa.7", "naa.9"} <= set(by_name)
    worse = by_name["naa.7"]
    assert worse.worse
    assert worse.low <= worse.after - worse.before <= worse.high
    assert worse.low > 0
    assert not by_name["naa.9"].worse


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_holds_the_true_difference_about_as_often_as_it_says(seed: int) -> None:
    levels = np.full(300, 10.0)
    found = [
        change
        for change in compared(capture(1.5 * levels, seed), capture(levels, 100 + seed)).changes
        if change.statistic == "p50"
    ]
    held = sum(1 for change in found if change.low <= 5.0 <= change.high)
    assert held / len(found) >= 0.9


def test_slow_drift_does_not_look_sure() -> None:
    def drifting(seed: int) -> Capture:
        rng = np.random.default_rng(seed)
        builder = CaptureBuilder("a", "a", "a")
        times = 5_000_000_000 * np.arange(1, 401, dtype=np.int64)
        for i in range(60):
            walk = 10.0 + np.convolve(rng.normal(0, 1, 500), np.ones(101) / 10, mode="valid")
            builder.add_series("disk_device_latency_ms", Entity(EntityKind.DEVICE, f"naa.{i}", HOST), times, walk)
        return builder.build()

    assert len(compared(drifting(1), drifting(2)).changes) <= 6


def test_findings_that_are_new_or_gone() -> None:
    quiet, slow = np.full(3, 1.0), np.array([1.0, 80.0, 1.0])
    worse = compared(capture(slow, 5), capture(quiet, 6))
    assert {(f.rule, f.entity.name) for f in worse.new} == {("disk-davg-generic", "naa.1")}
    assert worse.gone == ()
    better = compared(capture(quiet, 5), capture(slow, 6))
    assert [f.rule for f in better.gone] == ["disk-davg-generic"]


def test_one_change_at_a_time_is_said_when_several_settings_differ() -> None:
    one = compared(capture(np.ones(1), 1, cores=8), capture(np.ones(1), 2, cores=16))
    assert [(s.setting, s.before, s.after) for s in one.settings] == [("core_count", 16, 8)]
    assert one.advice is None
    before = capture(np.ones(1), 2, cores=16)
    now = capture(np.ones(1), 1, cores=8)
    before.inventory.add(VM, "a", vcpu_count=8)
    now.inventory.add(VM, "a", vcpu_count=4)
    several = compared(now, before)
    assert several.advice is not None
    assert "one at a time" in several.advice


def test_long_history_is_compared_at_the_same_weekday_and_hour() -> None:
    disk = Entity(EntityKind.DEVICE, "naa.0", HOST)
    rng = np.random.default_rng(1)

    def recording(first_h: float, count: int, step_h: float) -> Capture:
        hours = first_h + step_h * np.arange(1, count + 1)
        nightly = np.where(hours % 24 < 6, 30.0, 2.0) + rng.normal(0, 0.2, count)
        builder = CaptureBuilder("a", "a", "a")
        builder.add_series("disk_device_latency_ms", disk, (hours * HOUR_S * 1e9).astype(np.int64), nightly)
        return builder.build()

    history, night = recording(0, 24 * 7 * 8, 1.0), recording(24 * 7 * 8, 150, 1 / 30)
    found = compared(night, history)
    assert found.seasonal
    assert all(change.share < 0.1 for change in found.changes)
    shorter = compared(night, recording(0, 24 * 7, 1.0))
    assert not shorter.seasonal
    assert any(change.share > 1 for change in shorter.changes)


def test_too_few_samples_are_not_compared() -> None:
    assert compared(capture(np.ones(2), 1, n=5), capture(np.ones(2), 2, n=5)).compared_count == 0


def test_the_document_is_plain() -> None:
    document = compared(capture(np.full(2, 9.0), 1), capture(np.ones(2), 2)).to_dict()
    assert document["changes"][0]["statistic"] in {"p50", "p95"}
    assert set(document) == {
        *("compared_count", "seasonal", "changes", "new_findings", "gone_findings", "settings", "advice")
    }
