"""SystemPerformance (pButtons) reports and mgstat files of InterSystems IRIS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import pbuttons
from tests.conftest import FIXTURES
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

REPORT = (FIXTURES / "pbuttons" / "report.html").read_text()
MGSTAT = (FIXTURES / "pbuttons" / "db01.mgst").read_text()
GUEST, SHOP, IRIS = "guest:db01", "guest:db01/database:SHOP", "guest:guest/database:iris"
START_S = 1794524220  # 2026-11-12 22:57:00 UTC


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return pbuttons.read(source_of(folder, text, "report.html"), request or Request())


def test_mgstat_of_a_report(tmp_path: Path) -> None:
    capture = read_text(tmp_path, REPORT)
    assert values_of(capture, "db_iris_glorefs_per_s", SHOP)[:2].tolist() == [412000, 413000]
    assert values_of(capture, "db_iris_physical_reads_per_s", SHOP)[3:5].tolist() == [1860, 0]
    assert values_of(capture, "db_iris_read_ratio", SHOP)[0] == 206.0
    assert values_of(capture, "db_iris_seize_waits_pct", SHOP)[5:7].tolist() == [1, 4]
    assert values_of(capture, "raw.pbuttons.mgstat.Jrnwrts", SHOP).tolist() == [88] * 10
    assert seconds(group_of(capture, "db_iris_glorefs_per_s", SHOP))[:2] == [START_S, START_S + 5]


def test_a_ratio_of_nothing_is_not_measured(tmp_path: Path) -> None:
    capture = read_text(tmp_path, REPORT)
    assert np.flatnonzero(np.isnan(values_of(capture, "db_iris_read_ratio", SHOP))).tolist() == [4]
    assert np.flatnonzero(np.isnan(values_of(capture, "db_iris_seize_waits_pct", SHOP))).tolist() == [4]


def test_cycles_of_the_write_daemon(tmp_path: Path) -> None:
    group = group_of(read_text(tmp_path, REPORT), "db_iris_write_daemon_phase_s", SHOP)
    assert group.values[0].tolist() == [20.0, 15.0]
    assert seconds(group) == [START_S + 25, START_S + 45]


def test_two_cycles_without_an_idle_sample_between_are_not_one() -> None:
    times = np.arange(5, dtype=np.int64) * 5 * 10**9
    phases = np.array([0.0, 5, 8, 5, 0])
    assert pbuttons.cycles_s(times, phases, np.array([1.0, 2, 2, 2, 2]))[4] == 20.0
    assert np.isnan(pbuttons.cycles_s(times, phases, np.array([1.0, 2, 2, 3, 3]))[4])


def test_vmstat_of_a_report(tmp_path: Path) -> None:
    capture = read_text(tmp_path, REPORT)
    assert values_of(capture, "guest_run_queue_count", GUEST).tolist() == [3, 4, 5, 6, 7]
    assert values_of(capture, "guest_memory_free_mib", GUEST)[:2].tolist() == [2048, 2047]
    assert values_of(capture, "guest_cpu_busy_pct", GUEST).tolist() == [42] * 5
    assert values_of(capture, "guest_block_in_kib_per_s", GUEST)[1] == 4001
    averaged = {group.metric for group in capture.groups if group.since_boot}
    assert "guest_cpu_busy_pct" in averaged
    assert "guest_run_queue_count" not in averaged


def test_facts_and_warnings(tmp_path: Path) -> None:
    capture = read_text(tmp_path, REPORT)
    guest = Entity(EntityKind.GUEST, "db01")
    assert capture.inventory.get(guest, "cpu_count") == 8
    assert capture.inventory.get(Entity(EntityKind.DATABASE, "SHOP", guest), "engine") == "iris"
    assert str(capture.inventory.get(Entity(EntityKind.DATABASE, "SHOP", guest), "version")).startswith("IRIS for UNIX")
    assert codes(capture) == ["no-zone", "no-times"]
    assert not capture.sources[0].clock_known
    assert read_text(tmp_path, REPORT, Request(timezone="UTC")).sources[0].clock_known


def test_the_start_of_the_run_tells_day_from_month(tmp_path: Path) -> None:
    other = read_text(tmp_path, REPORT.replace("on Nov 12 2026", "on Dec 11 2026"))
    assert seconds(group_of(other, "db_iris_glorefs_per_s", SHOP))[0] == START_S + 29 * 86400
    silent = read_text(tmp_path, REPORT.replace("on Nov 12 2026", ""))
    assert "date-order" in codes(silent)


def test_times_of_a_12_hour_clock(tmp_path: Path) -> None:
    text = REPORT.replace(", 22:57:", ", 10:57:")
    text = "\n".join(
        line[:20] + " PM" + line[20:] if line.startswith("11/12/2026, 10:57:") else line for line in text.split("\n")
    )
    capture = read_text(tmp_path, text)
    assert seconds(group_of(capture, "db_iris_glorefs_per_s", SHOP))[0] == START_S


def test_mgstat_alone(tmp_path: Path) -> None:
    capture = pbuttons.read(source_of(tmp_path, MGSTAT, "db01.mgst"), Request(date="2026-11-12"))
    assert values_of(capture, "db_iris_glorefs_per_s", IRIS)[:2].tolist() == [412000, 413000]
    assert seconds(group_of(capture, "db_iris_glorefs_per_s", IRIS))[0] == START_S


def test_iostat_without_times_and_interval_is_left_out_and_said(tmp_path: Path) -> None:
    capture = read_text(tmp_path, REPORT)
    assert "disk_reads_per_s" not in capture.metrics()
    assert "it was left out" in capture.sources[0].warnings[1].message


def test_vmstat_of_another_system_is_left_out(tmp_path: Path) -> None:
    capture = read_text(tmp_path, REPORT.replace("us sy id wa st", "us sy id wa sy"))
    assert "guest_run_queue_count" not in capture.metrics()
    assert "vmstat" in codes(capture)


def test_a_report_that_is_cut_says_so(tmp_path: Path) -> None:
    capture = read_text(tmp_path, REPORT[: REPORT.index("11/12/2026, 22:57:30") + 90])
    assert len(values_of(capture, "db_iris_glorefs_per_s", SHOP)) == 6
    assert {"cut", "cut-section"} <= set(codes(capture))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("11/12/2026, 22:57:15,", "11/12/2026, 22:57:15, 7,", r"report.html:\d+: '11/12/2026, 22:57:15"),
        ("11/12/26 22:57:10", "kernel panic", r"report.html:\d+: 'kernel panic"),
        ("Glorefs,", "Globals,", "no sample of mgstat"),
    ],
)
def test_damage_in_the_middle_is_an_error(tmp_path: Path, old: str, new: str, found: str) -> None:
    assert old in REPORT
    with pytest.raises(InputError, match=found):
        read_text(tmp_path, REPORT.replace(old, new))


@pytest.mark.parametrize("name", ["report.html", "db01.mgst"])
def test_it_is_recognised(tmp_path: Path, name: str) -> None:
    source = source_of(tmp_path, (FIXTURES / "pbuttons" / name).read_text(), name)
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "pbuttons"
