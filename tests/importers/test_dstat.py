"""CSV files of dstat, dool and pcp-dstat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import dstat
from tests.conftest import FIXTURES, ROOT
from tests.importers.damage import chosen
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

GUEST = "guest:db01"
FOLDER = FIXTURES / "dstat"
HEAD = """"Dstat 0.7.3 CSV output"
"Author:","Dag Wieers <dag@wieers.com>",,,,"URL:","http://dag.wieers.com/home-made/dstat/"
"Host:","db01",,,,"User:","root"
"Cmdline:","dstat -tcd --output a.csv 5",,,,"Date:","31 Dec 2026 23:59:50 CET"

"system","total cpu usage",,,,,,"dsk/total",
"time","usr","sys","idl","wai","hiq","siq","read","writ"
"""
ROWS = """31-12 23:59:55,2.5,1.0,96.0,0.5,0.0,0.0,8192.0,1024.0
01-01 00:00:00,5.0,3.0,2.0,90.0,0.0,0.0,1024.0,2048.0
01-01 00:00:05,5.0,3.0,2.0,90.0,0.0,0.0,2048.0,4096.0
"""


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return dstat.read(source_of(folder, text, "dstat.csv"), request or Request())


def read_file(name: str) -> Capture:
    return dstat.read(Source(name, FOLDER / name), Request())


def test_the_year_and_the_zone_are_those_of_the_header(tmp_path: Path) -> None:
    capture = read_text(tmp_path, HEAD + ROWS)
    group = group_of(capture, "guest_cpu_iowait_pct", GUEST)
    assert seconds(group) == [1798757995, 1798758000, 1798758005]  # 2027-01-01 00:00 of Central Europe
    assert group.values[0].tolist() == [0.5, 90, 90]
    assert group.since_boot
    assert values_of(capture, "guest_block_in_kib_per_s", GUEST).tolist() == [8, 1, 2]
    assert values_of(capture, "guest_cpu_busy_pct", GUEST).tolist() == [3.5, 8, 8]
    assert capture.sources[0].clock_known
    assert capture.sources[0].host == "db01"
    assert capture.sources[0].tool_version == "0.7.3"
    assert codes(capture) == []


def test_a_file_that_two_runs_were_appended_to() -> None:
    capture = read_file("dstat-appended.csv")
    disk = f"{GUEST}/block-device:vda"
    reads = group_of(capture, "disk_reads_per_s", disk)
    assert seconds(reads)[:2] == [1795604821.710, 1795604822.710]
    assert np.isnan(reads.values[0]).tolist() == [False, False, False, True, False, False]  # the second since boot
    assert reads.values[0][2] == 1
    assert values_of(capture, "disk_write_mib_per_s", disk)[4] == 294912 / 2**20
    waits = values_of(capture, "guest_disk_await_ms_write", disk)
    assert waits[4] == 1
    assert np.isnan(waits[[1, 2]]).all()  # no request, no wait
    assert values_of(capture, "guest_cpu_busy_pct", f"{GUEST}/cpu:1")[1] == 100
    assert values_of(capture, "guest_run_queue_count", GUEST)[3] == 3  # a level
    assert codes(capture) == []


def test_dool_writes_bits_unless_asked_for_bytes(tmp_path: Path) -> None:
    capture = read_file("dool.csv")
    assert values_of(capture, "guest_block_in_kib_per_s", GUEST)[1] == 2850816 / 8 / 1024
    assert values_of(capture, "guest_memory_available_mib", GUEST)[1] == 24330362880 / 2**20
    assert seconds(group_of(capture, "guest_load_1m", GUEST))[0] == 1795604505
    assert codes(capture) == ["bits"]
    text = (FOLDER / "dool.csv").read_text()
    for other in (text.replace("-tcdmnlsyr", "-tcdmnlsyr --bytes"), text.replace("dool 1.3.8", "dool 1.2.0")):
        capture = read_text(tmp_path, other)
        assert values_of(capture, "guest_block_in_kib_per_s", GUEST)[1] == 2850816 / 1024
        assert codes(capture) == []


def test_pcp_dstat_writes_kib_and_short_rows() -> None:
    capture = read_file("pcp.csv")
    first, second = values_of(capture, "guest_block_in_kib_per_s", GUEST)[:2]
    assert np.isnan(first)
    assert second == 943.497
    assert values_of(capture, "guest_memory_free_mib", GUEST)[0] == 20692476 / 1024
    assert values_of(capture, "guest_context_switches_per_s", GUEST)[1:].tolist() == [648, 1350, 384]
    assert values_of(capture, "guest_run_queue_count", GUEST).tolist() == [2, 4, 3, 3]
    assert not group_of(capture, "guest_cpu_user_pct", GUEST).since_boot
    assert codes(capture) == []


def test_rows_without_a_time_begin_at_the_date(tmp_path: Path) -> None:
    text = "\n".join(line.partition(",")[2] if line else line for line in ROWS.splitlines()) + "\n"
    head = HEAD.replace('"system",', "").replace('"time",', "").replace("-tcd", "-cd")
    capture = read_text(tmp_path, head + text)
    assert seconds(group_of(capture, "guest_cpu_user_pct", GUEST)) == [1798757990, 1798757995, 1798758000]
    assert codes(capture) == ["no-times"]
    assert not capture.sources[0].clock_known


def test_an_unknown_zone_is_said_and_can_be_set(tmp_path: Path) -> None:
    text = (HEAD + ROWS).replace("CET", "CST")
    assert codes(read_text(tmp_path, text)) == ["no-zone"]
    capture = read_text(tmp_path, text, Request(timezone="Asia/Shanghai"))
    assert codes(capture) == []
    assert seconds(group_of(capture, "guest_cpu_user_pct", GUEST))[1] == 1798732800


def test_damaged_and_cut_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = ROWS.splitlines(keepends=True)
    capture = read_text(
        tmp_path, HEAD + rows[0] + "31-12 23:5\n" + rows[1] + "31-99" + rows[2][5:] + "01-01 00:00:10,5."
    )
    assert len(seconds(group_of(capture, "guest_cpu_user_pct", GUEST))) == 2
    assert sorted(codes(capture)) == ["cut", "damaged", "no-time"]


def test_texts_are_no_numbers(tmp_path: Path) -> None:
    head = HEAD.replace('"dsk/total",', '"most expensive"').replace('"read","writ"', '"cpu process"')
    capture = read_text(tmp_path, head + "31-12 23:59:55,2.5,1.0,96.0,0.5,0.0,0.0,postgres / 10%\n")
    assert [metric for metric in capture.metrics() if "expensive" in metric] == []


@pytest.mark.parametrize("text", [HEAD, HEAD + "a,b\n", HEAD + "99" + ROWS[2:53] + "\n"])
def test_without_a_sound_row_it_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="no row"):
        read_text(tmp_path, text)


def test_it_is_recognised(tmp_path: Path) -> None:
    for path in FOLDER.iterdir():
        assert chosen(path) == "dstat"
    assert chosen(source_of(tmp_path, HEAD + ROWS).path) == "dstat"
    assert chosen(source_of(tmp_path, (HEAD + ROWS).partition("\n")[2]).path) == "dstat"


def test_a_case_of_the_field() -> None:
    path = ROOT.parent / "shared" / "field" / "formats-not-read" / "dstat.csv"
    if not path.exists():
        pytest.skip("the cases of the field are not here")
    capture = dstat.read(Source(path.name, path), Request())
    assert values_of(capture, "guest_cpu_iowait_pct", GUEST)[0] == 90
    assert capture.sources[0].clock_known
