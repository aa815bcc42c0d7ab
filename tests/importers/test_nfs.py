"""NFS mounts: nfsiostat's reports and the kernel's counters say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import mountstats, nfsiostat
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEEDS = ROOT / "tests" / "importers" / "seeds"
REPORTS, COPIES = (SEEDS / "nfsiostat.txt").read_text(), (SEEDS / "mountstats.txt").read_text()
MOUNT = "guest:guest/block-device:/var/lib/pgsql"
OLD = """
nas:/vol/db mounted on /data:

   op/s\t\trpc bklog
   2.81\t   \t0.00
read:\tops/s\tkB/s\t \tkB/op\t\tretrans\tavg RTT (ms)\tavg exe (ms)
\t0.000\t0.000\t \t0.000\t\t0 (0.0%)\t0.000\t\t0.000
write:\tops/s\tkB/s\t \tkB/op\t\tretrans\tavg RTT (ms)\tavg exe (ms)
\t2.266\t2284.646\t1008.283\t0 (0.0%\t129.606\t356.155
"""


def reports(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert nfsiostat.sniff(source) > 90
    return nfsiostat.read(source, Request())


def copies(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert mountstats.sniff(source) > 90
    return mountstats.read(source, Request())


def test_reports_and_counters_agree(tmp_path: Path) -> None:
    for capture in (reports(tmp_path, REPORTS), copies(tmp_path, COPIES)):
        assert values_of(capture, "guest_disk_await_ms_read", MOUNT) == pytest.approx([2.25, 40.067, 40.067], abs=1e-3)
        assert values_of(capture, "file_server_rtt_ms_write", MOUNT) == pytest.approx([2.2, 30, 30])
        waits = values_of(capture, "file_server_client_wait_ms_write", MOUNT)
        assert waits == pytest.approx([1, 3.333, 3.333], abs=1e-3)
        assert values_of(capture, "file_server_retransmits_pct", MOUNT)[1:] == pytest.approx([0.5, 0.5])
        assert group_of(capture, "file_server_rtt_ms_read", MOUNT).since_boot
        assert codes(capture) == ["no-times"]
    raw = "raw.nfsiostat.read.avg queue (ms)"
    assert values_of(reports(tmp_path, REPORTS), raw, MOUNT).tolist() == [0.005, 0.007, 0.007]


def test_copies_are_as_far_apart_as_the_mount_grew_older(tmp_path: Path) -> None:
    capture = copies(tmp_path, COPIES)
    group = group_of(capture, "disk_reads_per_s", MOUNT)
    assert group.values[0] == pytest.approx([120000 / 86400, 100, 100])
    assert group.times_ns[-1] == MTIME_NS
    assert np.diff(group.times_ns).tolist() == [15 * 10**9] * 2


def test_a_mount_that_was_mounted_again_begins_anew(tmp_path: Path) -> None:
    first, second, third = (f"device nap{part}" for part in COPIES.split("device nap")[1:])
    capture = copies(tmp_path, second + first + third)
    assert "mounted-again" in codes(capture)
    assert len(values_of(capture, "disk_reads_per_s", MOUNT)) == 2
    assert "mounted-again" in codes(copies(tmp_path, first + first + third))


def test_old_reports_with_tabs(tmp_path: Path) -> None:
    capture = reports(tmp_path, OLD)
    mount = "guest:guest/block-device:/data"
    assert values_of(capture, "file_server_rtt_ms_write", mount).tolist() == [129.606]
    assert values_of(capture, "file_server_client_wait_ms_write", mount) == pytest.approx([226.549])
    assert values_of(capture, "disk_reads_per_s", mount).tolist() == [0]
    assert not any(group.metric == "file_server_rtt_ms_read" for group in capture.groups)  # none was made


def test_several_mounts_and_other_operations(tmp_path: Path) -> None:
    other = REPORTS.replace("/var/lib/pgsql", "/backup").replace("40.000", "90.000")
    texts = zip(REPORTS.split("\nnap")[1:], other.split("\nnap")[1:], strict=True)
    text = "".join(f"\nnap{one}\nnap{two}" for one, two in texts)
    capture = reports(tmp_path, text + "\n1 congestion waits\n12 VFS opens\n")
    assert values_of(capture, "file_server_rtt_ms_read", "guest:guest/block-device:/backup").tolist() == [2.15, 90, 90]
    assert values_of(capture, "file_server_rtt_ms_read", MOUNT).tolist() == [2.15, 40, 40]
    attributes = REPORTS.replace("read: ", "getattr: ").replace("write: ", "access: ")
    with pytest.raises(InputError, match="no report"):
        reports(tmp_path, attributes)


def test_other_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:8"):
        reports(tmp_path, REPORTS.replace("1.389", "x.389"))
    with pytest.raises(InputError, match=r"recording\.txt:5"):
        copies(tmp_path, COPIES.replace("impl_id", "impl?id", 1))
    cut = copies(tmp_path, COPIES[: COPIES.rindex("WRITE")])
    assert len(values_of(cut, "disk_reads_per_s", MOUNT)) == 2
    with pytest.raises(InputError, match="no whole NFS mount"):
        copies(tmp_path, COPIES[: COPIES.index("WRITE")])
