"""Experiments on disk groups, protection and write caches: their verdicts, and what breaks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.experiment import Experiment, FigureVerdict, Findings, verdict
from leadline.core.contracts.scenario import Outcome
from leadline.scenarios import cache_tiers

NAMES = (
    "capacity-factors",
    "log-structured-write-cache",
    "vsan-hybrid-split",
    "vsan-two-groups",
    "vsan-write-buffer",
)


def simulated(scenario: Mapping[str, Any]) -> Outcome:
    return outcome_of(dict(scenario))


def experiment(name: str) -> Experiment:
    return cast("Experiment", load_unit("experiment", name))


def found(name: str, **changed: Any) -> tuple[FigureVerdict, Findings]:
    """Verdict and findings; with keys that replace those of every scenario."""
    own = experiment(name)
    findings = own.reproduce(lambda scenario: simulated({**scenario, **changed}))
    return verdict(own.META, findings), findings


@pytest.mark.parametrize("name", NAMES)
def test_it_is_reproduced(name: str) -> None:
    came, findings = found(name)
    assert came is FigureVerdict.REPRODUCED, findings
    again = found(name)[1]
    assert again == findings


def test_a_buffer_that_slows_writes_early_is_not_the_formulas() -> None:
    came, findings = found("vsan-write-buffer", slow_from_pct=50)
    assert came is not FigureVerdict.REPRODUCED
    assert any(abs(own.error) > 0.02 for own in findings.comparisons)


def test_another_delay_or_a_busy_cluster_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cache_tiers.DELAY_S, "absent", 1800.0)
    came, findings = found("vsan-two-groups")
    assert came is not FigureVerdict.REPRODUCED
    assert [own.found for own in findings.comparisons if own.published == 60.0] == [30.0]


def test_another_split_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cache_tiers.WRITE_SHARES, "hybrid", 0.4)
    came, findings = found("vsan-hybrid-split")
    assert came is not FigureVerdict.REPRODUCED
    shares = {own.name: own.found for own in findings.comparisons}
    assert shares["hybrid: share for writes"] == pytest.approx(0.4, 0.01)


def test_a_log_that_is_not_waited_for_is_not_safe() -> None:
    name = "log-structured-write-cache"
    own = experiment(name)

    def behind_ram(scenario: Mapping[str, Any]) -> Outcome:
        kind = "log-behind-ram" if scenario["cache"] == "log-structured" else scenario["cache"]
        return simulated({**scenario, "cache": kind})

    findings = own.reproduce(behind_ram)
    assert verdict(own.META, findings) is not FigureVerdict.REPRODUCED
    assert not next(check for check in findings.checks if check.statement.startswith("nothing")).holds
