"""runqslower: waits for a CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import runqslower
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "runqslower.txt").read_text()
WAIT = "process_cpu_wait_pct"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert runqslower.sniff(source) == 94
    return runqslower.read(source, Request())


def waits_of(capture: Capture, program: str) -> list[float]:
    return [round(float(value), 4) for value in values_of(capture, WAIT, f"guest:guest/process:{program}")]


def test_waits_of_programs(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert waits_of(capture, "postgres") == [6.0934, 80.0, 0, 0]
    assert waits_of(capture, "cpulimit") == [0, 3.552, 0, 0]
    assert waits_of(capture, "DB Writer") == [0, 0, 50.0, 100.0]  # 1.5 s that ended in the last second
    group = group_of(capture, WAIT, "guest:guest/process:postgres")
    assert seconds(group) == [1795200024, 1795200025, 1795200026, 1795200027]
    assert codes(capture) == ["no-date", "limit"]


@pytest.mark.parametrize(
    "text",
    [
        "TIME     COMM             PID           LAT(us)\n04:16:32 gcc              13678           23519\n[...]\n",
        "TIME     COMM             TID           LAT(us)\n04:16:32 b'gcc'           3005            23519\n"
        "Lost 2 events on CPU #1!\n",
        "Attached 5 probes\nTracing run queue latency higher than 100 us\n"
        "TIME     COMM             TID         LAT(us) PREV COMM        PREV TID\n"
        "04:16:32 gcc              74            23519 My prog 1        546\n",
    ],
)
def test_forms_of_other_versions(tmp_path: Path, text: str) -> None:
    assert waits_of(read_text(tmp_path, text), "gcc") == [2.3519]


def test_midnight_and_torn_lines(tmp_path: Path) -> None:
    text = "TIME     COMM             TID           LAT(us)\n23:59:59 a 1 20000\n00:00:00 a 1 30000\n"
    text += "00:00:0\nx y\n00:00:01 a 1"
    capture = read_text(tmp_path, text)
    assert waits_of(capture, "a") == [2.0, 3.0]
    assert seconds(group_of(capture, WAIT, "guest:guest/process:a")) == [1795132800, 1795132801]
    assert codes(capture) == ["cut", "left-out", "no-date", "limit"]
    assert capture.sources[0].warnings[1].count == 2


def test_two_days_are_kept(tmp_path: Path) -> None:
    rows = "".join("23:00:00 a 1 20000\n01:00:00 a 1 20000\n" for _ in range(5))
    capture = read_text(tmp_path, f"TIME     COMM             TID           LAT(us)\n{rows}")
    group = group_of(capture, WAIT, "guest:guest/process:a")
    assert (len(group.times_ns), group.interval_s) == (60, 2881)
    assert np.sum(group.values[0]) * 2881 == pytest.approx(5 * 2.0)  # five waits of 20 ms
    assert "left-out" in codes(capture)


def test_a_heading_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line of a wait"):
        read_text(tmp_path, "".join(SEED.splitlines(keepends=True)[:2]))
