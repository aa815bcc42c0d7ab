"""iostat of macOS and FreeBSD."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import bsd_iostat
from tests.conftest import FIXTURES
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

GUEST = "guest:guest"
DISK0, DISK2 = "guest:guest/block-device:disk0", "guest:guest/block-device:disk2"
MAC = (FIXTURES / "bsd_iostat" / "macos.txt").read_text()
FREEBSD = (FIXTURES / "bsd_iostat" / "freebsd.txt").read_text()


def test_two_disks_cpu_and_load(tmp_path: Path) -> None:
    capture = bsd_iostat.read(source_of(tmp_path, MAC), Request())
    assert values_of(capture, "disk_iops", DISK0).tolist() == [20, 12, 40]
    assert values_of(capture, "guest_disk_busy_mib_per_s", DISK0).tolist() == [0.8, 0.12, 4.0]
    assert values_of(capture, "guest_disk_io_size_kib", DISK0)[0] == 40.96
    assert np.isnan(values_of(capture, "guest_disk_io_size_kib", DISK2)[1:]).all()
    assert values_of(capture, "guest_cpu_busy_pct", GUEST).tolist() == [4, 80, 88]
    assert values_of(capture, "guest_load_15m", GUEST).tolist() == [1.7, 1.71, 1.72]
    assert all(group.since_boot for group in capture.groups)
    assert group_of(capture, "disk_iops", DISK0).times_ns[-1] == MTIME_NS
    assert codes(capture) == ["no-times"]


def test_freebsd_has_terminals_nice_and_interrupts(tmp_path: Path) -> None:
    capture = bsd_iostat.read(source_of(tmp_path, FREEBSD), Request())
    assert values_of(capture, "guest_cpu_irq_pct", GUEST).tolist() == [1, 2]
    assert values_of(capture, "disk_iops", "guest:guest/block-device:ada0").tolist() == [30, 150]


def test_times_before_each_line(tmp_path: Path) -> None:
    lines = [f"2026-11-20 22:57:{i:02}.500000\t{line}" for i, line in enumerate(MAC.splitlines())]
    capture = bsd_iostat.read(source_of(tmp_path, "\n".join(lines) + "\n"), Request(timezone="UTC"))
    assert seconds(group_of(capture, "disk_iops", DISK0))[0] == 1_795_215_422.5
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_a_heading_repeated_is_no_row(tmp_path: Path) -> None:
    capture = bsd_iostat.read(source_of(tmp_path, MAC + MAC), Request())
    assert len(values_of(capture, "disk_iops", DISK0)) == 6


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    capture = bsd_iostat.read(source_of(tmp_path, MAC[:-8]), Request())
    assert len(values_of(capture, "disk_iops", DISK0)) == 2
    assert "cut" in codes(capture)


def test_a_short_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    lines = MAC.splitlines(keepends=True)
    with pytest.raises(InputError, match=r"recording.txt:3: '40\.96   20'"):
        bsd_iostat.read(source_of(tmp_path, "".join([*lines[:2], "   40.96   20\n", *lines[3:]])), Request())


def test_no_row_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line of numbers"):
        bsd_iostat.read(source_of(tmp_path, "".join(MAC.splitlines(keepends=True)[:2])), Request())


@pytest.mark.parametrize(("name", "rate"), [("iostat-darwin.log", [18, 20]), ("iostat-darwin-2.log", [21, 13])])
def test_samples(samples: Path, name: str, rate: list[float]) -> None:
    source = Source(name, samples / "sysstat" / f"gregs1104__pgbench-tools__pgbenchtools_{name}")
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "bsd-iostat"
    capture = bsd_iostat.read(source, Request())
    assert values_of(capture, "disk_iops", DISK0)[:2].tolist() == rate
