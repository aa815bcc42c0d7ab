"""The list of processes of MySQL and MariaDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.active_sessions import resource_of
from leadline.importers import mysql_processlist
from tests.importers.load_tools import seed
from tests.importers.recordings import source_of, values_of

SERVER = "guest:guest/database:mysql"
TABLE = seed("mysql-processlist.txt")
VERTICAL = """\
*************************** 1. row ***************************
      Id: 5
    User: app
    Host: 10.0.0.5:1234
      db: shop
 Command: Query
    Time: 310
   State: Sending data
    Info: select a from orders
 where b: 4711
*************************** 2. row ***************************
      Id: 6
    User: app
    Host: 10.0.0.5:1235
      db: shop
 Command: Query
    Time: 120
   State: Waiting for table metadata lock
    Info: alter table orders add x int
2 rows in set (0.00 sec)
"""


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert mysql_processlist.sniff(source) == 90
    return mysql_processlist.read(source, Request())


def level(capture: Capture, metric: str, entity: str = SERVER) -> list[float]:
    values: list[float] = values_of(capture, metric, entity).tolist()
    return values


def test_the_table_of_the_shell(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TABLE)
    assert level(capture, "db_sessions_count") == [5.0]
    assert level(capture, "db_active_sessions_count") == [4.0]
    assert level(capture, "db_blocked_sessions_count") == [2.0]
    assert level(capture, "db_lock_wait_age_s_max") == [120.0]
    event = "commit:waiting for handler commit"
    assert level(capture, "db_wait_event_sessions_count", f"{SERVER}/database:{event}") == [1.0]
    assert resource_of(event) == "wal"
    assert level(capture, "db_statement_sessions_count", f"{SERVER}/statement:SELECT ... FROM orders") == [2.0]
    assert "4711" not in repr(capture.inventory)


def test_vertical(tmp_path: Path) -> None:
    capture = read_text(tmp_path, VERTICAL)
    assert level(capture, "db_active_sessions_count") == [2.0]
    assert level(capture, "db_lock_wait_age_s_max") == [120.0]


def test_tabs_and_the_columns_of_threads(tmp_path: Path) -> None:
    text = "PROCESSLIST_ID\tPROCESSLIST_COMMAND\tPROCESSLIST_TIME\tPROCESSLIST_STATE\n7\tQuery\t3\tupdating\n"
    assert level(read_text(tmp_path, text), "db_active_sessions_count") == [1.0]


def test_lists_one_after_another_are_samples(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TABLE + TABLE)
    assert level(capture, "db_blocked_sessions_count") == [2.0, 2.0]


def test_a_stray_line_and_a_time_that_is_none_are_refused_at_their_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r":15: 'connection lost'"):
        mysql_processlist.read(source_of(tmp_path, TABLE + "connection lost\n"), Request())
    with pytest.raises(InputError, match=r":6: Time is"):
        mysql_processlist.read(source_of(tmp_path, TABLE.replace("    12 |", "   1x2 |")), Request())
