"""nvidia-smi: cards over time, with units and without, with times and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import nvidia_smi
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "nvidia_smi.csv").read_text()
NO_UNITS = """timestamp, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB]
2024/03/13 07:04:28.836, 0, 0, 0, 81920
2024/03/13 07:04:33.838, 0, 0, 445, 81920
2024/03/13 07:04:38.839, 28, 0, 80257, 81920
"""
FIRST, SECOND = "guest:guest/adapter:gpu0", "guest:guest/adapter:gpu1"


def read(folder: Path, text: str, command: str = "") -> Capture:
    source = replace(source_of(folder, text), command=command)
    assert nvidia_smi.sniff(source) == 95
    return nvidia_smi.read(source, Request())


def test_two_cards(tmp_path: Path) -> None:
    capture = read(tmp_path, SEED)
    assert values_of(capture, "gpu_util_pct", FIRST).tolist() == [12, 40, 60, 58]
    assert values_of(capture, "gpu_util_pct", SECOND).tolist() == [95, 99, 100, 98]
    assert values_of(capture, "gpu_memory_used_pct", SECOND) == pytest.approx(4 * [100 * 45147 / 46068])
    assert values_of(capture, "raw.nvidia-smi.power.draw", FIRST).tolist() == [150.25, 151.25, 152.25, 153.25]
    assert "raw.nvidia-smi.name" not in {group.metric for group in capture.groups}
    times = seconds(group_of(capture, "gpu_util_pct", SECOND))
    assert times == pytest.approx([1_791_187_212.123 + 1.001 * turn for turn in range(4)])
    assert codes(capture) == ["no-zone"]


def test_without_units_and_index(tmp_path: Path) -> None:
    capture = read(tmp_path, NO_UNITS)
    assert values_of(capture, "gpu_util_pct", FIRST).tolist() == [0, 0, 28]
    assert values_of(capture, "gpu_memory_used_pct", FIRST) == pytest.approx(
        [0, 100 * 445 / 81920, 100 * 80257 / 81920]
    )


def test_cards_by_their_bus(tmp_path: Path) -> None:
    text = "timestamp, name, pci.bus_id, utilization.gpu [%], memory.used [MiB]\n"
    text += "2024/06/01 11:27:05.177, NVIDIA A100-SXM4-40GB, 00000000:3B:00.0, 0 %, 4 MiB\n"
    text += "2024/06/01 11:27:05.188, NVIDIA A100-SXM4-40GB, 00000000:8B:00.0, 3 %, 4 MiB\n"
    capture = read(tmp_path, text)
    assert values_of(capture, "gpu_util_pct", "guest:guest/adapter:00000000:8B:00.0").tolist() == [3]
    assert "gpu_memory_used_pct" not in {group.metric for group in capture.groups}


def test_cards_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    text = NO_UNITS.replace("07:04:33.838", "07:04:28.840")
    with pytest.raises(InputError, match="no column tells apart"):
        read(tmp_path, text)


def test_without_times(tmp_path: Path) -> None:
    text = "index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n" + 3 * "0, 5 %, 1 MiB, 4 MiB\n"
    capture = read(tmp_path, text)
    assert seconds(group_of(capture, "gpu_util_pct", FIRST)) == [MTIME_NS / 1e9 - 2, MTIME_NS / 1e9 - 1, MTIME_NS / 1e9]
    assert codes(capture) == ["no-times"]
    capture = read(tmp_path, text, "nvidia-smi --query-gpu=index,utilization.gpu --format=csv -l 5")
    assert seconds(group_of(capture, "gpu_util_pct", FIRST))[0] == MTIME_NS / 1e9 - 10


def test_what_is_not_measured_is_absent(tmp_path: Path) -> None:
    text = SEED.replace("12 %, 4 %, 20480 MiB", "[N/A], [N/A], [Not Supported]")
    capture = read(tmp_path, text)
    assert np.isnan(values_of(capture, "gpu_util_pct", FIRST)[0])
    assert np.isnan(values_of(capture, "gpu_memory_used_pct", FIRST)[0])


def test_lines_that_are_no_rows_are_counted(tmp_path: Path) -> None:
    text = SEED + "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.\n"
    text += "2026/10/05 08:00:20.000, 0, NVIDIA A40, P0, 101 %, 3 %, 20480 MiB, 46068 MiB, 150 W, 60\n"
    capture = read(tmp_path, text)
    assert len(values_of(capture, "gpu_util_pct", FIRST)) == 4
    assert codes(capture) == ["left-out", "no-zone"]


def test_a_row_that_was_cut_is_left_out(tmp_path: Path) -> None:
    capture = read(tmp_path, SEED.rstrip("\n")[:-1])
    assert np.isnan(values_of(capture, "gpu_util_pct", SECOND)[-1])
    assert codes(capture) == ["cut", "no-zone"]


def test_a_heading_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row of numbers"):
        read(tmp_path, NO_UNITS.splitlines()[0] + "\n")


def test_it_is_recognised(tmp_path: Path) -> None:
    known = recognise(source_of(tmp_path, SEED.replace("\n", "\r\n")), load_units("importer"))
    assert known is not None
    assert known[0] == "nvidia-smi"
    assert nvidia_smi.sniff(source_of(tmp_path, "time,utilization.gpu {card 1}\n1,2\n")) == 0


def test_a_card_at_its_limit_is_found(tmp_path: Path) -> None:
    rows = ["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"]
    rows += [f"2026/10/05 08:{turn // 6:02}:{turn % 6}0.000, 0, 99 %, 1000 MiB, 46068 MiB" for turn in range(120)]
    diagnosis = diagnose(read(tmp_path, "\n".join(rows) + "\n"))
    assert [str(one.entity) for one in diagnosis.findings if one.code == "HST171"] == [FIRST]
