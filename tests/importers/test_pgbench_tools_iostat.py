"""iostat's reports as pgbench-tools keeps them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import pgbench_tools_iostat
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "pgbench_tools_iostat.csv").read_text()
DISK = "guest:guest/block-device:sdc"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert pgbench_tools_iostat.sniff(source) == 95
    return pgbench_tools_iostat.read(source, Request())


def test_columns_of_a_disk(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    expected = {
        "disk_reads_per_s": [5999.6, 0.0],
        "disk_writes_per_s": [1.0, 0.0],
        "disk_iops": [6000.6, 0.0],
        "disk_read_mib_per_s": [67.31, 0.0],
        "guest_disk_io_size_kib": [22.97 / 2, np.nan],
        "guest_disk_await_ms": [0.27, np.nan],
        "guest_disk_util_pct": [38.78, 0.0],
        "raw.iostat.rrqm/s": [0.0, 0.0],
    }
    for metric, values in expected.items():
        np.testing.assert_allclose(values_of(capture, metric, DISK), values)
    group = group_of(capture, "disk_iops", DISK)
    assert seconds(group) == [1420303248.768959, 1420303253.769576]
    assert codes(capture) == ["no-zone"]


def test_names_with_underscores_and_zones(tmp_path: Path) -> None:
    text = "collected,value,metric\n2015-01-03 16:40:48+00:00,2.5,vg_data_r_await\n"
    capture = read_text(tmp_path, text)
    disk = "guest:guest/block-device:vg_data"
    assert values_of(capture, "guest_disk_await_ms_read", disk).tolist() == [2.5]
    assert codes(capture) == []


def test_torn_rows_are_counted(tmp_path: Path) -> None:
    text = (
        SEED + "2015-01-03 16:40:58,x,sdc_r/s\n2015-99-03 16:40:58,1,sdc_r/s\n2015-01-03 16:40:58,1,sdc_what\n2015-01"
    )
    capture = read_text(tmp_path, text)
    assert len(values_of(capture, "disk_iops", DISK)) == 2
    assert codes(capture) == ["left-out", "no-zone"]
    assert capture.sources[0].warnings[0].count == 4


def test_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row with a number"):
        read_text(tmp_path, "collected,value,metric\n2015-01-03 16:40:48,,sdc_r/s\n")


@pytest.mark.parametrize("name", ["r", "max_latency", "sdc_what"])
def test_other_tables_of_that_header_are_none_of_its(tmp_path: Path, name: str) -> None:
    assert pgbench_tools_iostat.sniff(source_of(tmp_path, f"collected,value,metric\n2015-01-03,1,{name}\n")) == 0
