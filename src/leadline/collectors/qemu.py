"""What QEMU and its host know of running guests: vCPU run and wait times, and every disk as QEMU serves it.

Collects:
    Per vCPU thread the time it ran and the time it was runnable without a CPU (``/proc/PID/task/TID/schedstat``),
    the same of QEMU's other threads together, QEMU's block statistics per disk and the limit of IOPS that is set on it;
    the times of every CPU of the host, and what its own disks did (``/proc/diskstats``), which tells whether they or
    something above them is slow. One JSON line per sample is appended, which the importer qemu reads.

Cost:
    Three questions to each QEMU and a few small files per sample: about a millisecond per guest.

Late or missing data:
    A guest that ended is left out from then on and noted. QEMU serves one connection per QMP socket, so each guest
    needs one that nobody else holds. A kernel without scheduler statistics shows zeros; then no times are written.

Sources:
    QEMU QMP reference: query-cpus-fast, query-blockstats, query-block, query-name. Linux kernel documentation,
    scheduler/sched-stats; proc_pid_stat(5).
"""

from __future__ import annotations

import json
import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leadline.core.contracts.collector import CollectorMeta
from leadline.core.io.outputs import open_to_append
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import Layer
from leadline.core.system.addresses import Address
from leadline.core.system.qmp import Qmp, block_counters, iops_limits

META = CollectorMeta(
    tool="QEMU", layers=(Layer.HYPERVISOR_CPU, Layer.STORAGE_PATH), privilege="whoever runs the guests, or root"
)

FILE_NAME = "qemu.jsonl"
_BEGINNING = re.compile(rb'\{"qemu": 1, "time": "')
SECTOR_BYTES = 512  # of /proc/diskstats, whatever the disk's own
_NO_DISKS = ("loop", "ram", "zram", "nbd", "sr", "fd")


def record(target: Address, folder: Path) -> QemuRecorder:
    """A recorder of the guests whose QMP sockets ``target`` names, separated by commas.

    Raises:
        UsageError: none is named, or the folder holds a file of that name that Leadline did not write.
        ToolError: a socket has no QEMU behind it.
    """
    paths = [Path(word.strip()) for word in target.text.split(",") if word.strip()]
    if not paths:
        raise UsageError(
            "target", found="nothing", expected="QMP sockets, separated by commas", advice="QEMU opens one with -qmp."
        )
    return QemuRecorder([Qmp(path) for path in paths], folder / FILE_NAME)


class QemuRecorder:
    """Appends a line per sample."""

    def __init__(self, guests: list[Qmp], path: Path) -> None:
        self.notes: list[str] = []
        self._guests = {guest.execute("query-name").get("name", str(guest.pid)): guest for guest in guests}
        self._stream = open_to_append(path, _BEGINNING)
        self._host = platform.node()

    def sample(self) -> None:
        """Append a line.

        Raises:
            ToolError: every guest has ended, or the file cannot be written.
        """
        began = datetime.now(UTC)
        seen: dict[str, Any] = {}
        for name, guest in list(self._guests.items()):
            try:
                seen[name] = _guest(guest)
            except (ToolError, OSError) as error:
                self.notes.append(f"guest {name} was not recorded any more: {error}")
                del self._guests[name]
        if not self._guests:
            raise ToolError("qemu", found="every guest has ended", expected="running guests", advice="Start them.")
        line = {"qemu": 1, "time": began.isoformat(timespec="milliseconds"), "host": self._host}
        try:
            self._stream.write(
                json.dumps({**line, "cpus": _cpus(), "devices": _devices(), "guests": seen}).encode() + b"\n"
            )
        except OSError as error:
            raise ToolError(
                self._stream.name, found=str(error.strerror), expected="space to write to", advice="Free some."
            ) from error

    def close(self) -> None:
        """Give up connections and the file."""
        for guest in self._guests.values():
            guest.close()
        self._stream.close()


def _cpus() -> dict[str, list[int]]:
    """Per CPU of the host: busy and idle time in clock ticks; time given to guests is in user time already."""
    cpus = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *rest = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, idle, waiting, irq, soft, stolen, *_ = (*map(int, rest), *[0] * 8)
            cpus[name[3:]] = [user + nice + system + irq + soft + stolen, idle + waiting]
    return cpus


def _devices() -> dict[str, list[int]]:
    """Per disk of the host: reads and writes done, bytes of each, milliseconds they took."""
    devices = {}
    for line in Path("/proc/diskstats").read_text().splitlines():
        name, reads, _, read_sectors, read_ms, writes, _, written, write_ms, *_ = line.split()[2:]
        if Path("/sys/block", name).exists() and not name.startswith(_NO_DISKS):
            sizes = [int(read_sectors) * SECTOR_BYTES, int(written) * SECTOR_BYTES]
            devices[name] = [int(reads), int(writes), *sizes, int(read_ms), int(write_ms)]
    return devices


def _guest(guest: Qmp) -> dict[str, Any]:
    vcpus = {str(one["cpu-index"]): one["thread-id"] for one in guest.execute("query-cpus-fast")}
    tasks = Path(f"/proc/{guest.pid}/task")
    times = {int(task): _times(tasks / task) for task in os.listdir(tasks)}  # noqa: PTH208 - names, quickly
    others = [times[task] for task in times if task not in vcpus.values()]
    return {
        "vcpus": {name: times[task] for name, task in vcpus.items() if task in times},
        "others": [sum(values) for values in zip(*others, strict=True)],
        "blocks": block_counters(guest),
        "iops_limits": iops_limits(guest),
    }


def _times(task: Path) -> tuple[int, int]:
    """Nanoseconds run, and nanoseconds runnable without a CPU."""
    run, wait, _ = (task / "schedstat").read_text().split()
    return int(run), int(wait)
