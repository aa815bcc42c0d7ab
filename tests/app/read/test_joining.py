"""Files of one sample each are read as one recording, where their tool says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leadline.app.read.importing import import_paths
from leadline.core.model.capture import Capture

NS_PER_S = 1_000_000_000


def sample(writes: int, written_ns: int) -> str:
    return (
        "Domain: 'db01'\n  state.state=1\n  block.count=1\n  block.0.name=vda\n"
        f"  block.0.wr.reqs={writes}\n  block.0.wr.bytes={writes * 8192}\n  block.0.wr.times={written_ns}\n"
    )


def read(folder: Path, *texts: str, apart_s: int = 0) -> Capture:
    folder.mkdir()
    for number, text in enumerate(texts):
        path = folder / f"domstats_{number}.txt"
        path.write_text(text)
        moment = (1_795_600_000 + number * apart_s) * NS_PER_S
        os.utime(path, ns=(moment, moment))
    return import_paths([folder]).capture


def latency(capture: Capture) -> list[float]:
    (group,) = [group for group in capture.groups if group.metric == "virtual_disk_latency_ms_write"]
    return [float(value) for value in group.values[0]]


FIRST, SECOND = sample(1000, 1_000_000_000), sample(2000, 26_000_000_000)


def test_two_samples_of_a_folder_are_one_recording(tmp_path: Path) -> None:
    capture = read(tmp_path / "copied", FIRST, SECOND)
    assert [Path(one.name).name for one in capture.sources] == ["domstats_0.txt + domstats_1.txt"]
    assert latency(capture) == [25.0]  # of what came between, not since the VM was started
    assert not capture.of("disk_writes_per_s")  # copied in one go: nobody knows how far apart


def test_files_written_at_other_times_give_rates(tmp_path: Path) -> None:
    capture = read(tmp_path / "recorded", FIRST, SECOND, apart_s=50)
    (group,) = capture.of("disk_writes_per_s")
    assert group.values[0].tolist() == pytest.approx([20.0])
    assert latency(capture) == [25.0]


def test_one_sample_stays_as_it_is(tmp_path: Path) -> None:
    capture = read(tmp_path / "one", FIRST)
    assert [Path(one.name).name for one in capture.sources] == ["domstats_0.txt"]
    assert latency(capture) == [1.0]


def test_samples_of_different_folders_are_not_joined(tmp_path: Path) -> None:
    for name, text in (("a", FIRST), ("b", SECOND)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "domstats.txt").write_text(text)
    assert len(import_paths([tmp_path]).capture.sources) == 2
