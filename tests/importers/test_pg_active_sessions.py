"""Samples of PostgreSQL's active sessions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.active_sessions import resource_of, wait_shares
from leadline.importers import pg_active_sessions
from tests.importers.load_tools import seed
from tests.importers.recordings import codes, source_of, values_of

SERVER = "guest:guest/database:postgresql"
TEXT = seed("pg_active_sessions.csv")
SECOND_NS = 1_000_000_000
LOOP = """\
now,datid,datname,pid,backend_type,state,xact_start,wait_event_type,wait_event,query
2026-11-21 00:00:00+00,5,shop,1,client backend,active,2026-11-20 23:59:50+00,IO,DataFileRead,"select 1,
2"
2026-11-21 00:00:00+00,5,shop,2,client backend,active,2026-11-21 00:00:00+00,,,select * from pg_stat_activity
2026-11-21 00:00:00+00,5,shop,3,client backend,idle,,Client,ClientRead,select 3
2026-11-21 00:00:00+00,,,4,checkpointer,,,Activity,CheckpointerMain,
now,datid,datname,pid,backend_type,state,xact_start,wait_event_type,wait_event,query
2026-11-21 00:00:05+00,5,shop,1,client backend,active,2026-11-20 23:59:50+00,,,select 1
"""


def read_text(folder: Path, text: str) -> Capture:
    return pg_active_sessions.read(source_of(folder, text), Request())


def test_means_of_a_second(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    assert values_of(capture, "db_active_sessions_count", SERVER).tolist() == [1.5, 0.5]
    assert values_of(capture, "db_wait_event_sessions_count", f"{SERVER}/database:CPU").tolist() == [0.5, 0.0]
    assert values_of(capture, "db_blocked_sessions_count", SERVER).tolist() == [1.0, 0.0]
    assert values_of(capture, "db_idle_in_transaction_sessions_count", SERVER).tolist() == [0.5, 0.0]
    assert values_of(capture, "db_background_sessions_count", SERVER).tolist() == [0.5, 0.0]
    assert values_of(capture, "db_transaction_age_s_max", SERVER).tolist() == [9.31, 0.01]
    head = f"{SERVER}/session:pid 640 (idle in transaction)"
    assert values_of(capture, "db_sessions_behind_blocker_count", head).tolist() == [1.0, 0.0]
    assert codes(capture) == []


def test_mysqls_waits_for_rows_are_waits_for_locks(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT.replace(",Lock,", ",lock,"))
    assert values_of(capture, "db_blocked_sessions_count", SERVER).tolist() == [1.0, 0.0]


def test_without_wait_events_nobody_waits_for_a_lock(tmp_path: Path) -> None:
    rows = [line for line in LOOP.splitlines() if ",IO," not in line and line != '2"']
    quiet = "\n".join(line for line in rows if "Client," not in line and "Activity" not in line)
    capture = read_text(tmp_path, quiet + "\n")
    assert values_of(capture, "db_blocked_sessions_count", SERVER).tolist() == [0.0, 0.0]


def test_shares_of_a_span(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    start, end = capture.span_ns() or (0, 0)
    whole = wait_shares(capture, start - SECOND_NS, end)
    assert whole == {e: pytest.approx(0.25) for e in ("Lock:transactionid", "Lock:tuple", "CPU", "IO:WALSync")}
    assert wait_shares(capture, start, end) == {"IO:WALSync": 1.0}
    assert wait_shares(capture, end, end + SECOND_NS) == {}
    assert {resource_of(event) for event in whole} == {"lock", "cpu", "wal"}


def test_a_loop_of_psql(tmp_path: Path) -> None:
    capture = read_text(tmp_path, LOOP)
    assert values_of(capture, "db_active_sessions_count", SERVER).tolist() == [1.0, 1.0]
    assert values_of(capture, "db_background_sessions_count", SERVER).tolist() == [0.0, 0.0]
    assert np.allclose(values_of(capture, "db_transaction_age_s_max", SERVER), [10.0, 15.0])


def test_a_list_of_blockers_may_be_cut_to_the_first_and_a_count(tmp_path: Path) -> None:
    capped = TEXT.replace(",0.411,640,", ",0.411,640 641 642 +76,").replace(",UPDATE stock", ",")
    assert capped.count("+76") == 1
    metric, head = "db_sessions_behind_blocker_count", f"{SERVER}/session:pid 640 (idle in transaction)"
    counts = [values_of(read_text(tmp_path, text), metric, head).tolist() for text in (TEXT, capped)]
    assert counts == [[1.0, 0.0]] * 2


def test_an_empty_statement_is_that_of_the_session_before(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT.replace(",0.512,0.511,,UPDATE stock", ",0.512,0.511,,"))
    metric = "db_statement_sessions_count"
    assert values_of(capture, metric, f"{SERVER}/statement:UPDATE stock").tolist() == [1.5, 0.0]
    assert values_of(capture, metric, f"{SERVER}/statement:COMMIT").tolist() == [0.0, 0.5]
    assert values_of(capture, "db_worker_sessions_count", f"{SERVER}/session:checkpointer").tolist() == [0.5, 0.0]


def test_no_literal_of_a_statement_is_kept(tmp_path: Path) -> None:
    capture = read_text(tmp_path, LOOP.replace("select 1\n", "select a from t where b = 'secret'\n"))
    statements = [e for g in capture.of("db_statement_sessions_count") for e in g.entities]
    assert {entity.name for entity in statements} == {"SELECT", "SELECT ... FROM t"}
    assert "secret" not in str(capture.inventory.facts)


def test_many_statements_and_blockers_are_few_series(tmp_path: Path) -> None:
    header = TEXT.split("\n", 1)[0]
    row = "2026-11-21 00:00:{0:02d}+00,{1},shop,client backend,active,Lock,tuple,,1,1,{2},UPDATE t{1}"
    rows = [row.format(number % 50, number, number + 1000) for number in range(1, 301)]
    capture = read_text(tmp_path, "\n".join([header, *sorted(rows)]) + "\n")
    for metric, rest in (
        ("db_statement_sessions_count", "statement:other statements"),
        ("db_sessions_behind_blocker_count", "session:other blockers"),
    ):
        assert sum(len(group.entities) for group in capture.of(metric)) == 51
        assert values_of(capture, metric, f"{SERVER}/{rest}").sum() == 250


def test_a_parallel_worker_is_counted_to_its_leaders_statement(tmp_path: Path) -> None:
    header = "now,pid,leader_pid,backend_type,state,wait_event_type,wait_event,blocked_by,query\n"
    rows = "2026-11-21 00:00:0{0}+00,1,,client backend,active,,,,SELECT big\n"
    rows += "2026-11-21 00:00:0{0}+00,2,1,parallel worker,active,,,,?\n"
    capture = read_text(tmp_path, header + rows.format(1) + rows.format(2))
    statement = f"{SERVER}/statement:SELECT ... FROM big"
    assert values_of(capture, "db_statement_sessions_count", statement).tolist() == [2.0, 2.0]


def test_the_user_of_a_blocker_is_that_of_its_row_before(tmp_path: Path) -> None:
    header = "now,pid,backend_type,state,wait_event_type,wait_event,blocked_by,query,state_age_s,usename,client_addr\n"
    idle = "2026-11-21 00:00:0{0}+00,{1},client backend,idle in transaction,Client,ClientRead,,{2}\n"
    rows = idle.format(1, 1, "UPDATE stock,0.5,ann,10.0.0.1") + idle.format(1, 3, "SELECT,0.5,bob,10.0.0.3")
    rows += idle.format(2, 1, ",1.5,,")
    rows += "2026-11-21 00:00:02+00,2,client backend,active,Lock,transactionid,1,UPDATE stock,0.1,cid,10.0.0.2\n"
    capture = read_text(tmp_path, header + rows)
    (behind,) = capture.of("db_sessions_behind_blocker_count")
    facts = {n: capture.inventory.get(behind.entities[0], n) for n in ("user", "client", "statement", "state_s_max")}
    assert facts == {"user": "ann", "client": "10.0.0.1", "statement": "UPDATE stock", "state_s_max": 1.5}


def test_a_torn_last_row_is_left_out(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT + "2026-11-21 00:55:58.1")
    assert codes(capture) == ["cut"]
    assert len(values_of(capture, "db_active_sessions_count", SERVER)) == 2


def test_a_torn_row_before_a_second_recording_is_left_out(tmp_path: Path) -> None:
    header, rows = TEXT.split("\n", 1)
    later = rows.replace("00:55", "00:56")
    capture = read_text(tmp_path, f"{TEXT}2026-11-21 00:55:58.1,81\n{header}\n{later}")
    assert codes(capture) == ["cut"]
    assert len(values_of(capture, "db_active_sessions_count", SERVER)) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT.splitlines()[0] + "\n",
        TEXT + "2026-11-21 00:55:58+00,1,2\n",
        TEXT.replace("812", "8x2"),
        TEXT.replace("2026", "abcd"),
        TEXT.replace("9.310", "-9"),
        TEXT.replace(",640,", ",6x0,"),
        TEXT.replace(",640,", ",+640,"),
        TEXT.replace(",640,", ",640 +7 641,"),
    ],
)
def test_damage(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_text(tmp_path, text)
