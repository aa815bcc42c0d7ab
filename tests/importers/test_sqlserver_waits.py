"""Dynamic management views of SQL Server."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import sqlserver_waits
from tests.conftest import FIXTURES
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

FOLDER = FIXTURES / "sqlserver_waits"
SERVER = "guest:guest/database:sqlserver"
NAMES = sorted(path.name for path in FOLDER.iterdir())


def recorded(name: str, request: Request | None = None) -> Capture:
    return sqlserver_waits.read(Source(name, FOLDER / name), request or Request())


def read_text(folder: Path, text: str) -> Capture:
    return sqlserver_waits.read(source_of(folder, text), Request())


def facts_of(capture: Capture) -> dict[str, object]:
    known = {str(entity): facts for entity, facts in capture.inventory.facts.items()}[SERVER]
    return {name: fact.value for name, fact in known.items()}


def test_waits_between_two_samples() -> None:
    capture = recorded("waits.csv")
    assert values_of(capture, "db_commit_wait_ms", SERVER)[1] == pytest.approx(10.0)
    assert values_of(capture, "db_data_read_latency_ms", SERVER)[1] == pytest.approx(45.0)
    assert values_of(capture, "db_log_write_latency_ms", SERVER)[1] == pytest.approx(9.9)
    assert values_of(capture, "db_blocked_sessions_count", SERVER)[1] == pytest.approx(0.1)
    reads = values_of(capture, "db_wait_event_sessions_count", f"{SERVER}/database:PAGEIOLATCH_SH")
    assert reads[1] == pytest.approx(0.9)
    assert values_of(capture, "db_wait_event_sessions_count", f"{SERVER}/database:CPU")[1] == pytest.approx(
        1300 / 60000
    )
    names = {entity.name for group in capture.of("db_wait_event_sessions_count") for entity in group.entities}
    assert "SLEEP_TASK" not in names
    assert seconds(group_of(capture, "db_commit_wait_ms", SERVER)) == [1795510800, 1795510860]
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_files_between_two_samples() -> None:
    capture = recorded("files.csv")
    assert values_of(capture, "db_data_read_latency_ms", SERVER)[1] == pytest.approx(45.0)
    assert values_of(capture, "db_log_write_latency_ms", SERVER)[1] == pytest.approx(21.0)
    assert codes(capture) == ["no-zone"]


@pytest.mark.parametrize(
    ("name", "read_ms", "write_ms"),
    [
        ("sqlskills.txt", 44.5, 1.9),
        ("sqlcmd.txt", 45.0, 2.0),
        ("means.csv", 48.0, 25.0),
        ("sqlcmd-s.csv", 1.99, 29.9),
    ],
)
def test_one_sample_becomes_facts(name: str, read_ms: float, write_ms: float) -> None:
    capture = recorded(name)
    assert capture.groups == []
    facts = facts_of(capture)
    assert facts["engine"] == "sqlserver"
    assert facts["read_ms_since_start"] == pytest.approx(read_ms)
    assert facts["log_write_ms_since_start"] == pytest.approx(write_ms)
    assert codes(capture) == ["one-sample"]


def test_share_of_waits_for_disks() -> None:
    assert facts_of(recorded("sqlcmd-s.csv"))["disk_wait_share_since_start"] == pytest.approx(0.997, abs=0.001)


def test_a_restart_is_not_measured(tmp_path: Path) -> None:
    first, later = (FOLDER / "files.csv").read_text(), "2026-11-24 10:10:00;shop;D:\\data\\shop.mdf;ROWS;10;200;5;9\n"
    capture = read_text(tmp_path, first + later)
    assert values_of(capture, "db_data_read_latency_ms", SERVER)[1] == pytest.approx(45.0)
    assert "reset" in codes(capture)


def test_samples_without_times(tmp_path: Path) -> None:
    head = "wait_type,waiting_tasks_count,wait_time_ms,signal_wait_time_ms\n"
    capture = read_text(tmp_path, f"{head}WRITELOG,100,1000,10\n{head}WRITELOG,200,3000,20\n")
    assert values_of(capture, "db_commit_wait_ms", SERVER)[1] == pytest.approx(20.0)
    assert codes(capture) == ["no-times"]


def test_runnable_tasks(tmp_path: Path) -> None:
    text = "scheduler_id,current_tasks_count,runnable_tasks_count\n0,12,3\n1,9,4\n"
    assert facts_of(read_text(tmp_path, text))["runnable_tasks_count"] == 7


def test_decimal_commas(tmp_path: Path) -> None:
    text = "WaitType;Wait_S;Resource_S;Signal_S;WaitCount\nWRITELOG;1,50;1,20;0,30;100\n"
    assert facts_of(read_text(tmp_path, text))["log_write_ms_since_start"] == pytest.approx(12.0)


def test_rows_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    text = "wait_type,waiting_tasks_count,wait_time_ms\nWRITELOG,100,1000\nWRITE,1\nLCK_M_X,NULL,5\n"
    assert sorted(codes(read_text(tmp_path, text))) == ["damaged-rows", "one-sample"]


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sqlcmd"):
        read_text(tmp_path, "wait_type,waiting_tasks_count,wait_time_ms\n")


@pytest.mark.parametrize("name", NAMES)
def test_recognised(name: str) -> None:
    importer = recognise(Source(name, FOLDER / name), load_units("importer"))
    assert importer is not None
    assert importer[0] == "sqlserver-waits"
