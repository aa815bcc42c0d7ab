"""Disks with limits of our own: a qemu-storage-daemon that serves them on Unix sockets, and copies between them.

The throttle groups are those a hypervisor puts before its guests' disks. Everything is a file of a scratch folder, or
nothing at all: a device whose time is a constant is the block layer's null device with that latency, which keeps
nothing. No privilege is needed and no device is touched.

Source: qemu-storage-daemon(1), --object throttle-group, --blockdev driver=null-co, --export type=nbd; QEMU,
"docs/throttle.txt": without a burst of its own a limit lets a tenth of a second's operations pass at once.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from leadline.app.measure.nbd import Export
from leadline.core.model.errors import ToolError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.system.processes import POLL_S, running
from leadline.core.system.safety import require_space
from leadline.core.system.sockets import socket_folder

SIZE_BYTES = 32 * 1024**2  # of each disk
SCRATCH = "check"
IO_UNIT_BYTES = 32 * 1024  # an operation counts as one up to this size, as in the scenario
BURST_S = 0.1  # of the limit, may pass at once. Source: QEMU, docs/throttle.txt
_START_TIMEOUT_S = 15.0
_DAEMON = "qemu-storage-daemon"


@dataclass(frozen=True, slots=True)
class RealDisk:
    """A disk to be served: its limit, and the latency of the device behind it, ns; None for a file."""

    name: str
    limit: float | None
    latency_ns: int | None


def _words(disks: Sequence[RealDisk], folder: Path, socket: Path) -> list[str]:
    words = [_DAEMON, "--nbd-server", f"addr.type=unix,addr.path={socket},max-connections=0"]
    for number, disk in enumerate(disks):
        node = f"disk{number}"
        if disk.latency_ns is None:
            image = folder / f"{node}.raw"
            _fill(image)
            words += ["--blockdev", f"driver=file,node-name={node},filename={image.name}"]  # it runs in that folder
        else:
            words += ["--blockdev", f"driver=null-co,node-name={node},size={SIZE_BYTES},latency-ns={disk.latency_ns}"]
        top = node
        if disk.limit is not None:
            top = f"limited{number}"
            limits = f"limits.iops-total={max(round(disk.limit), 1)},limits.iops-size={IO_UNIT_BYTES}"
            words += ["--object", f"throttle-group,id=limit{number},{limits}"]
            words += ["--blockdev", f"driver=throttle,node-name={top},throttle-group=limit{number},file={node}"]
        words += ["--export", f"type=nbd,id=export{number},node-name={top},name={node},writable=on"]
    return words


def _fill(image: Path) -> None:
    """A file full of random data: a hole would be answered without being read, past the limit."""
    part = os.urandom(1024**2)
    with image.open("wb") as stream:
        for _ in range(SIZE_BYTES // len(part)):
            stream.write(part)


@contextmanager
def served(disks: Sequence[RealDisk], folder: Path) -> Iterator[dict[str, str]]:
    """The NBD address of every disk by its name, until the end.

    Raises:
        ToolError: the daemon is missing or does not start, or there is no space, or no short path for a socket.
    """
    folder.mkdir(parents=True, exist_ok=True)
    require_space(str(folder), SIZE_BYTES * sum(disk.latency_ns is None for disk in disks))
    talk = folder / "daemon.txt"
    with ExitStack() as stack:
        socket = stack.enter_context(socket_folder(SCRATCH)) / "nbd.sock"
        process = stack.enter_context(running(_words(disks, folder, socket), output=talk, folder=folder))
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                output_lines = talk.read_text(errors="replace").strip().splitlines()
                raise ToolError(
                    _DAEMON,
                    found=output_lines[-1] if output_lines else "no answer",
                    expected="an NBD server",
                    advice="`leadline doctor` says whether it is whole; without it there is no --check-real.",
                )
            time.sleep(POLL_S)
        yield {disk.name: f"nbd+unix:///disk{number}?socket={socket}" for number, disk in enumerate(disks)}


@dataclass(slots=True)
class Copier:
    """So many blocks at a time read from one disk and written to another, each by a thread with two connections.

    A block is written when it was read, and the next is read when it was written.
    """

    read: str
    write: str
    block_bytes: int
    outstanding: int
    is_over: threading.Event = field(default_factory=threading.Event)
    _from_s: float = float("inf")
    _until_s: float = float("inf")
    _threads: list[threading.Thread] = field(default_factory=list)
    _samples: list[list[tuple[float, float]]] = field(default_factory=lambda: [[], []])
    _errors: list[OSError] = field(default_factory=list)

    def start(self) -> None:
        """Begin."""
        self._threads = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(self.outstanding)]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int) -> None:
        try:
            ends = Export(self.read), Export(self.write)
            block = np.zeros(self.block_bytes, dtype=np.uint8)
            per_disk = SIZE_BYTES // self.block_bytes
            position = number
            try:
                while not self.is_over.is_set():
                    offset = position % per_disk * self.block_bytes
                    position += self.outstanding
                    for way, end in enumerate(ends):
                        began = time.monotonic()
                        (end.write if way else end.read)(offset, block)
                        now = time.monotonic()
                        if self._from_s <= now < self._until_s:
                            self._samples[way].append((now, now - began))
            finally:
                for end in ends:
                    end.close()
        except OSError as error:
            if not self.is_over.is_set():
                self._errors.append(error)

    def measure(self, from_s: float, seconds: float) -> None:
        """Count what is done in so many seconds from then, on the monotonic clock."""
        self._until_s, self._from_s = from_s + seconds, from_s

    def stop(self) -> None:
        """End; what is under way is waited for.

        Raises:
            ToolError: a connection was lost.
        """
        self.is_over.set()
        for thread in self._threads:
            thread.join(_START_TIMEOUT_S)
        if self._errors:
            raise ToolError(
                "libnbd", found=str(self._errors[0]), expected="a copy", advice="Look at free memory and run it again."
            )

    def results(self, ends: tuple[str, str], name: str, seconds: float) -> list[tuple[str, Result]]:
        """Return both ends of the copy: the disk, and a result with its reads or writes."""
        results = []
        for disk, way, samples in zip(ends, ("read", "write"), self._samples, strict=True):
            taken = np.array([taken for _, taken in samples], dtype=np.float64) * 1e9
            count = len(taken)
            latency = {"mean": float(taken.mean()) / 1e6} if count else {}
            rate = count / seconds
            size = rate * self.block_bytes
            operation = Operation(way, rate, size, float(count), latency, _histogram(taken) if count else None)
            results.append((disk, Result("libnbd", name, (operation,), seconds)))
        return results

    def per_second(self, from_s: float, seconds: int) -> list[float]:
        """Requests done at both ends in each second."""
        times = np.array([now - from_s for part in self._samples for now, _ in part], dtype=np.float64)
        return [float(n) for n in np.histogram(times, np.arange(seconds + 1))[0]]


def _histogram(taken_ns: np.ndarray) -> Histogram:
    """Buckets of 1.6 % from 1 us to 100 s; float64 [n], ns."""
    edges = np.geomspace(1e3, 1e11, 1161)
    counts, _ = np.histogram(np.clip(taken_ns, edges[0], edges[-1]), edges)
    return Histogram.of(edges[:-1], edges[1:], counts, "ns")
