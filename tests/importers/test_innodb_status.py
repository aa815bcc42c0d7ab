"""InnoDB's status as the server prints it and as people paste it."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import innodb_status
from tests.importers.load_tools import seed
from tests.importers.recordings import codes, source_of, values_of

SERVER = "guest:guest/database:mysql"
TEXT = seed("innodb-status.txt")
EXPECTED = {
    "db_pending_reads_count": 6.0,
    "db_pending_writes_count": 1.0,
    "db_pending_fsyncs_count": 2.0,
    "db_fsyncs_per_s": 8.0,
    "db_file_reads_per_s": 60.0,
    "db_page_reads_per_s": 50.0,
    "db_page_writes_per_s": 18.0,
    "db_buffer_hit_pct": 98.7,
    "db_history_list_count": 4711.0,
    "db_checkpoint_age_bytes": 80e6,
    "db_checkpoint_age_pct": 80.0,
    "db_semaphore_wait_age_s_max": 3.0,
    "db_queue_outside_count": 5.0,
    "db_blocked_sessions_count": 1.0,
    "db_lock_wait_age_s_max": 12.0,
    "db_transaction_age_s_max": 1285.0,
    "db_rows_changed_per_s": 33.0,
    "raw.innodb.rows_read_per_s": 4000.0,
}


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert innodb_status.sniff(source) >= 85
    return innodb_status.read(source, Request())


def level(capture: Capture, metric: str, entity: str = SERVER) -> list[float]:
    values: list[float] = values_of(capture, metric, entity).tolist()
    return values


def test_all_sections(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    assert {metric: level(capture, metric) for metric in EXPECTED} == {k: [v] for k, v in EXPECTED.items()}
    assert level(capture, "db_idle_transaction_age_s", f"{SERVER}/session:thread 18 (no statement)") == [1285.0]
    facts = {name: fact.value for name, fact in capture.inventory.settings(capture.groups[0].entities[0]).items()}
    assert facts["latest_deadlock"] == "UPDATE orders against DELETE FROM carts"
    assert facts["semaphore_waits_at"] == "buf0flu.cc"
    assert codes(capture) == ["no-zone"]


@pytest.mark.parametrize(
    "dressed",
    [
        f"*************************** 1. row ***************************\n  Type: InnoDB\n  Name: \nStatus: \n{TEXT}",
        "Type\tName\tStatus\nInnoDB\t\t" + TEXT.replace("\n", "\\n") + "\n",
        f'"InnoDB","","\n{TEXT}"\n',
        "".join(f"    {line}\n" for line in TEXT.splitlines()),
    ],
    ids=["vertical", "batch", "csv", "indented"],
)
def test_as_clients_print_it(tmp_path: Path, dressed: str) -> None:
    capture = read_text(tmp_path, dressed)
    assert {metric: level(capture, metric) for metric in EXPECTED} == {k: [v] for k, v in EXPECTED.items()}


def test_reports_one_after_another_are_samples(tmp_path: Path) -> None:
    later = TEXT.replace("10:00:10", "10:00:20").replace("8.00 fsyncs/s", "4.00 fsyncs/s")
    capture = read_text(tmp_path, TEXT + later)
    assert level(capture, "db_fsyncs_per_s") == [8.0, 4.0]
    assert {group.interval_s for group in capture.groups} == {10.0}


def test_old_shapes(tmp_path: Path) -> None:
    text = """\
=====================================
110301  9:05:07 INNODB MONITOR OUTPUT
=====================================
Per second averages calculated from the last 4 seconds
--------
FILE I/O
--------
Pending normal aio reads: 0, aio writes: 78,
 ibuf aio reads: 0, log i/o's: 0, sync i/o's: 0
Pending flushes (fsync) log: 0; buffer pool: 0
1 pending preads, 1 pending pwrites
4.00 reads/s, 65536 avg bytes/read, 4.75 writes/s, 0.00 fsyncs/s
---
LOG
---
Log sequence number 1 1000
Log flushed up to   0 4294967295
Last checkpoint at  0 4294967290
"""
    capture = read_text(tmp_path, text)
    assert level(capture, "db_pending_writes_count") == [79.0]
    assert level(capture, "db_checkpoint_age_bytes") == [1006.0]
    assert capture.span_ns() is not None


def test_sections_alone_and_rates_over_no_time(tmp_path: Path) -> None:
    part = TEXT[TEXT.index("------------\nTRANSACTIONS") :]
    capture = read_text(tmp_path, part)
    assert level(capture, "db_history_list_count") == [4711.0]
    assert "db_fsyncs_per_s" not in capture.metrics()
    assert codes(capture) == ["no-times", "no-rates"]


def test_mariadb_waits_in_microseconds(tmp_path: Path) -> None:
    capture = read_text(
        tmp_path, TEXT.replace("WAITING 12 SEC", "WAITING 2997388 us").replace("MySQL th", "MariaDB th")
    )
    assert level(capture, "db_lock_wait_age_s_max") == [2.997388]


def test_a_heading_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no section"):
        innodb_status.read(source_of(tmp_path, "2026-11-25 10:00:10 0x7f0 INNODB MONITOR OUTPUT\n"), Request())


def test_no_literal_is_kept(tmp_path: Path) -> None:
    assert "4711" not in repr(read_text(tmp_path, TEXT).inventory)


def test_what_stands_behind_a_report_is_refused_at_its_place(tmp_path: Path) -> None:
    behind = len(TEXT.splitlines()) + 2
    with pytest.raises(InputError, match=f":{behind}: 'connection lost'"):
        read_text(tmp_path, f"{TEXT}1 row in set (0.00 sec)\nconnection lost\n")
