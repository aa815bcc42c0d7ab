"""A real VictoriaMetrics for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import ROOT

PLACES = os.pathsep.join([str(ROOT / ".tools" / "bin"), os.environ["PATH"]])
VICTORIA_METRICS = shutil.which("victoria-metrics", path=PLACES)
PROMETHEUS = shutil.which("prometheus", path=PLACES)
START_S = 30.0


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def running(words: list[str], port: int, folder: Path, ready: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that answers at a path; it is ended with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(words, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + START_S
        while not _answers(f"http://127.0.0.1:{port}{ready}"):
            text = (folder / "server.log").read_text(errors="replace")[-2000:]
            assert server.poll() is None and time.monotonic() < end, text
            time.sleep(0.1)
        yield server
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@contextmanager
def victoria_metrics(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a server that keeps its data in a folder for a hundred years, and its process."""
    assert VICTORIA_METRICS is not None
    port = free_port()
    words = [VICTORIA_METRICS, f"-storageDataPath={folder / 'data'}", f"-httpListenAddr=127.0.0.1:{port}"]
    words += ["-retentionPeriod=100y", "-loggerLevel=WARN", *options]
    with running(words, port, folder, "/health") as server:
        yield f"http://127.0.0.1:{port}", server


def flush(address: str, *, merge: bool = False) -> None:
    """Let what was written be seen by questions."""
    for path in ("/internal/force_flush", *(["/internal/force_merge"] if merge else [])):
        with urllib.request.urlopen(address + path, timeout=120):
            pass


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False
