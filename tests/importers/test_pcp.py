"""Performance Co-Pilot: CSV of pmrep, and archives through it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError, ToolError
from leadline.importers import pcp
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "pcp.csv").read_text()
DISK = "guest:guest/block-device:sda"
PLAIN = """Time,"kernel.all.cpu.idle","kernel.all.cpu.wait.total","hinv.ncpu","disk.dev.read-sda",\
"disk.dev.read_rawactive-sda","disk.dev.aveq-sda","disk.dev.avactive-sda","swap.pagesin","disk.dev.read_bytes-sda"
2026-11-25 19:00:35,,,4,,,,,,
2026-11-25 19:00:37,2000.000,1000.000,4,100.000,2500.000,2600.000,990.000,3.000,1024.000
2026-11-25 19:00:39,4000.000,0.000,4,0.000,0.000,0.000,0.000,0.000,0.000
"""


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text, "pcp.csv")
    assert pcp.sniff(source) == 94
    return pcp.read(source, Request())


def test_rates_become_metrics(tmp_path: Path) -> None:
    capture = read_text(tmp_path, PLAIN)
    assert values_of(capture, "guest_cpu_iowait_pct", "guest:guest").tolist() == [25, 0]
    assert values_of(capture, "guest_cpu_busy_pct", "guest:guest").tolist() == [25, 0]
    assert values_of(capture, "disk_reads_per_s", DISK).tolist() == [100, 0]
    assert values_of(capture, "guest_disk_await_ms_read", DISK).tolist() == [25]
    np.testing.assert_allclose(values_of(capture, "guest_disk_queue_count", DISK), [2.6, 0])
    np.testing.assert_allclose(values_of(capture, "guest_disk_util_pct", DISK), [99, 0])
    assert values_of(capture, "disk_read_mib_per_s", DISK).tolist() == [1, 0]
    assert values_of(capture, "guest_swap_in_kib_per_s", "guest:guest").tolist() == [12, 0]
    assert codes(capture) == ["no-zone"]


def test_extended_csv_names_host_and_zone(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert capture.sources[0].host == "db01"
    assert capture.sources[0].clock_known
    assert codes(capture) == []
    group = group_of(capture, "guest_load_1m", "guest:db01")
    assert seconds(group)[0] == 1795633235  # 2026-11-25 19:00:35 UTC
    assert 0 < values_of(capture, "guest_cpu_busy_pct", "guest:db01")[0] <= 100


def test_raw_counters_become_rates(tmp_path: Path) -> None:
    rows = [f"2026-11-25 19:00:{20 + 2 * n},{1000 + 200 * n},{50 * n},17" for n in range(4)]
    heading = 'Time,"disk.dev.write-sda","disk.dev.write_rawactive-sda","mem.util.free"'
    capture = read_text(tmp_path, "\n".join([heading, *rows, ""]))
    assert values_of(capture, "disk_writes_per_s", DISK).tolist() == [100] * 3
    assert values_of(capture, "guest_disk_await_ms_write", DISK).tolist() == [0.25] * 3
    assert len(values_of(capture, "guest_memory_free_mib", "guest:guest")) == 4
    assert codes(capture) == ["raw", "no-zone"]


def test_shares_without_a_count_of_cpus_are_left_out(tmp_path: Path) -> None:
    text = 'Time,"kernel.all.cpu.user","kernel.all.load-1 minute"\n2026-11-25 19:00:37,2000.000,3.5\n'
    capture = read_text(tmp_path, text)
    assert capture.metrics() == ["guest_load_1m"]
    assert "no-cpu-count" in codes(capture)


def test_rows_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    capture = read_text(tmp_path, PLAIN + "2026-11-25 19:00:41,1\n" + "2026-11-25 19:00:43,400")
    assert len(values_of(capture, "disk_reads_per_s", DISK)) == 2
    assert codes(capture)[:2] == ["cut", "left-out"]


def test_nothing_sound_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row with a time"):
        read_text(tmp_path, PLAIN.partition("\n")[0] + "\nx,1\n")


def label(volume: int) -> bytes:
    return b"\x00\x00\x00\x84\x50\x05\x26\x02" + bytes(12) + volume.to_bytes(4, "big", signed=True) + bytes(100)


def test_only_the_metadata_of_an_archive_is_read(tmp_path: Path) -> None:
    source = source_of(tmp_path, label(0), "arch.0")
    assert pcp.sniff(source) == 98
    capture = pcp.read(source, Request())
    assert capture.groups == []
    assert codes(capture) == ["volume"]


def test_metadata_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no NAME\.0 beside it"):
        pcp.read(source_of(tmp_path, label(-1), "arch.meta"), Request())


def test_without_pcp_the_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source_of(tmp_path, label(0), "arch.0")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ToolError) as refused:
        pcp.read(source_of(tmp_path, label(-1), "arch.meta"), Request())
    assert "pmrep -a ARCHIVE -o csv" in refused.value.advice


@pytest.mark.skipif(shutil.which("pmrep") is None, reason="PCP is not installed")
def test_a_damaged_archive_is_refused_with_what_the_tool_said(tmp_path: Path) -> None:
    source_of(tmp_path, label(0), "arch.0")
    with pytest.raises(InputError, match="does not read") as refused:
        pcp.read(source_of(tmp_path, label(-1), "arch.meta"), Request())
    assert str(refused.value)


@pytest.mark.skipif(not Path("/usr/lib/pcp/bin/pmlogger").exists(), reason="PCP is not installed")
def test_an_archive_that_pcp_made_itself(tmp_path: Path) -> None:
    archive = ROOT / "tests" / "fixtures" / "pcp" / "arch.meta"
    capture = pcp.read(Source("arch.meta", archive), Request())
    assert capture.sources[0].host == "db01"
    assert values_of(capture, "disk_writes_per_s", "guest:db01/block-device:vda").max() > 0


def test_an_archive_cut_in_its_label_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cut within its label"):
        pcp.read(source_of(tmp_path, label(-1)[:7], "arch.meta"), Request())
