from __future__ import annotations

from dataclasses import replace
from html import unescape
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
    assert report.verdict.startswith("Yes, it is the disk: device latency")
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


def test_charts_stand_alone_in_a_frame(capture_path: Path) -> None:
    """What is drawn in them is seen by a browser in test_report_browser.py."""
    recording = leadline.open(capture_path)
    report = recording.diagnose()
    for view in (report.charts(), report.charts(report.findings[0]), recording.chart("cpu_ready_pct"), report.page()):
        assert view.html.startswith("<!doctype html>")
        assert "default-src 'none'; script-src 'sha256-" in unescape(view.html)
        frame = view._repr_html_()
        assert frame.startswith(f'<iframe width="100%" height="{view.height_px}"')
        assert 'sandbox="allow-scripts"' in frame
        assert frame.count("<") == 2, "the page is an attribute: none of its names is markup of the notebook"
    assert len(report.charts().html) < 80_000
    assert repr(report.charts()).endswith("characters of HTML; a notebook shows it)")


def test_what_cannot_be_drawn_is_said(capture_path: Path) -> None:
    recording = leadline.open(capture_path)
    report = recording.diagnose()
    with pytest.raises(UsageError, match="no series"):
        recording.chart("db_tps")
    with pytest.raises(UsageError, match="of which nothing was recorded"):
        report.charts(replace(report.findings[0], windows=()))
    with pytest.raises(UsageError, match="no finding"):
        leadline.open(capture_path, metrics={"mem_balloon_mib"}).diagnose().charts()
