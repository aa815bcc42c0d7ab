"""Storage protocols: arithmetic by hand, and what is not known is not guessed."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.app.planning import make_plan
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind


def test_cores_and_outstanding_requests() -> None:
    """100,000 operations of 20 us are two cores; software iSCSI took up to 80 % more, 4 % more latency."""
    plan = make_plan("protocol", None, {"iops": 100_000.0, "latency_ms": 1.0, "fc_cpu_us": 20.0}).plan
    assert plan.figure("cores over FC").value == 2.0
    assert plan.figure("cores over software iSCSI").value == 3.6
    assert plan.figure("outstanding over FC").value == 100.0
    assert plan.figure("outstanding over NFS").value == 104.0
    assert plan.headline.startswith("Software iSCSI takes up to 3.6 cores where FC takes 2,")


def test_what_nobody_published_is_not_known() -> None:
    rows = {row[0]: row[1:] for row in make_plan("protocol").plan.sheets[0].rows}
    assert rows["NVMe over FC"][:3] == ("not known", "not known", "7.0")
    assert "80 to 100 us" in str(rows["NVMe over TCP"][3])


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        ("6.7", "6.7 has no NVMe over FC, NVMe over RDMA, NVMe over TCP"),
        ("7.0", "7.0 has no NVMe over TCP"),
        ("7.0U3", None),
        ("8.0", None),
    ],
)
def test_a_version_without_the_protocol_is_a_bend(version: str, missing: str | None) -> None:
    bends = [bend.cost for bend in make_plan("protocol", None, {"version": version}).plan.bends]
    assert bends[1:] == ([] if missing is None else [missing])


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="no version"):
        make_plan("protocol", None, {"version": "newest"})


def test_the_busiest_host_of_a_recording_is_planned_for() -> None:
    builder = CaptureBuilder("esxtop.csv", "esxtop", "esxtop")
    times = 1_700_000_000 * 10**9 + np.arange(1, 31, dtype=np.int64) * 10 * 10**9
    for name, rate in (("esx1", 1000.0), ("esx2", 4000.0)):
        device = Entity(EntityKind.DEVICE, "naa.1", Entity(EntityKind.HOST, name))
        builder.add_series("disk_iops", device, times, np.full(30, rate), interval_s=10)
        builder.add_series("disk_device_latency_ms", device, times, np.full(30, 0.5), interval_s=10)
    plan = make_plan("protocol", None, {"fc_cpu_us": 10.0}, builder.build()).plan
    assert plan.figure("cores over FC").value == pytest.approx(0.04)
    assert plan.figure("outstanding over FC").value == pytest.approx(2.0)
    assert plan.evidence[0].startswith("iops 4,000: esx2")
