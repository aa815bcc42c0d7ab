"""Views of PostgreSQL as psql prints them and people paste them."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import psql_views
from tests.importers.load_tools import seed
from tests.importers.recordings import codes, source_of, values_of

SERVER = "guest:guest/database:postgresql"
ALIGNED = seed("psql-activity.txt")
HOLDER = f"{SERVER}/session:pid 1312 (idle in transaction)"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert psql_views.sniff(source) == 90
    return psql_views.read(source, Request())


def level(capture: Capture, metric: str, entity: str = SERVER) -> list[float]:
    values: list[float] = values_of(capture, metric, entity).tolist()
    return values


def test_an_aligned_table_behind_its_prompt(tmp_path: Path) -> None:
    capture = read_text(tmp_path, ALIGNED)
    assert level(capture, "db_active_sessions_count") == [1.0]  # without the one that asks
    assert level(capture, "db_blocked_sessions_count") == [1.0]
    assert level(capture, "db_transaction_age_s_max") == [4.0]
    assert level(capture, "db_idle_transaction_age_s", HOLDER) == [4.0]
    assert level(capture, "db_statement_sessions_count", f"{SERVER}/statement:UPDATE t") == [1.0]
    assert codes(capture) == ["no-time"]
    assert "4711" not in repr(capture.inventory)


def test_expanded_display(tmp_path: Path) -> None:
    capture = read_text(tmp_path, seed("psql-expanded.txt"))
    assert level(capture, "db_idle_transaction_age_s", HOLDER) == [pytest.approx(3600.000659)]
    assert level(capture, "db_lock_wait_age_s_max") == [30.0]


def test_part_of_a_record_without_its_heading(tmp_path: Path) -> None:
    text = "pid | 9\nstate | idle in transaction\nxact_start | 2022-03-15 14:00:00+01\n"
    text += "state_change | 2022-03-15 15:00:00+01\n"
    capture = read_text(tmp_path, text)
    assert level(capture, "db_transaction_age_s_max") == [3600.0]


def test_versions_before_9_2_and_ages(tmp_path: Path) -> None:
    text = """\
 procpid |     xact_runtime       |     current_query
---------+------------------------+-----------------------
   25473 | 2 days 04:00:00.5      | <IDLE> in transaction
    1577 | 00:00:00.631836        | <IDLE>
    1578 | 00:00:03               | select 1
(3 rows)
"""
    capture = read_text(tmp_path, text)
    assert level(capture, "db_idle_in_transaction_sessions_count") == [1.0]
    assert level(capture, "db_active_sessions_count") == [1.0]
    assert level(capture, "db_transaction_age_s_max") == [187200.5]


@pytest.mark.parametrize("separator", ["|", ","])
def test_without_borders(tmp_path: Path, separator: str) -> None:
    rows = ["pid,state,waiting,query", "7,active,t,update t set a = 1", "8,active,f,select 1 from t", ""]
    capture = read_text(tmp_path, "\n".join(rows).replace(",", separator))
    assert level(capture, "db_blocked_sessions_count") == [1.0]
    assert level(capture, "db_wait_event_sessions_count", f"{SERVER}/database:Lock") == [1.0]


def test_watched_tables_are_samples(tmp_path: Path) -> None:
    table = " pid | state  | query\n-----+--------+-------\n   7 | active | select 1 from t\n(1 row)\n\n"
    text = "".join(f"      Wed Nov 25 15:08:{s:02} 2026 (every 2s)\n\n{table}" for s in (17, 19))
    capture = read_text(tmp_path, text)
    assert level(capture, "db_active_sessions_count") == [1.0, 1.0]
    assert codes(capture) == ["no-zone"]


def test_locks_and_who_blocks_whom(tmp_path: Path) -> None:
    text = """\
 blocked_pid | blocked_user | blocking_pid | blocking_user
-------------+--------------+--------------+---------------
          11 | app          |           10 | app
          12 | app          |           10 | app
(2 rows)

 locktype | pid | mode          | granted
----------+-----+---------------+---------
 relation |  11 | ExclusiveLock | f
 relation |  10 | ExclusiveLock | t
"""
    capture = read_text(tmp_path, text)
    assert level(capture, "db_blocked_sessions_count") == [2.0]
    assert level(capture, "db_sessions_behind_blocker_count", f"{SERVER}/session:pid 10 (not sampled)") == [2.0]


def test_counters_are_facts_and_means_since_the_reset(tmp_path: Path) -> None:
    text = """\
 datname | blks_read | blks_hit | blk_read_time | stats_reset | checkpoints_timed
---------+-----------+----------+---------------+-------------+-------------------
 shop    |       100 |      900 |           500 |             |                 3
         |         1 |        9 |             0 |             |                 0
"""
    capture = read_text(tmp_path, text)
    shop = "guest:guest/database:shop"
    assert level(capture, "db_data_read_latency_ms", shop) == [5.0]
    assert level(capture, "db_buffer_hit_pct", shop) == [90.0]
    assert all(group.since_boot for group in capture.groups)


def test_a_stray_line_is_refused_at_its_place(tmp_path: Path) -> None:
    lines = ALIGNED.splitlines(keepends=True)
    with pytest.raises(InputError, match=r":6: 'connection lost'"):
        psql_views.read(source_of(tmp_path, "".join([*lines[:5], "connection lost\n", *lines[5:]])), Request())


def test_a_cell_that_is_no_time_is_refused_at_its_place(tmp_path: Path) -> None:
    text = ALIGNED.replace("2026-11-25 15:08:12.859269+00", "2026-99-25 15:08:12.859269+00")
    with pytest.raises(InputError, match=r":5: "):
        psql_views.read(source_of(tmp_path, text), Request())


def test_other_tables_are_not_ours(tmp_path: Path) -> None:
    assert psql_views.sniff(source_of(tmp_path, " a | b\n---+---\n 1 | 2\n")) == 0
