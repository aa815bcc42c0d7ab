"""A fleet whose workers are reached over SSH: a vCenter of ours, an SSH server, a stand-in for vdbench behind it."""

from __future__ import annotations

import getpass
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.app.fleet.file import read_fleet
from leadline.app.fleet.fleet import FleetTalk, run_fleet
from leadline.app.fleet.order import prepare
from leadline.core.system.secret import Secret
from leadline.core.system.tools import VDBENCH_VARIABLE
from leadline.stores.runs import RunStore
from tests import sshd
from tests.command_line import leadline
from tests.conftest import ROOT
from tests.fleets import SECRET, Estate, estate, needs_simulator

pytestmark = [*needs_simulator, pytest.mark.skipif(sshd.missing() is not None, reason=str(sshd.missing()))]
STAND_IN = ROOT / "tests" / "benchmarks" / "vdbench_stand_in.py"
ADDRESSES = ("127.0.0.2", "127.0.0.3")
WORKLOAD = "name: t\nio: [{name: oltp, block: 8k, read_pct: 70}]\nio_settings: {tool: vdbench}\n"


@dataclass
class SshEstate:
    """A vCenter of ours with an SSH server at the addresses of its workers."""

    estate: Estate
    server: sshd.Server
    folder: Path


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshEstate]:
    """The estate; vdbench and Java are on its workers, and one key of all of them is known."""
    for name in ("ssh", "bin", "vdbench50407", "target"):
        (tmp_path / name).mkdir()
    words = f'{shlex.quote(sys.executable)} {shlex.quote(str(STAND_IN))} "$@"'
    for path, text in (("vdbench50407/vdbench", f"exec {words}"), ("bin/java", "echo 'openjdk 17' >&2")):
        (tmp_path / path).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / path).chmod(0o755)
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    with sshd.ssh_server(tmp_path / "ssh", path=path, addresses=ADDRESSES) as server, estate(tmp_path) as own:
        monkeypatch.setenv("HOME", str(server.home))
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
        monkeypatch.setenv(VDBENCH_VARIABLE, str(tmp_path / "vdbench50407"))
        known = server.home / ".ssh" / "known_hosts"
        key = known.read_text().splitlines()[0].partition(" ")[2]
        known.write_text(f"[127.0.0.*]:{server.port} {key}\n")
        before = own.names()
        yield SshEstate(own, server, tmp_path)
        assert own.names() == before
        assert list((tmp_path / "target").iterdir()) == []


def test_workers_are_loaded_by_vdbench_over_ssh_and_removed(there: SshEstate) -> None:
    file = there.estate.file(
        load__workload="w.yaml",
        load__paths=str(there.folder / "target"),
        load__ssh_user=getpass.getuser(),
        load__ssh_port=there.server.port,
    )
    prepared = prepare(read_fleet(file), there.folder, lambda: Secret(SECRET))
    assert prepared.problems == []
    assert prepared.load is not None
    assert prepared.access is not None
    store = RunStore(there.folder / "store")
    talk = FleetTalk(lambda _: None, lambda _, __: None)
    done = run_fleet(prepared.plan, prepared.access, prepared.load, talk, store)
    assert done.hosts is not None
    assert [host.error for host in done.hosts.hosts] == [None, None]
    assert {host.host.address for host in done.hosts.hosts} == {
        f"ssh://{getpass.getuser()}@{address}:{there.server.port}" for address in ADDRESSES
    }
    assert done.hosts.per_s == pytest.approx(2000.0)
    assert done.hosts.percentiles_ms()
    assert store.get(done.run_id).tool == "vdbench"


def test_an_easy_fleet_is_loaded_by_vdbench_over_ssh(there: SshEstate) -> None:
    where = ("--vcenter", f"https://bench@127.0.0.1:{there.estate.port}", "--insecure", "--cluster", "DC0_C0")
    what = ("--datastore", "LocalDS_0", "--template", "fio-template", "--workers", "2")
    times = ("--set-size", "4m", "--seconds", "2", "--rounds", "1", "--warm-up", "0", "--address-wait", "60")
    login = ("--tool", "vdbench", "--ssh-user", getpass.getuser(), "--ssh-port", str(there.server.port))
    load = ("--path", str(there.folder / "target"), "--profile", "hci-8k-50-50", "--profile", "hci-4k-read")
    words = ("bench", "fleet", "--easy", *where, *what, *times, *login, *load, "--yes", "--json")
    home = there.folder / "home"
    env = {**os.environ, "LEADLINE_HOME": str(home), "LEADLINE_PASSWORD": SECRET}
    done = leadline(*words, cwd=there.folder, env=env)
    assert done.returncode == 0, done.stderr
    store = RunStore(home)
    runs = [store.get(run.id) for run in store.list()]
    assert [(run.tool, run.state) for run in runs] == [("vdbench", "done")] * 2
    assert {sum(part.per_s for part in run.pooled()) for run in runs} == {2000.0}
