from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind

SEEDS = Path(__file__).parent / "seeds"


def read(path: Path, request: Request | None = None) -> Capture:
    return import_paths([path], request).capture


def value(capture: Capture, metric: str, entity: str) -> list[float]:
    found = [g.values[r].tolist() for g, r in capture.series() if g.metric == metric and str(g.entities[r]) == entity]
    assert len(found) == 1
    return list(found[0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1251"])
def test_russian_names_and_decimal_commas_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes((SEEDS / "perfmon-ru.csv").read_text().encode(encoding))
    capture = read(path)
    disk = "guest:DB01/block-device:0 C:"
    latency = value(capture, "guest_disk_await_ms_read", disk)
    assert np.isnan(latency[0])
    assert latency[1:] == pytest.approx([2.5, 4.0])
    assert value(capture, "guest_cpu_busy_pct", "guest:DB01")[1:] == [12.5, 37.5]
    assert value(capture, "guest_disk_util_pct", disk)[1:] == [10.0, 25.0]


def test_the_zone_of_the_header_is_applied() -> None:
    capture = read(SEEDS / "perfmon-en.tsv")
    times = capture.groups[0].times_ns.astype("datetime64[ns]").astype("datetime64[s]")
    assert str(times[0]) == "2021-09-16T12:01:28"
    assert capture.sources[0].clock_known


def test_totals_of_disks_are_left_out_of_latency() -> None:
    capture = read(SEEDS / "perfmon-en.tsv")
    disks = {str(e) for g in capture.of("guest_disk_await_ms_write") for e in g.entities}
    assert disks == {"guest:SQL01/block-device:1 D:"}
    assert value(capture, "guest_disk_await_ms_write", "guest:SQL01/block-device:1 D:") == pytest.approx([12.0, 14.0])


def test_other_counters_are_kept_raw_when_all_is_asked_for() -> None:
    capture = read(SEEDS / "perfmon-en.tsv")
    assert "raw.perfmon.Process.Working Set" in capture.metrics()
    asked = read(SEEDS / "perfmon-en.tsv", Request(metrics=frozenset({"guest_processor_queue_count"})))
    assert asked.metrics() == ["guest_processor_queue_count"]


def test_samples_import(samples: Path) -> None:
    for path in sorted((samples / "perfmon").glob("*DataCollector*.csv")):
        capture = read(path)
        assert capture.sources[0].importer == "perfmon"
        assert capture.series_count > 0
    disks = read(samples / "perfmon" / "Narmadha6790__sample__DataCollector01.csv")
    assert {e.name for e in disks.inventory.of_kind(EntityKind.BLOCK_DEVICE)} >= {"C:", "D:"}


def test_a_csv_that_only_looks_alike_is_one_error(samples: Path) -> None:
    with pytest.raises(InputError, match="expected a recording"):
        read(samples / "perfmon" / "jg185342__memeData__process1.csv")


def test_sql_server_counters_of_a_named_instance(tmp_path: Path) -> None:
    cells = [
        "MSSQL$PROD:Buffer Manager\\Page life expectancy",
        "MSSQL$PROD:Databases(_Total)\\Log Flush Wait Time",
        "MSSQL$PROD:Databases(orders)\\Transactions/sec",
    ]
    header = ["(PDH-CSV 4.0) (UTC)(0)", *(f"\\\\SQL01\\{cell}" for cell in cells)]
    rows = [["09/16/2021 08:01:28.780", "300", "12", "40"], ["09/16/2021 08:01:33.780", "280", "15", "42"]]
    path = tmp_path / "sql.csv"
    path.write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in [header, *rows]) + "\n")
    capture = read(path)
    assert value(capture, "db_page_life_expectancy_s", "guest:SQL01/database:sqlserver") == [300, 280]
    assert value(capture, "db_log_flush_wait_ms", "guest:SQL01/database:sqlserver") == [12, 15]
    assert value(capture, "db_tps", "guest:SQL01/database:orders") == [40, 42]
