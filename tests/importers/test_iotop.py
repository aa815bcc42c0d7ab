"""iotop's reports: both iotops, with times and without."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import iotop
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "iotop.txt").read_text()
OTHER = """\
  Total DISK READ:    0.00 B/s |   Total DISK WRITE:    0.00 B/s
Current DISK READ:    0.00 B/s | Current DISK WRITE:    0.00 B/s
   TID PRIO     USER   DISK READ  DISK WRITE SWAPIN     IO COMMAND
  Total DISK READ:  194.21 K/s |   Total DISK WRITE:   32.12 M/s
Current DISK READ:  194.21 K/s | Current DISK WRITE:   30.64 M/s
   TID PRIO     USER   DISK READ  DISK WRITE SWAPIN     IO COMMAND
  1071 be/4 root          0.00 B/s   26.38 M/s 0.00 % 99.10 % /usr/bin/dd
 31982 be/4 postgres     29.88 K/s 1195.14 K/s 0.00 % 0.00 % postgres: postgres bench [local] UPDATE
"""
SCREEN = """\
Total DISK READ :       0.00 B/s | Total DISK WRITE :      40.92 M/s
Actual DISK READ:       0.00 B/s | Actual DISK WRITE:     192.05 K/s
  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN     IO>    COMMAND
  525 be/4 user_00     0.00 B/s    3.00 K/s  0.00 %  0.00 % ./router_update /data/gateway/conf/one.cnf
"""


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert iotop.sniff(source) >= 90
    return iotop.read(source, Request())


def test_programs_and_disks(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    copier = "guest:guest/process:dd[1071]"
    assert values_of(capture, "process_write_kib_per_s", copier) == pytest.approx([4.8 * 1024, 26.84 * 1024])
    assert values_of(capture, "guest_block_out_kib_per_s", "guest:guest") == pytest.approx([6144, 32.12 * 1024])
    assert values_of(capture, "process_read_kib_per_s", "guest:guest/process:postgres[31982]")[1] == 23.69
    assert values_of(capture, "process_write_kib_per_s", "guest:guest/process:kworker/u8:4[11388]")[1] == 363.27
    assert values_of(capture, "process_write_kib_per_s", "guest:guest/process:jbd2/sda3-8[368]")[1] == 95.36
    assert codes(capture) == ["no-zone", "no-date"]
    group = group_of(capture, "process_write_kib_per_s", copier)
    assert int(group.times_ns[1] - group.times_ns[0]) == 10**9
    assert not any("/mnt/t" in entity.name for group in capture.groups for entity in group.entities)


def test_the_other_iotop_without_times(tmp_path: Path) -> None:
    capture = read_text(tmp_path, OTHER)
    assert codes(capture) == ["no-times"]
    group = group_of(capture, "process_write_kib_per_s", "guest:guest/process:dd[1071]")
    assert group.values[0] == pytest.approx([26.38 * 1024])
    assert group.times_ns.tolist() == [MTIME_NS]
    assert values_of(capture, "guest_block_in_kib_per_s", "guest:guest").tolist() == [0, 194.21]


def test_the_other_iotop_dates_its_totals(tmp_path: Path) -> None:
    lines = OTHER.splitlines()
    for index, second in ((0, 54), (3, 55)):
        lines[index] += f" | Wed Nov 25 15:41:{second} 2026"
    capture = read_text(tmp_path, "\n".join(lines) + "\n")
    assert codes(capture) == ["no-zone"]
    group = group_of(capture, "process_write_kib_per_s", "guest:guest/process:dd[1071]")
    assert group.times_ns.tolist() == [int(datetime(2026, 11, 25, 15, 41, 55, tzinfo=UTC).timestamp()) * 10**9]


def test_a_copied_screen_and_rows_alone(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SCREEN)
    assert values_of(capture, "guest_block_out_kib_per_s", "guest:guest").tolist() == [192.05]
    assert values_of(capture, "process_write_kib_per_s", "guest:guest/process:router_update[525]").tolist() == [3]
    rows = [line for line in OTHER.splitlines(keepends=True) if line[2:6].strip().isdigit()]
    twice = read_text(tmp_path, "".join(rows * 2))
    assert len(values_of(twice, "process_write_kib_per_s", "guest:guest/process:dd[1071]")) == 2


def test_amounts_since_its_start_are_no_rates(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="per second"):
        read_text(tmp_path, OTHER.replace("26.38 M/s", "26.38 M  "))
    with pytest.raises(InputError, match="no report"):
        read_text(tmp_path, OTHER.splitlines()[2] + "\n")
    cut = read_text(tmp_path, OTHER[:-60])
    assert "cut" in codes(cut)
