"""collectl of Linux guests."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import collectl
from tests.conftest import FIXTURES
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

FOLDER = FIXTURES / "collectl"
HEADER = "#Date Time [DSK:sda]Name [DSK:sda]Reads [DSK:sda]Writes [DSK:sda]WaitR [DSK:sda]WaitW\n"


def recorded(name: str) -> Capture:
    source = Source(name, FOLDER / name)
    assert collectl.sniff(source) >= 92
    return collectl.read(source, Request())


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return collectl.read(source_of(folder, text), request or Request())


def test_disks_of_a_plot_file() -> None:
    capture = recorded("db01.dsk")
    disk = "guest:db01/block-device:vda"
    assert values_of(capture, "disk_reads_per_s", disk).tolist() == [0, 262, 555, 171, 19]
    waits = values_of(capture, "guest_disk_await_ms_read", disk)
    assert math.isnan(waits[0])  # no request, no wait
    assert waits[1:].tolist() == [0, 2, 1, 1]
    assert seconds(group_of(capture, "disk_reads_per_s", disk))[0] == 1795616832
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_all_subsystems_in_one_table() -> None:
    capture = recorded("plot.txt")
    assert values_of(capture, "guest_cpu_busy_pct", "guest:guest").tolist() == [99, 98, 100, 100]
    assert values_of(capture, "guest_cpu_busy_pct", "guest:guest/cpu:1").tolist() == [99, 99, 100, 100]
    assert values_of(capture, "guest_disk_await_ms_read", "guest:guest/block-device:vda").tolist() == [1, 1, 1, 1]
    assert values_of(capture, "guest_memory_free_mib", "guest:guest")[0] == pytest.approx(18327.504, abs=0.001)
    assert len(values_of(capture, "net_rx_mbit_per_s", "guest:guest/nic:eth0")) == 4
    assert codes(capture) == ["no-zone"]


def test_seconds_since_the_epoch() -> None:
    capture = recorded("utc.tab")
    assert seconds(group_of(capture, "guest_cpu_busy_pct", "guest:guest"))[0] == 1795616845
    assert capture.sources[0].clock_known


def test_another_separator_and_a_date_without_year(tmp_path: Path) -> None:
    capture = read_text(tmp_path, (FOLDER / "sep.csv").read_text(), Request(date="2026-11-25", timezone="UTC"))
    assert seconds(group_of(capture, "guest_cpu_busy_pct", "guest:guest"))[0] == 1795616851


def test_screen() -> None:
    capture = recorded("screen.txt")
    assert values_of(capture, "guest_cpu_busy_pct", "guest:guest").tolist() == [7, 17, 22, 10]
    assert values_of(capture, "guest_block_out_kib_per_s", "guest:guest").tolist() == [8339, 0, 0, 184]
    assert values_of(capture, "guest_memory_free_mib", "guest:guest")[0] == 17 * 1024
    assert "net_rx_mbit_per_s" not in capture.metrics()


def test_screen_without_times(tmp_path: Path) -> None:
    text = "#cpu sys inter  ctxsw KBRead  Reads KBWrit Writes \n   7   3   206    316      5      1   8339    211 \n"
    capture = read_text(tmp_path, text + "   9   3   206    316      0      0     16      2 \n")
    group = group_of(capture, "guest_cpu_busy_pct", "guest:guest")
    assert group.times_ns.tolist() == [MTIME_NS - 10**9, MTIME_NS]
    assert codes(capture) == ["no-times"]


def test_time_of_day_passes_midnight(tmp_path: Path) -> None:
    text = "#Time     cpu sys inter  ctxsw \n23:59:59    7   3   206    316 \n00:00:00    9   3   206    316 \n"
    capture = read_text(tmp_path, text, Request(date="2026-11-25", timezone="UTC"))
    first, second = seconds(group_of(capture, "guest_cpu_busy_pct", "guest:guest"))
    assert second - first == 1


def test_rows_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    rows = "20261125 10:00:00 sda 5 6 1 2\n20261125 10:00:01 sda 5\n20261199 10:00:02 sda 5 6 1 2\n20261125 10:00:0"
    capture = read_text(tmp_path, HEADER + rows)
    assert values_of(capture, "disk_reads_per_s", "guest:guest/block-device:sda").tolist() == [5]
    assert sorted(codes(capture)) == ["cut", "damaged-rows", "no-zone"]


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="collectl -p FILE"):
        read_text(tmp_path, HEADER)


@pytest.mark.parametrize("name", ["plot.txt", "db01.dsk", "utc.tab", "sep.csv", "screen.txt", "screen-T.txt"])
def test_recognised(name: str) -> None:

    importer = recognise(Source(name, FOLDER / name), load_units("importer"))
    assert importer is not None
    assert importer[0] == "collectl"
