"""Answers of Google Cloud Monitoring; the seed is written by hand in the shape that its REST API documents."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import google_monitoring
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = Path(__file__).parent / "seeds" / "google-monitoring.json"
DISK = "guest:db01/block-device:data"


def read(folder: Path, content: str) -> Capture:
    source = source_of(folder, content, "monitoring.json")
    assert google_monitoring.sniff(source) > 70
    return google_monitoring.read(source, Request())


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("disk_reads_per_s", DISK, [100, 300, 300]),
        ("guest_disk_await_ms", DISK, [0.9, 21, 22]),
        ("disk_write_mib_per_s", DISK, [1, 1, 1]),
        ("guest_cpu_busy_pct", "guest:db01", [20, 25, 30]),
    ],
)
def test_values(metric: str, entity: str, expected: list[float], tmp_path: Path) -> None:
    capture = read(tmp_path, SEED.read_text(encoding="utf-8"))
    np.testing.assert_allclose(values_of(capture, metric, entity), expected)
    assert seconds(group_of(capture, metric, entity))[0] == 1795161660
    assert codes(capture) == []


def test_a_list_of_series(tmp_path: Path) -> None:
    series = json.loads(SEED.read_text(encoding="utf-8"))["timeSeries"]
    assert len(read(tmp_path, json.dumps(series)).groups) == 4


def test_a_database_of_cloud_sql(tmp_path: Path) -> None:
    series = json.loads(SEED.read_text(encoding="utf-8"))["timeSeries"][0]
    series["metric"] = {"type": "cloudsql.googleapis.com/database/disk/read_ops_count"}
    series["resource"] = {"type": "cloudsql_database", "labels": {"database_id": "project:sql1"}}
    capture = read(tmp_path, json.dumps({"timeSeries": [series]}))
    assert values_of(capture, "disk_reads_per_s", "guest:sql1/block-device:cloudsql-storage").tolist() == [
        100,
        300,
        300,
    ]


def test_other_counters_are_refused_with_their_names(tmp_path: Path) -> None:
    text = SEED.read_text(encoding="utf-8").replace("compute.googleapis.com/instance", "pubsub.googleapis.com/topic")
    with pytest.raises(InputError, match=r"pubsub.*--suggest-map"):
        read(tmp_path, text)
