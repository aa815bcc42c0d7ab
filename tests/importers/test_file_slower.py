"""ext4slower and its kin: operations on files that took longer than a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import UNNAMED_GUEST, Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import file_slower
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "file-slower.txt").read_text()
GUEST = "guest:guest"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert file_slower.sniff(source) == 93
    return file_slower.read(source, Request())


def test_what_was_slow_in_each_second(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert values_of(capture, "guest_slow_file_operations_per_s", GUEST).tolist() == [2, 0, 1, 1]
    assert values_of(capture, "guest_file_wait_ms_max", GUEST)[[0, 2, 3]].tolist() == [118.32, 12.05, 15.88]
    assert values_of(capture, "guest_file_sync_wait_ms_max", GUEST)[0] == 118.32
    assert seconds(group_of(capture, "guest_file_wait_ms_max", GUEST))[-1] == 1795132802  # 2026-11-20 00:00:02
    assert codes(capture) == ["no-date"]


def test_who_waited_for_what(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert values_of(capture, "guest_file_wait_ms_max", f"{GUEST}/process:LS Thread (2210)").tolist() == [12.05]
    files = capture.inventory.get(UNNAMED_GUEST, "slow_files_ms")
    assert next(iter(files.items())) == ("000000010000000A00000031", 118.32)
    assert files["app 2026-09-24.log"] == 12.05


def test_fileslower_counts_seconds_from_its_start(tmp_path: Path) -> None:
    text = "Tracing sync read/writes slower than 10 ms\n"
    text += "TIME(s)  COMM           TID    D BYTES   LAT(ms) FILENAME\n"
    text += "2.642    nginx          69097  R 5242880   12.18 0002121812\n"
    text += "4.760    nginx          69754  W 8192      42.08 0002121598\n"
    capture = read_text(tmp_path, text)
    group = group_of(capture, "guest_slow_file_operations_per_s", GUEST)
    assert group.values[0].tolist() == [1, 0, 1]
    assert group.times_ns[-1] == MTIME_NS
    assert codes(capture) == ["no-times"]


def test_comma_separated(tmp_path: Path) -> None:
    text = "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\n"
    text += "127200712278,bash,29559,S,0,0,15880,a,b.txt\n"
    capture = read_text(tmp_path, text)
    assert values_of(capture, "guest_file_sync_wait_ms_max", f"{GUEST}/process:bash (29559)").tolist() == [15.88]
    assert capture.inventory.get(UNNAMED_GUEST, "slow_files_ms") == {"a,b.txt": 15.88}


def test_other_lines_are_counted(tmp_path: Path) -> None:
    assert codes(read_text(tmp_path, f"{SEED}what is this\n14:51:02 cut")) == ["cut", "left-out", "no-date"]


def test_nothing_slow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no operation that was slower"):
        read_text(tmp_path, "\n".join(SEED.splitlines()[:2]) + "\n")
