"""The other end of a network load: servers that answer there, or that are started there and ended again.

They are started on this machine (loopback, for a trial) or over SSH by the ``ssh`` program, with the user's own keys
and settings and without asking anything. A server over SSH hangs on the connection: when that ends, however it ends,
the server does.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from leadline.core.contracts.load_target import NEW
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.processes import POLL_S, running
from leadline.core.system.tools import find_program

LOOPBACK = "127.0.0.1"
PORTS = {"iperf3": 5201, "sockperf": 11111}  # where the tools listen by default
ANSWER_S = 3.0  # Judgement: a TCP connection takes one round trip, and one more try after a second
START_S = 10.0  # Judgement: over a slow SSH
SSH = ("ssh", "-tt", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5")
_TARGET = re.compile(r"(?P<login>(?:[A-Za-z0-9_][\w.-]*@)?(?P<host>[A-Za-z0-9_][\w.-]*))(?P<ports>(?:,\d{1,5}){0,2})")


@dataclass(frozen=True, slots=True)
class Peer:
    """The machine at the other end: how SSH takes it, its address, the ports of its servers."""

    login: str
    address: str
    ports: dict[str, int]

    @property
    def is_here(self) -> bool:
        """Whether it is this machine, for a trial."""
        return self.login == NEW


def peer_named(name: str) -> Peer:
    """The peer of ``new`` or ``[USER@]HOST[,IPERF3_PORT[,SOCKPERF_PORT]]``.

    Raises:
        UsageError: it is neither.
        ToolError: the name has no IPv4 address.
    """
    if name == NEW:
        return Peer(NEW, LOOPBACK, dict(zip(PORTS, _free_ports(len(PORTS)), strict=True)))
    match = _TARGET.fullmatch(name)
    given = [int(port) for port in match["ports"].split(",")[1:]] if match else []
    if match is None or any(not 0 < port < 65_536 for port in given):
        raise UsageError(
            "--on",
            found=repr(name[:80]),
            expected="`new`, or [USER@]HOST[,IPERF3_PORT[,SOCKPERF_PORT]]",
            advice="For example --on db2, or --on db2,5201,11111.",
        )
    try:
        addresses = socket.getaddrinfo(match["host"], None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise ToolError(
            match["host"],
            found=f"no IPv4 address ({error.strerror or error})",
            expected="a name or address of a machine (sockperf knows IPv4 only)",
            advice="Look at the name, or give its address.",
        ) from error
    ports = dict(zip(PORTS, [*given, *list(PORTS.values())[len(given) :]], strict=True))
    return Peer(match["login"], str(addresses[0][4][0]), ports)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def answers(address: str, port: int, timeout_s: float = ANSWER_S) -> bool:
    """Whether something listens on a TCP port."""
    try:
        with socket.create_connection((address, port), timeout_s):
            return True
    except OSError:
        return False


def server_words(peer: Peer, tool: str) -> list[str]:
    """The command of a server that serves until it is ended."""
    bound = peer.address if peer.is_here else None
    if tool == "iperf3":
        return ["iperf3", "-s", "-p", str(peer.ports[tool]), *(["-B", bound] if bound else [])]
    return ["sockperf", "server", "--tcp", "-p", str(peer.ports[tool]), *(["-i", bound] if bound else [])]


def ask_to_start(peer: Peer, tools: Sequence[str]) -> ToolError:
    """The error that gives the user the commands to start what does not answer."""
    commands = "; ".join(shlex.join(server_words(peer, tool)) for tool in tools)
    ports = ", ".join(f"{tool} on port {peer.ports[tool]}" for tool in tools)
    return ToolError(
        peer.address,
        found=f"no answer of {ports}",
        expected="servers there, or an SSH login without a question to start them by",
        advice=f"On that machine, in a shell each: {commands}",
    )


def require_login(peer: Peer, tools: Sequence[str]) -> set[str]:
    """Return what the other machine has, asked over SSH: the tools (all needed) and ``rdma`` where it has a device.

    Raises:
        ToolError: SSH does not let us in, or a tool is not installed there; with the commands for the user.
    """
    names = " ".join(map(shlex.quote, tools))
    programs = f"for t in {names}; do command -v $t >/dev/null && echo $t; done"
    done = _ssh(peer, f"{programs}; ls -A /sys/class/infiniband 2>/dev/null | sed 's/.*/rdma/'")
    present = set(done.stdout.split())
    missing = [tool for tool in tools if tool not in present]
    if missing:
        messages = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        refusal = messages[-1] if messages else "failed"
        why = f"SSH: {refusal}" if done.returncode else f"{' and '.join(missing)} not there"
        error = ask_to_start(peer, tools)
        problem = f"{error.found} ({why[:160]})"
        raise ToolError(peer.address, found=problem, expected=error.expected, advice=error.advice)
    return present


def _ssh(peer: Peer, script: str) -> subprocess.CompletedProcess[str]:
    program = find_program("ssh")
    words = [word for word in SSH if word != "-tt"]
    if program is None:
        return subprocess.CompletedProcess(words, 255, "", "ssh is not installed here")
    try:
        return subprocess.run(
            [program, *words[1:], "--", peer.login, f"sh -c {shlex.quote(script)}"],
            capture_output=True,
            text=True,
            timeout=30.0,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 255, "", str(error))


def remote_script(commands: Sequence[Sequence[str]]) -> str:
    """A shell script that runs commands side by side, and ends them when its connection does."""
    started = " ".join(f"{shlex.join(words)} &" for words in commands)
    return f"trap 'trap - TERM; kill -TERM 0' HUP INT TERM EXIT; {started} wait"


@contextmanager
def serving(peer: Peer, commands: Sequence[Sequence[str]], ports: Sequence[int], talk: Path) -> Iterator[None]:
    """Servers at the other end as long as it lasts; what they say is appended to ``talk``.

    Raises:
        ToolError: they cannot be started, or do not answer.
    """
    if not commands:
        yield
        return
    together = [[*SSH, "--", peer.login, f"sh -c {shlex.quote(remote_script(commands))}"]]
    with ExitStack() as stack:
        started = [
            stack.enter_context(running(words, output=talk, folder=talk.parent))
            for words in (commands if peer.is_here else together)
        ]
        deadline = time.monotonic() + START_S
        waiting = list(ports)
        while waiting:
            waiting = [port for port in waiting if not answers(peer.address, port, 1.0)]
            ended = next((process for process in started if process.poll() is not None), None)
            if ended is not None or (waiting and time.monotonic() > deadline):
                raise _not_started(peer, waiting, talk)
            if waiting:
                time.sleep(POLL_S)
        yield


def _not_started(peer: Peer, ports: Sequence[int], talk: Path) -> ToolError:
    lines = [line for line in talk.read_text(errors="replace").splitlines() if line.strip()]
    return ToolError(
        peer.address,
        found=f"a server that was started does not answer: {(lines or ['it said nothing'])[-1].strip()[:160]}",
        expected=f"answers on port {', '.join(map(str, ports)) or 'of each'}",
        advice="Look at the firewall in between, or name other ports: --on HOST,IPERF3_PORT,SOCKPERF_PORT.",
    )
