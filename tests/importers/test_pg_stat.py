"""Snapshots of PostgreSQL's cumulative statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import pg_stat
from tests.conftest import FIXTURES
from tests.importers.load_tools import seed
from tests.importers.recordings import codes, group_of, source_of, values_of

VIEWS = {name: (FIXTURES / "pg_stat" / f"pg_stat_{name}.csv").read_text() for name in ("database", "wal", "bgwriter")}
SHOP, CLUSTER = "guest:guest/database:shop", "guest:guest/database:postgresql"
IO = seed("pg_stat_io.csv")
CHECKPOINTER = "num_timed,num_requested,write_time,ts\n1,2,9,1795222800\n2,4,10,1795222810.5\n"


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return pg_stat.read(source_of(folder, text), request or Request())


def test_wal_sync_latency(tmp_path: Path) -> None:
    capture = read_text(tmp_path, VIEWS["wal"])
    latency = values_of(capture, "db_log_write_latency_ms", CLUSTER)
    assert len(latency) == 5
    assert latency[0] == pytest.approx((1025.019 - 624.944) / (663 - 348))
    written = values_of(capture, "raw.pg_stat_wal.wal_bytes_per_s", CLUSTER)
    assert written[0] == pytest.approx((52648790 - 48033876) / 1.052445)
    assert int(group_of(capture, "db_log_write_latency_ms", CLUSTER).times_ns[0]) == 1795222557495144000
    assert codes(capture) == []
    assert capture.sources[0].clock_known


def test_transactions_and_reads_of_a_database(tmp_path: Path) -> None:
    capture = read_text(tmp_path, VIEWS["database"])
    tps = values_of(capture, "db_tps", SHOP)
    assert tps[0] == pytest.approx((363 - 31) / 1.053796)
    assert values_of(capture, "db_data_read_latency_ms", SHOP)[0] == pytest.approx((11.375 - 6.279) / (15823 - 14995))
    assert values_of(capture, "raw.pg_stat_database.numbackends", SHOP).tolist() == [3] * 5


def test_the_time_of_a_transaction_in_the_server(tmp_path: Path) -> None:
    """Of fewer than thirty it would be the time of whoever samples the server."""
    rows = ("0,100,1000,0,0", "10,400,1900,0,0", "20,420,1990,0,0", "30,720,4990,300,0")
    head = "now,datname,xact_commit,active_time,xact_rollback,blks_read\n"
    lines = (row.split(",") for row in rows)
    text = head + "".join(
        f"2026-11-21 01:00:{at:0>2}+00,shop,{commits},{active},{back},{read}\n"
        for at, commits, active, back, read in lines
    )
    values = values_of(read_text(tmp_path, text), "db_transaction_active_ms", SHOP)
    assert values.tolist() == pytest.approx([900 / 300, np.nan, 3000 / 600], nan_ok=True)


def test_an_interval_with_a_reset_is_not_measured(tmp_path: Path) -> None:
    capture = read_text(tmp_path, VIEWS["database"])
    assert np.flatnonzero(np.isnan(values_of(capture, "db_tps", SHOP))).tolist() == [3]
    assert "reset" in codes(capture)
    silent = (
        VIEWS["wal"]
        .replace("56:01.762592+00,47575", "56:01.762592+00,99999")
        .replace("2953.927,2026-11-21 00:55:54", "2953.927,2026-11-21 00:56:01")
    )
    assert np.isnan(values_of(read_text(tmp_path, silent), "db_log_write_latency_ms", CLUSTER)[4])


def test_checkpoints(tmp_path: Path) -> None:
    capture = read_text(tmp_path, VIEWS["bgwriter"])
    requested = values_of(capture, "db_checkpoints_requested_per_s", CLUSTER)
    assert requested == pytest.approx([0, 0, 1 / 1.115366, 0, 0])
    assert values_of(capture, "db_checkpoints_timed_per_s", CLUSTER).tolist() == [0] * 5
    newer = read_text(tmp_path, CHECKPOINTER)
    assert values_of(newer, "db_checkpoints_requested_per_s", CLUSTER) == pytest.approx([2 / 10.5])


def test_io_is_added_up_over_backends(tmp_path: Path) -> None:
    capture = read_text(tmp_path, IO)
    assert values_of(capture, "db_data_read_latency_ms", CLUSTER).tolist() == [1.2]
    assert values_of(capture, "db_log_write_latency_ms", CLUSTER).tolist() == [2.0]
    assert codes(capture) == []


def test_what_the_server_does_not_time_is_no_latency(tmp_path: Path) -> None:
    text = "now,wal_records,wal_bytes,wal_sync,wal_sync_time\n2026-11-21 01:00:00+00,1,1,5,0\n"
    capture = read_text(tmp_path, text + "2026-11-21 01:00:05+00,2,2,9,0\n")
    assert "db_log_write_latency_ms" not in capture.metrics()
    assert codes(capture) == ["not-timed"]


def test_a_header_before_every_snapshot(tmp_path: Path) -> None:
    header, *rows = VIEWS["wal"].splitlines(keepends=True)
    capture = read_text(tmp_path, "".join(header + row for row in rows))
    assert len(values_of(capture, "db_log_write_latency_ms", CLUSTER)) == 5


def test_times_without_a_zone(tmp_path: Path) -> None:
    text = VIEWS["wal"].replace("+00,", ",")
    assert codes(read_text(tmp_path, text)) == ["no-zone"]
    moscow = read_text(tmp_path, text, Request(timezone="Europe/Moscow"))
    assert (
        int(group_of(moscow, "db_log_write_latency_ms", CLUSTER).times_ns[0]) == 1795222557495144000 - 3 * 3600 * 10**9
    )
    assert moscow.sources[0].clock_known


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    assert read_text(tmp_path, VIEWS["database"], Request(metrics=frozenset({"db_tps"}))).metrics() == ["db_tps"]


def test_a_cut_last_row_is_left_out(tmp_path: Path) -> None:
    capture = read_text(tmp_path, VIEWS["wal"][:-30])
    assert len(values_of(capture, "db_log_write_latency_ms", CLUSTER)) == 4
    assert "cut" in codes(capture)


def test_snapshots_out_of_order_are_sorted(tmp_path: Path) -> None:
    header, *rows = VIEWS["wal"].splitlines(keepends=True)
    capture = read_text(tmp_path, header + "".join(rows[::-1]))
    expected = values_of(read_text(tmp_path, VIEWS["wal"]), "db_log_write_latency_ms", CLUSTER)
    assert values_of(capture, "db_log_write_latency_ms", CLUSTER).tolist() == expected.tolist()
    assert codes(capture) == ["clock-back"]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("38856", "388x6", r"recording.txt:3: '388x6'"),
        ("38856,", "", r"recording.txt:3: '9 cells, 10 columns'"),
        ("2026-11-21 00:55:57.495144+00,", "yesterday,", r"recording.txt:3: "),
        ("2026-11-21 00:55:57.495144+00,", "2026-11-21 00:55:56.442699+00,", "a second row of the same moment"),
        ("wal_records", "records", "no header of a view"),
    ],
)
def test_damage_is_an_error(tmp_path: Path, old: str, new: str, found: str) -> None:
    assert old in VIEWS["wal"]
    with pytest.raises(InputError, match=found):
        read_text(tmp_path, VIEWS["wal"].replace(old, new))


def test_one_snapshot_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one snapshot"):
        read_text(tmp_path, "".join(VIEWS["wal"].splitlines(keepends=True)[:2]))


def test_a_view_without_times_is_no_recording(tmp_path: Path) -> None:
    lines = [line.partition(",")[2] for line in VIEWS["wal"].splitlines()]
    assert pg_stat.sniff(source_of(tmp_path, "\n".join(lines))) == 0


@pytest.mark.parametrize("name", VIEWS)
def test_it_is_recognised(tmp_path: Path, name: str) -> None:
    known = recognise(source_of(tmp_path, VIEWS[name], "pg_stat.csv"), load_units("importer"))
    assert known is not None
    assert known[0] == "pg-stat"
