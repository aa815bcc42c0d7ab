"""biosnoop: a line for each request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import biosnoop
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "biosnoop.txt").read_text()
SDB = "guest:guest/block-device:sdb"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert biosnoop.sniff(source) == 93
    return biosnoop.read(source, Request())


def test_each_disk_and_second(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert values_of(capture, "disk_iops", SDB).tolist() == [2, 1]
    assert values_of(capture, "guest_disk_await_ms", SDB).tolist() == [3, 100]
    assert values_of(capture, "disk_writes_per_s", SDB).tolist() == [2, 0]
    assert values_of(capture, "disk_read_mib_per_s", SDB).tolist() == [0, 1]
    np.testing.assert_array_equal(values_of(capture, "guest_disk_await_ms_read", SDB), [np.nan, 100])
    assert values_of(capture, "disk_reads_per_s", "guest:guest/block-device:sda").tolist() == [1, 0]
    assert group_of(capture, "disk_iops", SDB).times_ns[-1] == MTIME_NS
    assert codes(capture) == ["no-times"]


def test_who_asked(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert values_of(capture, "process_write_kib_per_s", "guest:guest/process:DB Writer 1 (22177)").tolist() == [16, 0]
    assert values_of(capture, "process_read_kib_per_s", "guest:guest/process:mysqld (1811)").tolist() == [4, 1024]


def test_bpftrace_tells_neither_way_nor_size(tmp_path: Path) -> None:
    text = "Attaching 4 probes...\nTIME(ms)     DISK    COMM             PID    LAT(ms)\n"
    text += (
        "611          nvme0n1 bash             4179        10\n1627         nvme0n1 cksum            4179        15\n"
    )
    capture = read_text(tmp_path, f"{text}^C\n")
    assert values_of(capture, "guest_disk_await_ms", "guest:guest/block-device:nvme0n1").tolist() == [10]
    assert "disk_read_mib_per_s" not in capture.metrics()
    assert codes(capture) == ["no-queue", "no-times"]


def test_what_was_lost_is_said(tmp_path: Path) -> None:
    assert codes(read_text(tmp_path, f"{SEED}Possibly lost 12 samples\n")) == ["lost", "no-times"]


def test_a_line_of_something_else_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:7:"):
        read_text(tmp_path, f"{SEED}garbage\n")
