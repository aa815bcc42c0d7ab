"""The slow query log of MySQL, MariaDB and Percona Server."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import mysql_slow_log
from tests.conftest import FIXTURES, ROOT
from tests.importers.damage import chosen
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SERVER = "guest:guest/database:mysql"
COUNT = "db_logged_statement_sessions_count"
RECORDING = FIXTURES / "mysql_slow_log" / "mariadb.log"
HEAD = """/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time                 Id Command    Argument
"""
USER = "# User@Host: app[app] @ web01 [10.0.0.5]  Id:    40\n"


def entry(time: str, duration_s: float, stamp: int, text: str, more: str = "") -> str:
    head = f"# Time: {time}\n" if time else ""
    return (
        f"{head}{USER}# Query_time: {duration_s:f}  Lock_time: 0.000102 Rows_sent: 1  Rows_examined: 100{more}\n"
        f"SET timestamp={stamp};\n{text};\n"
    )


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return mysql_slow_log.read(source_of(folder, text, "slow.log"), request or Request())


def at_work(capture: Capture, name: str) -> tuple[list[float], float]:
    """The values of a statement that are not zero, and the second in which the first of them begins."""
    group = group_of(capture, COUNT, f"{SERVER}/statement:{name}")
    values = group.values[0]
    busy = np.flatnonzero(values)
    return values[busy[0] : busy[-1] + 1].round(3).tolist(), seconds(group)[busy[0]] - 1


def test_mysql_8_tells_the_end_with_its_zone(tmp_path: Path) -> None:
    text = HEAD + entry("2025-11-20T11:00:03.500000+01:00", 2.25, 1763632801, "SELECT count(*) FROM orders WHERE a = 1")
    text += entry("2025-11-20T10:00:04.000000Z", 0.5, 1763632803, "COMMIT")
    capture = read_text(tmp_path, text)
    assert at_work(capture, "SELECT ... FROM orders") == ([0.75, 1, 0.5], 1763632801)
    duration = group_of(capture, "db_logged_statement_ms", SERVER)
    assert seconds(duration) == [1763632804, 1763632805]
    assert duration.values[0][0] == 2250
    assert np.isnan(duration.values[0][1])
    assert values_of(capture, "db_logged_commit_ms", SERVER)[1] == 500
    assert values_of(capture, "raw.mysql.slow_log.rows_examined_per_s", SERVER).tolist() == [100, 100]
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_mysql_5_tells_the_end_as_a_number(tmp_path: Path) -> None:
    text = entry("130601  8:01:06", 4, 1370073666, "update low_priority `shop`.`orders` set a = 1")
    text += entry("", 3, 1370073666, "/* web */ replace into carts values ('x')")
    capture = read_text(tmp_path, text)
    assert at_work(capture, "UPDATE shop.orders") == ([1, 1, 1, 1], 1370073662)
    assert at_work(capture, "REPLACE INTO carts") == ([1, 1, 1], 1370073663)
    assert codes(capture) == []


def test_begins_are_told_from_ends_by_the_order_of_entries(tmp_path: Path) -> None:
    text = entry("130601  8:01:06", 1, 1370073668, "select a from short_one")
    text += entry("", 9, 1370073661, "select a from long_one")  # written behind: it ended at 70
    capture = read_text(tmp_path, text)
    assert at_work(capture, "SELECT ... FROM long_one")[1] == 1370073661
    assert at_work(capture, "SELECT ... FROM short_one")[1] == 1370073668


def test_mariadb_tells_the_begin() -> None:
    capture = mysql_slow_log.read(Source("slow.log", RECORDING), Request())
    busy, begin = at_work(capture, "SELECT")
    assert begin == 1795605531
    assert busy == pytest.approx([1, 0.2], abs=0.01)
    assert codes(capture) == []


def test_no_literal_is_kept() -> None:
    capture = mysql_slow_log.read(Source("slow.log", RECORDING), Request())
    names = [str(entity) for group in capture.groups for entity in group.entities]
    facts = [str(fact.value) for known in capture.inventory.facts.values() for fact in known.values()]
    for secret in ("secret", "pw1234", "hunter2", "it''s", "bob"):
        assert secret not in json.dumps([names, facts])


def test_percona_tells_reads_and_row_locks(tmp_path: Path) -> None:
    more = (
        "  Rows_affected: 0\n# InnoDB_IO_r_ops: 40  InnoDB_IO_r_bytes: 655360  InnoDB_IO_r_wait: 0.800000\n"
        "# InnoDB_rec_lock_wait: 0.300000  InnoDB_queue_wait: 0.000000"
    )
    capture = read_text(tmp_path, entry("2025-11-20T10:00:03.5Z", 2, 1763632801, "select 1", more))
    assert values_of(capture, "db_data_read_latency_ms", SERVER).tolist() == [20]
    assert values_of(capture, "db_lock_wait_ms", SERVER).tolist() == [300]


def test_what_is_no_statement_is_left_out(tmp_path: Path) -> None:
    text = entry("2025-11-20T10:00:03Z", 2, 1763632801, "use shop;\nselect a from t")
    text += HEAD + entry("2025-11-20T10:00:04Z", 1, 1763632804, "# administrator command: Quit")
    text += entry("2025-11-20T10:00:05Z", 1e12, 1763632805, "select 1")
    text += entry("", 1, 12, "select 2").replace("SET timestamp=12;\n", "")
    capture = read_text(tmp_path, text)
    assert at_work(capture, "SELECT ... FROM t")[0] == [1, 1]
    assert codes(capture) == ["commands", "damaged", "no-zone"]


def test_without_an_entry_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no entry"):
        read_text(tmp_path, HEAD + USER + "# Query_time: 1.0\nselect 1;\n")


def test_it_is_recognised(tmp_path: Path) -> None:
    assert chosen(RECORDING) == "mysql-slow-log"
    assert (
        chosen(source_of(tmp_path, HEAD + entry("130601  8:01:06", 4, 1370073666, "select 1")).path) == "mysql-slow-log"
    )
    assert mysql_slow_log.sniff(source_of(tmp_path, HEAD)) == 0


def test_a_case_of_the_field() -> None:
    path = ROOT.parent / "shared" / "field" / "formats-not-read" / "mysql_slow.log"
    if not path.exists():
        pytest.skip("the cases of the field are not here")
    capture = mysql_slow_log.read(Source(path.name, path), Request())
    assert values_of(capture, COUNT, f"{SERVER}/statement:SELECT ... FROM orders").sum() == pytest.approx(84.5)


def test_sums_of_a_statement_over_the_log(tmp_path: Path) -> None:
    text = HEAD + 2 * entry("2025-11-20T10:00:04.000000Z", 0.5, 1763632803, "UPDATE stock SET n = 1")
    capture = read_text(tmp_path, text.replace("Lock_time: 0.000102", "Lock_time: 0.400000"))
    statement = f"{SERVER}/statement:UPDATE stock"
    assert values_of(capture, "db_logged_time_s", statement).tolist() == [1.0]
    assert values_of(capture, "db_logged_lock_time_s", statement).tolist() == [0.8]
    assert values_of(capture, "db_logged_rows_examined_count", statement).tolist() == [100.0]
