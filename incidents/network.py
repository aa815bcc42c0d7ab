"""A link between a client and the server that can be made bad: a client in a network namespace of its own.

The client reaches the server through a veth pair and toxiproxy, which adds latency: kernels of virtual machines often
have no netem. Loss is made by nftables, which drops packets at random; a narrow link by tc's token bucket filter. Names
begin with ``leadline``; what a killed run left is removed first.

Sources: toxiproxy's HTTP API (README of github.com/Shopify/toxiproxy); nft(8), "numgen"; tc-tbf(8).
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incidents.processes import RigError, run, start, stop, wait_for
from incidents.recorders import Recorder

NAMESPACE = "leadline-client"
SERVER_SIDE, CLIENT_SIDE = "leadline0", "leadline1"
# Addresses for tests of networks: RFC 2544, section C.2.2.
SERVER_ADDRESS, CLIENT_ADDRESS = "198.18.0.1", "198.18.0.2"
PROXY_PORT, API_PORT = 21000, 21001
PROXY_NAME = "database"
TOXIPROXY = Path(__file__).resolve().parents[1] / ".tools" / "bin" / "toxiproxy-server"
BURST_BYTES = 16_000  # of the token bucket: ten packets
QUEUE_MS = 60  # a packet that would wait longer is dropped, as a switch does


@dataclass(frozen=True)
class Link:
    """The link, good until a fault is held."""

    host: str = SERVER_ADDRESS
    port: int = PROXY_PORT
    server_address: str = SERVER_ADDRESS

    def command(self, command: list[str]) -> list[str]:
        """A command that runs at the client's end."""
        return ["ip", "netns", "exec", NAMESPACE, *command]

    def serve(self, port: int) -> None:
        """Let the proxy lead to the server."""
        where = {"listen": f"{SERVER_ADDRESS}:{PROXY_PORT}", "upstream": f"{SERVER_ADDRESS}:{port}"}
        _ask("POST", "/proxies", {"name": PROXY_NAME, "enabled": True, **where})

    def recorders(self) -> tuple[Recorder, ...]:
        """What is recorded of the network beside everything else: the TCP connections' own numbers."""
        loop = f"while :; do date '+# %Y-%m-%dT%H:%M:%S.%3N%:z'; ss -tin src {SERVER_ADDRESS}; sleep 1; done"
        return (Recorder("ss", "ss.txt", ("sh", "-c", loop), end=signal.SIGTERM),)


def build(work: Path, stack: ExitStack) -> Link:
    """Make the namespace, the link and the proxy.

    Raises:
        RigError: toxiproxy is not built, or the kernel refuses.
    """
    if not TOXIPROXY.exists() and shutil.which("toxiproxy-server") is None:
        raise RigError("toxiproxy is not built: run make setup-all (it needs Go)")
    _remove()
    stack.callback(_remove)
    run("ip", "netns", "add", NAMESPACE)
    run("ip", "link", "add", SERVER_SIDE, "type", "veth", "peer", "name", CLIENT_SIDE, "netns", NAMESPACE)
    run("ip", "address", "add", f"{SERVER_ADDRESS}/30", "dev", SERVER_SIDE)
    run("ip", "link", "set", SERVER_SIDE, "up")
    inside = ("ip", "-n", NAMESPACE)
    run(*inside, "address", "add", f"{CLIENT_ADDRESS}/30", "dev", CLIENT_SIDE)
    run(*inside, "link", "set", CLIENT_SIDE, "up")
    program = TOXIPROXY if TOXIPROXY.exists() else "toxiproxy-server"
    proxy = start([program, "-host", "127.0.0.1", "-port", str(API_PORT)])
    stack.callback(stop, proxy)
    wait_for("toxiproxy", _answers)
    del work
    return Link()


def _remove() -> None:
    for command in (["ip", "link", "delete", SERVER_SIDE], ["ip", "netns", "delete", NAMESPACE]):
        subprocess.run(command, capture_output=True, check=False)


def _answers() -> bool:
    try:
        _ask("GET", "/version")
    except RigError:
        return False
    return True


def _ask(method: str, path: str, document: dict[str, Any] | None = None) -> None:
    data = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{API_PORT}{path}", data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=5):
            return
    except OSError as error:
        raise RigError(f"toxiproxy refused {method} {path}: {error}") from error


@contextmanager
def latency(ms: int, jitter_ms: int) -> Iterator[None]:
    """Every answer of the server takes so much longer, for a while."""
    toxic = {"name": "far", "type": "latency", "stream": "downstream"}
    _ask("POST", f"/proxies/{PROXY_NAME}/toxics", {**toxic, "attributes": {"latency": ms, "jitter": jitter_ms}})
    try:
        yield
    finally:
        _ask("DELETE", f"/proxies/{PROXY_NAME}/toxics/far")


@contextmanager
def loss(per_mille: int) -> Iterator[None]:
    """So many of a thousand packets are dropped at the client's end, both ways, for a while."""
    drop = f"numgen random mod 1000 < {per_mille} drop"
    rules = f"""
        table ip leadline {{
            chain received {{
                type filter hook input priority 0;
                {drop};
            }}
            chain sent {{
                type filter hook output priority 0;
                {drop};
            }}
        }}"""
    run("ip", "netns", "exec", NAMESPACE, "nft", rules)
    try:
        yield
    finally:
        run("ip", "netns", "exec", NAMESPACE, "nft", "delete table ip leadline")


@contextmanager
def narrow(kbit_per_s: int) -> Iterator[None]:
    """The server's side sends at most so much, for a while."""
    limit = ("rate", f"{kbit_per_s}kbit", "burst", str(BURST_BYTES), "latency", f"{QUEUE_MS}ms")
    run("tc", "qdisc", "add", "dev", SERVER_SIDE, "root", "tbf", *limit)
    try:
        yield
    finally:
        run("tc", "qdisc", "delete", "dev", SERVER_SIDE, "root")
