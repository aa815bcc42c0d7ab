"""The network driver: real tools on loopback, and between network namespaces that a router with a narrow link joins."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.app.measure.benching import capture_of, diagnosis_of, driver_of, plan, run
from leadline.app.measure.comparing_runs import compare_runs
from leadline.app.measure.rounds import Talk
from leadline.benchmarks import network
from leadline.benchmarks._network.path import SMALL_BYTES, NetworkPath, Probe, largest
from leadline.benchmarks._network.servers import Peer, peer_named, remote_script, server_words
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore

needs_tools = pytest.mark.skipif(
    any(find_program(name) is None for name in ("iperf3", "sockperf", "ping", "ip")),
    reason="iperf3, sockperf, ping or ip is not installed",
)
NARROW, WIDE = 1500, 9000


def workload(own: str = "streams: 1", timing: str = "warm_up_s: 0, measure_s: 10, rounds: 1") -> Workload:
    return parse_workload(f"name: t\nnetwork: {{{own}}}\ntiming: {{{timing}}}\n", "t.yaml")


def processes_on(ports: dict[str, int]) -> list[str]:
    """Command lines that name one of the ports."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes().decode(errors="replace").split("\0")
            if any(str(port) in words for port in ports.values()):
                found.append(" ".join(words))
    return found


def ports_of(made: Any) -> dict[str, int]:
    return {name: int(made.places[name].path.split(",")[1]) for name in ("iperf3", "sockperf")}


def test_targets_and_workloads_that_cannot_be() -> None:
    assert driver_of(workload())[0] == "network"
    for name in ("-oProxyCommand=x", "a b", "db2,0", "db2,70000", "db2,1,2,3", "", "http://db2"):
        with pytest.raises(UsageError, match="IPERF3_PORT"):
            peer_named(name)
    with pytest.raises(ToolError, match="no IPv4 address"):
        peer_named("no-such-machine.invalid")
    with pytest.raises(UsageError, match="at least 10 s"):
        network.plan(workload(timing="measure_s: 5"), Target("new"))
    assert peer_named("me@127.0.0.1,1234") == Peer("me@127.0.0.1", "127.0.0.1", {"iperf3": 1234, "sockperf": 11111})


def test_a_workload_becomes_words() -> None:
    own = workload("streams: 4, direction: both, rate_mbit_per_s: 100, message_bytes: 8k, messages_per_s: 500").network
    assert own is not None
    words = network.load_words(own, "10.0.0.2", 5201, 9)
    assert words[-3:] == ["--bidir", "-b", "25000000"]  # of each of four streams
    words = network.message_words(own, ("10.0.0.2", 11111), 3, Path("/x/idle.csv"))
    assert {"500", "8192", "--full-rtt"} <= set(words)
    assert words[-1] == "/x/idle.csv"


