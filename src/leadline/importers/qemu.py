"""What ``leadline collect qemu`` and the lab record of guests on a QEMU/KVM host, beside the guests' own counters.

Reads:
    One JSON object per line and sample: the host's CPUs and disks, and per guest the run and wait time of each vCPU
    thread, of QEMU's other threads, and QEMU's block statistics per disk. A cut last line is left out.

Sample:
    .. code-block:: text

        {"qemu": 1, "time": "2026-11-21T08:00:00.000+00:00", "host": "kvm01", "cpus": {"0": [512, 9000]},
         "devices": {"sda": [120, 80, 983040, 655360, 24, 40]},
         "guests": {"db01": {"vcpus": {"0": [81234567, 123456]}, "others": [1234567, 0],
         "blocks": {"data": {"rd_operations": 12, "rd_bytes": 98304, "rd_total_time_ns": 4800000}},
         "iops_limits": {"data": 500}}}}

Lost:
    Nothing. A wait time that is zero in every sample is taken as a kernel without scheduler statistics: not measured.

Units:
    Counters become rates between two lines. A vCPU's ready time is the share of the interval its thread was runnable
    without a CPU; a VM's is the mean over its vCPUs, as everywhere in Leadline. Ticks are 1/100 s.

Sources:
    QEMU QMP reference, query-blockstats; Linux kernel documentation, scheduler/sched-stats.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.json_documents import NUMBER_MAX

_FIELDS = {
    "vcpus.run": Field("cpu_run_pct", "pct"),
    "vcpus.wait": Field("cpu_ready_pct", "pct"),
    "others.run": Field("cpu_system_pct", "pct"),
    "cpus": Field("host_cpu_util_pct", "pct"),
    "devices": Field("disk_device_latency_ms", "ms"),
    "rd_operations": Field("disk_reads_per_s", "per_s"),
    "wr_operations": Field("disk_writes_per_s", "per_s"),
    "rd_bytes": Field("disk_read_mib_per_s", "bytes_per_s"),
    "wr_bytes": Field("disk_write_mib_per_s", "bytes_per_s"),
    "rd_total_time_ns": Field("virtual_disk_latency_ms_read", "ms"),
    "wr_total_time_ns": Field("virtual_disk_latency_ms_write", "ms"),
    "iops_limits": Field("disk_iops_limit", "per_s"),
}
META = ImporterMeta(
    tool="QEMU",
    marks=('{"qemu":',),
    layers=(Layer.HYPERVISOR_CPU, Layer.STORAGE_PATH),
    fields=_FIELDS,
    record="leadline collect qemu /run/qemu/db01.qmp -o kvm01",
)

_MIB = float(1 << 20)
_NS_PER_MS = 1e6
_VCPU_COUNTERS = 2  # run, wait for a CPU
Values = NDArray[np.float64]


def sniff(source: Source) -> int:
    """Sure by the first line's first key and its guests."""
    head = source.head_text.lstrip()
    return 97 if head.startswith('{"qemu":') and '"guests"' in head else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the host, its guests, their vCPUs and disks.

    Raises:
        InputError: a line before the last is damaged, or there is no interval.
    """
    builder = CaptureBuilder(source.name, "qemu", META.tool)
    lines = _lines(source, builder)
    times = np.array([to_ns(datetime.fromisoformat(line["time"]), request) for line in lines], dtype=np.int64)
    if len(times) < 2 or bool(np.any(np.diff(times) <= 0)):
        raise InputError(
            source.name, found="no two samples in order", expected="a recording over time", advice="Record longer."
        )
    recording = _Recording(lines, times, builder, request)
    host = Entity(EntityKind.HOST, str(lines[0]["host"]))
    recording.host(host)
    for name in dict.fromkeys(name for line in lines for name in line["guests"]):
        recording.guest(Entity(EntityKind.VM, name, host))
    return builder.build(host=host.name)


def _lines(source: Source, builder: CaptureBuilder) -> list[dict[str, Any]]:
    rows = source.text().splitlines()
    lines = []
    for number, row in enumerate(rows, 1):
        try:
            line = json.loads(row)
            _check(line)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if number == len(rows) and number > 1:
                builder.warn("cut", "the last line is cut; it was left out")
                break
            raise InputError(
                f"{source.name}:{number}",
                found="a damaged line",
                expected="one JSON object per sample",
                advice="Restore the recording, or delete the line.",
            ) from error
        lines.append(line)
    return lines


def _check(line: Any) -> None:  # noqa: ANN401 - what JSON gives
    """Raise ValueError, KeyError, TypeError or AttributeError where a line has not the shape of a sample."""
    datetime.fromisoformat(line["time"])
    guests = line["guests"]
    shaped = [*(line.get(key, {}) for key in ("cpus", "devices")), guests, *guests.values()]
    shaped += [guest[key] for guest in guests.values() for key in ("vcpus", "blocks")]
    if not isinstance(line["host"], str) or not all(isinstance(each, dict) for each in shaped):
        raise TypeError
    for values in (values for guest in guests.values() for values in guest["vcpus"].values()):
        if not isinstance(values, list) or len(values) < _VCPU_COUNTERS:
            raise ValueError


class _Recording:
    """Counters of all lines as series: one per pair of lines."""

    def __init__(
        self, lines: list[dict[str, Any]], times: NDArray[np.int64], builder: CaptureBuilder, request: Request
    ) -> None:
        self.lines, self.times, self.builder, self.request = lines, times, builder, request
        self.seconds = np.diff(times) / 1e9

    def host(self, host: Entity) -> None:
        """Share of time each CPU was not idle, and all of them together."""
        shares = []
        for name in self.lines[0].get("cpus", {}):
            busy, idle = (self._grown("cpus", name, position) for position in (0, 1))
            with np.errstate(invalid="ignore", divide="ignore"):
                shares.append(100.0 * busy / (busy + idle))
            self._add(Entity(EntityKind.PCPU, name, host), "host_cpu_util_pct", shares[-1])
        if shares:
            self._add(host, "host_cpu_util_pct", np.mean(shares, axis=0))
        for name in self.lines[0].get("devices", {}):
            self._device(Entity(EntityKind.DEVICE, name, host))

    def _device(self, device: Entity) -> None:
        """What a disk of the host did, and how long each of its requests took."""
        reads, writes, read_bytes, written, read_ms, write_ms = (
            self._grown("devices", device.name, position) for position in range(6)
        )
        if not float(np.nansum(reads + writes)):
            return
        self._add(device, "disk_reads_per_s", reads / self.seconds)
        self._add(device, "disk_writes_per_s", writes / self.seconds)
        self._add(device, "disk_iops", (reads + writes) / self.seconds)
        self._add(device, "disk_read_mib_per_s", read_bytes / _MIB / self.seconds)
        self._add(device, "disk_write_mib_per_s", written / _MIB / self.seconds)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._add(device, "disk_device_latency_ms", (read_ms + write_ms) / (reads + writes))

    def guest(self, vm: Entity) -> None:
        """Run and ready time per vCPU, the VM's mean, and its disks."""
        known = [line["guests"][vm.name] for line in self.lines if vm.name in line["guests"]]
        names = list(known[0]["vcpus"])
        self.builder.inventory.add(vm, self.builder.info.name, vcpu_count=len(names))
        for position, metric in enumerate(("cpu_run_pct", "cpu_ready_pct")):
            if not names or all(values[position] == 0 for one in known for values in one["vcpus"].values()):
                continue
            rows = []
            for name in names:
                grown = self._grown("guests", vm.name, "vcpus", name, position)
                rows.append(100.0 * grown / 1e9 / self.seconds)
                self._add(Entity(EntityKind.VCPU, name, vm), metric, rows[-1])
            self._add(vm, metric, np.mean(rows, axis=0))
        other = self._grown("guests", vm.name, "others", 0)
        self._add(vm, "cpu_system_pct", 100.0 * other / 1e9 / self.seconds / max(len(names), 1))
        for name in known[0]["blocks"]:
            self._disk(Entity(EntityKind.VIRTUAL_DISK, name, vm))

    def _disk(self, disk: Entity) -> None:
        vm = str(disk.parent.name) if disk.parent is not None else ""

        def grown(field: str) -> Values:
            return self._grown("guests", vm, "blocks", disk.name, field)

        totals = []
        for way, metric in (("rd", "read"), ("wr", "write")):
            count = grown(f"{way}_operations")
            totals.append(count)
            self._add(disk, f"disk_{metric}s_per_s", count / self.seconds)
            self._add(disk, f"disk_{metric}_mib_per_s", grown(f"{way}_bytes") / _MIB / self.seconds)
            with np.errstate(invalid="ignore", divide="ignore"):
                each = grown(f"{way}_total_time_ns") / _NS_PER_MS / count
            self._add(disk, f"virtual_disk_latency_ms_{metric}", np.where(count > 0, each, np.nan))
        self._add(disk, "disk_iops", sum(totals) / self.seconds)
        # As it was at the end of an interval.
        limits = [_value(line, ("guests", vm, "iops_limits", disk.name)) for line in self.lines[1:]]
        self._add(disk, "disk_iops_limit", np.array(limits, dtype=np.float64))

    def _grown(self, *path: str | int) -> Values:
        """By how much the counter at a path grew from line to line; NaN where it is missing or fell."""
        values = np.array([_value(line, path) for line in self.lines], dtype=np.float64)
        grown = np.diff(values)
        grown[grown < 0] = np.nan
        return grown

    def _add(self, entity: Entity, metric: str, values: Values) -> None:
        if self.request.wants(metric) and bool(np.isfinite(values).any()):
            self.builder.add_series(metric, entity, self.times[1:], values)


def _value(line: Any, path: tuple[str | int, ...]) -> float:  # noqa: ANN401 - nested plain data
    try:
        for step in path:
            line = line[step]
        number = float(line)
    except (LookupError, TypeError, ValueError, OverflowError):
        return float("nan")
    return number if abs(number) < NUMBER_MAX else float("nan")
