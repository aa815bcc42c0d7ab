"""AWR and Statspack reports of Oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import oracle_awr
from tests.command_line import leadline
from tests.conftest import FIXTURES, ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

AWR_11G = (FIXTURES / "oracle_awr" / "awr-11g.txt").read_text()

AWR_19C_TOP = (FIXTURES / "oracle_awr" / "awr-19c-pdb.txt").read_text()

STATSPACK_9I = (FIXTURES / "oracle_awr" / "statspack-9i.lst").read_text()

HTML = (FIXTURES / "oracle_awr" / "awr-12c.html").read_text()


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return oracle_awr.read(source_of(folder, text), request or Request())


def test_awr_text(tmp_path: Path) -> None:
    capture = read_text(tmp_path, AWR_11G, Request(timezone="UTC"))
    server = "guest:ora7/database:lager1"
    assert values_of(capture, "db_data_read_latency_ms", server)[1:] == pytest.approx([20.0])
    assert values_of(capture, "db_log_write_latency_ms", server)[1:] == pytest.approx([0.25])  # printed as 0
    assert values_of(capture, "db_commit_wait_ms", server)[1:] == pytest.approx([0.4])
    assert values_of(capture, "db_active_sessions_count", server)[1:] == pytest.approx([5.0])
    assert values_of(capture, "db_blocked_sessions_count", server)[1:] == pytest.approx([0.1])
    assert values_of(capture, "db_sessions_count", server)[1:] == pytest.approx([162])
    assert values_of(capture, "db_tps", server)[1:] == pytest.approx([25.0])
    assert values_of(capture, "db_log_bytes_per_s", server)[1:] == pytest.approx([64000.0])
    assert values_of(capture, "db_wait_event_sessions_count", f"{server}/database:CPU")[1:] == pytest.approx([0.5])
    assert values_of(capture, "guest_cpu_iowait_pct", "guest:ora7")[1:] == pytest.approx([60.5])
    assert values_of(capture, "guest_cpu_busy_pct", "guest:ora7")[1:] == pytest.approx([15.3])
    assert values_of(capture, "raw.oracle.tablespace.STOCK.read_ms", server)[1:] == pytest.approx([21.5])
    group = group_of(capture, "db_data_read_latency_ms", server)
    assert group.interval_s == 600
    assert seconds(group) == [1772532000, 1772532600]
    idle = [e.name for g in capture.of("db_wait_event_sessions_count") for e in g.entities if "SQL*Net" in e.name]
    assert idle == []
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_statements_have_no_literals(tmp_path: Path) -> None:
    capture = read_text(tmp_path, AWR_11G)
    statement = "guest:ora7/database:lager1/statement:UPDATE stock"
    assert values_of(capture, "db_statement_sessions_count", statement)[1:] == pytest.approx([2.0])
    assert values_of(capture, "db_statement_ms", statement)[1:] == pytest.approx([20.0])
    facts = {str(entity): known for entity, known in capture.inventory.facts.items()}[statement]
    assert facts["query_id"].value == "aa7t6babr24zf"
    assert facts["statement_text"].value == "update stock set amount = ? where item = ?"
    assert codes(capture) == ["no-zone"]


@pytest.mark.parametrize(
    "text",
    [
        "alter user shop identified by Geheim1",
        'create database link far connect to shop identified by "Geheim1"',
        "update stock set note = q'[it's Geheim1]' where item = 1",
        "insert into notes values ('Geheim1",
    ],
)
def test_no_secret_is_kept(tmp_path: Path, text: str) -> None:
    capture = read_text(tmp_path, AWR_11G.replace("update stock set amount = 4711 where item = 'geheim'", text))
    assert "Geheim1" not in repr(capture.inventory.facts)


def test_units_behind_numbers(tmp_path: Path) -> None:
    capture = read_text(tmp_path, AWR_19C_TOP)
    server = "guest:guest/database:lager1"
    assert values_of(capture, "db_data_read_latency_ms", server)[1:] == pytest.approx([3.23])
    assert values_of(capture, "db_commit_wait_ms", server)[1:] == pytest.approx([0.71972])
    locks = f"{server}/database:enq: TX - row lock contention"
    assert values_of(capture, "db_wait_event_sessions_count", locks)[1:] == pytest.approx([52.9 / 3601])


def test_statspack_of_9i(tmp_path: Path) -> None:
    capture = read_text(tmp_path, STATSPACK_9I)
    server = "guest:ora1/database:alt"
    assert values_of(capture, "db_data_read_latency_ms", server)[1:] == pytest.approx([9.0])
    assert values_of(capture, "db_log_write_latency_ms", server)[1:] == pytest.approx([0.5])
    assert values_of(capture, "db_wait_event_sessions_count", f"{server}/database:CPU")[1:] == pytest.approx([0.5])


def test_html(tmp_path: Path) -> None:
    capture = read_text(tmp_path, HTML)
    server = "guest:ora7/database:lager1"
    assert values_of(capture, "db_data_read_latency_ms", server)[1:] == pytest.approx([61.77], rel=1e-3)
    assert values_of(capture, "db_commit_wait_ms", server)[1:] == pytest.approx([0.71672])
    assert values_of(capture, "db_active_sessions_count", server)[1:] == pytest.approx([20.0])
    assert values_of(capture, "db_log_bytes_per_s", server)[1:] == pytest.approx([5215426.4])


def test_several_reports_are_samples(tmp_path: Path) -> None:
    later = AWR_11G.replace("10:10:00", "10:20:00").replace("10:00:00", "10:10:00").replace("2,400 ", "1,200 ")
    capture = read_text(tmp_path, AWR_11G + later)
    reads = values_of(capture, "db_data_read_latency_ms", "guest:ora7/database:lager1")
    assert reads[1:] == pytest.approx([20.0, 10.0])


def test_months_of_other_languages_and_decimal_commas(tmp_path: Path) -> None:
    text = AWR_11G.replace("03-Mar-26 10", "03-MRZ-26 10").replace("10.00 (mins)", "10,00 (mins)")
    text = text.replace("20,000       2,400     20   80.0", "20.000       2.400     20   80,0")
    capture = read_text(tmp_path, text.replace("DB Time:               50.00", "DB Time:               50,00"))
    server = "guest:ora7/database:lager1"
    assert seconds(group_of(capture, "db_active_sessions_count", server))[1:] == [1772532600]
    assert values_of(capture, "db_active_sessions_count", server)[1:] == pytest.approx([5.0])


def test_longest_waits_alone(tmp_path: Path) -> None:
    text = AWR_11G[AWR_11G.index("Top 5") : AWR_11G.index("Host CPU")]
    source = source_of(tmp_path, text)
    assert oracle_awr.sniff(source) == 60
    capture = oracle_awr.read(source, Request())
    group = group_of(capture, "db_data_read_latency_ms", "guest:guest/database:oracle")
    assert group.values[0][1] == pytest.approx(20.0)
    assert group.interval_s == 3600
    assert abs(int(group.times_ns[1]) - MTIME_NS) < 10
    assert codes(capture) == ["no-interval", "no-times"]


def test_rows_that_are_damaged_are_counted(tmp_path: Path) -> None:
    text = AWR_11G.replace("log file sync                    15,000     0          6       0", "log file sync   ####")
    assert "damaged-rows" in codes(read_text(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "WORKLOAD REPOSITORY report for\n\nDB Name\n",
        "WORKLOAD REPOSITORY COMPARE PERIOD REPORT\n\n" + AWR_11G,
        "WORKLOAD REPOSITORY REPORT (RAC)\n\n" + AWR_11G,
    ],
)
def test_refusals_say_what_to_record(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"awrrpt\.sql"):
        read_text(tmp_path, text)


@pytest.mark.parametrize("text", [AWR_11G, AWR_19C_TOP, STATSPACK_9I, HTML])
def test_recognised(tmp_path: Path, text: str) -> None:
    importer = recognise(source_of(tmp_path, text), load_units("importer"))
    assert importer is not None
    assert importer[0] == "oracle-awr"


FIELD = ROOT.parent / "shared" / "field" / "formats-not-read" / "awr.txt"


@pytest.mark.skipif(not FIELD.exists(), reason="the cases of the field are not here")
def test_reads_of_184_ms_are_the_disk() -> None:
    run = leadline("diagnose", str(FIELD))
    text = " ".join(run.stdout.split())
    assert text.startswith("Yes, as the guest sees it: single reads of data files of guest shop take 184 ms")
    assert "commits wait 391 ms" in text


def test_quick_reads_do_not_accuse_the_disk(tmp_path: Path) -> None:
    quick = (
        AWR_11G.replace("60.5 ", " 0.5 ")
        .replace("2,400     20", "   60      1")
        .replace("2,400      20", "   60       1")
    )
    path = tmp_path / "awr.txt"
    path.write_text(quick)
    text = " ".join(leadline("diagnose", str(path)).stdout.split())
    assert "Yes" not in text
    assert "disk's latency" in text


def test_commits_that_wait_beside_quick_log_writes_do_not_accuse_the_disk(tmp_path: Path) -> None:
    text = (
        AWR_11G.replace("60.5 ", " 0.5 ")
        .replace("2,400     20", "   60      1")
        .replace("2,400      20", "   60       1")
    )
    path = tmp_path / "awr.txt"
    path.write_text(text.replace("15,000     0          6       0", "15,000     0      2,000     133"))
    out = " ".join(leadline("diagnose", str(path)).stdout.split())
    assert out.startswith("Commits wait 133 ms on ora7 lager1, and the log is written in 0.25 ms")
    assert "Yes" not in out
