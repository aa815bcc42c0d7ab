"""The path to another machine: the device it begins at, and the largest packet that passes it whole.

Source: RFC 1191 and RFC 4821 (path MTU discovery); iputils ping manual, ``-M do``; ip-route(8).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.core.system.tools import find_program

HEADERS_BYTES = 28  # IPv4 header without options and ICMP header: Source: RFC 791, RFC 792
PACKET_BYTES_MAX = 65_535  # of IPv4
SMALL_BYTES = 84  # a packet of ping as it is by default
# Packet sizes that networks are set to, the likely ones first, so that few probes are needed: Ethernet (with a tag),
# overlays, jumbo frames, those in an overlay or a cloud, PPPoE, tunnels, IPv6's least.
COMMON = (1500, 1504, 1450, 9000, 8950, 8500, 1492, 1476, 1420, 1400, 1280, 576)
TRIES = 2  # Judgement: so often must a packet be lost without a word until it is taken to be too large
WAIT_S_MIN, WAIT_S_MAX = 0.5, 2.0  # Judgement: for an answer, at five round trips
TIMEOUT_S = 10.0
_TOO_LONG = re.compile(r"mtu ?= ?(\d{2,6})")
_ROUND_TRIP = re.compile(r"time=(\d+(?:\.\d+)?) ms")

Passes = Callable[[int], "Probe"]


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a packet passed; ``mtu`` is what was said about the largest that does, where anything was."""

    passed: bool
    mtu: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkPath:
    """What is known about the path to an address; None is "not measured", and ``why`` says why.

    Attributes:
        device: the network device packets leave by.
        device_mtu: the largest packet it is set to, in bytes.
        path_mtu: the largest packet that passes to the other end and is answered, in bytes.
        is_silent: larger packets are lost without a word, so that nobody learns to send smaller ones.
    """

    device: str = ""
    device_mtu: int | None = None
    path_mtu: int | None = None
    is_silent: bool = False
    why: str = ""

    @property
    def is_narrower(self) -> bool:
        """Whether the device is set to larger packets than pass."""
        return self.path_mtu is not None and self.device_mtu is not None and self.path_mtu < self._possible

    @property
    def _possible(self) -> int:
        return min(self.device_mtu or PACKET_BYTES_MAX, PACKET_BYTES_MAX)

    def sentence(self) -> str:
        """For people."""
        if self.path_mtu is None:
            return f"path MTU not measured: {self.why}"
        if not self.is_narrower:
            whole = f"packets of {self.path_mtu} bytes pass from end to end"
            return f"{whole}, as {self.device} is set" if self.device_mtu == self.path_mtu else whole
        consequence = "larger ones are lost without a word" if self.is_silent else "the path says so to the sender"
        set_to = f"{self.device} is set to packets of {self.device_mtu} bytes"
        return f"{set_to}, but only {self.path_mtu} bytes pass from end to end: {consequence}"


def examine_path(address: str) -> NetworkPath:
    """The path to an IPv4 address, by a few pings that must not be fragmented."""
    device, device_mtu = _device(address)
    if device_mtu is None:
        return NetworkPath(device, why="the ip program does not tell the device's")
    if find_program("ping") is None:
        return NetworkPath(device, device_mtu, why="ping is not installed")
    first = _ping(address, SMALL_BYTES, WAIT_S_MAX)
    if first.returncode != 0:
        why = "no answer to ping" if first.returncode == 1 else f"ping: {_last_line(first)}"
        return NetworkPath(device, device_mtu, why=why)
    match = _ROUND_TRIP.search(first.stdout)
    wait_s = min(max(5.0 * float(match[1]) / 1000.0, WAIT_S_MIN), WAIT_S_MAX) if match else WAIT_S_MAX
    path_mtu, is_silent = largest(lambda size: _probe(address, size, wait_s), min(device_mtu, PACKET_BYTES_MAX))
    return NetworkPath(device, device_mtu, path_mtu, is_silent)


def largest(passes: Passes, most: int) -> tuple[int, bool]:
    """The largest packet that passes, of SMALL_BYTES (known to) to ``most`` bytes; whether nobody said so.

    >>> largest(lambda size: Probe(size <= 1500), 9000)
    (1500, True)
    """
    low, high, is_silent = SMALL_BYTES, most + 1, False
    likely, named = [most, *COMMON], {*COMMON}
    while high - low > 1:
        size = next((size for size in likely if low < size < high), (low + high) // 2)
        probe = passes(size)
        if probe.passed:
            low = size
            if size in named:  # then it is likely that nothing larger passes
                likely = [size + 1, *likely]
        else:
            high, is_silent = size, probe.mtu is None
            if probe.mtu is not None:
                named.add(probe.mtu)
                likely = [probe.mtu, *likely]
    return low, is_silent


def _probe(address: str, size: int, wait_s: float) -> Probe:
    for _ in range(TRIES):
        answer = _ping(address, size, wait_s)
        if answer.returncode == 0:
            return Probe(True)
        match = _TOO_LONG.search(answer.stdout + answer.stderr)
        if match is not None:
            return Probe(False, int(match[1]))
    return Probe(False)


def _ping(address: str, size: int, wait_s: float) -> subprocess.CompletedProcess[str]:
    options = ["-n", "-c", "1", "-W", f"{wait_s:.2f}", "-M", "do", "-s", str(size - HEADERS_BYTES)]
    return _run(["ping", *options, address])


def _device(address: str) -> tuple[str, int | None]:
    """The device packets to an address leave by, and its MTU."""
    if find_program("ip") is None:
        return "", None
    route = _json(_run(["ip", "-j", "route", "get", address]))
    device = str(route.get("dev", ""))
    if not device:
        return "", None
    link = _json(_run(["ip", "-j", "link", "show", "dev", device]))
    mtu = link.get("mtu")
    return device, mtu if isinstance(mtu, int) and mtu > SMALL_BYTES else None


def link_mbit_per_s(device: str) -> int | None:
    """The speed a device says it has, in 10^6 bits per second; None when it does not, as virtual ones."""
    try:
        speed = int(Path(f"/sys/class/net/{device}/speed").read_text())
    except (OSError, ValueError):
        return None
    return speed if speed > 0 else None


def _json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    try:
        links = json.loads(done.stdout)
    except ValueError:
        return {}
    return links[0] if isinstance(links, list) and links and isinstance(links[0], dict) else {}


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1].removeprefix("ping: ")[:120] if lines else f"ended with {done.returncode}"


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """A short command; one that cannot run or hangs has failed."""
    program = find_program(words[0]) or words[0]
    environment = {"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    try:
        return subprocess.run(
            [program, *words[1:]], capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 2, "", str(error))
