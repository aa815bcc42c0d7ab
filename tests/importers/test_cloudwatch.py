"""Exports of CloudWatch; the seeds are written by hand in the shapes that the API Reference documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.clouds.aws import parse_label
from leadline.formats.clouds.counters import CloudOwner
from leadline.importers import cloudwatch
from tests.command_line import leadline
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEEDS = Path(__file__).parent / "seeds"
START_S = 1795161600  # 2026-11-20 08:00:00 UTC
RDS = "guest:orders-db/block-device:rds-storage"
VOLUME = "guest:guest/block-device:disk"
NAN = float("nan")


def read(folder: Path, content: str | dict[str, Any], name: str = "x.json", **request: Any) -> Capture:
    text = content if isinstance(content, str) else json.dumps(content)
    source = source_of(folder, text, name)
    assert cloudwatch.sniff(source) > 70
    return cloudwatch.read(source, Request(**request))


def seed(name: str, folder: Path) -> Capture:
    return read(folder, (SEEDS / name).read_text(encoding="utf-8"), name)


def datapoints(label: str, statistic: str, *values: float, step_s: int = 60) -> dict[str, Any]:
    points = [
        {"Timestamp": f"2026-11-20T08:{i * step_s // 60:02d}:00Z", statistic: value, "Unit": "None"}
        for i, value in enumerate(values)
    ]
    return {"Label": label, "Datapoints": points}


def result(label: str, *values: float) -> dict[str, Any]:
    times = [f"2026-11-20T08:{i:02d}:00+00:00" for i in range(len(values))]
    return {"Id": "m1", "Label": label, "Timestamps": times, "Values": list(values), "StatusCode": "Complete"}


@pytest.mark.parametrize(
    ("metric", "entity", "first", "last"),
    [
        ("guest_disk_await_ms_read", RDS, 2.1, 48.0),
        ("disk_reads_per_s", RDS, 310, 100),
        ("limit_iops_credits_pct", RDS, 14, 0),
        ("db_sessions_count", "guest:orders-db/database:database", 41, 41),
        ("guest_cpu_busy_pct", "guest:orders-db", 22.5, 22.5),
    ],
)
def test_metric_data_of_an_instance(metric: str, entity: str, first: float, last: float, tmp_path: Path) -> None:
    values = values_of(seed("cloudwatch-data.json", tmp_path), metric, entity)
    assert len(values) == 12
    assert values[[0, -1]] == pytest.approx([first, last])


def test_a_value_stands_for_the_period_that_began_at_its_time(tmp_path: Path) -> None:
    group = group_of(seed("cloudwatch-data.json", tmp_path), "guest_disk_await_ms_read", RDS)
    assert seconds(group)[0] == START_S + 60
    assert group.interval_s == 60


def test_sums_of_a_volume_become_rates_and_latency(tmp_path: Path) -> None:
    capture = seed("cloudwatch-statistics.json", tmp_path)
    assert values_of(capture, "disk_reads_per_s", VOLUME).tolist() == [300, 400, 0]
    np.testing.assert_allclose(values_of(capture, "guest_disk_await_ms_read", VOLUME), [1, 20, NAN])
    assert values_of(capture, "guest_disk_util_pct", VOLUME).tolist() == pytest.approx([20, 95, 0])
    assert values_of(capture, "limit_iops_exceeded_pct", VOLUME).tolist() == [0, 100, 0]
    assert codes(capture) == ["period"]


def test_the_consoles_table(tmp_path: Path) -> None:
    capture = seed("cloudwatch-console.csv", tmp_path)
    np.testing.assert_allclose(values_of(capture, "guest_disk_await_ms_read", RDS), [2, 12, 22, 32, 42, NAN])
    assert values_of(capture, "guest_disk_queue_count", RDS)[-1] == 3.5
    assert set(codes(capture)) == {"statistic", "no-zone"}
    assert not capture.sources[0].clock_known


def test_an_amount_of_which_only_the_mean_is_there_is_no_rate(tmp_path: Path) -> None:
    capture = read(tmp_path, datapoints("VolumeReadOps", "Average", 100, 200))
    assert capture.metrics() == ["raw.cloudwatch.VolumeReadOps"]
    assert "no-sum" in codes(capture)


def test_the_highest_value_is_no_mean(tmp_path: Path) -> None:
    capture = read(tmp_path, datapoints("ReadLatency", "Maximum", 0.1, 0.2))
    assert capture.metrics() == ["raw.cloudwatch.ReadLatency.maximum"]
    assert "no-average" in codes(capture)


def test_the_lowest_balance_is_as_good_as_the_mean(tmp_path: Path) -> None:
    capture = read(tmp_path, datapoints("EBSByteBalance%", "Minimum", 3, 0))
    assert values_of(capture, "limit_bandwidth_credits_pct", "guest:guest").tolist() == [3, 0]


def test_one_value_without_a_period_is_no_rate(tmp_path: Path) -> None:
    capture = read(tmp_path, datapoints("VolumeReadOps", "Sum", 100))
    assert "one-sample" in codes(capture)


def test_a_label_that_names_the_volume(tmp_path: Path) -> None:
    capture = read(tmp_path, {"MetricDataResults": [result("vol-0123456789abcdef0 VolumeReadOps", 600, 1200)]})
    assert values_of(capture, "disk_reads_per_s", "guest:guest/block-device:vol-0123456789abcdef0").tolist() == [10, 20]
    assert codes(capture) == ["statistic"]


def test_files_of_one_folder_are_one_recording(tmp_path: Path) -> None:
    for name, value in (("ReadLatency", 0.02), ("ReadIOPS", 900.0)):
        (tmp_path / f"{name}.json").write_text(json.dumps(datapoints(name, "Average", value, value)))
    capture = import_paths([tmp_path]).capture
    assert len(capture.sources) == 1
    assert {group.metric for group in capture.groups} == {"guest_disk_await_ms_read", "disk_reads_per_s"}


def test_two_machines_without_a_name_are_not_mixed(tmp_path: Path) -> None:
    both = [datapoints("ReadLatency", "Average", 0.01, 0.01), datapoints("ReadLatency", "Average", 0.05, 0.05)]
    with_iops = [*both, datapoints("ReadIOPS", "Average", 5, 6)]
    capture = read(tmp_path, "\n".join(map(json.dumps, with_iops)))
    assert capture.metrics() == ["disk_reads_per_s"]
    assert codes(capture) == ["two-owners"]


@pytest.mark.parametrize(
    ("label", "name", "owner", "statistic", "period_s"),
    [
        ("ReadLatency", "ReadLatency", CloudOwner(), "", 0),
        ("db01 ReadLatency", "ReadLatency", CloudOwner("db01"), "", 0),
        ("EBSIOBalance% (db01)", "EBSIOBalance%", CloudOwner("db01"), "", 0),
        ("us-east-1:AWS/EC2 InstanceId:i-0123456789abcdef0 CPUUtilization Average 300", "CPUUtilization",
         CloudOwner("i-0123456789abcdef0"), "average", 300),
        ("BurstBalance p99", "BurstBalance", CloudOwner(), "p99", 0),
        ("ReadIOPS + WriteIOPS", "ReadIOPS + WriteIOPS", CloudOwner(), "", 0),
    ],
)  # fmt: skip
def test_labels(label: str, name: str, owner: CloudOwner, statistic: str, period_s: int) -> None:
    parsed = parse_label(label)
    assert (parsed.name, parsed.owner, parsed.statistic, parsed.period_s) == (name, owner, statistic, period_s)


def test_an_unfinished_answer_is_said(tmp_path: Path) -> None:
    answer = {"MetricDataResults": [result("ReadIOPS", 1, 2) | {"StatusCode": "PartialData"}], "NextToken": "abc"}
    assert codes(read(tmp_path, answer)).count("more") == 2


def test_other_services_are_refused_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ApproximateNumberOfMessages.*--suggest-map"):
        read(tmp_path, datapoints("ApproximateNumberOfMessages", "Average", 1, 2))


BOX = """-------------------------------------------------------
|                 GetMetricStatistics                 |
+-------------+---------------------------------------+
|  Label      |  ReadLatency                          |
+-------------+---------------------------------------+
||                    Datapoints                     ||
|+-----------+------------------------+--------------+|
||  Average  |       Timestamp        |    Unit      ||
|+-----------+------------------------+--------------+|
||  0.012    |  2026-11-20T08:05:00Z  |  Seconds     ||
||  0.002    |  2026-11-20T08:00:00Z  |  Seconds     ||
|+-----------+------------------------+--------------+|
"""


def test_what_the_command_line_draws(tmp_path: Path) -> None:
    capture = read(tmp_path, BOX, "box.txt")
    group = group_of(capture, "guest_disk_await_ms_read", f"guest:guest/block-device:{RDS.rpartition(':')[2]}")
    assert group.values[0].tolist() == [2, 12]
    assert seconds(group) == [START_S + 300, START_S + 600]


def test_a_table_of_times_and_counters(tmp_path: Path) -> None:
    content = "Timestamp,db01 ReadLatency\n2026-11-20T08:00:00Z,0.02\n2026-11-20T08:01:00Z,0.03\n"
    values = values_of(read(tmp_path, content), "guest_disk_await_ms_read", "guest:db01/block-device:rds-storage")
    assert values.tolist() == [20, 30]


@pytest.mark.parametrize("name", ["cloudwatch-data.json", "cloudwatch-statistics.json", "azure-metrics.json"])
def test_a_limit_that_the_cloud_tells_is_the_answer(name: str) -> None:
    done = leadline("diagnose", SEEDS / name)
    words = " ".join(done.stdout.split())
    assert words.startswith("Yes, it is the disk:")
    assert "is capped by the cloud" in words[:120]
