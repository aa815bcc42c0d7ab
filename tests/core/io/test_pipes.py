"""Recordings that come through pipes."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from leadline.app.read import opening
from leadline.app.read.opening import open_sources
from leadline.core.io import pipes
from leadline.core.model.errors import InputError, LimitError
from tests.importers.load_tools import SEEDS

GOOD = (SEEDS / "perfmon-en.tsv").read_bytes()
SHOW = f"{sys.executable} -c 'from leadline.faces.cli.main import run; run()' diagnose --json"


@pytest.fixture(name="fifo")
def _fifo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("WRITER_PATIENCE_S", "FIRST_PATIENCE_S", "NEXT_PATIENCE_S"):
        monkeypatch.setattr(pipes, name, 0.3 if name.startswith("W") else 0.6)
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def writing(fifo: Path, *pieces: bytes, then: threading.Event | None = None) -> threading.Thread:
    def write() -> None:
        with fifo.open("wb", buffering=0) as stream:
            for piece in pieces:
                stream.write(piece)
            if then is not None:
                then.wait(10)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.parametrize("content", [GOOD, gzip.compress(GOOD), b""], ids=["plain", "gz", "nothing"])
def test_what_comes_through_a_fifo_is_read(fifo: Path, content: bytes) -> None:
    thread = writing(fifo, content[:100], content[100:])
    with open_sources([fifo]) as opened:
        assert [(s.name, s.named, s.content()) for s in opened.sources] == [(str(fifo), True, GOOD if content else b"")]
    thread.join()


def test_a_fifo_nobody_writes_to_is_an_error(fifo: Path) -> None:
    with pytest.raises(InputError, match=r"nobody has written to for 0\.3 s"), open_sources([fifo]):
        pass


@pytest.mark.parametrize("pieces", [(), (b"begun",)])
def test_a_writer_who_falls_silent_is_an_error(fifo: Path, pieces: tuple[bytes, ...]) -> None:
    done = threading.Event()
    thread = writing(fifo, *pieces, then=done)
    with pytest.raises(InputError, match=r"nothing has come for 0\.6 s"), open_sources([fifo]):
        pass
    done.set()
    thread.join()


def test_a_pipe_without_end_stops_at_the_limit(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "UNPACKED_BYTES_MAX", 1000)
    thread = writing(fifo, bytes(2000))
    with pytest.raises(LimitError, match="more than"), open_sources([fifo]):
        pass
    thread.join()


def test_no_room_for_what_comes_says_so(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open
    full = Path("/dev/full")
    monkeypatch.setattr(
        Path, "open", lambda self, *how, **rest: real(full if how[:1] == ("wb",) else self, *how, **rest)
    )
    thread = threading.Thread(target=lambda: os.write(os.open(fifo, os.O_WRONLY), b"begun"))
    thread.start()
    with pytest.raises(LimitError, match="No space left on device"), open_sources([fifo]):
        pass
    thread.join()


@pytest.mark.parametrize("words", [f"{SHOW} - < $0", f"cat $0 | {SHOW} -"], ids=["file", "pipe"])
def test_standard_input_is_read(words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", words, str(SEEDS / "perfmon-en.tsv")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr
    assert '"name": "standard input"' in done.stdout


def test_process_substitution_is_read() -> None:
    words = f"{SHOW} <(cat $0) <(sed s/12/13/ $0)"
    done = subprocess.run(
        ["bash", "-c", words, str(SEEDS / "perfmon-en.tsv")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr
    assert done.stdout.count('"name": "/dev/fd/') == 2


def test_a_trace_through_a_pipe_is_read(fifo: Path, fixtures: Path) -> None:
    from leadline.app.traces.tracing import characterise

    iolog = b"fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda close\n"
    thread = writing(fifo, iolog)
    reports, _ = characterise([fifo])
    thread.join()
    assert [report.files.format for report in reports] == ["fio-iolog"]


def test_a_recording_that_grows_is_read_to_the_size_it_had(tmp_path: Path) -> None:
    from leadline.core.io.source import Source

    path = tmp_path / "grows"
    path.write_bytes(b"a" * 100)
    real = os.fstat

    def grown(handle: int) -> os.stat_result:
        found = real(handle)
        with path.open("ab") as stream:
            stream.write(b"b" * 100)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fstat", grown)
        content = Source("grows", path).content()
    assert content == b"a" * 100
