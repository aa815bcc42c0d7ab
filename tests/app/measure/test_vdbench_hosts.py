"""Hosts that vdbench loads: a real SSH server on loopback, and a stand-in for vdbench behind it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.app.bench.hosts import run_hosts
from leadline.app.measure import remote_scripts
from leadline.app.measure.hosts import Host, HostsOptions, HostsResult, load_hosts, require_loadable
from leadline.app.measure.remote_hosts import MachineWish, _require_loadable
from leadline.app.measure.remote_scripts import objection, read_check
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system.ssh import Login
from leadline.core.system.tools import VDBENCH_VARIABLE
from leadline.stores.runs import RunStore
from tests import sshd
from tests.conftest import ROOT

NO_SSH = sshd.missing()
needs_ssh = [pytest.mark.real, pytest.mark.skipif(NO_SSH is not None, reason=str(NO_SSH))]
STAND_IN = ROOT / "tests" / "benchmarks" / "vdbench_stand_in.py"


@dataclass
class Bench:
    """A machine with vdbench and Java, and a folder for its load."""

    server: sshd.Server
    folder: Path
    target: Path

    def program(self, fault: str = "", second: float = 0.05) -> None:
        """Put the stand-in where vdbench is to be, with a fault."""
        script = self.folder / "vdbench50407" / "vdbench"
        words = f'{shlex.quote(sys.executable)} {shlex.quote(str(STAND_IN))} "$@"'
        script.write_text(f"#!/bin/sh\nSTAND_IN_FAULT={fault} STAND_IN_SECOND={second} {words}\nexit $?\n")
        script.chmod(0o755)

    def load(self, *labels: str, measure_s: int = 3) -> HostsResult:
        """Load the machine, as often as there are labels, at once."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        hosts = [Host(self.server.address, str(self.target), label=label) for label in labels or ("one",)]
        return load_hosts(workload(measure_s), hosts, work, seed=1, say=lambda _: None)

    def programs(self) -> list[str]:
        """Command lines of the stand-in that work in the folder."""
        lines = [_command_line(path) for path in Path("/proc").glob("[0-9]*")]
        return [line for line in lines if STAND_IN.name in line and "leadline-" in line]


def _command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A machine; its user's home is ours, and its Java says which version it is."""
    for name in ("ssh", "bin", "vdbench50407", "target"):
        (tmp_path / name).mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    with sshd.ssh_server(tmp_path / "ssh", path=f"{tmp_path / 'bin'}:/usr/bin:/bin") as server:
        monkeypatch.setenv("HOME", str(server.home))
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
        monkeypatch.setenv(VDBENCH_VARIABLE, str(tmp_path / "vdbench50407"))
        machine = Bench(server, tmp_path, tmp_path / "target")
        machine.program()
        yield machine
        assert not machine.programs()


def workload(measure_s: int = 3, stream: str = "read_pct: 70", settings: str = "", warm_up_s: int = 0) -> Workload:
    return parse_workload(
        f"name: t\nio: [{{name: oltp, block: 8k, {stream}}}]\n"
        f"io_settings: {{tool: vdbench, working_set: 2m{settings}}}\n"
        f"timing: {{warm_up_s: {warm_up_s}, measure_s: {measure_s}, rounds: 1}}\n",
        "t.yaml",
    )


