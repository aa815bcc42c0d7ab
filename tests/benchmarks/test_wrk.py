"""The wrk driver: its words, what it refuses, real runs on servers of our own, and what is left after a kill."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from leadline.app.measure.benching import capture_of, driver_of, plan, run
from leadline.benchmarks import wrk
from leadline.benchmarks._web import throwaway_nginx
from leadline.benchmarks._web.wrk_script import SECOND, script_of
from leadline.core.contracts.benchmark import LoadPlan, Step
from leadline.core.contracts.honoured import LoadState, WebLoad, compare
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick
from leadline.core.model.workload import Workload, find_workload, parse_workload
from leadline.core.system.leftovers import remove_leftovers
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore

missing = [name for name in ("wrk", "nginx") if find_program(name) is None]
needs_both = pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} not installed")
SMALL = "connections: 4, threads: 2, page: 2k"


def workload(settings: str = SMALL, timing: str = "warm_up_s: 0, measure_s: 1, rounds: 1") -> Workload:
    return parse_workload(f"name: t\nweb: {{{settings}}}\ntiming: {{{timing}}}\n", "t.yaml")


def processes_of(folder: Path) -> list[int]:
    """Processes that name a folder on their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(folder) in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def keep_going(_: Tick) -> bool:
    return True


@contextmanager
def ready(load_plan: LoadPlan, folder: Path) -> Iterator[None]:
    try:
        wrk.prepare(load_plan, folder, lambda _: None)
        yield
    finally:
        wrk.clean(load_plan)


