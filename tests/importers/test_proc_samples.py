"""Copies of the kernel's files, taken one after another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.linux.sample_stamps import stamp_of
from leadline.importers import proc_samples
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "pt_diskstats.txt").read_text()
NINE = 1_795_510_800  # 2026-11-24 09:00 UTC
DISK = "guest:guest/block-device:sdb"
FIRST = "   8      16 sdb 100 0 800 200 50 0 400 100 0 250 300 0 0 0 0 10 50\n"
SECOND = "   8      16 sdb 300 0 2400 800 150 0 1200 2100 4 1250 4300 0 0 0 0 30 250\n"
PARTITION = "   8      17 sdb1 10 0 80 20\n"


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return proc_samples.read(source_of(folder, text), request or Request())


def two(first: str, second: str) -> str:
    return f"{first}\n{FIRST}{PARTITION}{second}\n{SECOND}{PARTITION}"


def test_rates_between_two_copies(tmp_path: Path) -> None:
    text = two("TS 1795510800.000000000 2026-11-24 09:00:00", "TS 1795510802.000000000 2026-11-24 09:00:02")
    assert proc_samples.sniff(source_of(tmp_path, text)) == 88
    capture = read_text(tmp_path, text)
    expected = {
        "disk_reads_per_s": 100.0,
        "disk_writes_per_s": 50.0,
        "disk_read_mib_per_s": 1600 / 2 / 1024 / 2,
        "guest_disk_await_ms_read": 3.0,
        "guest_disk_await_ms_write": 20.0,
        "guest_disk_util_pct": 50.0,
        "guest_disk_queue_count": 2.0,
        "guest_disk_flushes_per_s": 10.0,
        "guest_disk_flush_latency_ms": 10.0,
    }
    assert {metric: values_of(capture, metric, DISK).tolist() for metric in expected} == {
        metric: [pytest.approx(value)] for metric, value in expected.items()
    }
    assert seconds(group_of(capture, "disk_reads_per_s", DISK)) == [NINE + 2]
    assert capture.sources[0].clock_known
    assert {str(entity) for group in capture.groups for entity in group.entities} == {DISK}


@pytest.mark.parametrize(
    ("first", "second", "is_known"),
    [
        ("zzz ***Tue Nov 24 09:00:00 UTC 2026", "zzz ***Tue Nov 24 09:00:02 UTC 2026", True),
        ("Tue Nov 24 09:00:00 AM UTC 2026", "Tue Nov 24 09:00:02 AM UTC 2026", True),
        ("Tue 24 Nov 2026 09:00:00 AM UTC", "Tue 24 Nov 2026 09:00:02 AM UTC", True),
        ("1795510800", "1795510802", True),
        ("# 2026-11-24T10:00:00+01:00", "# 2026-11-24T10:00:02+01:00", True),
        ("2026-11-24 09:00:00", "2026-11-24 09:00:02", False),
    ],
)
def test_lines_of_time(first: str, second: str, is_known: bool, tmp_path: Path) -> None:
    capture = read_text(tmp_path, two(first, second))
    assert values_of(capture, "disk_reads_per_s", DISK).tolist() == [100.0]
    assert seconds(group_of(capture, "disk_reads_per_s", DISK)) == [NINE + 2]
    assert capture.sources[0].clock_known is is_known


def test_what_is_no_time() -> None:
    assert stamp_of("TS 17 x", Request()) is None
    assert stamp_of("2026-13-24 09:00:00", Request()) is None


def test_one_copy_is_the_average_since_boot(tmp_path: Path) -> None:
    capture = read_text(tmp_path, FIRST)
    group = group_of(capture, "guest_disk_await_ms_read", DISK)
    assert group.values[0].tolist() == [2.0]
    assert group.since_boot
    assert "disk_reads_per_s" not in capture.metrics()
    assert codes(capture) == ["no-times", "since-boot"]


def test_copies_without_times_have_no_rates(tmp_path: Path) -> None:
    capture = read_text(tmp_path, FIRST + SECOND)
    assert values_of(capture, "guest_disk_await_ms_write", DISK).tolist() == [20.0]
    assert not group_of(capture, "guest_disk_await_ms_write", DISK).since_boot
    assert "disk_reads_per_s" not in capture.metrics()


def test_several_files_in_one(tmp_path: Path) -> None:
    def block(second: int, disk: str, idle: int, free: int) -> str:
        cpus = f"cpu  100 0 100 {idle} 0 0 0 0 0 0\ncpu0 100 0 100 {idle} 0 0 0 0 0 0\nctxt {idle}\nprocs_blocked 3\n"
        memory = f"MemTotal:       2048 kB\nMemFree:        {free} kB\n"
        net = f"  eth0: {idle} 1 0 0 0 0 0 0 {idle} 1 0 0 0 0 0 0\n"
        paging = f"nr_free_pages 7\npswpin {idle}\n"
        return f"TS 179551080{second}.0 2026-11-24 09:00:0{second}\n{disk}{cpus}{memory}{paging}{net}"

    text = block(0, FIRST, 1000, 1024) + block(2, SECOND, 1200, 512)
    capture = read_text(tmp_path, text)
    assert values_of(capture, "guest_blocked_count", "guest:guest").tolist() == [3]
    assert values_of(capture, "guest_cpu_idle_pct", "guest:guest").tolist() == [100]
    assert values_of(capture, "guest_context_switches_per_s", "guest:guest").tolist() == [100]
    assert values_of(capture, "guest_swap_in_kib_per_s", "guest:guest").tolist() == [400]
    assert values_of(capture, "guest_memory_free_mib", "guest:guest").tolist() == [1, 0.5]
    assert values_of(capture, "net_rx_packets_per_s", "guest:guest/nic:eth0").tolist() == [0]


def test_a_real_recording_of_a_busy_disk() -> None:
    path = ROOT / "tests" / "importers" / "seeds" / "pt_diskstats.txt"
    capture = import_paths([path]).capture
    assert capture.sources[0].importer == "proc-samples"
    writes = values_of(capture, "disk_write_mib_per_s", "guest:guest/block-device:vda")
    assert np.all((writes > 20) & (writes < 30))  # 20 MiB each 0.75 s


def test_a_line_of_something_else_is_named_and_left_out(tmp_path: Path) -> None:
    lines = SEED.splitlines()
    text = "\n".join([*lines[:5], "cat: /proc/x: No such file", *lines[5:]]) + "\n"
    with pytest.raises(InputError, match=":6"):
        read_text(tmp_path, text)
    path = tmp_path / "2026_11_24_09_00_00-diskstats"
    path.write_text(text)
    assert "left-out" in codes(import_paths([path]).capture)
