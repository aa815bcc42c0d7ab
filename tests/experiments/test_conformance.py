"""Every experiment runs to the same findings again, and they are sound."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isnan

from leadline.app.reproducing import figures, reproduce
from leadline.core.experiment import Verdict, verdict


def test_every_experiment_runs_twice_to_the_same_findings() -> None:
    first, second = reproduce(), reproduce()
    assert [own.name for own in first] == figures()
    for own, again in zip(first, second, strict=True):
        assert repr(own.findings) == repr(again.findings), own.name  # NaN is not equal to itself
        assert own.runs == again.runs, own.name
        assert own.verdict is verdict(own.meta, own.findings)
        found = own.findings
        assert found.comparisons or found.checks, own.name
        json.dumps(asdict(found))  # plain numbers and words
        names = [part.name for part in found.comparisons]
        assert len(set(names)) == len(names), own.name
        assert found.why or own.verdict is Verdict.REPRODUCED, f"{own.name} does not say why"
        assert own.meta.calibrated or not any(part.is_calibrated for part in found.comparisons), own.name
        assert not any(isnan(value) for part in found.comparisons for value in _values(part.published)), own.name
        assert ("simulation" in own.meta.by) == bool(own.runs), own.name


def _values(published: float | tuple[float, float]) -> tuple[float, ...]:
    return published if isinstance(published, tuple) else (published,)
