"""Models: a trace made by a known workload gives that workload back, and the distance is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.traces.modelling import COMPARED, fit
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.workload import parse_workload
from tests.traces import READ, WRITE, vscsi_records, write_vscsi


def test_a_known_load_comes_back_as_one_stream(tmp_path: Path) -> None:
    write_vscsi(tmp_path / "db01.vscsi", 20_011)
    model = fit([tmp_path / "db01.vscsi"])
    chosen = model.chosen
    assert model.is_within
    assert len(chosen.workload.io) == 1
    stream = chosen.workload.io[0]
    assert {size: round(share, -1) for size, share in stream.block.items()} == {4096: 50, 8192: 40, 65536: 10}
    assert stream.read_pct == pytest.approx(70.0, abs=2.0)
    assert stream.random_pct > 95.0
    assert stream.rate_iops is not None
    assert stream.rate_iops.read + stream.rate_iops.write == pytest.approx(1000.0, rel=0.02)
    assert stream.working_set == 16 * 2**20
    assert set(chosen.distances) == set(COMPARED)
    assert max(value for name, value in chosen.distances.items() if name != "burstiness") < 0.1
    again = parse_workload(model.text(), "model.yaml")
    assert again.io[0].block == stream.block
    assert again.io[0].working_set == stream.working_set
    assert fit([tmp_path / "db01.vscsi"]).text() == model.text()


def test_two_kinds_of_load_need_two_streams(tmp_path: Path) -> None:
    """Random reads of 8 KiB beside a log written from end to end in 64 KiB: one stream cannot be both."""
    records = vscsi_records(12_000)
    is_log = np.arange(len(records)) % 3 == 0
    records["cmd"] = np.where(is_log, WRITE, READ)
    records["len"] = np.where(is_log, 65536, 8192)
    records["lbn"][is_log] = 10**6 + np.arange(is_log.sum()) * 128
    records.tofile(tmp_path / "db01.vscsi")
    model = fit([tmp_path / "db01.vscsi"], within=0.12)
    by_count = {len(candidate.workload.io): candidate for candidate in model.candidates}
    assert by_count[2].distance < by_count[1].distance
    assert len(model.chosen.workload.io) == 2
    assert sorted(round(stream.read_pct, -1) for stream in model.chosen.workload.io) == [0.0, 100.0]
    assert sorted(stream.random_pct < 5.0 for stream in model.chosen.workload.io) == [False, True]


def test_pauses_become_bursts(tmp_path: Path) -> None:
    records = vscsi_records(4000)
    records["ts"] += (np.arange(4000) // 1000 * 3_000_000).astype(np.uint64)  # a second of load, three of none
    records.tofile(tmp_path / "db01.vscsi")
    model = fit([tmp_path / "db01.vscsi"])
    burst = model.candidates[0].workload.io[0].burst
    assert burst is not None
    assert burst.on_s == pytest.approx(1.0, rel=0.1)
    assert burst.off_s == pytest.approx(3.0, rel=0.1)


def test_what_cannot_be_modelled_is_said(tmp_path: Path) -> None:
    write_vscsi(tmp_path / "few.vscsi", 50)
    with pytest.raises(InputError, match="50 requests"):
        fit([tmp_path / "few.vscsi"])
    lines = ["fio version 2 iolog", "/d add", "/d open", *(f"/d read {n * 4096} 4096" for n in range(200))]
    (tmp_path / "untimed.iolog").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="no times"):
        fit([tmp_path / "untimed.iolog"])
    write_vscsi(tmp_path / "a.vscsi", 200)
    with pytest.raises(UsageError, match="--within"):
        fit([tmp_path / "a.vscsi"], within=0.0)
    with pytest.raises(UsageError, match="2 traces"):
        fit([tmp_path / "a.vscsi", tmp_path / "few.vscsi"])
    far = fit([tmp_path / "a.vscsi"], within=0.0001)
    assert not far.is_within
    assert "No workload of up to three streams" in far.text()
