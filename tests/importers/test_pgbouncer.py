"""PgBouncer's log and its console."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import pgbouncer
from tests.importers.load_tools import seed
from tests.importers.recordings import codes, source_of, values_of

SERVER = "guest:guest/database:pgbouncer"
LOG, POOLS = seed("pgbouncer.log"), seed("pgbouncer-pools.txt")


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert pgbouncer.sniff(source) == 95
    return pgbouncer.read(source, Request())


def level(capture: Capture, metric: str, entity: str = SERVER) -> list[float]:
    values: list[float] = values_of(capture, metric, entity).tolist()
    return values


def test_the_log(tmp_path: Path) -> None:
    capture = read_text(tmp_path, LOG)
    assert level(capture, "db_tps") == [250, 0]
    assert level(capture, "db_pool_waiting_count") == [3.5, 0]
    assert level(capture, "db_pool_wait_ms")[0] == 14
    assert level(capture, "db_latency_ms")[0] == 9
    assert level(capture, "db_pool_idle_in_transaction_pct")[0] == pytest.approx(100 * (1 - 4 / 9))
    assert codes(capture) == []
    assert capture.sources[0].clock_known


def test_old_logs_count_requests(tmp_path: Path) -> None:
    line = "2012-01-01 12:00:00.123 1234 LOG Stats: 5 req/s, in 100 b/s, out 200 b/s,query 3000 us\n"
    capture = read_text(tmp_path, line)
    assert level(capture, "db_qps") == [5]
    assert "db_pool_waiting_count" not in capture.metrics()
    assert codes(capture) == ["no-zone"]


@pytest.mark.parametrize("is_markdown", [False, True])
def test_pools_of_the_console(tmp_path: Path, is_markdown: bool) -> None:
    text = POOLS
    if is_markdown:
        rows = [line for line in POOLS.splitlines() if "|" in line or "-+-" in line]
        text = "".join(f"|{row.replace('-+-', '-|-')}|\n" for row in rows)
    capture = read_text(tmp_path, text)
    shop = f"{SERVER}/database:pool shop"
    assert level(capture, "db_pool_waiting_count", shop) == [12]
    assert level(capture, "db_pool_busy_count", shop) == [22]
    assert level(capture, "db_pool_free_count", shop) == [2]
    assert level(capture, "db_pool_wait_age_s_max", shop) == [3.5]
    assert codes(capture) == ["no-times"]


def test_statistics_of_the_console(tmp_path: Path) -> None:
    text = "database|avg_xact_count|avg_query_count|avg_xact_time|avg_query_time|avg_wait_time\n"
    text += "shop|250|500|9000|2000|3500000\n"
    capture = read_text(tmp_path, text)
    assert level(capture, "db_pool_waiting_count", f"{SERVER}/database:pool shop") == [3.5]


def test_stray_lines_are_refused_at_their_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=":4: 'connection lost'"):
        pgbouncer.read(source_of(tmp_path, LOG + "connection lost\n"), Request())
    with pytest.raises(InputError, match=":8: 'connection lost'"):
        pgbouncer.read(source_of(tmp_path, POOLS + "connection lost\n"), Request())
