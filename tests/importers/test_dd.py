"""dd's reports: every language and version, and what a run measured."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Subject
from leadline.importers import dd
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "dd.txt").read_text()
REPORT = "8192000 bytes (8.2 MB, 7.8 MiB) copied, 24.8 s, 330 kB/s\n"
RECORDS = "1000+0 records in\n1000+0 records out\n"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert dd.sniff(source) > 90
    return dd.read(source, Request())


def only(capture: Capture) -> Operation:
    (result,) = capture.results
    (operation,) = result.operations
    return operation


def test_a_synced_block_is_a_synced_write(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    synced, buffered = (result.operations[0] for result in capture.results)
    assert (synced.name, synced.count) == ("open_datasync", 1000)
    assert synced.mean_ms == pytest.approx(24.8)
    assert synced.per_s == pytest.approx(1000 / 24.8)
    assert capture.results[0].place == "/mnt/pg/t"
    assert capture.results[0].measured(Subject.DISK)
    assert not capture.results[1].measured(Subject.DISK)
    assert buffered.name == "buffered write"
    assert buffered.bytes_per_s == pytest.approx(20971520 / 0.0138995)
    job = "guest:guest/job:open_datasync /mnt/pg/t 1"
    assert values_of(capture, "job_latency_ms", job) == pytest.approx([24.8])
    assert group_of(capture, "job_iops", job).times_ns[0] == MTIME_NS - 13_899_500
    assert codes(capture) == ["no-times"]


@pytest.mark.parametrize(
    ("operands", "name", "measured"),
    [
        ("if=/dev/zero of=/t bs=8k oflag=direct", "write", True),
        ("if=/dev/zero of=/t bs=8k oflag=direct,dsync", "open_datasync", True),
        ("if=/dev/zero of=/t bs=8k oflag=sync", "open_sync", True),
        ("if=/dev/sda of=/dev/null bs=8k iflag=direct", "read", True),
        ("if=/a of=/b bs=8k oflag=direct", "io", True),
        ("if=/dev/zero of=/t bs=8k", "buffered write", False),
        ("if=/dev/sda of=/dev/null bs=8k", "buffered read", False),
        ("if=/dev/zero of=/t bs=8k conv=fdatasync", "buffered write", False),
    ],
)
def test_the_command_says_what_was_measured(tmp_path: Path, operands: str, name: str, *, measured: bool) -> None:
    capture = read_text(tmp_path, f"$ sudo dd {operands}\n{RECORDS}{REPORT}")
    operation = only(capture)
    assert operation.name == name
    assert math.isfinite(operation.mean_ms) == measured
    assert ("page-cache" in codes(capture)) == (not measured and "fdatasync" not in operands)


def test_without_its_command_only_small_blocks_that_took_long_tell_of_the_disk(tmp_path: Path) -> None:
    capture = read_text(tmp_path, RECORDS + REPORT)
    assert only(capture).name == "io"
    assert only(capture).mean_ms == pytest.approx(24.8)
    assert "no-command" in codes(capture)
    quick = read_text(tmp_path, RECORDS + "8192000 bytes (8.2 MB, 7.8 MiB) copied, 0.299757 s, 27.3 MB/s\n")
    assert math.isnan(only(quick).mean_ms)
    assert "no-command" in codes(quick)
    alone = read_text(tmp_path, "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 45.3 s, 23.7 MB/s\n")
    assert math.isnan(only(alone).mean_ms)
    assert math.isnan(only(alone).count)


def test_a_report_alone_is_counted_by_its_command(tmp_path: Path) -> None:
    capture = read_text(tmp_path, f"# dd if=/dev/zero of=/t bs=8k count=1000 oflag=dsync 2>&1 | tail -1\n{REPORT}")
    assert only(capture).count == 1000
    assert only(capture).mean_ms == pytest.approx(24.8)


@pytest.mark.parametrize(
    "report",
    [
        "1073741824 bytes (1.1 GB) copied, 45.3 s, 23.7 MB/s",
        "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 45.3 s, 23.7 MB/s",
        "1073741824 bytes (1,1 GB, 1,0 GiB) copied, 45,3 s, 23,7 MB/s",
        "1073741824 Bytes (1,1 GB, 1,0 GiB) kopiert, 45,3 s, 23,7 MB/s",
        "1073741824 octets (1,1 GB) copiés, 45,3 s, 23,7 MB/s",
        "1073741824 байт (1,1 GB, 1,0 GiB) скопирован, 45,3 s, 23,7 MB/s",
        "1073741824 байт (1,1 GB) скопирован, 45,3 c, 23,7 MB/c",
        "1073741824 bytes (1,1 GB) copiados, 45,3 s, 23,7 MB/s",
        "1073741824字节（1.1 GB，1.0 GiB）已复制，45.3 s，23.7 MB/s",
        "1073741824字节(1.1 GB)已复制，45.3 秒，23.7 MB/秒",
        "1073741824 bytes (1.0GB) copied, 45.300000 seconds, 22.6MB/s",
        "1073741824 bytes transferred in 45.300000 secs (23702910 bytes/sec)",
        "1073741824 bytes transferred in 45.3 seconds (23702910 bytes/sec)",
    ],
)
def test_every_language_and_version(tmp_path: Path, report: str) -> None:
    (result,) = read_text(tmp_path, report + "\n").results
    assert result.duration_s == 45.3
    assert result.operations[0].bytes_per_s == pytest.approx(1073741824 / 45.3)


@pytest.mark.parametrize("records", ["记录了1024+0 的读入\n记录了1024+0 的写出\n", "1024+0 записей получено\n" * 2])
def test_records_of_other_languages(tmp_path: Path, records: str) -> None:
    assert only(read_text(tmp_path, f"{records}1073741824 octets copiés, 45,3 s, 23,7 MB/s")).count == 1024


def test_progress_is_no_run(tmp_path: Path) -> None:
    progress = "3000000 bytes (3.0 MB, 2.9 MiB) copied, 9 s, 333 kB/s\r6000000 bytes (6.0 MB) copied, 18 s, 333 kB/s\n"
    command = "$ dd if=/dev/zero of=/t bs=8k count=1000 oflag=dsync status=progress\n"
    assert only(read_text(tmp_path, command + progress + RECORDS + REPORT)).count == 1000
    signalled = "500+0 records in\n500+0 records out\n4096000 bytes (4.1 MB) copied, 12.4 s, 330 kB/s\n"
    assert only(read_text(tmp_path, command + signalled + RECORDS + REPORT)).count == 1000
    assert len(read_text(tmp_path, command + (RECORDS + REPORT) * 3).results) == 3


def test_the_shell_around_it(tmp_path: Path) -> None:
    command = "$ rm t; sync\n$ time dd if=/dev/zero of=t bs=8k oflag=dsync\n"
    text = f"{command}{RECORDS}{REPORT}\nreal\t0m24.9s\nuser\t0m0.0s\n$\n"
    assert only(read_text(tmp_path, text)).name == "open_datasync"
    full = read_text(tmp_path, f"dd: error writing 't': No space left on device\n{RECORDS}{REPORT}")
    assert "tool-message" in codes(full)


def test_what_is_none_of_its_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:2"):
        read_text(tmp_path, f"{REPORT}Hello, this is slow.\n")
    assert dd.sniff(source_of(tmp_path, "1073741824 bytes (1.1 GB) copied, 45.3 s, 990 MB/s\n")) == 0
    with pytest.raises(InputError, match="no report"):
        read_text(tmp_path, "0 bytes copied, 3.0836e-05 s, 0.0 kB/s\n")


def test_pasted_with_its_prompt(tmp_path: Path) -> None:
    path = tmp_path / "paste.txt"
    path.write_text("".join(SEED.splitlines(keepends=True)[:4]) + "[root@db01 ~]# \n")
    capture = import_paths([path]).capture
    (result,) = capture.results
    assert result.operations[0].name == "open_datasync"


def test_each_run_of_a_paste_has_its_own_command(tmp_path: Path) -> None:
    path = tmp_path / "paste.txt"
    path.write_text(
        "root@db01:~# dd if=/dev/zero of=/data/t bs=8k count=1000 oflag=dsync\n1000+0 records in\n1000+0 records out\n"
        "8192000 bytes (8.2 MB, 7.8 MiB) copied, 24.8 s, 330 kB/s\n"
        "root@db01:~# dd if=/dev/zero of=/data/t bs=1M count=1024\n1024+0 records in\n1024+0 records out\n"
        "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.52203 s, 705 MB/s\n"
    )
    names = [result.operations[0].name for result in import_paths([path]).capture.results]
    assert names == ["open_datasync", "buffered write"]
