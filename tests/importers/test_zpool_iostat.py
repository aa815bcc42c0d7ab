"""zpool iostat of OpenZFS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import zpool_iostat
from tests.conftest import FIXTURES
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

TANK, WAL = "guest:guest/block-device:tank", "guest:guest/block-device:wal"
TIMED = (FIXTURES / "zpool_iostat" / "l-T-u.txt").read_text()
VDEVS = (FIXTURES / "zpool_iostat" / "v.txt").read_text()


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return zpool_iostat.read(source_of(folder, text), request or Request())


def test_pools_with_waits_and_times(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TIMED)
    assert values_of(capture, "disk_reads_per_s", TANK).tolist() == [120, 100]
    assert values_of(capture, "disk_writes_per_s", WAL).tolist() == [1536, 1024]
    assert values_of(capture, "disk_read_mib_per_s", TANK).tolist() == [15.0, 12.5]
    assert values_of(capture, "guest_disk_await_ms_write", TANK) == pytest.approx([0.5, 1.0])
    assert WAL not in {str(e) for g in capture.groups if g.metric == "guest_disk_await_ms_read" for e in g.entities}
    assert seconds(group_of(capture, "disk_reads_per_s", TANK)) == [1795215420, 1795215425]
    assert all(group.since_boot for group in capture.groups if group.metric.startswith("disk_"))
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_devices_of_a_pool_are_left_out(tmp_path: Path) -> None:
    capture = read_text(tmp_path, VDEVS)
    assert {str(e) for g in capture.groups for e in g.entities} == {TANK}
    assert group_of(capture, "disk_reads_per_s", TANK).times_ns.tolist() == [MTIME_NS]
    assert codes(capture) == ["vdevs", "no-times"]
    assert not capture.sources[0].clock_known


def test_times_of_day_in_words(tmp_path: Path) -> None:
    text = TIMED.replace("1795215420", "Fri Nov 20 22:57:00 2026").replace("1795215425", "Fri Nov 20 22:57:05 2026")
    capture = read_text(tmp_path, text)
    assert seconds(group_of(capture, "disk_reads_per_s", TANK)) == [1795215420, 1795215425]
    assert codes(capture) == ["no-zone"]
    zoned = read_text(tmp_path, text.replace(" 2026", " UTC 2026"))
    assert zoned.sources[0].clock_known


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    capture = read_text(tmp_path, VDEVS + "tank         230G   634G    120    300  15.")
    assert values_of(capture, "disk_reads_per_s", TANK).tolist() == [120]
    assert "cut" in codes(capture)


def test_a_foreign_line_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording.txt:9: 'cannot open pool'"):
        read_text(tmp_path, VDEVS + "cannot open pool\n")


def test_headings_alone_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row of a pool"):
        read_text(tmp_path, "".join(VDEVS.splitlines(keepends=True)[:3]))


@pytest.mark.parametrize("name", ["zpool-iostat.out", "zpool-iostat-v.out"])
def test_samples(samples: Path, name: str) -> None:
    source = Source(name, samples / "sysstat" / f"kellyjonbrazil__jc__generic_{name}")
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "zpool-iostat"
    capture = zpool_iostat.read(source, Request())
    throughput = values_of(capture, "disk_write_mib_per_s", "guest:guest/block-device:zsam53")
    assert throughput == pytest.approx([74.4 / 1024])
    assert not np.isnan(throughput).any()
