"""Exports of Azure Monitor; the seeds are written by hand in the shapes that its REST API documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.clouds.azure import counter_name
from leadline.importers import azure_monitor
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEEDS = Path(__file__).parent / "seeds"
START_S = 1795161600  # 2026-11-20 08:00:00 UTC
DISK = "guest:db01/block-device:lun-0"
NAN = float("nan")


def read(folder: Path, content: str, name: str = "azure.json", **request: Any) -> Capture:
    source = source_of(folder, content, name)
    assert azure_monitor.sniff(source) > 70
    return azure_monitor.read(source, Request(**request))


def seed(name: str, folder: Path) -> Capture:
    return read(folder, (SEEDS / name).read_text(encoding="utf-8"), name)


def answer(name: str, resource: str, points: list[dict[str, Any]], interval: str = "PT1M") -> str:
    data = [{"timeStamp": f"2026-11-20T08:{i:02d}:00Z", **point} for i, point in enumerate(points)]
    counter = {"id": f"/x/{resource}", "name": {"value": name}, "timeseries": [{"metadatavalues": [], "data": data}]}
    return json.dumps({"interval": interval, "value": [counter]})


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("guest_disk_await_ms", DISK, [2, 2.1, 31, 33, 32, NAN]),
        ("disk_reads_per_s", DISK, [180, 190, 500, 500, 500, 200]),
        ("limit_iops_used_pct", DISK, [36, 38, 100, 100, 100, 40]),
        ("limit_iops_used_pct", "guest:db01", [12, 12, 33, 33, 33, 13]),
        ("limit_iops_credits_pct", DISK, [30, NAN, NAN, NAN, NAN, 0]),
        ("guest_cpu_busy_pct", "guest:db01", [20] * 6),
    ],
)
def test_answer_of_the_api(metric: str, entity: str, expected: list[float], tmp_path: Path) -> None:
    capture = seed("azure-metrics.json", tmp_path)
    np.testing.assert_allclose(values_of(capture, metric, entity), expected)
    assert seconds(group_of(capture, metric, entity))[0] == START_S + 60
    assert codes(capture) == []


def test_table_of_the_portal(tmp_path: Path) -> None:
    capture = seed("azure-portal.csv", tmp_path)
    entity = "guest:db01/block-device:data-disks"
    assert values_of(capture, "guest_disk_await_ms", entity).tolist() == [2, 12, 22, 32, 42]
    assert values_of(capture, "limit_iops_used_pct", entity).tolist() == [40, 55, 70, 85, 100]
    assert capture.sources[0].clock_known


def test_table_of_the_logs(tmp_path: Path) -> None:
    capture = seed("azure-logs.csv", tmp_path)
    entity = "guest:pg1/block-device:server-storage"
    assert values_of(capture, "limit_iops_used_pct", entity).tolist() == [97, 98, 99]
    assert values_of(capture, "disk_reads_per_s", entity).tolist() == [500] * 3


def test_totals_become_rates(tmp_path: Path) -> None:
    points = [{"total": 30000.0}, {"total": 60000.0}]
    capture = read(tmp_path, answer("storage_io_count", "flexibleServers/my1", points))
    assert values_of(capture, "disk_iops", "guest:my1/block-device:server-storage").tolist() == [500, 1000]


def test_the_highest_share_of_a_limit_counts_where_no_mean_is_there(tmp_path: Path) -> None:
    capture = read(tmp_path, answer("log_write_percent", "servers/s1/databases/d", [{"maximum": 99.0}, {"maximum": 7}]))
    assert values_of(capture, "limit_bandwidth_used_pct", "guest:s1/block-device:log").tolist() == [99, 7]


def test_long_periods_are_said(tmp_path: Path) -> None:
    capture = read(tmp_path, answer("Percentage CPU", "virtualMachines/vm", [{"average": 9.0}] * 2, "PT1H"))
    assert codes(capture) == ["period"]


def test_both_limits_of_a_machine_are_one_and_the_higher_counts(tmp_path: Path) -> None:
    both = [
        json.loads(answer(f"VM {kind} IOPS Consumed Percentage", "virtualMachines/vm", [{"average": value}] * 2))
        for kind, value in (("Cached", 97.0), ("Uncached", 20.0))
    ]
    capture = read(tmp_path, "\n".join(map(json.dumps, both)))
    assert values_of(capture, "limit_iops_used_pct", "guest:vm").tolist() == [97, 97]


def test_other_counters_are_refused_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"transactions.*--suggest-map"):
        read(tmp_path, answer("Transactions", "storageAccounts/x", [{"total": 3.0}] * 2))


def test_names_of_the_portal() -> None:
    assert counter_name("Data Disk  Queue Depth (Preview)") == "data disk queue depth"
    assert counter_name("Data IO percentage") == "physical_data_read_percent"