class TestVdbenchOverSsh:
    """What needs an SSH server."""

    pytestmark = needs_ssh

    def test_two_hosts_are_loaded_together_and_pooled(self, bench: Bench) -> None:
        done = bench.load("a", "b")
        assert [host.error for host in done.hosts] == [None, None]
        assert [host.per_s for host in done.hosts] == pytest.approx([1000.0, 1000.0])
        assert done.bytes_per_s == pytest.approx(2000 * 8192, rel=1e-3)
        (part,) = done.rounds
        assert {tick.per_s for tick in part.ticks} == {2000.0}
        assert [tick.elapsed_s for tick in part.ticks] == [1.0, 2.0, 3.0], "the first second is in no average"
        assert {result.host for result in part.results} == {"a", "b"}
        assert {result.tool_version for result in part.results} == {"5.04.07"}
        assert done.histogram is not None
        assert done.histogram.total == 2 * 3000
        assert done.hosts[0].facts["java"] == 'openjdk version "17.0.1"'
        assert 0.0 <= done.start_spread_s < 10.0
        assert list(bench.target.iterdir()) == []

    def test_a_run_is_kept_with_parameters_and_reports_of_each_host(self, bench: Bench) -> None:
        store = RunStore(bench.folder / "store")
        hosts = [Host(bench.server.address, str(bench.target))]
        run, done = run_hosts(workload(warm_up_s=3), hosts, store, say=lambda _: None)
        assert done.hosts[0].error is None
        assert (run.state, run.tool, run.tool_version) == ("done", "vdbench", "5.04.07")
        files = store.files_of(run.id)
        parameters = (files / "host-1-round-1.vdbench").read_text()
        assert "size=2097152,threads=1,openflags=o_direct" in parameters
        assert str(bench.target) not in parameters, "vdbench is given no path that a user named"
        for name in ("host-1-round-1/flatfile.html", "host-1-round-1/histogram.html", "host-1-warm-up.txt"):
            assert (files / name).stat().st_size > 100
        assert {result.tool for part in store.get(run.id).rounds for result in part.results} == {"vdbench"}
        program = str(bench.folder / "vdbench50407" / "vdbench")
        assert (program, "-f", "host-1-round-1.vdbench", "-o", "host-1-round-1") in run.commands

    def test_without_a_histogram_latency_is_not_measured(self, bench: Bench) -> None:
        bench.program("no-histogram")
        done = bench.load()
        (host,) = done.hosts
        assert (host.error, host.histogram) == (None, None)
        assert host.per_s == pytest.approx(1000.0)
        assert host.p95_ms != host.p95_ms
        assert done.percentiles_ms() == {}
        assert done.per_s == pytest.approx(1000.0)

    @pytest.mark.parametrize(
        ("fault", "part"),
        [("stack", "vdbench failed: Open for lun"), ("stopped", "round-1: its report"), ("java", "java: command not")],
    )
    def test_a_failure_is_that_of_the_host_with_the_reason_of_vdbench(
        self, bench: Bench, fault: str, part: str
    ) -> None:
        bench.program(fault)
        (host,) = bench.load().hosts
        assert host.error is not None
        assert part in host.error
        assert list(bench.target.iterdir()) == []

    def test_a_host_without_vdbench_is_not_loaded(self, bench: Bench) -> None:
        (bench.folder / "vdbench50407" / "vdbench").unlink()
        error = bench.load().hosts[0].error
        assert error is not None
        assert f"no vdbench there ({bench.folder}/vdbench50407); expected vdbench under the same path" in error
        assert list(bench.target.iterdir()) == []

    def test_a_device_is_loaded_where_it_is_named(self, bench: Bench) -> None:
        backing = bench.folder / "backing"
        backing.write_bytes(bytes(2**23))
        words = ["losetup", "-f", "--show", str(backing)]
        made = subprocess.run(words, check=False, capture_output=True, text=True) if shutil.which("losetup") else None
        if made is None or made.returncode:
            pytest.skip("no loop device can be made here")
        device = made.stdout.strip()
        host = Host(bench.server.address, device)
        (bench.folder / "work").mkdir()
        try:
            refused, done = (
                load_hosts(
                    workload(stream="read_pct: 50"),
                    [host],
                    bench.folder / "work",
                    seed=1,
                    say=lambda _: None,
                    options=HostsOptions(destroy=destroy),
                ).hosts[0]
                for destroy in ((), (device,))
            )
        finally:
            subprocess.run(["losetup", "-d", device], check=True)
        assert f"--destroy-data {device}" in str(refused.error)
        assert done.error is None
        assert done.per_s == pytest.approx(1000.0)
        parameters = (bench.folder / "work" / "host-1-round-1.vdbench").read_text()
        assert f"lun={device},size=2097152," in parameters
        assert backing.read_bytes()[: 2**20] != bytes(2**20)

    def test_ctrl_c_ends_the_load_and_leaves_nothing_there(self, bench: Bench) -> None:
        bench.program(second=1.0)
        _when_loaded(bench, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            bench.load(measure_s=60)
        _until_nothing_is_left(bench)

    def test_a_connection_that_breaks_leaves_nothing_there(self, bench: Bench) -> None:
        bench.program(second=1.0)

        def cut() -> None:
            children = Path(f"/proc/{bench.server.pid}/task/{bench.server.pid}/children").read_text()
            for child in children.split():
                os.kill(int(child), signal.SIGKILL)

        _when_loaded(bench, cut)
        error = bench.load(measure_s=60).hosts[0].error
        assert error is not None
        assert "connection" in error.lower()
        _until_nothing_is_left(bench)


def _when_loaded(bench: Bench, act: Callable[[], None]) -> None:
    """Act once the first interval of a round is printed."""

    def work() -> None:
        talk = bench.folder / "work" / "host-1-round-1.txt"
        deadline = time.monotonic() + 60
        while not (talk.exists() and "Starting RD" in talk.read_text()) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1.5)
        act()

    threading.Thread(target=work, daemon=True).start()


