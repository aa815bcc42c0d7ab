"""Pressure, load average and memory files, and logs of meminfo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import meminfo, psi
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

GUEST = "guest:guest"
PRESSURE = (
    "some avg10=2.47 avg60=3.59 avg300=6.11 total=63569171\nfull avg10=2.45 avg60=2.45 avg300=4.30 total=47795456\n"
)
MEMORY = "MemTotal:       16384 kB\nMemFree:         2048 kB\nSwapTotal:       1024 kB\nSwapFree:         512 kB\n"
LOG = (
    "2026-11-20 22:57:16.5\tMemTotal\t24684134\n2026-11-20 22:57:16.5\tMemFree\t2048\n"
    "2026-11-20 22:57:17.5\tMemTotal\t24684134\n2026-11-20 22:57:17.5\tMemFree\t1024\n"
)


def test_recording_in_blocks(fixtures: Path) -> None:
    source = Source("psi.txt", fixtures / "psi" / "psi.txt")
    assert psi.sniff(source) == 95
    capture = psi.read(source, Request())
    some = group_of(capture, "guest_pressure_io_some_pct", GUEST)
    assert some.values[0].tolist() == [2.37, 2.48, 2.48, 2.58, 2.58, 2.47]
    assert seconds(some)[:2] == [1_795_215_496.99, 1_795_215_497.998]
    assert values_of(capture, "guest_load_1m", GUEST).tolist() == [0.87] * 5 + [0.8]
    assert values_of(capture, "guest_run_queue_count", GUEST).tolist() == [1, 2, 2, 1, 2, 3]
    assert values_of(capture, "raw.psi.io.some.total", GUEST)[0] == 63397862
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_copy_of_a_pressure_file_goes_by_its_name(tmp_path: Path) -> None:
    capture = psi.read(source_of(tmp_path, PRESSURE, "pressure-memory.txt"), Request())
    group = group_of(capture, "guest_pressure_memory_full_pct", GUEST)
    assert group.values[0].tolist() == [2.45]
    assert group.times_ns.tolist() == [MTIME_NS]
    assert codes(capture) == ["no-times"]


def test_copy_of_a_pressure_file_without_a_telling_name_is_refused(tmp_path: Path) -> None:
    source = source_of(tmp_path, PRESSURE, "copy.txt")
    assert psi.sniff(source) == 90
    with pytest.raises(InputError, match="not named"):
        psi.read(source, Request())


@pytest.mark.parametrize(
    "line",
    [
        "0.80 0.75 0.39 2/90 7929\n",
        " 22:58:10 up 2 days,  3:04,  1 user,  load average: 0.80, 0.75, 0.39\n",
        "22:58  up 10:31, 2 users, load averages: 0,80 0,75 0,39\n",
    ],
)
def test_load_alone(tmp_path: Path, line: str) -> None:
    source = source_of(tmp_path, line)
    assert psi.sniff(source) == 90
    capture = psi.read(source, Request())
    assert values_of(capture, "guest_load_1m", GUEST).tolist() == [0.8]
    assert values_of(capture, "guest_load_15m", GUEST).tolist() == [0.39]


def test_memory_alone(tmp_path: Path) -> None:
    capture = psi.read(source_of(tmp_path, MEMORY), Request())
    assert values_of(capture, "guest_memory_free_mib", GUEST).tolist() == [2.0]
    assert values_of(capture, "guest_swap_used_mib", GUEST).tolist() == [0.5]


def test_file_without_contents_is_not_measured(tmp_path: Path) -> None:
    first = f"# 2026-11-20T22:58:16+01:00\n## /proc/pressure/io\n{PRESSURE}"
    second = "# 2026-11-20T22:58:17+01:00\n## /proc/pressure/io\n## /proc/loadavg\n0.80 0.75 0.39 2/90 7929\n"
    capture = psi.read(source_of(tmp_path, first + second), Request())
    some = group_of(capture, "guest_pressure_io_some_pct", GUEST)
    assert some.values[0][0] == 2.47
    assert np.isnan(some.values[0][1])
    assert seconds(some) == [1_795_211_896, 1_795_211_897]


def test_times_without_zone_are_said(tmp_path: Path) -> None:
    text = f"# 2026-11-20T22:58:16\n## /proc/pressure/io\n{PRESSURE}"
    assert codes(psi.read(source_of(tmp_path, text), Request())) == ["no-zone"]
    berlin = psi.read(source_of(tmp_path, text), Request(timezone="Europe/Berlin"))
    assert seconds(group_of(berlin, "guest_pressure_io_some_pct", GUEST)) == [1_795_211_896]
    assert berlin.sources[0].clock_known


def test_cut_block_is_left_out(fixtures: Path, tmp_path: Path) -> None:
    whole = (fixtures / "psi" / "psi.txt").read_text()
    capture = psi.read(source_of(tmp_path, whole[:-20]), Request())
    assert len(values_of(capture, "guest_load_1m", GUEST)) == 5
    assert codes(capture) == ["cut"]


def test_garbage_in_the_middle_is_refused(fixtures: Path, tmp_path: Path) -> None:
    whole = (fixtures / "psi" / "psi.txt").read_text()
    with pytest.raises(InputError, match=r"recording\.txt:\d+: .some avg10= avg60"):
        psi.read(source_of(tmp_path, whole.replace("some avg10=2.37", "some avg10=", 1)), Request())


@pytest.mark.parametrize(
    "text", ["", "\n\n", "0.1 0.2\n", "some text avg10=\n", "# heading\n## more\n", "1 2 3 4\n" * 9]
)
def test_other_texts_are_not_mine(tmp_path: Path, text: str) -> None:
    source = source_of(tmp_path, text)
    assert psi.sniff(source) == 0
    assert meminfo.sniff(source) == 0


def test_log_of_meminfo(tmp_path: Path) -> None:
    source = source_of(tmp_path, LOG)
    assert meminfo.sniff(source) == 90
    capture = meminfo.read(source, Request())
    free = group_of(capture, "guest_memory_free_mib", GUEST)
    assert free.values[0].tolist() == [2.0, 1.0]
    assert seconds(free) == [1_795_215_436.5, 1_795_215_437.5]
    assert codes(capture) == ["no-zone"]


def test_log_of_meminfo_with_garbage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:2"):
        meminfo.read(source_of(tmp_path, LOG.replace("2048", "20x48")), Request())


def test_sample_log_of_meminfo(samples: Path) -> None:
    name = "gregs1104__pgbench-tools__pgbenchtools_meminfo.log"
    chosen = recognise(Source(name, samples / "sysstat" / name), load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "meminfo"
    capture = chosen[1].read(Source(name, samples / "sysstat" / name), Request())
    assert values_of(capture, "guest_memory_free_mib", GUEST)[0] == 969648 / 1024
    assert values_of(capture, "guest_memory_dirty_mib", GUEST)[0] == 696 / 1024
