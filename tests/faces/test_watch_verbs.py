"""`leadline watch` as people type it: from nothing to a running watch, and what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from leadline.core.model.vocabulary import Severity
from leadline.stores.incidents import IncidentStore, LiveIncident
from tests.command_line import BIN, leadline

S = 1_000_000_000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ready(home: Path) -> Path:
    (home / "watch.yaml").write_text("sources: [{name: me, collector: linux}]\npage: {listen: ''}\n")
    return home


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [BIN, "watch", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )


def wait_for_state(folder: Path, sample_count: int = 1) -> dict[str, object]:
    deadline = time.monotonic() + 60
    path = folder / "home" / "watch" / "state.json"
    while time.monotonic() < deadline:
        if path.exists():
            state: dict[str, object] = json.loads(path.read_text())
            if int(str(state["samples"])) >= sample_count:
                return state
        time.sleep(0.2)
    message = "the watch wrote no state in a minute"
    raise AssertionError(message)


def test_without_settings_it_says_how_to_begin(home: Path) -> None:
    done = leadline("watch", "status")
    assert done.returncode == 2
    assert "leadline watch init" in done.stderr


def test_init_writes_what_check_and_run_read(home: Path) -> None:
    assert leadline("watch", "init", "--yes").returncode == 0
    done = leadline("watch", "check", "--json")
    sources = json.loads(done.stdout)["sources"]
    assert sources[0]["kind"] == "linux"
    assert sources[0]["series"] > 30
    assert sources[0]["error"] == ""
    again = leadline("watch", "init", "--yes")
    assert again.returncode == 2, "a file that is there is not replaced"


def test_a_source_that_does_not_work_is_said(home: Path) -> None:
    (home / "watch.yaml").write_text("sources: [{name: db, collector: postgresql, target: 'host=/nowhere'}]\n")
    done = leadline("watch", "check")
    assert done.returncode == 4
    assert "does not work" in done.stdout
    assert "no connection" in done.stdout


def test_it_runs_keeps_samples_and_ends_by_a_signal(ready: Path) -> None:
    process = started(ready)
    try:
        wait_for_state(ready, 100)
        status = leadline("watch", "status", "--json")
        assert status.returncode == 0
        assert json.loads(status.stdout)["is_running"] is True
        second = leadline("watch", "run", "--seconds", "1")
        assert second.returncode == 2, "two watches on one store"
        assert str(process.pid) in second.stderr
    finally:
        process.send_signal(signal.SIGTERM)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "ended; what was sampled is kept" in talk
    assert leadline("watch", "status").returncode == 1
    shown = leadline("show", "store:", "-m", "guest_load_1m", "--json")
    assert json.loads(shown.stdout)["series"][0]["count"] >= 1


def test_a_watch_that_is_killed_loses_nothing_it_had_kept(ready: Path) -> None:
    process = started(ready, "-q")
    state = wait_for_state(ready, 300)
    process.kill()
    process.communicate(timeout=30)
    shown = leadline("show", "store:", "--json")
    counts = [one["count"] for one in json.loads(shown.stdout)["series"]]
    assert sum(counts) > 0
    again = started(ready, "-q", "--seconds", "2")
    again.communicate(timeout=60)
    assert again.returncode == 0
    assert state["samples"]


def test_incidents_notes_marks_and_maintenance(ready: Path) -> None:
    kept = IncidentStore(ready / "home" / "watch")
    now_ns = time.time_ns()
    incident = LiveIncident(
        id="20261126-120000-1",
        opened_ns=now_ns - 60 * S,
        seen_ns=now_ns,
        closed_ns=None,
        severity=Severity.HIGH,
        cause="disk-latency-high",
        entity="guest:db01/block-device:sdb",
        title="Yes, it is the disk: sdb",
        text="Yes, it is the disk: sdb\n\n  Users  slow",
    )
    kept.save(incident)
    assert "Yes, it is the disk" in leadline("watch", "incidents").stdout
    assert leadline("watch", "note", "last", "I look at it.", "--take").returncode == 0
    assert leadline("watch", "mark", "orders 4.2 deployed").returncode == 0
    whole = leadline("watch", "incidents", "last").stdout
    assert "I look at it." in whole
    assert "Users  slow" in whole
    assert leadline("watch", "incidents", "nope").returncode == 2
    assert "orders 4.2 deployed" in leadline("watch", "incidents", "last", "--json").stdout
    assert "vm:db*" in leadline("watch", "maintenance", "vm:db*", "--minutes", "5").stdout
    assert "No maintenance" in leadline("watch", "maintenance", "--end", "1").stdout


def test_a_test_notification_says_who_took_it(ready: Path) -> None:
    out = ready / "out.json"
    script = ready / "take.sh"
    script.write_text(f"#!/bin/sh\ncat > {out}\n")
    script.chmod(0o755)
    tell = f"tell: [{{name: dba, notifier: run-command, settings: {{command: ['{script}']}}}}]\n"
    with (ready / "watch.yaml").open("a") as stream:
        stream.write(tell)
    done = leadline("watch", "test-notification")
    assert (done.returncode, done.stdout) == (0, "dba: took it\n")
    assert json.loads(out.read_text())["state"] == "test"
    script.write_text("#!/bin/sh\nexit 3\n")
    done = leadline("watch", "test-notification", "dba")
    assert done.returncode == 4
    assert leadline("watch", "test-notification", "nobody").returncode == 2
