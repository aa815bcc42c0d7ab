"""Oracle's views of waits as they are pasted from its shells."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.oracle.wait_columns import table_kind
from leadline.importers import oracle_waits
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "oracle_waits.txt").read_text()
SERVER = "guest:guest/database:oracle"
WIDE = """\
EVENT                                                            TOTAL_WAITS TIME_WAITED_MICRO AVERAGE_WAIT
---------------------------------------------------------------- ----------- ----------------- ------------
"""
READ = "read_ms_since_start"
WRITE = "log_write_ms_since_start"
SHARE = "disk_wait_share_since_start"


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    source = source_of(folder, text)
    assert oracle_waits.sniff(source) == 92
    return oracle_waits.read(source, request or Request())


def facts_of(capture: Capture) -> dict[str, object]:
    known = {str(entity): facts for entity, facts in capture.inventory.facts.items()}[SERVER]
    return {name: fact.value for name, fact in known.items() if name != "engine"}


def wide_row(event: str, count: int, micro: int, mean: str) -> str:
    return f"{event:<64} {count:>11} {micro:>17} {mean:>12}\n"


def test_one_moment_becomes_facts(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert capture.groups == []
    assert facts_of(capture) == {READ: 19.0, WRITE: 15.2, SHARE: 0.877, "commit_wait_ms_since_start": 16.0}
    assert codes(capture) == ["one-sample"]


def test_microseconds_are_taken_before_hundredths(tmp_path: Path) -> None:
    text = WIDE + wide_row("log file parallel write", 9826, 951423304, "9.68")
    assert facts_of(read_text(tmp_path, text)) == {WRITE: 96.827}


def test_columns_that_do_not_fit_the_line(tmp_path: Path) -> None:
    text = (
        "EVENT                                                            TOTAL_WAITS\n"
        "---------------------------------------------------------------- -----------\n"
        "TIME_WAITED AVERAGE_WAIT\n"
        "----------- ------------\n"
        f"{'db file sequential read':<64} {'1000':>11}\n       3000            3\n\n"
        f"{'log file parallel write':<64} {'500':>11}\n        500            1\n\n"
        f"{'log file sync':<64} {'500':>11}\n\n"
    )
    capture = read_text(tmp_path, text)
    assert facts_of(capture) == {READ: 30.0, WRITE: 10.0}
    assert codes(capture) == ["damaged-rows", "one-sample"]  # the last row is cut


def test_tabs_and_pages(tmp_path: Path) -> None:
    page = "EVENT\t\t\t\t\t TOTAL_WAITS TIME_WAITED\n---------------------------------------- ----------- -----------\n"
    text = f"{page}log file parallel write\t\t\t\t 428\t    2909\n\n"
    text += f"{page}db file sequential read \t\t       30705\t   16998\n"
    assert facts_of(read_text(tmp_path, text)) == {READ: 5.536, WRITE: 67.967}


@pytest.mark.parametrize(
    ("heading", "row", "read_ms"),
    [
        ("EVENT,TOTAL_WAITS,TIME_WAITED\n", '"db file sequential read",1000,2500', 25.0),
        ('"EVENT";"TOTAL_WAITS";"AVERAGE_WAIT"\n', '"db file sequential read";1000;"2,53"', 25.3),
        ("EVENT\tTOTAL_WAITS\tTIME_WAITED_MICRO\n", "db file sequential read\t1000\t1,250,000", 1.25),
        ("| event | total_waits | time_waited |\n|---|---|---|\n", "| db file sequential read | 200 | 80 |", 4.0),
        ("EVENT                AVERAGE_WAIT\n-------------------- ------------\n",
         "db file sequential r          .91", 9.1),
        ("EVENT      TOTAL_WAITS AVG_WAIT_MS TIME_WAITED_SECONDS\n---------- ----------- ----------- -----\n",
         "db file sequential read  1000        7.5      7.5", 7.5),
        ("                                Total    Time\nEvent                           Waits  Waited\n"
         "----------------------------- ------- -------\n", "db file sequential read           100      70", 0.0),
        ("EVENT                         TOTAL_WAITS TIME_WAITED\n"
         "____________________________ ___________ ___________\n",
         "db file sequential read        1.2E+06    3.6E+06", 30.0),
        ("INST_ID EVENT TOTAL_WAITS TIME_WAITED\n------- ---------------------------- ----- -----\n",
         "      1 db file sequential read              1000        1000\n"
         "      2 db file sequential read              3000        1000", 5.0),
    ],
)  # fmt: skip
def test_shapes_of_tables(tmp_path: Path, heading: str, row: str, read_ms: float) -> None:
    expected = {READ: read_ms} if read_ms else {READ: 7.0}
    assert facts_of(read_text(tmp_path, f"{heading}{row}\n")) == pytest.approx(expected)


def test_names_that_go_on_in_the_next_line(tmp_path: Path) -> None:
    text = "EVENT                TOTAL_WAITS TIME_WAITED\n-------------------- ----------- -----------\n"
    text += "db file sequential r        1000        2000\nead\n\nlog file parallel wr         100         100\nite\n"
    capture = read_text(tmp_path, text)
    assert facts_of(capture) == {READ: 20.0, WRITE: 10.0}
    assert codes(capture) == ["one-sample"]


def test_two_moments_without_times_make_means(tmp_path: Path) -> None:
    text = WIDE + wide_row("db file sequential read", 1000, 1_000_000, ".1") + "\n1 row selected.\n\nSQL> /\n\n"
    text += WIDE + wide_row("db file sequential read", 1200, 7_000_000, ".58") + wide_row("log file sync", 9, 90, "0")
    capture = read_text(tmp_path, text)
    assert values_of(capture, "db_data_read_latency_ms", SERVER)[1] == pytest.approx(30.0)
    assert [group.metric for group in capture.groups] == ["db_data_read_latency_ms"]
    assert codes(capture) == ["no-times"]


@pytest.mark.parametrize(
    ("first", "second", "start"),
    [
        ("24-NOV-26 10.00.00.000000 AM +00:00", "24-NOV-26 10.01.00.000000 AM +00:00", 1795514400),
        ("2026-11-24 10:00:00+00:00", "2026-11-24 10:01:00+00:00", 1795514400),
    ],
)
def test_two_moments_with_times_make_sessions(tmp_path: Path, first: str, second: str, start: int) -> None:
    rows = ((first, 1000, 1000, 0, 0), (second, 1300, 2200, 4, 6000))
    text = "NOW,EVENT,TOTAL_WAITS,TIME_WAITED,WAIT_CLASS\n"
    for moment, reads, waited, locks, locked in rows:
        text += f'"{moment}","db file sequential read",{reads},{waited},"User I/O"\n'
        text += f'"{moment}","enq: TX - row lock contention",{locks},{locked},"Application"\n'
        text += f'"{moment}","rdbms ipc message",{reads},{waited * 90},"Idle"\n'
    capture = read_text(tmp_path, text)
    assert values_of(capture, "db_data_read_latency_ms", SERVER)[1] == pytest.approx(40.0)
    assert values_of(capture, "db_blocked_sessions_count", SERVER)[1] == pytest.approx(1.0)
    events = {entity.name for group in capture.of("db_wait_event_sessions_count") for entity in group.entities}
    assert events == {"db file sequential read", "enq: TX - row lock contention"}
    waiting = values_of(capture, "db_wait_event_sessions_count", f"{SERVER}/database:db file sequential read")
    assert waiting[1] == pytest.approx(0.2)
    assert seconds(group_of(capture, "db_data_read_latency_ms", SERVER)) == [start, start + 60]
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_a_line_of_sysdate_gives_the_time(tmp_path: Path) -> None:
    clock = "SYSDATE\n-------------------\n2026-11-24 10:0{}:00\n\n"
    text = clock.format(0) + WIDE + wide_row("log file sync", 1000, 1_000_000, ".1") + "\n"
    text += clock.format(2) + WIDE + wide_row("log file sync", 1100, 2_500_000, ".22")
    capture = read_text(tmp_path, text)
    assert values_of(capture, "db_commit_wait_ms", SERVER)[1] == pytest.approx(15.0)
    assert seconds(group_of(capture, "db_commit_wait_ms", SERVER)) == [1795514400, 1795514520]
    assert codes(capture) == ["no-zone"]


def test_a_restart_between_is_not_measured(tmp_path: Path) -> None:
    text = WIDE + wide_row("log file parallel write", 1000, 1_000_000, ".1") + "\n"
    text += WIDE + wide_row("log file parallel write", 500, 1_000_000, ".2")
    capture = read_text(tmp_path, text)
    assert facts_of(capture) == {WRITE: 2.0}
    assert codes(capture) == ["no-times", "reset", "one-sample"]


def test_differences_that_the_query_computed(tmp_path: Path) -> None:
    text = "WAIT_CLASS EVENT_NAME              BEGIN_INTERVAL_TIME          TOTAL_WAITS TIME_WAITED_MS MS_PER_WAIT\n"
    text += "---------- ----------------------- ---------------------------- ----------- -------------- -----------\n"
    width = 28
    for hour, count, waited in ((10, 286608, 271639.345), (11, 32759, 125296.732), (12, 4404, 8946.577)):
        moment = f"20-MAR-13 {hour}.00.45.270 {'PM' if hour == 12 else 'AM'}"
        text += (
            f"User I/O   db file sequential read {moment:<{width}} {count:>11} {waited:>14} {waited / count:>11.7f}\n"
        )
    values = values_of(read_text(tmp_path, text), "db_data_read_latency_ms", SERVER)
    assert values[1:] == pytest.approx([3.82480332, 2.0314662])


def test_histograms_count_the_least(tmp_path: Path) -> None:
    text = (
        "EVENT                     WAIT_TIME_MILLI WAIT_COUNT\n------------------------- --------------- ----------\n"
    )
    for upper, count in ((1, 100), (32, 100), (64, 200)):
        text += f"db file sequential read   {upper:>15} {count:>10}\n"
    capture = read_text(tmp_path, text)
    assert facts_of(capture) == {READ: 20.0}
    assert codes(capture) == ["histogram", "one-sample"]


def test_files(tmp_path: Path) -> None:
    text = "NAME                 PHYRDS    READTIM SINGLEBLKRDS SINGLEBLKRDTIM\n"
    text += "---------------- ---------- ---------- ------------ --------------\n"
    text += "/u01/system.dbf        2000       3000         1000           2500\n"
    text += "/u01/users.dbf         2000       3000         1000           1500\n"
    assert facts_of(read_text(tmp_path, text)) == {READ: 20.0}


def test_kinds_of_files(tmp_path: Path) -> None:
    text = "FILETYPE_NAME,SMALL_SYNC_READ_REQS,SMALL_SYNC_READ_LATENCY,SMALL_WRITE_REQS,SMALL_WRITE_SERVICETIME\n"
    text += "Data File,1000,8000,10,10\nLog File,0,0,1000,12000\n"
    assert facts_of(read_text(tmp_path, text)) == {READ: 8.0, WRITE: 12.0}


def test_damaged_rows_are_counted(tmp_path: Path) -> None:
    text = WIDE + wide_row("log file parallel write", 1000, 1_000_000, ".1") + "torn li\nlog fi      12 x\n"
    capture = read_text(tmp_path, text)
    assert facts_of(capture) == {WRITE: 1.0}
    damage = next(warning for warning in capture.sources[0].warnings if warning.code == "damaged-rows")
    assert damage.count == 2


def test_a_mean_that_contradicts_its_sum_is_left_out(tmp_path: Path) -> None:
    text = "EVENT,TOTAL_WAITS,TIME_WAITED,AVERAGE_WAIT\n"
    text += "db file sequential read,1000,20,2\nlog file parallel write,1000,2000,2\n"  # the first sum is in seconds
    capture = read_text(tmp_path, text)
    assert facts_of(capture) == {WRITE: 20.0}
    assert codes(capture) == ["units", "one-sample"]


def test_few_waits_say_nothing(tmp_path: Path) -> None:
    assert facts_of(read_text(tmp_path, WIDE + wide_row("log file parallel write", 99, 9_900_000, "10"))) == {}


@pytest.mark.parametrize("rows", ["", "no rows selected\n", "log file sync\n", f"{'log file sync':<64} ########\n"])
def test_headings_alone_are_refused(tmp_path: Path, rows: str) -> None:
    with pytest.raises(InputError, match="no row of numbers"):
        read_text(tmp_path, WIDE + rows)


@pytest.mark.parametrize(
    "columns",
    [
        ("event", "session_id", "wait_count"),
        ("wait_type", "waiting_tasks_count", "wait_time_ms"),
        ("event", "waits", "time_s", "avg_wait_ms"),
        ("event", "total_waits"),
        ("sysdate", "event"),
    ],
)
def test_other_tables_are_none_of_these(columns: tuple[str, ...]) -> None:
    assert table_kind(columns) is None
