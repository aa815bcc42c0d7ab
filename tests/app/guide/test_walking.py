"""Guides walked: what recordings show at each step, where a ladder begins, what is not recorded."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.guide.walking import StepState, Walk, walk
from leadline.app.read.importing import import_paths
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.faces.words.guides import document, headline
from tests.conftest import ROOT

NS_PER_S = 1_000_000_000


def recorded(*series: tuple[str, str, float]) -> Capture:
    """Ten minutes, a sample every five seconds, of constant levels."""
    builder = CaptureBuilder("a.csv", "table", "table")
    times = 1_700_000_000 * NS_PER_S + 5 * NS_PER_S * np.arange(1, 121, dtype=np.int64)
    for metric, entity, level in series:
        builder.add_series(metric, Entity.parse(entity), times, np.full(120, level), interval_s=5)
    return builder.build()


def states(walked: Walk) -> list[StepState]:
    return [one.state for one in walked.steps]


def test_without_recordings_each_step_says_what_to_record() -> None:
    walked = walk("vsan", None)
    assert set(states(walked)) == {StepState.NOT_RECORDED}
    assert headline(walked) == "Nothing is recorded yet: each step says what to record."
    assert all(one.step.record for one in walked.steps)


def test_a_ladder_begins_at_the_first_problem_and_says_what_it_did_not_see() -> None:
    capture = recorded(("vsan_congestion_count", "cluster:c1", 60.0), ("net_drops_rx_pct", "host:h1/nic:vmnic0", 0.0))
    walked = walk("vsan", diagnose(capture))
    assert walked.first is not None
    assert walked.first.step.title == "Cluster"
    assert headline(walked) == "Begin at step 2, cluster (not wholly recorded before it: guest)."
    assert walked.steps[0].state is StepState.NOT_RECORDED


def test_a_recorded_incident_is_found_at_its_step() -> None:
    walked = walk("slow-disk", diagnose(import_paths([ROOT / "examples/incidents/throttled-wal-disk"]).capture))
    by_title = {one.step.title: one for one in walked.steps}
    round_two = by_title["Round two: a load that is known"]
    assert "vm-iops-limit-hit" in {finding.rule for finding in round_two.findings}
    assert document(walked)["steps"][3]["state"] == "problem"


def test_a_healthy_recording_has_no_problem_where_it_was_looked_at() -> None:
    walked = walk("slow-disk", diagnose(import_paths([ROOT / "examples/incidents/healthy"]).capture))
    assert by_state(walked, "Round one: the real load") is StepState.NOTHING
    assert "problem" not in headline(walked)


def by_state(walked: Walk, title: str) -> StepState:
    return next(one.state for one in walked.steps if one.step.title == title)


def test_an_unknown_guide_is_an_error() -> None:
    with pytest.raises(UsageError, match="no such unit"):
        walk("slow-dsik", None)
