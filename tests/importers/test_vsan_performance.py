"""vSAN performance service; the fixture is written by hand in the shape the API documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import metric as metric_of
from leadline.importers import vsan_performance

OWN = Path(__file__).parent / "seeds" / "vsan-performance.json"
CLUSTER = "cluster:5270dc4d-3594-cc26-b33d-f6be33ddb353"
HOST = "host:5b1f7d1c-0000-1111-2222-0c42a1a1a1a1"
GROUP = "disk-group:52a1b2c3-aaaa-bbbb-cccc-ddddeeeeffff"
DISK = "vm:503a0000-1111-2222-3333-444455556666/virtual-disk:scsi0:1"
NAN = float("nan")


def read(path: Path, **request: Any) -> Capture:
    return vsan_performance.read(Source(str(path), path), Request(**request))


def of(tmp_path: Path, document: object, **request: Any) -> Capture:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    return read(path, **request)


def values(capture: Capture, metric: str, entity: str) -> list[float]:
    wanted = Entity.parse(entity)
    rows = [row for group in capture.of(metric) if (row := group.row(wanted)) is not None]
    assert len(rows) == 1
    return [float(value) for value in rows[0]]


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("vsan_client_iops", CLUSTER, [1500, 2250, NAN]),
        ("vsan_client_bytes_per_s", CLUSTER, [8196096, 16388096, 4096]),
        ("vsan_client_latency_us_read", CLUSTER, [512, 48211, 600]),
        ("vsan_congestion_count", CLUSTER, [0, 130, 2]),
        ("vsan_client_outstanding_count", CLUSTER, [4, 80, 5]),
        ("vsan_disk_group_congestion_count", GROUP, [1, 210, 0]),
        ("vsan_disk_group_congestion_count_log", GROUP, [0, 210, 0]),
        ("vsan_cache_device_latency_us", GROUP, [210, 120, 100]),
        ("disk_iops", GROUP, [11, 22, 33]),
        ("vsan_write_buffer_free_pct", GROUP, [70, 12, 66]),
        ("vsan_capacity_device_latency_us", "device:52ffffff-aaaa-bbbb-cccc-000000000001", [4000, 21000, 5000]),
        ("vsan_net_loss_permille", HOST, [3, 1, 0]),
        ("vsan_net_bytes_per_s", HOST, [150, 250, 350]),
        ("vsan_kernel_ready_pct", HOST, [4, 2, 3]),
        ("virtual_disk_latency_ms_read", DISK, [1.5, 2.5, 0.9]),
        ("disk_read_mib_per_s", DISK, [1, 0, 2]),
        ("raw.vsan.cluster-domclient.iopsUnmap", CLUSTER, [0, 0, 0]),
    ],
)
def test_values(metric: str, entity: str, expected: list[float]) -> None:
    np.testing.assert_allclose(values(read(OWN), metric, entity), expected)


def test_times_are_utc_and_known() -> None:
    capture = read(OWN)
    group = capture.of("vsan_client_iops")[0]
    assert [str(np.datetime64(int(t), "ns"))[:19] for t in group.times_ns[:2]] == [
        "2026-11-20T08:30:00",
        "2026-11-20T08:35:00",
    ]
    assert group.interval_s == 300
    assert capture.sources[0].clock_known


def test_only_what_is_asked_for() -> None:
    capture = read(OWN, metrics=frozenset({"vsan_disk_group_congestion_count_log"}))
    assert "vsan_disk_group_congestion_count_log" in capture.metrics()
    assert "vsan_client_iops" not in capture.metrics()
    assert [m for m in capture.metrics() if m.startswith("raw")] == []


def test_every_field_is_a_metric_and_a_label_of_the_service(samples: Path) -> None:
    labels = json.loads((samples.parent / "catalogue" / "vsan_entities.json").read_text())
    missing = set()
    for field, held in vsan_performance.META.fields.items():
        assert metric_of(held.metric).unit
        kind, _, label = field.partition(".")
        kind = {"cluster-domclient": "domclient", "host-domclient": "domclient"}.get(kind, kind)
        kind = {"cluster-domcompmgr": "domcompmgr", "host-domcompmgr": "domcompmgr"}.get(kind, kind)
        if kind in labels and label not in labels[kind]:
            missing.add((kind, label))
    assert missing == ABSENT


# Named by the catalogue of metrics for these types, absent from the list of labels of one release.
ABSENT: set[tuple[str, str]] = set()


def test_shapes_of_the_answer(tmp_path: Path) -> None:
    entities = json.loads(OWN.read_text())
    for document in ({"returnval": entities}, entities[0], {"Returnval": [_capitals(e) for e in entities]}):
        np.testing.assert_allclose(values(of(tmp_path, document), "vsan_client_iops", CLUSTER), [1500, 2250, NAN])


def _capitals(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[0].upper() + key[1:]: _capitals(held) for key, held in value.items()}
    return [_capitals(held) for held in value] if isinstance(value, list) else value


def test_recognised_among_all_importers() -> None:
    known = recognise(Source(str(OWN), OWN), load_units("importer"))
    assert known is not None
    assert known[0] == "vsan-performance"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if vsan_performance.sniff(Source("", path))] == []


def test_a_file_cut_in_an_entity_keeps_the_whole_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(OWN.read_text()[:-700])
    capture = read(path)
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]
    np.testing.assert_allclose(values(capture, "vsan_client_iops", CLUSTER), [1500, 2250, NAN])
    assert capture.of("virtual_disk_latency_ms_read") == []


def test_values_that_do_not_fit_the_times_are_an_error(tmp_path: Path) -> None:
    entity = json.loads(OWN.read_text())[0]
    entity["value"][1]["values"] = "1,2"
    with pytest.raises(InputError, match=r"entity 1, iopsWrite: 2 values; expected 3, one for each time"):
        of(tmp_path, entity)


@pytest.mark.parametrize("stamp", ["soon", "9999-01-01 00:00:00", "2026-13-01 00:00:00"])
def test_times_that_are_none_are_an_error(tmp_path: Path, stamp: str) -> None:
    entity = json.loads(OWN.read_text())[0]
    entity["sampleInfo"] = f"2026-11-20 08:30:00,{stamp},2026-11-20 08:40:00"
    with pytest.raises(InputError, match="the time"):
        of(tmp_path, entity)


def test_an_answer_without_entities_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no entity with samples"):
        of(tmp_path, {"returnval": []})