@given(path_mtu=st.integers(SMALL_BYTES, 65_535), most=st.integers(SMALL_BYTES, 65_535), tells=st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_largest_packet_is_found_whether_the_path_tells_it_or_not(path_mtu: int, most: int, tells: bool) -> None:
    asked: list[int] = []

    def passes(size: int) -> Probe:
        asked.append(size)
        return Probe(size <= path_mtu, path_mtu if tells and size > path_mtu else None)

    found, is_silent = largest(passes, most)
    assert found == min(path_mtu, most)
    assert is_silent == (path_mtu < most and not tells)
    assert len(asked) == len(set(asked)) <= 40


def test_what_is_said_of_a_path() -> None:
    assert "but only 1500 bytes" in NetworkPath("eth0", 9000, 1500).sentence()
    assert "lost without a word" in NetworkPath("eth0", 9000, 1500, True).sentence()
    assert NetworkPath("eth0", 9000, 9000).sentence() == "packets of 9000 bytes pass from end to end, as eth0 is set"
    assert not NetworkPath("lo", 65_536, 65_535).is_narrower  # the largest there is
    assert NetworkPath("eth0", 9000, why="no answer to ping").sentence() == "path MTU not measured: no answer to ping"


@pytest.mark.real
@needs_tools
def test_a_run_on_loopback_has_every_message_and_leaves_nothing(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    made = plan(workload("messages_per_s: 400"), Target("new"))
    done = run(made, store, seed=7)
    assert processes_on(ports_of(made)) == []
    pooled = {part.name: part for part in done.pooled()}
    for name in ("idle round trip", "loaded round trip"):
        own = pooled[name]
        assert own.histogram is not None
        assert own.histogram.total == own.count > 100
        assert own.per_s == pytest.approx(400, rel=0.5)
        said = (store.files_of(done.id) / f"round-1-{name.split()[0]}.txt").read_text()
        assert f"Total {own.count:.0f} observations" in said
    assert done.mbit_per_s().mean == pytest.approx(pooled["iperf3 tcp to 127.0.0.1 sent"].bytes_per_s * 8e-6, rel=0.2)
    assert done.host["path MTU"] == "65535"
    assert any("RDMA" in note for note in done.notes)
    assert store.get(done.id).pooled()[0].histogram is not None
    metrics = {group.metric for group in capture_of(done.id, store).groups}
    assert {"net_half_trip_us_p99", "job_mbit_per_s"} <= metrics
    assert diagnosis_of(done.id, store) is not None
    names = {part.name for part in compare_runs([done], [done]).metrics}
    assert {"throughput", "idle round trip p90", "loaded round trip p90"} <= names


@pytest.mark.real
@needs_tools
def test_a_warm_up_ends_when_it_is_told_to(tmp_path: Path) -> None:
    seen: list[Tick] = []

    def watch(tick: Tick) -> bool:
        seen.append(tick)
        return len(seen) < 3

    made = network.plan(workload(), Target("new"))
    began = time.monotonic()
    found = network.measure(made, Step("warm-up", 60.0, 1), tmp_path, watch)
    assert found.ended_early
    assert time.monotonic() - began < 40
    assert max(tick.bytes_per_s for tick in found.ticks) > 1e6
    assert processes_on(ports_of(made)) == []


@pytest.mark.real
@needs_tools
def test_ctrl_c_ends_all_and_keeps_the_run(tmp_path: Path) -> None:
    ticks: list[Tick] = []

    def tick(found: Tick) -> None:
        ticks.append(found)
        if len(ticks) == 2:
            raise KeyboardInterrupt

    store = RunStore(tmp_path)
    made = plan(workload(), Target("new"))
    with pytest.raises(KeyboardInterrupt):
        run(made, store, talk=Talk(lambda _, __: None, tick, lambda _: None))
    assert processes_on(ports_of(made)) == []
    assert [own.state for own in store.list()] == ["interrupted"]


@pytest.mark.real
@needs_tools
def test_without_servers_the_user_is_told_how_to_start_them() -> None:
    with socket.socket() as taken, socket.socket() as other:
        for probe in (taken, other):
            probe.bind(("127.0.0.1", 0))  # bound and not listening: refused
        ports = [probe.getsockname()[1] for probe in (taken, other)]
        with pytest.raises(ToolError) as caught:
            network.plan(workload(), Target(f"nobody-of-that-name@127.0.0.1,{ports[0]},{ports[1]}"))
    assert f"iperf3 -s -p {ports[0]}; sockperf server --tcp -p {ports[1]}" in str(caught.value)
    assert "SSH: " in caught.value.found


@pytest.mark.real
@needs_tools
def test_a_server_that_is_gone_is_one_error(tmp_path: Path) -> None:
    made = network.plan(workload(), Target("new"))
    with pytest.raises(ToolError, match=r"sockperf failed: .*refused"):
        network._Measurement(made, tmp_path, lambda _: True).round(10.0)


@pytest.mark.real
@needs_tools
def test_servers_over_ssh_end_with_their_connection() -> None:
    """The script that SSH runs, on a terminal that is hung up as sshd does when the connection is lost."""
    peer = peer_named("new")
    words = ["sh", "-c", remote_script([server_words(peer, tool) for tool in peer.ports])]
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as sshd has it, whatever started this test
        os.execvp(words[0], words)
    try:
        deadline = time.monotonic() + 20
        while len(processes_on(peer.ports)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(processes_on(peer.ports)) == 2
        os.close(terminal)
        deadline = time.monotonic() + 20
        while processes_on(peer.ports) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert processes_on(peer.ports) == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.real
@needs_tools
@pytest.mark.skipif(find_program("ib_send_lat") is None, reason="perftest is not installed")
def test_rdma_that_fails_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real perftest, of a device that is not there."""
    assert network.plan(workload("rdma: false"), Target("new")).facts["rdma"] == "not measured: the workload says so"
    devices = tmp_path / "devices"
    (devices / "mlx5_none").mkdir(parents=True)
    monkeypatch.setattr(network, "RDMA_DEVICES", devices)
    monkeypatch.setattr(network, "RDMA_START_S", 0.5)
    made = network.plan(workload(), Target("new"))
    assert made.facts["rdma"] == "mlx5_none"
    with pytest.raises(ToolError, match=r"ib_send_lat failed: .*`rdma: false` leaves it out"):
        network._Measurement(made, tmp_path, lambda _: True).rdma(peer_named("new"), tmp_path / "talk.txt")


@dataclass(frozen=True)
class Net:
    """Names of the namespaces, and where the servers are."""

    client: str
    router: str
    server: str
    address: str

    def inside(self, where: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(find_program("ip")), "netns", "exec", where, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=check)

    def bench(self, home: Path) -> subprocess.CompletedProcess[str]:
        program = str(Path(sys.executable).with_name("leadline"))
        words = f"bench run network --on {self.address} --seconds 11 --rounds 1 --warm-up 0 --yes --json".split()
        return self.inside(self.client, "env", f"LEADLINE_HOME={home}", program, *words, check=False)


def _ip(*words: str) -> None:
    subprocess.run([str(find_program("ip")), *words], check=True, capture_output=True, timeout=20)


@pytest.fixture
def net() -> Iterator[Net]:
    """A client with jumbo frames, a router, and a server behind a link that takes 1500 bytes."""
    if find_program("ip") is None:
        pytest.skip("ip is not installed")
    own = f"ll{os.getpid()}"
    found = Net(f"{own}c", f"{own}r", f"{own}s", "10.78.2.2")
    spaces = (found.client, found.router, found.server)
    servers: list[subprocess.Popen[bytes]] = []
    try:
        try:
            for space in spaces:
                _ip("netns", "add", space)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces are not permitted here: {error.stderr!r}")
        _ip("link", "add", "eth0", "netns", found.client, "mtu", str(WIDE), "type", "veth",
            "peer", "name", "left", "netns", found.router, "mtu", str(WIDE))  # fmt: skip
        _ip("link", "add", "eth0", "netns", found.server, "mtu", str(NARROW), "type", "veth",
            "peer", "name", "right", "netns", found.router, "mtu", str(NARROW))  # fmt: skip
        for space, device, address in (
            (found.client, "eth0", "10.78.1.2/24"),
            (found.router, "left", "10.78.1.1/24"),
            (found.router, "right", "10.78.2.1/24"),
            (found.server, "eth0", "10.78.2.2/24"),
        ):
            _ip("-n", space, "address", "add", address, "dev", device)
            _ip("-n", space, "link", "set", device, "up")
        _ip("-n", found.client, "route", "add", "default", "via", "10.78.1.1")
        _ip("-n", found.server, "route", "add", "default", "via", "10.78.2.1")
        found.inside(found.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for words in (["iperf3", "-s"], ["sockperf", "server", "--tcp", "-p", "11111"]):
            quiet = subprocess.DEVNULL
            command = [str(find_program("ip")), "netns", "exec", found.server, *words]
            servers.append(subprocess.Popen(command, stdout=quiet, stderr=quiet))
        time.sleep(1.0)
        yield found
    finally:
        for process in servers:
            process.kill()
            process.wait(10)
        for space in spaces:
            subprocess.run([str(find_program("ip")), "netns", "del", space], capture_output=True, check=False)


@pytest.mark.real
@needs_tools
def test_a_narrow_link_behind_a_router_and_a_full_queue_are_seen(net: Net, tmp_path: Path) -> None:
    """The router takes jumbo frames and its link to the server does not; it holds 40 Mbit/s and a deep queue."""
    shape = "qdisc add dev right root tbf rate 40mbit burst 32kbit latency 300ms".split()
    if shutil.which("tc") is None or net.inside(net.router, "tc", *shape, check=False).returncode:
        pytest.skip("traffic cannot be shaped here")
    # Reno fills a queue until it overflows; BBR, the default of some kernels, avoids that.
    for space in (net.client, net.server):
        net.inside(space, "sh", "-c", "echo reno > /proc/sys/net/ipv4/tcp_congestion_control")
    done = net.bench(tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["run"]
    assert found["host"]["device MTU"] == str(WIDE)
    assert found["host"]["path MTU"] == str(NARROW)
    assert found["host"]["congestion control"] == "reno"
    assert any("only 1500 bytes pass from end to end: the path says so" in note for note in found["notes"])
    own = RunStore(tmp_path).get("last")
    pooled = {part.name: part for part in own.pooled()}
    idle, loaded = (pooled[f"{name} round trip"].percentiles_ms["p50"][0] for name in ("idle", "loaded"))
    assert loaded > max(10 * idle, 20.0)  # a queue of up to 300 ms, whatever else the machine does
    assert 10 < own.mbit_per_s().mean < 45


@pytest.mark.real
@needs_tools
def test_packets_that_are_lost_without_a_word(net: Net) -> None:
    """A port that is set smaller than its neighbour drops what is too large; nobody is told."""
    _ip("-n", net.router, "link", "set", "left", "mtu", str(NARROW))
    code = "from leadline.benchmarks._network.path import examine_path as e; p = e('10.78.1.1');"
    code += "print(p.path_mtu, p.is_silent, p.sentence())"
    mtu, silent, sentence = net.inside(net.client, sys.executable, "-c", code).stdout.split(maxsplit=2)
    # A veth lets a VLAN tag of four bytes more pass.
    assert NARROW <= int(mtu) <= NARROW + 4
    assert silent == "True"
    assert "eth0 is set to packets of 9000 bytes" in sentence


@pytest.mark.real
@needs_tools
def test_jumbo_frames_that_pass_and_no_answer(net: Net) -> None:
    code = "from leadline.benchmarks._network.path import examine_path as e; print(e('{}').sentence())"
    done = net.inside(net.client, sys.executable, "-c", code.format("10.78.1.1"))
    assert "packets of 9000 bytes pass from end to end, as eth0 is set" in done.stdout
    done = net.inside(net.client, sys.executable, "-c", code.format("10.78.1.77"))
    assert "not measured: no answer to ping" in done.stdout
