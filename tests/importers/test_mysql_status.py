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
