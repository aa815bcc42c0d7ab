"""Network load by iperf3, with sockperf's latency before it and under it, and the largest packet that passes.

Measures:
    Round trips of small messages while the network is idle, the same under load, and the throughput of that load: the
    difference of the two is what packets wait in queues (bufferbloat). Messages leave at a fixed rate whether answers
    come or not, so that a pause counts for every message it held up. From end to end, the largest packet that passes
    unfragmented (jumbo frames), and whether the device is set to larger ones. Where both ends have RDMA and the
    servers are started from here, latency and throughput of that by perftest.

Does not:
    Tell which hop is slow. Measure loss: TCP repairs it, its repeated segments are counted. Load UDP. Know IPv6, which
    sockperf does not.

Warm-up and stopping:
    The warm-up is load alone, ended when the bytes per second through the device are steady. A third of each round is
    idle, the rest under load; the first second of load is left out (slow start), and so is what sockperf leaves out of
    each run (0.4 s, and 0.05 s at its end). Servers run as long as a step, then they are ended.

Misleads when:
    A processor is the limit and not the network: look at iperf3's own use of it, and add streams. sockperf waits
    for its next message with a whole processor: with fewer than three on this machine, latency under load is too high.
    A middle box treats messages and bulk differently. Both ends are on one machine. TCP's congestion control differs:
    BBR keeps queues short where CUBIC and Reno fill them (it is kept with the run).

Sources:
    iperf3 manual page; sockperf README; RFC 8033 and RFC 9097 on latency under load; linux-rdma/perftest README;
    path MTU: RFC 1191, ping ``-M do``.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

from leadline.benchmarks._network.path import examine_path, link_mbit_per_s
from leadline.benchmarks._network.servers import (
    PORTS,
    Peer,
    answers,
    peer_named,
    require_login,
    server_words,
    serving,
)
from leadline.core.contracts.benchmark import BenchmarkMeta, LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick, Watch
from leadline.core.model.workload import Network, Workload
from leadline.core.system.processes import POLL_S, running
from leadline.core.system.tools import TOOLS, examine, find_program, require_program

META = BenchmarkMeta(program="iperf3", kind="network")

WARM_UP = "warm-up"
WRITE_BYTES = 128 * 1024  # what iperf3 writes at a time over TCP: its operation
ROUND_S_MIN = 10
FIXED_S = 6.0  # of each round: the start of sockperf (2.2 s, measured), twice, and the edges of the load
EDGE_S = 2.0  # load before and after the messages that are measured under it
OMIT_S = 1
LATE_S = 30.0  # Judgement: how long a tool may take to end and write its report after its time is over
IDLE, LOADED = "idle", "loaded"
RDMA, RDMA_PORT = "rdma", 18515
RDMA_DEVICES = Path("/sys/class/infiniband")
RDMA_S, RDMA_START_S = 4, 10.0
RDMA_TOOLS = {"ib_send_lat": ("-n", "5000"), "ib_write_bw": ("-D", str(RDMA_S))}
_COUNTERS = Path("/proc/self/net/dev")
_CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_SSH = "ssh"


def settings_of(workload: Workload) -> Network:
    """The network section.

    Raises:
        UsageError: there is none, or its rounds are too short to hold both parts.
    """
    if workload.network is None:
        raise UsageError(
            f"workload {workload.name}", found="no network", expected="a network section", advice="See the guide."
        )
    if workload.timing.measure_s < ROUND_S_MIN:
        raise UsageError(
            f"workload {workload.name}",
            found=f"rounds of {workload.timing.measure_s:g} s",
            expected=f"at least {ROUND_S_MIN} s, for an idle part and one under load",
            advice=f"For example --seconds {ROUND_S_MIN}.",
        )
    return workload.network


def plan(workload: Workload, target: Target) -> LoadPlan:
    """The servers of the other end, and what is known of the way there; a few pings are sent.

    Raises:
        UsageError: the target cannot be.
        ToolError: a tool is missing, or there are no servers and none can be started.
    """
    network = settings_of(workload)
    for tool in PORTS:
        require_program(tool, "iperf3 and sockperf here and there")
    peer = peer_named(target.name)
    silent = [tool for tool in PORTS if not peer.is_here and not answers(peer.address, peer.ports[tool])]
    there = require_login(peer, silent) if silent else set()
    places = {
        tool: Place(f"{peer.address},{port}", 0, is_made=peer.is_here or tool in silent)
        for tool, port in peer.ports.items()
    }
    device, why = _rdma(network, peer, there if silent else None)
    if device:
        places[RDMA] = Place(f"{device},{RDMA_PORT}", 0, is_made=True)
    path = examine_path(peer.address)
    facts = {"network peer": peer.address, "device": path.device, RDMA: device or f"not measured: {why}"}
    facts |= {"device MTU": str(path.device_mtu), "path MTU": str(path.path_mtu or "not measured")}
    facts["congestion control"] = _CONGESTION.read_text().strip() if _CONGESTION.exists() else "not told"
    speed = link_mbit_per_s(path.device)
    facts["link"] = "not told" if speed is None else f"{speed} Mbit/s"
    notes = [path.sentence()]
    if peer.is_here:
        notes.append("both ends are on this machine: it shows the tools and the machine, not a network")
    else:
        notes.append(f"fills the way to {peer.address}: others who share it will notice")
    notes.append(f"RDMA by {device}, {2 * RDMA_S} s more in each round" if device else f"RDMA not measured: {why}")
    engine = peer.login if peer.is_here or not silent else _SSH
    return LoadPlan(workload, target, places, tuple(notes), engine, facts=facts)


def _rdma(network: Network, peer: Peer, there: set[str] | None) -> tuple[str, str]:
    """Return the RDMA device to use and why there is none; ``there``: what SSH found, None with the user's servers."""
    devices = sorted(path.name for path in RDMA_DEVICES.glob("*")) if RDMA_DEVICES.is_dir() else []
    missing = [tool for tool in RDMA_TOOLS if find_program(tool) is None]
    if not network.rdma:
        return "", "the workload says so"
    if not devices:
        return "", "no RDMA device"
    if missing:
        return "", "perftest is not installed"
    if not peer.is_here and (there is None or RDMA not in there):
        return "", "no RDMA device at the other end" if there else "its servers were not started from here"
    return devices[0], ""


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Nothing is made: servers that are started run as long as a step."""
    started = [name for name, place in plan.places.items() if place.is_made]
    if started:
        where = f"on {plan.target.name} by ssh" if plan.engine == _SSH else "here"
        say(f"servers to start {where}: {', '.join(started)}")


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """Load alone as warm-up; else an idle part, one under load, and RDMA where it is there.

    Raises:
        ToolError: a tool or a server fails.
    """
    step_folder = folder / step.label
    step_folder.mkdir(exist_ok=True)
    peer = _peer(plan)
    tools = [tool for tool in PORTS if plan.places[tool].is_made]
    run = _Measurement(plan, step_folder, watch)
    with serving(peer, [server_words(peer, t) for t in tools], [peer.ports[t] for t in tools], folder / "servers.txt"):
        if step.label == WARM_UP:
            run.together([run.load(max(round(step.duration_s) - OMIT_S, 1))], step.duration_s)
        else:
            run.round(step.duration_s)
    if RDMA in plan.places and step.label != WARM_UP and not run.ended_early:
        run.rdma(peer, folder / "rdma.txt")
    ticks = run.live if run.ended_early else _ticks(step_folder / "iperf3.json")
    return Measured(tuple(run.files), tuple(ticks), tuple(run.commands), _version(), run.ended_early)


def clean(plan: LoadPlan) -> None:
    """Nothing was made."""


def _peer(plan: LoadPlan) -> Peer:
    ends = {tool: plan.places[tool].path.split(",") for tool in PORTS}
    login = plan.target.name.partition(",")[0]
    return Peer(login, ends["iperf3"][0], {tool: int(port) for tool, (_, port) in ends.items()})


def _version() -> str:
    known = {tool.name: examine(tool).version or "?" for tool in TOOLS if tool.name in PORTS}
    return f"{known['iperf3']}, sockperf {known['sockperf']}"


def load_words(network: Network, address: str, port: int, seconds: int) -> list[str]:
    """Return the iperf3 command that loads for some seconds, after a first one that iperf3 leaves out."""
    words = ["iperf3", "-c", address, "-p", str(port), "-t", str(seconds), "-O", str(OMIT_S)]
    words += ["-P", str(network.streams), "-J", "-l", str(WRITE_BYTES)]
    words += {"there": [], "back": ["-R"], "both": ["--bidir"]}[network.direction]
    if network.rate_mbit_per_s is not None:  # iperf3 takes that of a stream
        words += ["-b", f"{network.rate_mbit_per_s * 1e6 / network.streams:.0f}"]
    return words


def message_words(network: Network, end: tuple[str, int], seconds: int, log: Path) -> list[str]:
    """Return the sockperf command that sends messages at a fixed rate and logs the round trip of each."""
    words = ["sockperf", "under-load", "--tcp", "-i", end[0], "-p", str(end[1]), "-t", str(seconds)]
    words += ["--mps", str(network.messages_per_s), "-m", str(network.message_bytes), "--reply-every", "1"]
    return [*words, "--full-rtt", "--full-log", str(log)]


class _Measurement:
    """One step: its files, its commands, its seconds as they pass."""

    def __init__(self, plan: LoadPlan, folder: Path, watch: Watch) -> None:
        self.files: list[Path] = []
        self.commands: list[tuple[str, ...]] = []
        self.live: list[Tick] = []
        self.ended_early = False
        self._plan, self._folder, self._watch = plan, folder, watch
        self._settings, self._peer = settings_of(plan.workload), _peer(plan)
        self._due = _seconds(plan.facts.get("device", ""))

    def round(self, duration_s: float) -> None:
        """An idle part, then one under load."""
        idle_s = max(round((duration_s - FIXED_S) / 3.0), 1)
        loaded_s = max(round(duration_s - FIXED_S) - idle_s, 2)
        self.together([self.messages(IDLE, idle_s)], idle_s + EDGE_S)
        if not self.ended_early:
            # sockperf sends its first message two seconds after it was started: the load is there by then.
            self.together([self.messages(LOADED, loaded_s), self.load(loaded_s + int(EDGE_S))], loaded_s + 2 * EDGE_S)

    def load(self, seconds: int) -> tuple[list[str], Path]:
        """iperf3, and where its report goes."""
        report = self._folder / "iperf3.json"
        report.unlink(missing_ok=True)
        return load_words(self._settings, self._peer.address, self._peer.ports["iperf3"], seconds), report

    def messages(self, name: str, seconds: int) -> tuple[list[str], Path]:
        """sockperf, and where it talks."""
        end = self._peer.address, self._peer.ports["sockperf"]
        talk = self._folder.with_name(f"{self._folder.name}-{name}.txt")
        return message_words(self._settings, end, seconds, self._folder / f"{name}.csv"), talk

    def together(self, loads: Sequence[tuple[list[str], Path]], seconds: float) -> None:
        """Run commands side by side to their end, or until ``watch`` has seen enough."""
        with ExitStack() as stack:
            processes = [
                stack.enter_context(running(words, output=talk, folder=self._folder, variables={"LC_ALL": "C"}))
                for words, talk in loads
            ]
            late = self._attend(processes, time.monotonic() + seconds + LATE_S)
        for (words, talk), process in zip(loads, processes, strict=True):
            self.commands.append(tuple(words))
            report = Path(words[-1]) if words[0] == "sockperf" else talk
            complaint = _complaint(words[0], talk, report)
            if late or (not self.ended_early and (process.returncode or complaint)):
                raise self._failed(words[0], complaint or ("it did not end" if late else "no reason"))
            if report.exists() and not complaint:
                self.files.append(report)

    def _attend(self, processes: Sequence[Popen[bytes]], deadline: float) -> bool:
        """Wait for the processes; whether one is late."""
        while any(process.poll() is None for process in processes):
            time.sleep(POLL_S)
            for tick in self._due():
                self.live.append(tick)
                if not self._watch(tick) and not self.ended_early:
                    self.ended_early = True
                    for process in processes:
                        process.send_signal(signal.SIGINT)
            if time.monotonic() > deadline:
                return True
        return False

    def rdma(self, peer: Peer, talk: Path) -> None:
        """Latency and throughput of RDMA, one after the other; perftest's servers serve once."""
        device = self._plan.places[RDMA].path.partition(",")[0]
        for tool, length in RDMA_TOOLS.items():
            report = self._folder / f"{tool}.txt"
            common = [tool, "-F", "-p", str(RDMA_PORT), *length]
            client = [*common, "-d", device, peer.address]
            deadline = time.monotonic() + RDMA_START_S
            with serving(peer, [common], (), talk):
                while not self._answered(client, report):
                    if time.monotonic() > deadline:
                        raise self._failed(tool, _last_line(report) + "; `rdma: false` leaves it out")
                    time.sleep(1.0)
            self.commands.append(tuple(client))
            self.files.append(report)

    def _answered(self, words: Sequence[str], report: Path) -> bool:
        report.unlink(missing_ok=True)
        with running(words, output=report, folder=self._folder) as process:
            self._attend([process], time.monotonic() + RDMA_S + LATE_S)
        return process.returncode == 0

    def _failed(self, tool: str, complaint: str) -> ToolError:
        return ToolError(
            self._peer.address,
            found=f"{tool} failed: {complaint[:200]}",
            expected="a whole run",
            advice="Look whether its server runs, serves nobody else, and no firewall is in between.",
        )


