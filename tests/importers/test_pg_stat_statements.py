"""pg_stat_statements as CSV: one snapshot, several, resets, damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import pg_stat_statements

HEADER = "queryid,query,calls,total_exec_time,shared_blks_read,blk_read_time\n"
ONE = HEADER + "7,SELECT * FROM orders WHERE id = $1,100,8000.0,2000,7900.0\n8,COMMIT,50,2000.0,0,0\n"


def read(tmp_path: Path, text: str, request: Request | None = None) -> Capture:
    path = tmp_path / "pg_stat_statements.csv"
    path.write_text(text)
    source = Source(path.name, path)
    assert pg_stat_statements.sniff(source) >= 90
    return pg_stat_statements.read(source, request or Request())


def by_name(capture: Capture, metric: str) -> dict[str, list[float]]:
    return {
        entity.name: [round(float(value), 6) for value in row]
        for group in capture.of(metric)
        for entity, row in zip(group.entities, group.values, strict=True)
    }


def test_a_snapshot_without_a_time_becomes_facts(tmp_path: Path) -> None:
    capture = read(tmp_path, ONE)
    assert capture.series_count == 0
    statements = {e.name: e for e in capture.inventory.of_kind(EntityKind.STATEMENT)}
    orders = statements["SELECT ... FROM orders"]
    known = {name: capture.inventory.get(orders, name) for name in ("calls", "exec_ms_mean", "time_share", "read_s")}
    assert known == {"calls": 100, "exec_ms_mean": 80.0, "time_share": 0.8, "read_s": 7.9}
    assert capture.inventory.get(orders, "statement_text") == "SELECT * FROM orders WHERE id = $1"


def test_between_snapshots_the_time_taken_is_sessions_at_work(tmp_path: Path) -> None:
    rows = (
        "2026-11-24 10:00:00+00,7,update t set a = $1,100,8000\n"
        "2026-11-24 10:00:10+00,7,update t set a = $1,120,38000\n"
        "2026-11-24 10:00:10+00,9,delete from t,1,500\n"
        "2026-11-24 10:00:20+00,7,update t set a = $1,10,1000\n"  # after a reset
        "2026-11-24 10:00:20+00,9,delete from t,1,500\n"
    )
    capture = read(tmp_path, "now,queryid,query,calls,total_time\n" + rows)
    assert by_name(capture, "db_statement_sessions_count") == {"UPDATE t": [3.0, 0.1], "DELETE FROM t": [0.05, 0.0]}
    assert by_name(capture, "db_statement_calls_per_s") == {"UPDATE t": [2.0, 1.0], "DELETE FROM t": [0.1, 0.0]}
    assert by_name(capture, "db_statement_ms")["UPDATE t"] == [1500.0, 100.0]


def test_literals_of_commands_are_not_kept(tmp_path: Path) -> None:
    capture = read(tmp_path, HEADER + "1,ALTER ROLE app PASSWORD 'not-to-be-seen',1,5.0,0,0\n")
    assert "not-to-be-seen" not in repr(capture.inventory.facts)


def test_the_fifty_that_took_most_are_kept(tmp_path: Path) -> None:
    rows = "".join(
        f"2026-11-24 10:00:{s:02d}+00,{q},update t{q} set a = 1,{s},{s * q}\n" for s in (0, 10) for q in range(60)
    )
    capture = read(tmp_path, "now,queryid,query,calls,total_time\n" + rows)
    calls = by_name(capture, "db_statement_calls_per_s")
    assert len(calls) == 51
    assert calls["other statements"] == [10.0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER, "no row"),
        (HEADER + "7,select 1,1,nan,0,0\n8,select 2,1,1,0,0\n", "no number"),
        (HEADER + "7,select 1,1\n8,select 2,1,1,0,0\n", "3 fields"),
        (HEADER + "7,select 1,many,1,0,0\n8,select 2,1,1,0,0\n", "many"),
        ("now," + HEADER + "soon,7,select 1,1,1,0,0\n", "soon"),
    ],
)
def test_damage_is_said(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match="pg_stat_statements") as caught:
        read(tmp_path, text)
    assert says in caught.value.found


def test_a_last_row_that_is_cut_is_left_out(tmp_path: Path) -> None:
    capture = read(tmp_path, ONE + "9,select")
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]
    assert len(list(capture.inventory.of_kind(EntityKind.STATEMENT))) == 2
