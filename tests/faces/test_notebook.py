from __future__ import annotations

from pathlib import Path

import pytest

import leadline
from leadline.app.generating import FaultRequest, generate
from leadline.core.model.errors import InputError, UsageError
from leadline.generators.host_model import CaptureShape


@pytest.fixture(scope="module")
def capture_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("notebook") / "cap.csv"
    generate(CaptureShape(vm_count=3), [FaultRequest("device-slow", 0)], path)
    return path


def test_open_and_diagnose(capture_path: Path) -> None:
    report = leadline.open(capture_path).diagnose()
    assert report.findings[0].rule.startswith("disk-davg")
    assert report.verdict.splitlines()[1].startswith("Is it the disk? Yes")
    assert "disk-davg" in repr(report)
    assert report._repr_html_().startswith("<pre")


def test_series_are_a_frame(capture_path: Path) -> None:
    frame = leadline.open(capture_path).series("disk_device_latency_ms", "device:")
    assert frame.columns == ["time", "entity", "metric", "unit", "value", "since_boot"]
    assert frame["entity"].n_unique() == 8
    assert frame.height == 8 * 120


def test_what_is_not_there_is_said(capture_path: Path) -> None:
    with pytest.raises(UsageError, match="no series"):
        leadline.open(capture_path).series("db_tps")
    with pytest.raises(InputError, match="no such file"):
        leadline.open("no-such-file")
    with pytest.raises(AttributeError, match="no attribute"):
        leadline.nonsense  # noqa: B018


def test_saving_and_arrow(capture_path: Path, tmp_path: Path) -> None:
    recording = leadline.open(capture_path, metrics={"cpu_ready_pct"})
    recording.save(tmp_path / "c.parquet")
    assert leadline.open(tmp_path / "c.parquet").metrics == recording.metrics == ["cpu_ready_pct"]
    assert recording.to_arrow().num_rows == recording.capture.series_count