def _complaint(tool: str, talk: Path, report: Path) -> str:
    """Return the error a tool reports, empty for none; sockperf ends with status 0 even then."""
    if tool == "iperf3":
        return str(_document(report).get("error", "")) if report.exists() else "no report"
    lines = talk.read_text(errors="replace").splitlines() if talk.exists() else []
    wrong = [line.partition("ERROR:")[2].strip() for line in lines if "ERROR:" in line]
    wrong += [line for line in lines if "No messages were received" in line]
    return (wrong[0] or "an error") if wrong else "" if report.exists() else _last_line(talk)


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")[:160]


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(errors="replace"))
    except ValueError:
        return {"error": _last_line(path)}
    return document if isinstance(document, dict) else {}


def _ticks(report: Path) -> list[Tick]:
    """iperf3's own seconds, all directions together, without those it left out."""
    ticks = []
    for interval in _document(report).get("intervals", []):
        sums = [interval[key] for key in ("sum", "sum_bidir_reverse") if key in interval]
        if sums and not sums[0].get("omitted"):
            bytes_per_s = sum(float(part["bits_per_second"]) for part in sums) / 8.0
            ticks.append(Tick(float(sums[0]["end"]), bytes_per_s / WRITE_BYTES, bytes_per_s))
    return ticks


def _seconds(device: str) -> Callable[[], Iterator[Tick]]:
    """A function that gives each second that has passed since its last call, by the device's counters."""
    state = [time.monotonic(), time.monotonic(), float(_moved_bytes(device))]

    def due() -> Iterator[Tick]:
        began, last, before = state
        now = time.monotonic()
        if now - last >= 1.0:
            moved = float(_moved_bytes(device))
            per_s = (moved - before) / (now - last)
            state[1:] = [now, moved]
            yield Tick(now - began, per_s / WRITE_BYTES, per_s)

    return due


def _moved_bytes(device: str) -> int:
    """Bytes a device received and sent; those of loopback are counted once, since both are the same."""
    for line in _COUNTERS.read_text().splitlines():
        name, _, fields = line.partition(":")
        if name.strip() == device:
            counts = fields.split()
            return int(counts[0]) + (int(counts[8]) if device != "lo" else 0)
    return 0
