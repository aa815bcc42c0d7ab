"""Plans of PostgreSQL's EXPLAIN that were executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import explain_plan
from tests.importers.load_tools import seed
from tests.importers.recordings import codes, source_of, values_of

SERVER = "guest:guest/database:postgresql"
TEXT = """\
shop=# explain (analyze, buffers)
shop-# select * from o where k = 4711;
                                                     QUERY PLAN
---------------------------------------------------------------------------------------------------------------------
 Gather  (cost=1000.00..15245.13 rows=398 width=212) (actual time=0.363..137.806 rows=400 loops=1)
   Workers Planned: 2
   Workers Launched: 2
   Buffers: shared hit=384 read=11738
   I/O Timings: read=111.800
   ->  Parallel Seq Scan on o  (cost=0.00..14205.33 rows=166 width=212) (actual time=0.135..89.496 rows=133 loops=3)
         Filter: (k = 4711)
         Rows Removed by Filter: 133200
         Buffers: shared hit=384 read=11738
         I/O Timings: read=111.800
 Planning:
   Buffers: shared hit=32 read=9
 Planning Time: 0.233 ms
 Execution Time: 137.870 ms
(14 rows)
"""


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert explain_plan.sniff(source) == 92
    return explain_plan.read(source, Request())


def level(capture: Capture, metric: str, plan: str = "plan 1 (Gather)") -> float:
    value: float = values_of(capture, metric, f"{SERVER}/statement:{plan}")[0]
    return value


def test_text_behind_its_prompt(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    assert level(capture, "db_plan_ms") == 137.87
    assert level(capture, "db_planning_ms") == 0.233
    assert level(capture, "db_plan_read_ms") == 111.8
    assert level(capture, "db_plan_blocks_read_count") == 11738
    assert level(capture, "db_plan_rows_removed_count") == 399600
    assert level(capture, "db_plan_rows_kept_count") == 399
    assert level(capture, "db_plan_processes_count") == 3
    assert codes(capture) == ["no-times"]
    assert "4711" not in repr(capture.inventory)


def test_sorts_and_hashes_on_disk(tmp_path: Path) -> None:
    capture = read_text(tmp_path, seed("explain-plan.txt"))
    plan = "plan 1 (Sort)"
    assert level(capture, "db_plan_temp_blocks_count", plan) == 134319
    assert level(capture, "db_plan_temp_ms", plan) == pytest.approx(366.405 + 1780.256)
    assert next(f["spills"].value for f in capture.inventory.facts.values() if "spills" in f) == "Sort, Hash"


def test_disk_of_a_sort_without_buffers(tmp_path: Path) -> None:
    text = "Sort  (actual rows=5 loops=1)\n  Sort Method: external merge  Disk: 800kB\nTotal runtime: 9.5 ms\n"
    capture = read_text(tmp_path, text)
    assert level(capture, "db_plan_temp_blocks_count", "plan 1 (Sort)") == 100
    assert level(capture, "db_plan_ms", "plan 1 (Sort)") == 9.5


def test_json_as_it_is_and_in_a_table_of_psql(tmp_path: Path) -> None:
    document = seed("explain-plan.json")
    rows = "".join(f" {line:60}+\n" for line in document.splitlines())
    for text in (document, f"     QUERY PLAN\n--------------------\n{rows}(1 row)\n"):
        capture = read_text(tmp_path, text)
        assert level(capture, "db_plan_read_ms") == 291.23
        assert level(capture, "db_plan_blocks_read_count") == 23188
        assert level(capture, "db_plan_rows_removed_count") == 399600


def test_a_stray_line_is_refused_at_its_place(tmp_path: Path) -> None:
    lines = TEXT.splitlines(keepends=True)
    with pytest.raises(InputError, match=r":8: 'connection lost'"):
        explain_plan.read(source_of(tmp_path, "".join([*lines[:7], "connection lost\n", *lines[7:]])), Request())


def test_what_was_not_executed_measures_nothing(tmp_path: Path) -> None:
    source = source_of(tmp_path, " Seq Scan on o  (cost=0.00..16122.00 rows=400000 width=212)\n")
    assert explain_plan.sniff(source) == 0
    with pytest.raises(InputError, match="not executed"):
        explain_plan.read(source, Request())
