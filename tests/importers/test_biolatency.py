"""Histograms of latency by tracers of the kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import biolatency
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "biolatency.txt").read_text()
SDB, ALL = "guest:guest/block-device:sdb", "guest:guest/block-device:all-disks"
HEADING = "     usecs               : count     distribution\n"


def read_text(folder: Path, text: str, name: str = "recording.txt") -> Capture:
    source = source_of(folder, text, name)
    assert biolatency.sniff(source) >= 85
    return biolatency.read(source, Request(date="2026-11-24"))


def test_means_rates_and_percentiles_of_each_disk(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    means = values_of(capture, "guest_disk_await_ms", SDB)
    assert means[0] == pytest.approx((0.768 + 1.536) / 2)
    assert means[1] == pytest.approx((98.304 * 100 + 196.608 * 2) / 102)
    assert values_of(capture, "disk_iops", SDB).tolist() == [10, 51]
    assert np.all(values_of(capture, "guest_disk_latency_ms_p99", SDB) > [1, 98])
    assert values_of(capture, "disk_iops", "guest:guest/block-device:sdc").tolist() == [2, 0]
    assert codes(capture) == ["no-date", "no-zone", "middles"]
    (result,) = [one for one in capture.results if one.job == "sdb"]
    assert result.operations[0].count == 122
    assert result.is_observed


def test_the_printed_mean_counts(tmp_path: Path) -> None:
    text = f"Tracing block device I/O... Hit Ctrl-C to end.\n{HEADING}   512 -> 1023       : 25       |****|\n\n"
    capture = read_text(tmp_path, f"{text}avg = 663 usecs, total: 16575 usecs, count: 25\n")
    assert values_of(capture, "guest_disk_await_ms", ALL).tolist() == [pytest.approx(0.663)]
    assert "disk_iops" not in capture.metrics()
    assert codes(capture) == ["no-times"]


def test_sets_of_flags_are_reads_writes_and_flushes(tmp_path: Path) -> None:
    def of(flags: str, low: int, count: int) -> str:
        return f"flags = {flags}\n{HEADING}   {low} -> {2 * low - 1}       : {count}       |****|\n\n"

    text = of("Sync-Write", 1024, 1) + of("Metadata-Read", 2048, 3) + of("Read", 1024, 1) + of("Flush", 4096, 1)
    capture = read_text(tmp_path, text)
    assert values_of(capture, "guest_disk_await_ms_write", ALL).tolist() == [pytest.approx(1.536)]
    assert values_of(capture, "guest_disk_await_ms_read", ALL).tolist() == [pytest.approx((3 * 3.072 + 1.536) / 4)]
    assert values_of(capture, "guest_disk_flush_latency_ms", ALL).tolist() == [pytest.approx(6.144)]


def test_a_map_of_bpftrace(tmp_path: Path) -> None:
    text = "Attaching 3 probes...\nTracing block device I/O... Hit Ctrl-C to end.\n^C\n\n@usecs:\n"
    text += "[256, 512)             2 |@         |\n[512, 1K)              0 |          |\n"
    text += "[1K, 2K)             6 |@@@@@@|\n"
    capture = read_text(tmp_path, text)
    assert values_of(capture, "guest_disk_await_ms", ALL).tolist() == [pytest.approx((2 * 0.384 + 6 * 1.536) / 8)]


def test_json(tmp_path: Path) -> None:
    bars = "[{'interval-start': 64, 'interval-end': 127, 'count': 75}]"
    text = "".join(
        f"{{'ts': '2026-11-24 09:00:0{second}', 'val_type': 'usecs', 'data': {bars}}}\n" for second in (3, 4)
    )
    capture = read_text(tmp_path, text)
    assert values_of(capture, "disk_iops", ALL).tolist() == [75, 75]


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        (f"Tracing ext4 operation latency...\n^C\n\noperation = 'fsync'\n{HEADING}  4 -> 7 : 5 |*|\n", "fsync"),
        ("@us[xfs_file_fsync]:\n[8, 16)                5 |@@|\n", "xfs_file_fsync"),
        (f"Tracing run queue latency... Hit Ctrl-C to end.\n^C\n{HEADING}  4 -> 7 : 5 |*|\n", "wait"),
    ],
)  # fmt: skip
def test_other_tracers_are_results_only(text: str, operation: str, tmp_path: Path) -> None:
    capture = read_text(tmp_path, text)
    assert capture.groups == []
    assert [(one.name, one.count) for one in capture.results[0].operations] == [(operation, 5)]


def test_what_does_not_say_of_what_it_is_is_refused(tmp_path: Path) -> None:
    text = f"{HEADING}  4 -> 7 : 5 |*|\n"
    with pytest.raises(InputError, match="does not say"):
        read_text(tmp_path, text)
    assert values_of(read_text(tmp_path, text, "biolatency.txt"), "guest_disk_await_ms", ALL).tolist() == [0.006]


def test_a_line_of_something_else_is_named(tmp_path: Path) -> None:
    lines = SEED.splitlines()
    with pytest.raises(InputError, match=r"recording.txt:9:"):
        read_text(tmp_path, "\n".join([*lines[:8], "garbage", *lines[8:]]) + "\n")
