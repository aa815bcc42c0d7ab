"""HammerDB's logs. HammerDB is a Tcl program the project does not run: these follow what its sources print."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.model.errors import InputError
from leadline.importers import hammerdb
from tests.importers.load_tools import (
    chosen,
    entities,
    operation,
    read,
    read_text,
    sample_files,
    seed,
    times_s,
    values,
    warned,
)

LOG = seed("hammerdb.log")
COUNTER = seed("hammerdb-hdbtcount.log")
PROFILE = seed("hammerdb-hdbxtprofile.log")


def test_result(tmp_path: Path) -> None:
    (result,) = read_text(hammerdb, tmp_path, LOG).results
    assert operation(result, "transaction").per_s == 67890 / 60
    assert operation(result, "new order").per_s == 12345 / 60
    assert result.start_ns == 1593522853_000_000_000
    assert result.duration_s == 300
    assert result.workload == {
        "script": "TPROC-C",
        "engine": "postgresql",
        "client_count": 16,
        "rampup_s": 120,
        "duration_s": 300,
    }


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        ("17279 Oracle TPM at 9900 NOPM", "oracle"),
        ("9900 NOPM from 17279 SQL Server TPM", "sqlserver"),
        ("9900 NOPM from 17279 MariaDB TPM", "mariadb"),
    ],
)
def test_results_of_all_versions_and_engines(tmp_path: Path, words: str, engine: str) -> None:
    (result,) = read_text(hammerdb, tmp_path, f"Vuser 1:TEST RESULT : System achieved {words}\n").results
    assert result.workload["engine"] == engine
    assert operation(result, "transaction").per_s == 17279 / 60
    assert operation(result, "new order").per_s == 9900 / 60


def test_percentiles_of_procedures(tmp_path: Path) -> None:
    capture = read_text(hammerdb, tmp_path, LOG, timezone="UTC")
    assert entities(capture) == {"guest:guest/job:hammerdb neword", "guest:guest/job:hammerdb payment"}
    orders = "guest:guest/job:hammerdb neword"
    assert values(capture, "db_latency_ms_p95", orders) == [6.589, 5.656]
    assert values(capture, "raw.hammerdb.p50_ms", orders) == [4.5685, 4.024]
    assert values(capture, "db_latency_ms_max", orders) == [24.075, 12.012]
    assert times_s(capture, "db_latency_ms_p95") == [1593522864, 1593522874]
    assert capture.groups[0].interval_s == 10
    assert capture.sources[0].clock_known


def test_times_without_a_zone_are_said(tmp_path: Path) -> None:
    capture = read_text(hammerdb, tmp_path, LOG.replace("UTC", "CST"))
    assert warned(capture) == ["no-zone", "no-zone"]
    assert not capture.sources[0].clock_known
    shanghai = read_text(hammerdb, tmp_path, LOG.replace("UTC", "CST"), timezone="Asia/Shanghai")
    assert shanghai.results[0].start_ns == (1593522853 - 8 * 3600) * 10**9
    assert shanghai.sources[0].clock_known


@pytest.mark.parametrize(("zone", "hours"), [("CEST", 2), ("PDT", -7), ("+0530", 5.5), ("-0300", -3)])
def test_zones_that_mean_one_offset(tmp_path: Path, zone: str, hours: float) -> None:
    capture = read_text(hammerdb, tmp_path, COUNTER.replace("UTC", zone))
    assert times_s(capture, "db_tpm")[0] == 1656623911 - hours * 3600
    assert capture.sources[0].clock_known


def test_transaction_counter(tmp_path: Path) -> None:
    capture = read_text(hammerdb, tmp_path, COUNTER)
    assert entities(capture) == {"guest:guest/database:postgresql"}
    assert values(capture, "db_tpm") == [0, 193290, 201000]
    assert values(capture, "db_tps") == [0, 3221.5, 3350]
    assert times_s(capture, "db_tpm") == [1656623911, 1656623921, 1656623931]


def test_transaction_counter_without_times(tmp_path: Path) -> None:
    capture = read_text(hammerdb, tmp_path, "100 MySQL tpm\n200 MySQL tpm\n")
    assert entities(capture) == {"guest:guest/database:mysql"}
    assert times_s(capture, "db_tpm")[1] - times_s(capture, "db_tpm")[0] == pytest.approx(10)
    assert warned(capture) == ["no-times"]
    assert not capture.sources[0].clock_known


def test_time_profile(tmp_path: Path) -> None:
    (result,) = read_text(hammerdb, tmp_path, PROFILE).results
    assert result.job == "time profile all virtual users"
    orders = operation(result, "neword")
    assert orders.count == 3427
    expected = {"min": 1.73, "mean": 36.332, "max": 1220.165, "p99": 210.118, "p95": 104.921, "p50": 19.126}
    assert orders.latency_ms == expected, "SD is in microseconds here and is left out"
    assert operation(result, "payment").count == 3500


def test_several_runs(tmp_path: Path) -> None:
    later = LOG.replace("13:14", "13:44")
    capture = read_text(hammerdb, tmp_path, LOG + later)
    first, second = capture.results
    assert first.start_ns is not None
    assert second.start_ns == first.start_ns + 1800 * 10**9
    assert len(values(capture, "db_latency_ms_p95", "guest:guest/job:hammerdb neword")) == 4


def test_log_that_ends_before_a_result(tmp_path: Path) -> None:
    capture = read_text(hammerdb, tmp_path, LOG[: LOG.index("Vuser 2:|PERC")])
    assert (capture.groups, capture.results, warned(capture)) == ([], [], ["no-result"])


@pytest.mark.parametrize(
    ("text", "old", "new", "line"),
    [
        (LOG, "achieved 12345 NOPM", "achieved 1x345 NOPM", 14),
        (LOG, "2020-06-30 13:14:24\n", "2020-06-31 13:14:24\n", 5),
        (LOG, "Jun 30 13:14:13", "Jun 31 13:14:13", 1),
        (LOG, "P95%-6589", "P95%-6.5.89", 7),
        (COUNTER, "Jun 30 21:18:41", "Juno 30 21:18:41", 4),
    ],
)
def test_damage_in_the_middle_is_an_error(tmp_path: Path, text: str, old: str, new: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        read_text(hammerdb, tmp_path, text.replace(old, new))
    assert caught.value.where.endswith(f":{line}")


def test_something_else_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no result, counter or profile"):
        read_text(hammerdb, tmp_path, "hello\n")


@pytest.mark.parametrize("path", sample_files("hammerdb/*"))
def test_samples(path: Path) -> None:
    assert chosen(path) == "hammerdb"
    capture = read(hammerdb, path, timezone="Asia/Shanghai")
    assert [result.workload["client_count"] for result in capture.results] == [2**i for i in range(10)]
    assert operation(capture.results[9], "transaction").per_s == 17279 / 60
    orders = "guest:guest/job:hammerdb neword"
    assert values(capture, "db_latency_ms_p99", orders)[:2] == [7.988, 6.512]
    assert times_s(capture, "db_latency_ms_p99")[0] == 1593522864 - 8 * 3600