def _until_nothing_is_left(bench: Bench) -> None:
    deadline = time.monotonic() + 20
    while list(bench.target.iterdir()) or bench.programs():
        assert time.monotonic() < deadline, "something is left there"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("address", "path", "settings", "stream", "part"),
    [
        ("db1", "/srv", "", "", "a fio server, which starts no vdbench"),
        ("ssh://db1", "nbd://x/disk", "", "", "an export; expected a folder"),
        ("ssh://db1", "/dev/sdb", ", buffered: true", "", "direct I/O, without which vdbench opens no device"),
        ("ssh://db1", "/srv", "", "think_time_s: 1", "stream oltp: think_time_s"),
    ],
)
def test_what_vdbench_cannot_do_on_hosts_is_refused_before_any_is_reached(
    address: str, path: str, settings: str, stream: str, part: str
) -> None:
    with pytest.raises(UsageError) as caught:
        require_loadable(workload(3, stream or "read_pct: 70", settings), [Host(address, path)])
    assert part in str(caught.value)


def test_the_folder_of_vdbench_is_a_plain_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VDBENCH_VARIABLE, "/opt/my vdbench")
    with pytest.raises(UsageError, match="the same on every host"):
        require_loadable(workload(), [Host("ssh://db1", "/srv")])


def test_a_host_that_vdbench_loads_needs_no_fio() -> None:
    checked = read_check("kind=folder\nwritable=yes\nspace=1000000 500000\nchecked=yes\n")
    assert objection(checked, "/x", 1, destroy=False, tool="vdbench") is None
    assert objection(checked, "/x", 1, destroy=False) == "fio is not installed there"


def test_a_host_without_java_is_named_before_it_is_loaded(tmp_path: Path) -> None:
    checked = read_check("vdbench=/opt/vdbench\nkind=folder\nwritable=yes\nspace=1000000 500000\nchecked=yes\n")
    wish = MachineWish("/srv", destroy=False, name="n", sizes=(1,), samples=tmp_path / "s", vdbench="vdbench")
    with pytest.raises(ToolError, match=r"db1: no Java there; expected .* Install it there"):
        _require_loadable(Login("db1"), checked, wish)


def test_the_scripts_are_posix() -> None:
    for text in (remote_scripts.HOLD, remote_scripts.STEP, remote_scripts.REPORT):
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)
