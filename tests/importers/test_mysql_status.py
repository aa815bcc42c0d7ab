"""MySQL's status variables: rates and levels computed by hand, restarts, and what is refused."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import mysql_status
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEED = (Path(__file__).parent / "seeds" / "mysql_status.tsv").read_text(encoding="utf-8")
RECORDED = Path(__file__).parents[2] / "incidents" / "recorded"


def of(folder: Path, text: str) -> Capture:
    path = folder / "mysql_status.tsv"
    path.write_text(text, encoding="utf-8")
    source = Source("mysql_status.tsv", path)
    assert mysql_status.sniff(source) == 95
    return mysql_status.read(source, Request())


def values(capture: Capture, metric: str) -> list[float]:
    (group,) = capture.of(metric)
    assert group.entities[0].label() == "guest mysql"
    return [round(float(value), 6) for value in group.values[0]]


def test_counters_are_rates_and_levels_stay(tmp_path: Path) -> None:
    capture = of(tmp_path, SEED)
    assert values(capture, "db_qps") == [50, 100]
    assert values(capture, "db_logons_per_s") == [1, 0]
    assert values(capture, "db_page_reads_per_s") == [25, 20]
    assert values(capture, "db_logical_reads_per_s") == [300, 300]
    assert values(capture, "db_rows_scanned_per_s") == [200, 200]
    assert values(capture, "db_rows_inserted_per_s") == [2, 0]
    assert values(capture, "db_rows_changed_per_s") == [8, 0]
    assert values(capture, "db_sessions_count") == [8, 8]
    assert values(capture, "db_blocked_sessions_count") == [4, 0]
    waits = capture.of("db_lock_wait_ms")[0].values[0]
    assert np.isnan(waits[0])
    assert waits[1] == 2000.0
    raw = {group.metric for group in capture.groups if group.metric.startswith("raw.")}
    assert "raw.mysql.Threads_connected" in raw
    assert "raw.mysql.Questions_per_s" in raw
    assert not [name for name in raw if "Ssl_version" in name]


def test_a_restart_is_not_measured(tmp_path: Path) -> None:
    capture = of(tmp_path, SEED + SEED.splitlines()[1].replace("01:28:30", "01:28:36").replace("\t218", "\t1") + "\n")
    assert np.isnan(values(capture, "db_qps")[2])
    assert [warning.code for warning in capture.sources[0].warnings] == ["reset"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SEED.replace("\t8\t220", "\t8"), ":3"),
        (SEED.replace("2026-11-24 01:28:32+00:00", "yesterday"), ":3"),
        ("\n".join(SEED.splitlines()[:2]) + "\n", "one row"),
    ],
)
def test_damage_is_told_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        of(tmp_path, text)


def test_a_last_row_without_an_end_is_left_out(tmp_path: Path) -> None:
    capture = of(tmp_path, SEED.rstrip("\n")[:-5])
    assert values(capture, "db_qps") == [50]
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]


def test_every_recorded_status_agrees_with_its_text(tmp_path: Path) -> None:
    recordings = sorted(RECORDED.glob("*mysql*/*.tar.xz"))
    if not recordings:
        pytest.skip("the recorded incidents are not there")
    for recording in recordings:
        with tarfile.open(recording) as archive:
            name = next(one for one in archive.getnames() if one.endswith("/mysql_status.tsv"))
            stream = archive.extractfile(name)
            text = "" if stream is None else stream.read().decode()
        header, first, *rest = (line.split("\t") for line in text.splitlines())
        place = header.index("Questions")
        (group,) = of(tmp_path, text).of("db_qps")
        seconds = float(group.times_ns[-1] - group.times_ns[0]) / 1e9 + group.interval_s
        questions = int(rest[-1][place]) - int(first[place])
        assert float(np.mean(group.values[0])) * seconds == pytest.approx(questions, rel=0.02)


TABLES = (ROOT / "tests" / "importers" / "seeds" / "mysqladmin.txt").read_text()


def test_tables_of_mysqladmin_are_as_far_apart_as_the_server_got_older(tmp_path: Path) -> None:
    capture = mysql_status.read(source_of(tmp_path, TABLES), Request())
    group = group_of(capture, "db_qps", "guest:guest/database:mysql")
    assert group.values[0].tolist() == [313, 89, 1, 1, 1]
    assert np.diff(group.times_ns).tolist() == [10**9] * 4
    assert group.times_ns[-1] == MTIME_NS
    assert values_of(capture, "db_log_bytes_per_s", "guest:guest/database:mysql").tolist()[:2] == [147827, 53231]
    assert codes(capture) == ["no-times"]


def test_the_name_that_pt_stalk_gives_tells_when_it_began(tmp_path: Path) -> None:
    source = source_of(tmp_path, TABLES, "2026_11_24_09_00_00-mysqladmin")
    assert mysql_status.sniff(source) == 95
    group = group_of(mysql_status.read(source, Request()), "db_qps", "guest:guest/database:mysql")
    assert group.times_ns[0] == (1_795_510_800 + 1) * 10**9


def _shown(uptime: int, questions: int, reads: int, stamp: str = "") -> str:
    head = f"{stamp}\n" if stamp else ""
    rows = {"Binlog_snapshot_file": "", "Innodb_buffer_pool_reads": reads, "Questions": questions, "Uptime": uptime}
    return f"{head}Variable_name\tValue\n" + "".join(f"{name}\t{value}\n" for name, value in rows.items())


def test_differences_are_not_taken_twice(tmp_path: Path) -> None:
    text = _shown(500, 9000, 70) + _shown(2, 20, 4) + _shown(2, 40, 8)
    capture = mysql_status.read(source_of(tmp_path, text), Request())
    assert values_of(capture, "db_qps", "guest:guest/database:mysql").tolist() == [10, 20]
    assert codes(capture) == ["relative", "no-times"]


def test_a_loop_with_lines_of_time(tmp_path: Path) -> None:
    text = _shown(500, 9000, 70, "Tue Nov 24 09:00:00 UTC 2026") + _shown(504, 9040, 74, "Tue Nov 24 09:00:04 UTC 2026")
    capture = mysql_status.read(source_of(tmp_path, text), Request())
    assert values_of(capture, "db_qps", "guest:guest/database:mysql").tolist() == [10]
    assert capture.sources[0].clock_known
    assert codes(capture) == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (_shown(500, 1, 1) + "ERROR 2002 (HY000): Can't connect\n" + _shown(501, 2, 2), ":6"),
        (_shown(500, 1, 1), ":5"),
        (_shown(500, 1, 1) + _shown(500, 2, 2), ":1"),
    ],
)
def test_damaged_tables_are_refused_at_their_line(text: str, where: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=where):
        mysql_status.read(source_of(tmp_path, text), Request())


def test_a_cut_last_table_is_left_out(tmp_path: Path) -> None:
    text = _shown(500, 10, 1) + _shown(501, 20, 2) + _shown(502, 30, 3)
    capture = mysql_status.read(source_of(tmp_path, text[:-30]), Request())
    assert values_of(capture, "db_qps", "guest:guest/database:mysql").tolist() == [10]
    assert codes(capture) == ["cut", "no-times"]
