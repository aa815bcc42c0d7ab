"""Incidents that others recorded: the tables are whole; windows of findings are held against the marked rows."""

from __future__ import annotations

import csv
import tarfile

import pytest

from benches.incidents import others
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.finding import Window

(DBPA,) = (one for one in others.SETS if one.name.startswith("DBPA"))
NS_PER_S = 10**9


def rows() -> list[dict[str, str]]:
    with (DBPA.folder / "truth.tsv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def test_every_table_is_there_with_the_rows_the_truth_names() -> None:
    with tarfile.open(DBPA.folder / "tables.tar.xz") as packed:
        lengths = {}
        for member in packed:
            stream = packed.extractfile(member)
            assert stream is not None
            lengths[member.name] = len(stream.read().decode().splitlines()) - 1
    truth = rows()
    assert lengths == {row["file"]: int(row["rows"]) for row in truth}
    assert all(int(row["last_abnormal_row"]) < int(row["rows"]) for row in truth if row["last_abnormal_row"])


def test_half_of_each_cause_is_set_aside() -> None:
    by_cause: dict[str, list[str]] = {}
    for row in rows():
        by_cause.setdefault(row["cause"], []).append(row["set_aside"])
    assert by_cause.keys() == {*DBPA.layers, DBPA.healthy}
    assert all(marks.count("yes") == len(marks) // 2 == 4 for marks in by_cause.values())


def test_the_map_reads_every_column_it_names() -> None:
    with others._tables(DBPA) as folder:
        capture = import_paths([folder / "io-saturation-01.csv"], Request(map_file=DBPA.table_map)).capture
        text = (folder / "io-saturation-01.csv").read_text().splitlines()
    header, first = (next(csv.reader([line])) for line in text[:2])
    cells = dict(zip(header, first, strict=True))
    (wait,) = capture.of("guest_cpu_iowait_pct")
    assert wait.values[0][0] == float(cells["total cpu usage: wai"])
    (written,) = capture.of("disk_write_mib_per_s")
    assert written.values[0][0] == pytest.approx(float(cells["dsk/total: writ"]) / 2**20)


def test_windows_are_held_against_the_marked_rows() -> None:
    with others._tables(DBPA) as folder:
        capture = import_paths([folder / "io-saturation-01.csv"], Request(map_file=DBPA.table_map)).capture
    times = max((group.times_ns for group in capture.groups), key=len)
    row = {"first_abnormal_row": "6", "last_abnormal_row": "15"}
    whole = Window(int(times[6]), int(times[15]))
    half = Window(int(times[6]), int(times[10]))
    assert others._overlap([whole], capture, row) == 1.0
    assert others._overlap([half], capture, row) == 0.5
    assert others._overlap([], capture, row) == 0.0


def test_the_answer_about_the_disk_is_counted_by_the_cause() -> None:
    def incident(*, to_blame: bool, innocent: bool) -> others.Incident:
        return others.Incident("x", False, "no", None, False, False, to_blame, innocent, True)

    assert incident(to_blame=True, innocent=False).is_cleared_wrongly("no")
    assert not incident(to_blame=False, innocent=True).is_cleared_wrongly("no")
    assert incident(to_blame=False, innocent=True).is_accused_wrongly("yes")
    assert not incident(to_blame=True, innocent=False).is_accused_wrongly("yes")
    assert not incident(to_blame=False, innocent=False).is_accused_wrongly("yes")
