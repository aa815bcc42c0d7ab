"""Figures of trainings that share a GPU: what they amount to, and that other parts of a step do not give them."""

from __future__ import annotations

import pytest

from leadline.core.contracts.experiment import FigureVerdict
from leadline.experiments import _shared_gpu, vgpu_24_vms, vgpu_overlap
from tests.experiments.test_far_memory import found


def test_the_order_of_policies_and_what_is_calibrated() -> None:
    findings, amounts_to = found(vgpu_24_vms)
    assert amounts_to is FigureVerdict.REPRODUCED
    assert [own.is_calibrated for own in findings.comparisons] == [True]
    assert abs(findings.comparisons[0].error) < 0.02
    assert "calibrated and not counted" in findings.why


def test_the_overlap_is_predicted_from_the_other_figure() -> None:
    findings, amounts_to = found(vgpu_overlap)
    assert amounts_to is FigureVerdict.REPRODUCED
    first, middle, last = (own.found for own in findings.comparisons)
    assert middle > max(first, last)
    assert not any(own.is_calibrated for own in findings.comparisons)


def test_steps_that_are_half_gpu_slow_down_less(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = _shared_gpu.parts
    monkeypatch.setattr(_shared_gpu, "parts", lambda: parts(0.4))
    findings, amounts_to = found(vgpu_overlap)
    assert amounts_to is FigureVerdict.NOT_REPRODUCED
    assert findings.comparisons[0].found < 0.10
    findings, _ = found(vgpu_24_vms)
    assert findings.comparisons[0].error < -0.3
