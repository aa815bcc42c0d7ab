"""QEMU's machine protocol (QMP) over a Unix socket: commands in, answers out, events passed over."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from leadline.core.model.errors import ToolError
from leadline.core.model.histogram import Histogram

TIMEOUT_S = 10.0  # Judgement: an emulator that answers no command for so long is stuck
BLOCK_FIELDS = (
    *("rd_bytes", "wr_bytes", "rd_operations", "wr_operations", "flush_operations"),
    *("rd_total_time_ns", "wr_total_time_ns", "flush_total_time_ns"),
)
WAYS = (("read", "rd"), ("write", "wr"))  # an operation, and what QEMU's fields of it begin with
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid; Source: unix(7), SO_PEERCRED


class Qmp:
    """A connection to one QEMU; it serves one at a time per socket, and several threads here one after the other."""

    def __init__(self, path: Path) -> None:
        """Connect and greet.

        Raises:
            ToolError: there is no QEMU behind the socket.
        """
        self.path = path
        self._busy = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(TIMEOUT_S)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise self._failed(str(error.strerror)) from error
        self._stream = self._socket.makefile("rb")
        try:
            self._read()  # the greeting
            self.execute("qmp_capabilities")
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process at the other end."""
        data = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(data)[0])

    def execute(self, command: str, **arguments: object) -> Any:  # noqa: ANN401 - every command answers otherwise
        """The answer to a command.

        Raises:
            ToolError: QEMU refuses it or is gone.
        """
        message: dict[str, object] = {"execute": command}
        if arguments:
            message["arguments"] = {name.replace("_", "-"): value for name, value in arguments.items()}
        with self._busy:
            return self._answer(command, message)

    def _answer(self, command: str, message: dict[str, object]) -> Any:  # noqa: ANN401 - as above
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise self._failed(f"gone ({error.strerror})") from error
        while True:
            answer = self._read()
            if "error" in answer:
                raise self._failed(f"{command}: {answer['error'].get('desc', 'refused')}")
            if "return" in answer:
                return answer["return"]

    def _read(self) -> dict[str, Any]:
        try:
            line = self._stream.readline()
        except OSError as error:
            raise self._failed("no answer") from error
        if not line:
            raise self._failed("gone")
        answer = json.loads(line)
        return answer if isinstance(answer, dict) else {}

    def _failed(self, problem: str) -> ToolError:
        return ToolError(f"QEMU at {self.path}", found=problem, expected="an answer", advice="Is the guest running?")

    def close(self) -> None:
        """Let go of the socket."""
        self._stream.close()
        self._socket.close()


def connect(path: Path, timeout_s: float = TIMEOUT_S) -> Qmp:
    """A connection as soon as the socket is there.

    Raises:
        ToolError: it is not there in time.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return Qmp(path)
        except ToolError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.05)


def block_counters(guest: Qmp) -> dict[str, dict[str, int]]:
    """Counters of every disk a guest has, by the disk's name.

    Raises:
        ToolError: QEMU is gone.
    """
    counters = {}
    for block in guest.execute("query-blockstats"):
        name = _device(block)
        if name:
            counters[name] = {field: block["stats"][field] for field in BLOCK_FIELDS if field in block["stats"]}
    return counters


def iops_limits(guest: Qmp) -> dict[str, float]:
    """The limit of operations per second that is set on each disk, reads and writes together; those without are absent.

    A disk is limited by itself (`virsh blkdeviotune`, `block_set_io_throttle`) or by the throttle group it is in.
    Source: QEMU QMP reference, query-block, ThrottleLimits; docs/throttle.txt.

    Raises:
        ToolError: QEMU is gone.
    """
    limits: dict[str, float] = {}
    for block in guest.execute("query-block"):
        inserted = block.get("inserted") or {}
        every = [float(inserted.get("iops") or 0), *map(partial(_group_limit, guest), _throttle_groups(inserted))]
        if lowest := min((limit for limit in every if limit > 0), default=0.0):
            limits[_device(block)] = lowest
    return limits


def _group_limit(guest: Qmp, group: str) -> float:
    try:
        limits = guest.execute("qom-get", path=f"/objects/{group}", property="limits")
    except ToolError:  # one that `block_set_io_throttle` made is no object: its limit is the disk's
        return 0.0
    return float(limits.get("iops-total") or 0)


def _throttle_groups(inserted: Mapping[str, Any]) -> list[str]:
    """The groups of the throttle filters that a disk's chain begins with, which its file's name spells out."""
    name = str(inserted.get("file") or "")
    try:
        node = json.loads(name.removeprefix("json:")) if name.startswith("json:") else {}
    except ValueError:
        return []
    groups = []
    while isinstance(node, dict):
        if node.get("driver") == "throttle" and isinstance(node.get("throttle-group"), str):
            groups.append(node["throttle-group"])
        node = node.get("file")
    return groups


def set_latency_boundaries(guest: Qmp, disks: Iterable[str], boundaries_ns: Sequence[int]) -> None:
    """Let QEMU count latencies of every request of disks from now on, in buckets with these upper bounds.

    Source: QEMU QMP reference, block-latency-histogram-set.

    Raises:
        ToolError: a disk is not there, or QEMU is gone.
    """
    for disk in disks:
        guest.execute("block-latency-histogram-set", id=disk, boundaries=list(boundaries_ns))


def latency_histograms(guest: Qmp) -> dict[str, dict[str, Histogram]]:
    """Latencies of every disk since they are counted: disk -> ``read`` or ``write`` -> histogram in ms.

    Raises:
        ToolError: QEMU is gone.
    """
    by_disk: dict[str, dict[str, Histogram]] = {}
    for block in guest.execute("query-blockstats"):
        reported = {way: block["stats"].get(f"{short}_latency_histogram") for way, short in WAYS}
        histograms = {way: _histogram(counted) for way, counted in reported.items() if counted is not None}
        if histograms:
            by_disk[_device(block)] = histograms
    return by_disk


def _histogram(counted: dict[str, list[int]]) -> Histogram:
    bounds = [bound / 1e6 for bound in counted["boundaries"]]
    return Histogram.of([0.0, *bounds], [*bounds, float("inf")], counted["bins"], "ms")


def _device(block: dict[str, Any]) -> str:
    """A disk's name as its user gave it: the id of its device, without what QEMU adds."""
    path = block.get("qdev") or block.get("device") or ""
    return str(path).removeprefix("/machine/peripheral/").split("/")[0]
