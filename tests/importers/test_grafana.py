"""Data of Grafana's panels and of Prometheus; the seeds are written by hand in the shapes that both document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.clouds.exporters import parse_series
from leadline.formats.clouds.panel_cells import cell_amount
from leadline.importers import grafana
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEEDS = Path(__file__).parent / "seeds"
START_S = 1795161600  # 2026-11-20 08:00:00 UTC
GUEST = "guest:db01"
NAN = float("nan")


def read(folder: Path, content: str, name: str = "panel.csv", **request: Any) -> Capture:
    source = source_of(folder, content, name)
    assert grafana.sniff(source) > 70
    return grafana.read(source, Request(**request))


def seed(name: str, folder: Path) -> Capture:
    return read(folder, (SEEDS / name).read_text(encoding="utf-8"), name)


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("disk_reads_per_s", f"{GUEST}/block-device:sda", [200] * 4 + [100] * 4),
        ("guest_disk_await_ms_read", f"{GUEST}/block-device:sda", [1] * 4 + [40] * 4),
        ("guest_disk_util_pct", f"{GUEST}/block-device:sda", [40] * 4 + [100] * 4),
        ("guest_cpu_idle_pct", GUEST, [40] * 8),
        ("guest_cpu_iowait_pct", GUEST, [30] * 8),
        ("guest_cpu_busy_pct", GUEST, [30] * 8),
        ("guest_load_1m", GUEST, [3.5] * 9),
    ],
)
def test_counters_of_the_query_api_become_rates(
    metric: str, entity: str, expected: list[float], tmp_path: Path
) -> None:
    capture = seed("prometheus-query.json", tmp_path)
    np.testing.assert_allclose(values_of(capture, metric, entity), expected)
    assert codes(capture) == []


def test_the_query_apis_times(tmp_path: Path) -> None:
    capture = seed("prometheus-query.json", tmp_path)
    assert seconds(group_of(capture, "guest_load_1m", GUEST))[:2] == [START_S, START_S + 15]


def test_a_formatted_table(tmp_path: Path) -> None:
    capture = seed("grafana-panel.csv", tmp_path)
    assert values_of(capture, "guest_load_1m", GUEST).tolist() == [2.25, 3.25, 4.25, 5.25, 6.25, 7.25]
    writes = values_of(capture, "disk_writes_per_s", f"{GUEST}/block-device:sdb")
    assert writes.tolist() == [0, 1500, 3000, 4500, 6000, 7500]
    assert {"unknown", "no-zone"} <= set(codes(capture))


def test_frames_of_a_panel(tmp_path: Path) -> None:
    capture = seed("grafana-frames.json", tmp_path)
    assert values_of(capture, "guest_memory_available_mib", GUEST).tolist() == [5120, 4096, 3072, 2048, 1024]
    assert capture.sources[0].clock_known


@pytest.mark.parametrize(
    "content",
    [
        "Series;Time;Value\nnode_load1;2026-11-20T08:00:00+00:00;1.5\nnode_load1;2026-11-20T08:01:00+00:00;2\n",
        'sep=;\n"Time";"node_load1"\n1795161600000;1.5\n1795161660000;2\n',
        "Time,node_load1\n1795161600,1.5\n1795161660,2\n1795161720,null\n",
    ],
)
def test_other_forms_of_tables(content: str, tmp_path: Path) -> None:
    group = group_of(read(tmp_path, content), "guest_load_1m", "guest:guest")
    assert seconds(group)[:2] == [START_S, START_S + 60]
    np.testing.assert_allclose(group.values[0], [1.5, 2, NAN][: len(group.times_ns)])


def test_a_panel_of_cloudwatch(tmp_path: Path) -> None:
    capture = read(tmp_path, '"Time","db01 ReadLatency Average"\n1795161600000,24 ms\n1795161660000,12 ms\n')
    values = values_of(capture, "guest_disk_await_ms_read", "guest:db01/block-device:rds-storage")
    assert values.tolist() == [24, 12]


def test_older_frames(tmp_path: Path) -> None:
    fields = [
        {"name": "Time", "type": "time", "values": [START_S * 1000, START_S * 1000 + 60_000]},
        {"name": "node_load5", "type": "number", "values": {"buffer": [1, None]}},
    ]
    capture = read(tmp_path, json.dumps({"state": "Done", "series": [{"fields": fields}]}))
    np.testing.assert_allclose(values_of(capture, "guest_load_5m", "guest:guest"), [1, NAN])


def test_a_restart_is_not_measured(tmp_path: Path) -> None:
    rows = [f"{START_S + 15 * i},{value}\n" for i, value in enumerate((100, 250, 10, 160))]
    capture = read(tmp_path, f"Time,node_forks_total\n{''.join(rows)}")
    np.testing.assert_allclose(values_of(capture, "guest_forks_per_s", "guest:guest"), [10, NAN, 10])


def test_legends_alone_are_for_a_map(tmp_path: Path) -> None:
    assert grafana.sniff(source_of(tmp_path, '"Time","Read latency"\n1795161600000,2 ms\n')) == 0


def test_unknown_series_of_the_query_api_are_refused_with_their_names(tmp_path: Path) -> None:
    results = [{"metric": {"__name__": "http_requests_total"}, "values": [[START_S, "1"]]}]
    content = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": results}})
    with pytest.raises(InputError, match=r"http_requests_total.*--suggest-map"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("cell", "unit", "expected"),
    [("82.1%", "pct", 82.1), ("1,234.5", "", 1234.5), ("3 mins", "s", 180.0), ("2.5 MB/s", "bytes_per_s", 2.5e6),
     ("up", "", None), ("3 ms", "", None)],
)  # fmt: skip
def test_cells(cell: str, unit: str, expected: float | None) -> None:
    assert cell_amount(cell, unit) == expected


def test_names() -> None:
    series = parse_series('node_disk_read_bytes_total{device="dm-0", instance="db01:9100"}')
    assert series is not None
    assert series.label("device") == "dm-0"
    assert parse_series("Read latency") is None