@contextmanager
def server(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Another server, which answers everything alike and keeps the methods it was asked by."""
    methods: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            methods.append(self.command)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    listening.daemon_threads = True
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}/x?y=1", methods
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def test_a_workload_becomes_words() -> None:
    assert driver_of(workload())[0] == "wrk"
    settings = wrk.settings_of(workload())
    words = wrk.command(settings, Step("round-1", 5.4, 7), "http://h/")
    assert words == ["wrk", "-t", "2", "-c", "4", "-d", "5s", "-s", "round-1.lua", "http://h/"]
    assert find_workload("web-pages").web == wrk.settings_of(workload("connections: 16"))


def test_the_script_cannot_be_left_by_a_url() -> None:
    settings = wrk.settings_of(workload())
    script = script_of(settings, 'http://h/"]]--%5', "round-1/wrk.json")
    assert "http" not in script
    assert 'file:write("\\123\\034' in script


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("connections: 5, threads: 2", "multiple of threads"),
        ("rate: 100", "wrk offers no rate"),
        ("rate_per_s: 100", "wrk offers no rate"),
        ("page: 65m", "67108864"),
    ],
)
def test_loads_that_cannot_be(settings: str, complaint: str) -> None:
    with pytest.raises(Exception, match=complaint):
        workload(settings)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("https://h/", "neither `new`"),
        ("/nowhere/at/all", "neither `new`"),
        ("nbd://h/x", "neither `new`"),
        ("http://", "no URL"),
        ("http:///x", "no URL"),
        ("http://h:99999/", "no URL"),
        ("http://h/a b", "no URL"),
        ("http://h/\n", "no URL"),
        ("http://h/ü", "no URL"),
        ("http://h/" + 2000 * "x", "no URL"),
        ("http://me:hunter22@h/", "password"),
    ],
)
def test_targets_that_cannot_be(name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        plan(workload(), Target(name))


def test_a_url_is_said_to_be_loaded_and_nothing_is_touched() -> None:
    planned = plan(workload(), Target("http://web1/x"))
    assert planned.read_only
    assert planned.written_bytes == 0
    assert "http://web1/x is loaded: 4 connections" in planned.notes[0]


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / throwaway_nginx.FOLDER).mkdir()
    with pytest.raises(UsageError, match="there already"):
        plan(workload(), Target(str(tmp_path)))
    odd = tmp_path / "a$b"
    odd.mkdir()
    with pytest.raises(UsageError, match="in its own way"):
        plan(workload(), Target(str(odd)))


def test_seconds_of_threads_become_seconds_of_all() -> None:
    tick_of = wrk._ticks(2)
    lines = [
        f"{SECOND} 0 10",
        f"{SECOND} 0 11",
        "Running 3s test @ x",
        f"{SECOND} 1 5",
        f"{SECOND} 2 6",
        f"{SECOND} x 6",
    ]
    assert list(filter(None, map(tick_of, lines))) == [Tick(1.0, 21.0)]
    ticks = list(filter(None, map(tick_of, [f"{SECOND} 3 7", f"{SECOND} 1 4", f"{SECOND} 2 1"])))
    assert [(tick.elapsed_s, tick.per_s) for tick in ticks] == [(2.0, 5.0), (3.0, 10.0), (4.0, 8.0)]  # late ones


def web_load(**changes: Any) -> WebLoad:
    """Four connections and pages of 2 KiB for two seconds, as asked."""
    load = WebLoad(2.05, 1000.0, 7.9, 1000.0 * (2048 + 250), is_our_page=True)
    return replace(load, **changes)


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, []),
        ({"busy_s": 4.2}, []),
        ({"busy_s": 4.0}, ["connections"]),  # under half of what should be in flight
        ({"busy_s": 9.1}, ["connections"]),  # more than there are
        ({"requests": 0.0}, ["connections"]),
        ({"duration_s": 4.5, "busy_s": 17.0}, ["measure_s"]),
        ({"received_bytes": 1000.0 * 2047}, ["page"]),
        ({"received_bytes": 1000.0 * (2048 + 1100)}, ["page"]),
        ({"received_bytes": 1000.0 * 99, "is_our_page": False}, []),
    ],
)
def test_a_load_is_compared_with_its_workload(changes: dict[str, float], broken: list[str]) -> None:
    checks = compare(workload(), [web_load(**changes)], 2.0)
    assert [check.key for check in checks if check.state is LoadState.BROKEN] == broken


@pytest.mark.real
@needs_both
def test_a_run_has_every_request_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    store = RunStore(tmp_path / "home")
    done = run(plan(workload(timing="warm_up_s: 1, measure_s: 2, rounds: 2"), Target(str(folder))), store, seed=7)
    assert list(folder.iterdir()) == []
    assert processes_of(folder) == []
    (pooled,) = done.pooled()
    assert pooled.name == "web http request"
    documents = [json.loads((store.files_of(done.id) / f"round-{n}" / "wrk.json").read_text()) for n in (1, 2)]
    assert pooled.histogram is not None
    assert pooled.histogram.total == pooled.count == sum(document["requests"] for document in documents)
    rates = [document["requests"] / document["duration_us"] * 1e6 for document in documents]
    assert pooled.per_s == pytest.approx(sum(rates) / 2, rel=0.05)
    assert pooled.bytes_per_s / pooled.per_s == pytest.approx(2048 + 256, abs=64)
    for part, document in zip(done.rounds, documents, strict=True):
        assert len(part.ticks) >= 1
        assert sum(tick.per_s for tick in part.ticks) <= document["requests"] + 4 + 1
    assert not any("honoured" in note for note in done.notes)
    recorded = capture_of(done.id, store)
    assert [result.operations[0].count for result in recorded.results] == [each["requests"] for each in documents]
    assert {source.importer for source in recorded.sources} >= {"wrk"}


@pytest.mark.real
@needs_both
def test_the_server_has_its_own_folder_and_serves_no_other_file(tmp_path: Path) -> None:
    planned = plan(workload(), Target(str(tmp_path)))
    base = Path(planned.places[wrk.PLACE].path)
    with ready(planned, tmp_path):
        url = throwaway_nginx.url_of(base)
        assert base.stat().st_mode & 0o077 == 0
        port = int(url.split(":")[2].split("/")[0])
        for path, status in (("/page", b"200"), ("/", b"403"), ("/nginx.conf", b"404"), ("/../nginx.conf", b"400")):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
                peer.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                assert peer.recv(64).split()[1] == status, path
        opened = [str(link.readlink()) for link in Path(f"/proc/{processes_of(base)[0]}/fd").iterdir()]
        files = [name for name in opened if name.startswith("/") and not name.startswith(("/dev/null", str(tmp_path)))]
        assert files == []
    assert not base.exists()
    with pytest.raises(ToolError, match="no server"):
        throwaway_nginx.url_of(base)


@pytest.mark.real
@needs_both
def test_a_taken_port_is_left_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(workload(), Target(str(tmp_path)))
    free = throwaway_nginx._free_port
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1]])
        monkeypatch.setattr(throwaway_nginx, "_free_port", lambda: next(ports, None) or free())
        with ready(planned, tmp_path):
            assert str(taken.getsockname()[1]) not in throwaway_nginx.url_of(Path(planned.places[wrk.PLACE].path))


@pytest.mark.real
@needs_both
def test_a_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(workload(), Target(str(tmp_path)))
    broken = throwaway_nginx._CONFIGURATION.replace("sendfile on", "sendfile perhaps")
    monkeypatch.setattr(throwaway_nginx, "_CONFIGURATION", broken)
    with pytest.raises(ToolError, match="sendfile"), ready(planned, tmp_path):
        pass
    assert not Path(planned.places[wrk.PLACE].path).exists()


@pytest.mark.real
@needs_both
def test_a_warm_up_ends_when_it_is_told_to(tmp_path: Path) -> None:
    planned = plan(workload(), Target("new"))
    seen: list[Tick] = []

    def enough(tick: Tick) -> bool:
        seen.append(tick)
        return False

    with ready(planned, tmp_path):
        began = time.monotonic()
        measured = wrk.measure(planned, Step("warm-up", 60.0, 1), tmp_path, enough)
    assert time.monotonic() - began < 15.0
    assert measured.ended_early
    assert measured.loads == ()
    assert seen[0].per_s > 0
    assert measured.files[0].is_file()


@pytest.mark.real
@needs_both
def test_a_url_is_asked_by_get_alone(tmp_path: Path) -> None:
    with server(200, b"hello") as (url, methods):
        measured = wrk.measure(plan(workload(), Target(url)), Step("round-1", 1.0, 1), tmp_path, keep_going)
    assert set(methods) == {"GET"}
    assert measured.commands[0][-1] == url
    document = json.loads(measured.files[0].read_text())
    assert document["url"] == url
    assert 0 < document["requests"] <= len(methods)
    assert document["errors"]["status"] == 0


@pytest.mark.real
@needs_both
def test_a_page_that_is_not_there_fails_the_run(tmp_path: Path) -> None:
    with server(404, b"none") as (url, _), pytest.raises(ToolError, match="status of 400 or above"):
        wrk.measure(plan(workload(), Target(url)), Step("round-1", 1.0, 1), tmp_path, keep_going)
    assert json.loads((tmp_path / "round-1" / "wrk.json").read_text())["errors"]["status"] > 0


@pytest.mark.real
@needs_both
def test_a_server_that_is_not_there_fails_the_run(tmp_path: Path) -> None:
    port = throwaway_nginx._free_port()
    with pytest.raises(ToolError, match="unable to connect"):
        wrk.measure(plan(workload(), Target(f"http://127.0.0.1:{port}/")), Step("r", 1.0, 1), tmp_path, keep_going)


_KILLED = """
import sys
from pathlib import Path
from leadline.benchmarks import wrk
from leadline.core.contracts.load_target import Target
from leadline.core.contracts.benchmark import Step
from leadline.core.model.workload import parse_workload
planned = wrk.plan(parse_workload("name: t\\nweb: {connections: 4, page: 2k}\\n", "t.yaml"), Target(sys.argv[1]))
wrk.prepare(planned, Path(sys.argv[2]), print)
print("ready", flush=True)
wrk.measure(planned, Step("round-1", 60.0, 1), Path(sys.argv[2]), lambda tick: True)
"""


@pytest.mark.real
@needs_both
def test_a_kill_leaves_nothing_that_the_next_start_does_not_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, talk = tmp_path / "scratch", tmp_path / "talk"
    folder.mkdir()
    talk.mkdir()
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    words = [sys.executable, "-c", _KILLED, str(folder), str(talk)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        while "ready" not in killed.stdout.readline():
            assert killed.poll() is None
        base = folder / throwaway_nginx.FOLDER
        deadline = time.monotonic() + 10.0
        while not (talk / "round-1.txt").is_file() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert base.is_dir()
        killed.send_signal(signal.SIGKILL)
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(folder) == []
    assert [leftover.path for leftover in remove_leftovers()] == [str(base)]
    assert list(folder.iterdir()) == []
