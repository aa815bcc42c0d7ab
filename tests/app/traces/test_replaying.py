"""Replay: what is refused, what fio is told, and real replays on files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from leadline.app.traces.replaying import LOAD, ReplayAsk, Replayed, job_file, plan_replay, replay, speed_pct_of
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.faces.traces import show_replay
from tests.traces import write_vscsi

MIB = 2**20


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "db01.vscsi"
    write_vscsi(path, 997, mean_gap_us=2000)
    return path


def test_data_is_not_overwritten_unless_the_very_same_target_is_named(tmp_path: Path, trace: Path) -> None:
    held, other = tmp_path / "held.dat", tmp_path / "other.dat"
    for path in (held, other):
        path.write_bytes(b"x" * 2 * MIB)
    with pytest.raises(UsageError, match="--destroy-data"):
        plan_replay(trace, ReplayAsk(str(held)))
    with pytest.raises(UsageError, match="data that would be overwritten"):
        plan_replay(trace, ReplayAsk(str(held), destroy=str(other)))
    made = plan_replay(trace, ReplayAsk(str(held), destroy=str(held)))
    assert (made.is_made, made.read_only, made.size_bytes) == (False, False, 2 * MIB)
    write_vscsi(trace, 997, read_share=1.1)
    made = plan_replay(trace, ReplayAsk(str(held)))
    assert (made.is_made, made.read_only) == (False, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look at the root filesystem's device")
def test_a_mounted_device_is_refused_even_to_read(trace: Path) -> None:
    write_vscsi(trace, 100, read_share=1.1)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        device = line.split(" - ")[1].split()[1]
        if device.startswith("/dev/") and Path(device).is_block_device():
            with pytest.raises(UsageError, match="never writes to a mounted device"):
                plan_replay(trace, ReplayAsk(device, destroy=device))
            return
    pytest.skip("no mounted block device here")


def test_targets_and_options_that_cannot_be(tmp_path: Path, trace: Path) -> None:
    for ask, part in (
        (ReplayAsk(str(tmp_path / "none" / "file")), "no such folder"),
        (ReplayAsk("/dev/null"), "neither file nor block device"),
        (ReplayAsk(str(tmp_path), speed_pct=0), "--speed"),
        (ReplayAsk(str(tmp_path), lanes=0), "--lanes"),
        (ReplayAsk(str(tmp_path), seconds=-1.0), "--seconds"),
        (ReplayAsk(""), "an empty name"),
        (ReplayAsk(str(tmp_path), disk="db02"), "one of db01"),
    ):
        with pytest.raises(UsageError, match=part):
            plan_replay(trace, ask)
    (tmp_path / "tiny").write_bytes(b"x")
    with pytest.raises(UsageError, match="at least 1 MiB"):
        plan_replay(trace, ReplayAsk(str(tmp_path / "tiny"), destroy=str(tmp_path / "tiny")))
    (tmp_path / "garbage").write_text("hello\n")
    with pytest.raises(InputError, match="no I/O trace"):
        plan_replay(tmp_path / "garbage", ReplayAsk(str(tmp_path)))
    assert not list(tmp_path.glob("leadline-replay*"))


def test_fio_is_told_what_was_asked(tmp_path: Path, trace: Path) -> None:
    made = plan_replay(trace, ReplayAsk(str(tmp_path), speed_pct=200, flat_out=True))
    text = job_file(made, [tmp_path / "lane-0.iolog", tmp_path / "lane-1.iolog"])
    assert "replay_time_scale=200\n" in text
    assert "replay_no_stall=1\n" in text
    assert text.count("read_iolog=") == 2
    assert np.isnan(made.expected_s)
    assert plan_replay(trace, ReplayAsk(str(tmp_path), speed_pct=200, seconds=1.0)).expected_s == 0.5


def test_speed_is_a_factor_or_a_percentage() -> None:
    given = {"2": 200, "0.5": 50, "1": 100, "50x": 5000, "200%": 200, "0.001": 0}
    assert {text: speed_pct_of(text) for text in given} == given
    for text, advice in (("200", "Write 200%"), ("fast", "Write 2, 0.5"), ("-1", "Write 2, 0.5"), ("2%x", "150%")):
        with pytest.raises(UsageError, match="twice as fast") as caught:
            speed_pct_of(text)
        assert advice in str(caught.value)


def test_the_plan_says_how_offsets_are_mapped(tmp_path: Path, trace: Path) -> None:
    assert plan_replay(trace, ReplayAsk(str(tmp_path))).mapping_sentence == "offsets as in the trace"
    wrapped = plan_replay(trace, ReplayAsk(str(tmp_path), size_bytes=2 * MIB)).mapping_sentence
    assert wrapped == (
        "the trace uses 16 MiB, the target has 2: offsets beyond its end wrap around to its start; "
        "lengths as in the trace"
    )
    scaled = plan_replay(trace, ReplayAsk(str(tmp_path), size_bytes=2 * MIB, mapping="scale"))
    assert scaled.is_smaller
    assert "offsets times 0.12" in scaled.mapping_sentence


FORMATS = {
    "msr.csv": "128166372003061629,hm,0,Read,383496192,32768,1130\n128166372013061629,hm,0,Write,8192,4096,2000\n",
    "alibaba.csv": "7,R,126703644672,32768,1577808000000626\n7,W,8192,4096,1577808001000626\n",
    "tencent.csv": "1538323199,105352008,64,0,1576\n1538323200,16,8,1,1576\n",
    "vscsi.csv": "#Vscsi Cmd Trace. (Trace Format Version 2)\n"
    "#Serial Number,IO Data Length,Num SG Entries,Command Type,LBN,Time Stamp (us),Response Time (us)\n"
    "1,32768,1,read,24048792,2756778716647,250\n2,4096,1,write,16,2756779716647,1250\n",
    "blkparse.txt": "  8,0    1        1     0.000000000   100  D   R 24048792 + 64 [fio]\n"
    "  8,0    1        2     0.000250000   100  C   R 24048792 + 64 [0]\n"
    "  8,0    1        3     1.000000000   100  D   W 16 + 8 [fio]\n"
    "  8,0    1        4     1.001250000   100  C   W 16 + 8 [0]\n",
    "fio.iolog": "fio version 3 iolog\n0 /d add\n0 /d open\n10 /d read 12312981504 32768\n1000010 /d write 8192 4096\n",
}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_is_planned(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FORMATS[name])
    made = plan_replay(tmp_path / name, ReplayAsk(str(tmp_path), speed_pct=200, size_bytes=2 * MIB))
    assert (made.disk.request_count, made.disk.facts["read_bytes"], made.disk.facts["write_bytes"]) == (2, 32768, 4096)
    assert made.expected_s == pytest.approx(0.5)
    assert made.is_smaller


@pytest.mark.real
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_is_replayed_on_a_small_target(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FORMATS[name])
    folder = tmp_path / "scratch"
    folder.mkdir()
    ask = ReplayAsk(str(folder), speed_pct=400, size_bytes=MIB, lanes=2, mapping="scale")
    done = _replayed(tmp_path / name, ask)
    assert not list(folder.iterdir())
    assert done.replay.request_count == 2
    assert done.replay.facts["end_bytes"] <= MIB
    assert done.replay.duration_s == pytest.approx(0.25, abs=0.1)
    assert done.punctuality.request_count == 2


def _replayed(trace: Path, ask: ReplayAsk) -> Replayed:
    said: list[str] = []
    done = replay(plan_replay(trace, ask), said.append)
    assert any("replaying" in text for text in said)
    return done


@pytest.mark.real
def test_a_replay_is_like_its_trace_and_leaves_nothing(
    tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    done = _replayed(trace, ReplayAsk(str(folder)))
    assert not list(folder.iterdir())
    assert done.replay.request_count == done.original.request_count == 997
    assert done.replay.facts["write_bytes"] == done.original.facts["write_bytes"]
    found = {part.name: part.distance for part in done.likeness}
    assert found["size"] == found["read share"] == 0.0
    assert found["interarrival"] < 0.2
    assert found["seek distance"] < 0.2
    assert 0.0 <= found["latency"] <= 1.0
    assert set(LOAD) <= set(found)
    assert done.to_dict()["sentence"].startswith("The load was")
    show_replay(done)
    shown = capsys.readouterr().out
    assert "(the target's)" in shown
    assert shown.count("recorded") == 3
    assert done.punctuality.request_count == 997
    assert 0.0 <= done.punctuality.late_ms_p50 <= done.punctuality.late_ms_max
    assert done.to_dict()["punctuality"]["request_count"] == 997


@pytest.mark.real
def test_a_smaller_target_folds_and_speed_shortens(tmp_path: Path, trace: Path) -> None:
    target = tmp_path / "target.dat"
    target.write_bytes(os.urandom(2 * MIB))
    done = _replayed(trace, ReplayAsk(str(target), destroy=str(target), speed_pct=400, seconds=1.6))
    assert target.stat().st_size == 2 * MIB
    assert any("folded" in note for note in done.notes)
    assert done.original.duration_s == pytest.approx(0.4, rel=0.1)
    assert done.replay.facts["end_bytes"] <= 2 * MIB
    flat = _replayed(trace, ReplayAsk(str(target), destroy=str(target), flat_out=True))
    assert np.isnan({part.name: part.distance for part in flat.likeness}["interarrival"])
    assert flat.replay.request_count == 997


@pytest.mark.real
def test_a_missing_fio_is_one_error(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan_replay(trace, ReplayAsk(str(tmp_path)))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolError, match="not installed"):
        replay(made, lambda _: None)
    assert not list(tmp_path.glob("leadline-replay*"))


@pytest.mark.real
def test_ctrl_c_ends_fio_within_a_second_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    write_vscsi(tmp_path / "long.vscsi", 3000, mean_gap_us=10_000)
    words = [str(Path(sys.executable).parent / "leadline"), "trace", "replay", str(tmp_path / "long.vscsi")]
    words += ["--on", str(folder), "--yes"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("replaying"):
            break
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, talk = process.communicate(timeout=20)
    assert time.monotonic() - began < 4.0
    assert process.returncode == 130, talk
    assert "interrupted; nothing was left behind" in talk
    assert not list(folder.iterdir())
    running = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, text=True, check=False)
    assert running.stdout == ""
