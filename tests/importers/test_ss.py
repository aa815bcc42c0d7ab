"""Connections by ss: values computed by hand, what is left out, and what is refused."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import ss

SEED = (Path(__file__).parent / "seeds" / "ss.txt").read_text(encoding="utf-8")
RECORDED = Path(__file__).parents[2] / "incidents" / "recorded"


def of(folder: Path, text: str) -> Capture:
    path = folder / "ss.txt"
    path.write_text(text, encoding="utf-8")
    source = Source("ss.txt", path)
    assert ss.sniff(source) == 90
    return ss.read(source, Request())


def values(capture: Capture, metric: str) -> list[float]:
    (group,) = capture.of(metric)
    assert group.entities[0].label() == "guest"
    return [round(float(value), 6) for value in group.values[0]]


def test_what_was_sent_between_two_snapshots(tmp_path: Path) -> None:
    """Of 198.18.0.2:53996 the first snapshot knows nothing; what the machine sends to itself is left out."""
    capture = of(tmp_path, SEED)
    assert values(capture, "net_tcp_segments_per_s") == [200, 100]
    assert values(capture, "net_tcp_retransmits_per_s") == [5, 0]
    assert values(capture, "net_tcp_round_trip_ms") == [8.2, 1.4]


def test_a_connection_that_began_anew_is_left_out(tmp_path: Path) -> None:
    again = SEED.replace("segs_out:600 segs_in:659 retrans:0/13", "segs_out:40 segs_in:41")
    assert values(of(tmp_path, again), "net_tcp_segments_per_s") == [200, 100]


def test_one_snapshot_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 snapshot of connections"):
        of(tmp_path, SEED.split("# 2026-11-24T01:33:09")[0])


def test_other_texts_are_not_its_own(tmp_path: Path) -> None:
    path = tmp_path / "ss.txt"
    path.write_text(SEED.split("\n", 1)[1])
    assert ss.sniff(Source("ss.txt", path)) == 0


def test_every_recording_agrees_with_its_text(tmp_path: Path) -> None:
    recordings = sorted(RECORDED.glob("network-*/*.tar.xz"))
    if not recordings:
        pytest.skip("the recorded incidents are not there")
    for recording in recordings:
        with tarfile.open(recording) as archive:
            name = next(one for one in archive.getnames() if one.endswith("/ss.txt"))
            stream = archive.extractfile(name)
            text = "" if stream is None else stream.read().decode()
        (group,) = of(tmp_path, text).of("net_tcp_retransmits_per_s")
        snapshots = [sum(map(int, re.findall(r" retrans:\d+/(\d+)", one))) for one in text.split("\n# ")]
        seconds = float(group.times_ns[-1] - group.times_ns[0]) / 1e9 + group.interval_s
        assert float(group.values[0].mean()) * seconds == pytest.approx(snapshots[-1] - snapshots[0], rel=0.03, abs=1)
