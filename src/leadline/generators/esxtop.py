"""Generated esxtop captures: any width and length, healthy or with known faults, the same for the same seed.

The header follows real captures object by object; the numbers follow from `HostModel`. Beside the capture a truth file
says what was injected where and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leadline._core import pdh_write_header, pdh_write_rows
from leadline.core.model.errors import UsageError
from leadline.generators.host_model import HELPER_WORLDS, QUEUE_DEPTH, CaptureShape, HostModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.generators.host_model import Floats

ROWS_PER_CHUNK = 40  # rows formatted at a time: bounds memory for any length
_PADDING_OBJECT = "Interrupt Cookie"  # pads a capture to an exact width, as real ones end with


@dataclass(frozen=True, slots=True)
class Columns:
    """Neighbouring columns of one object and counter: instances and their values [k, n]."""

    object_name: str
    counter: str
    instances: list[str | None]
    values: Callable[[], Floats]


def write(
    model: HostModel, path: Path, *, columns: int | None = None, progress: Callable[[int, int], None] | None = None
) -> None:
    """Write a model's capture, padded to ``columns`` counters if given.

    Raises:
        UsageError: the model alone is wider than ``columns``.
    """
    groups = list(layout(model))
    width = sum(len(group.instances) for group in groups)
    if columns is not None and width > columns:
        raise UsageError(
            "--columns", found=str(columns), expected=f"at least {width}", advice="Fewer VMs or more columns."
        )
    padding = (columns or width) - width
    if padding:
        groups.append(_padding(model, padding))
    host = model.shape.host
    cells = [_cell(host, group, name) for group in groups for name in group.instances]
    pdh_write_header(str(path), "(PDH-CSV 4.0) (UTC)(0)", cells)
    n = model.shape.sample_count
    step_ns = round(model.shape.interval_s * 1e9)
    times = model.shape.start_ns + step_ns * np.arange(1, n + 1, dtype=np.int64)
    values = [group.values() for group in groups]
    for first in range(0, n, ROWS_PER_CHUNK):
        last = min(first + ROWS_PER_CHUNK, n)
        rows = np.concatenate([part[:, first:last] for part in values]).T
        pdh_write_rows(str(path), times[first:last], np.ascontiguousarray(rows, dtype=np.float64), 2)
        if progress is not None:
            progress(last, n)


def layout(model: HostModel) -> Iterator[Columns]:
    """The columns of a model's capture, in esxtop's order."""
    yield from _host_columns(model)
    yield from _world_columns(model)
    yield from _memory_columns(model)
    yield from _disk_columns(model)
    yield from _virtual_disk_columns(model)
    yield from _port_columns(model)


def width_of(shape: CaptureShape) -> int:
    """How many counters a capture of this shape has (the time not counted)."""
    model = HostModel(replace(shape, sample_count=1), np.random.default_rng(shape.seed))
    return sum(len(group.instances) for group in layout(model))


def shape_for_width(columns: int, sample_count: int, seed: int = 1) -> CaptureShape:
    """The shape whose capture comes closest to a width from below; `write` pads it to the exact width.

    Raises:
        UsageError: the width is below that of the smallest host.
    """
    luns = max(4, min(256, columns // 600))
    first = CaptureShape(vm_count=1, lun_count=luns, sample_count=sample_count, seed=seed)
    narrow = width_of(first)
    per_vm = (width_of(replace(first, vm_count=11)) - narrow) / 10
    for vms in range(int((columns - narrow) / per_vm) + 1, 0, -1):
        shape = replace(first, vm_count=vms)
        if width_of(shape) <= columns:
            return shape
    raise UsageError("--columns", found=str(columns), expected=f"at least {narrow}", advice="Ask for a wider capture.")


def _cell(host: str, group: Columns, instance: str | None) -> str:
    name = group.object_name if instance is None else f"{group.object_name}({instance})"
    return f"\\\\{host}\\{name}\\{group.counter}"


def _group_id(vm: int) -> int:
    return 1_300_000 + 17 * vm


def _world_id(vm: int, world: int) -> int:
    return 400_000 + 32 * vm + world


def _constant(rows: int, model: HostModel, level: float) -> Callable[[], Floats]:
    return lambda: np.full((rows, model.shape.sample_count), level, dtype=np.float32)


def _host_columns(model: HostModel) -> Iterator[Columns]:
    def load() -> Floats:
        return model.load_1m

    for minutes in (1, 5, 15):
        yield Columns("Physical Cpu Load", f"Cpu Load ({minutes} Minute Avg)", [None], load)
    names: list[str | None] = [*(str(i) for i in range(len(model.pcpu_util))), "_Total"]

    def pcpus() -> Floats:
        return np.vstack([model.pcpu_util, model.pcpu_util.mean(axis=0, keepdims=True)])

    yield Columns("Physical Cpu", "% Processor Time", names, pcpus)
    yield Columns("Physical Cpu", "% Util Time", names, pcpus)
    memory = {name: (lambda name=name: model.memory[name].sum(axis=0, keepdims=True)) for name in model.memory}
    yield Columns("Memory", "Machine MBytes", [None], lambda: 1.5 * memory["size"]())
    yield Columns("Memory", "Free MBytes", [None], lambda: 0.4 * memory["size"]())
    yield Columns("Memory", "Kernel State", [None], _constant(1, model, 0.0))
    yield Columns("Memory", "Swap Used MBytes", [None], memory["swapped"])
    yield Columns("Memory", "Swap MBytes Read/sec", [None], memory["swap_read"])
    yield Columns("Memory", "Swap MBytes Write/sec", [None], memory["swap_write"])
    yield Columns("Memory", "Total Compressed MBytes", [None], memory["compressed"])
    yield Columns("Memory", "Memctl Current MBytes", [None], memory["balloon"])


def _world_values(model: HostModel) -> dict[str, Callable[[], Floats]]:
    """Per vCPU [vcpus, n]: the shares of esxtop's world counters, which together make 100 % with wait."""

    def wait() -> Floats:
        return np.maximum(100.0 - model.used - model.ready - model.costop - model.swap_wait, 0.0)

    return {
        "% Used": lambda: model.used,
        "% Run": lambda: model.used,
        "% System": lambda: 0.02 * model.used,
        "% Wait": wait,
        "% VmWait": lambda: 0.1 * wait(),
        "% Ready": lambda: model.ready,
        "% Idle": lambda: 0.9 * wait(),
        "% Overlap": lambda: 0.01 * model.used,
        "% CoStop": lambda: model.costop,
        "% Max Limited": lambda: model.max_limited,
        "% Swap Wait": lambda: model.swap_wait,
    }


def _world_columns(model: HostModel) -> Iterator[Columns]:
    shape = model.shape
    groups: list[str | None] = ["1:system", *(f"{_group_id(i)}:{name}" for i, name in enumerate(model.vm_names))]
    worlds: list[str | None] = []
    for vm, name in enumerate(model.vm_names):
        prefix = f"{_group_id(vm)}:{name}"
        worlds += [f"{prefix}:{_world_id(vm, i)}:{world}" for i, world in enumerate(HELPER_WORLDS)]
        worlds += [
            f"{prefix}:{_world_id(vm, len(HELPER_WORLDS) + i)}:vmx-vcpu-{i}:{name}" for i in range(shape.vcpus_per_vm)
        ]
    for counter, of_vcpus in _world_values(model).items():
        yield Columns("Group Cpu", counter, groups, partial(_group_sums, model, of_vcpus, counter))
    for counter, of_vcpus in _world_values(model).items():
        yield Columns("Vcpu", counter, worlds, partial(_with_helpers, model, of_vcpus, counter))


def _helper_level(counter: str) -> float:
    """Helper worlds wait: 100 % in the wait counters, nothing elsewhere."""
    return 100.0 if counter in {"% Wait", "% VmWait"} else 0.0


def _with_helpers(model: HostModel, of_vcpus: Callable[[], Floats], counter: str) -> Floats:
    shape, n = model.shape, model.shape.sample_count
    whole = np.full((shape.vm_count, len(HELPER_WORLDS) + shape.vcpus_per_vm, n), _helper_level(counter), np.float32)
    whole[:, len(HELPER_WORLDS) :] = of_vcpus().reshape(shape.vm_count, shape.vcpus_per_vm, n)
    return whole.reshape(-1, n)


def _group_sums(model: HostModel, of_vcpus: Callable[[], Floats], counter: str) -> Floats:
    shape, n = model.shape, model.shape.sample_count
    sums = of_vcpus().reshape(shape.vm_count, shape.vcpus_per_vm, n).sum(axis=1) + _helper_level(counter) * len(
        HELPER_WORLDS
    )
    system = np.full((1, n), 15.0 if counter == "% Ready" else 190.0, dtype=np.float32)
    return np.vstack([system, sums]).astype(np.float32)


def _memory_columns(model: HostModel) -> Iterator[Columns]:
    names: list[str | None] = [f"{_group_id(i)}:{name}" for i, name in enumerate(model.vm_names)]
    memory, count = model.memory, len(names)
    counters: dict[str, Callable[[], Floats]] = {
        "Memory Size MBytes": lambda: memory["size"],
        "Memory Granted Size MBytes": lambda: memory["size"],
        "Memory Consumed Size MBytes": lambda: memory["size"] - memory["balloon"] - memory["swapped"],
        "Touched MBytes": lambda: memory["touched"],
        "Memctl?": _constant(count, model, 1.0),
        "Memctl MBytes": lambda: memory["balloon"],
        "Memctl Target MBytes": lambda: memory["balloon"],
        "Memctl Max MBytes": lambda: 0.65 * memory["size"],
        "Swapped MBytes": lambda: memory["swapped"],
        "Swap Target MBytes": lambda: memory["swapped"],
        "Swap Read MBytes/sec": lambda: memory["swap_read"],
        "Swap Written MBytes/sec": lambda: memory["swap_write"],
        "Compressed Memory MBytes": lambda: memory["compressed"],
        "Compression MBytes/sec": lambda: memory["zip"],
        "Decompression MBytes/sec": lambda: memory["zip"],
        "Overhead MBytes": _constant(count, model, 120.0),
        "Numa % Local": lambda: model.numa_local,
    }
    for counter, values in counters.items():
        yield Columns("Group Memory", counter, names, values)


def _latency(model: HostModel, part: str) -> Floats:
    kernel = model.kavg + model.qavg
    return {"Driver": model.davg, "Kernel": kernel, "Guest": model.gavg(), "Queue": model.qavg}[part]


def _disk_columns(model: HostModel) -> Iterator[Columns]:
    luns = range(model.shape.lun_count)
    devices: list[str | None] = [model.lun_name(i) for i in luns]
    paths: list[str | None] = [f"vmhba{1 + i % 2}:C0:T0:L{i}" for i in luns]
    yield from _lun_counters(model, "Physical Disk SCSI Device", devices, queues=True)
    yield from _lun_counters(model, "Physical Disk Path", paths, queues=False)
    worlds: list[str | None] = [
        f"{model.lun_name(int(lun))}-{_world_id(i // model.shape.disks_per_vm, 0)}"
        for i, lun in enumerate(model.disk_lun)
    ]
    unique = list(dict.fromkeys(worlds))
    position = {name: i for i, name in reversed(list(enumerate(worlds)))}
    first_of = np.array([position[name] for name in unique])
    for counter, values in {
        "Reads/sec": lambda: model.disk_reads[first_of],
        "Writes/sec": lambda: model.disk_writes[first_of],
        "Average Driver MilliSec/Command": lambda: model.davg[model.disk_lun[first_of]],
        "Average Kernel MilliSec/Command": lambda: (model.kavg + model.qavg)[model.disk_lun[first_of]],
        "Average Guest MilliSec/Command": lambda: model.gavg()[model.disk_lun[first_of]],
        "Average Queue MilliSec/Command": lambda: model.qavg[model.disk_lun[first_of]],
    }.items():
        yield Columns("Physical Disk Per-Device-Per-World", counter, unique, values)


def _lun_counters(model: HostModel, name: str, instances: list[str | None], *, queues: bool) -> Iterator[Columns]:
    def reads() -> Floats:
        return model.lun_rate(model.disk_reads)

    def writes() -> Floats:
        return model.lun_rate(model.disk_writes)

    def outstanding() -> Floats:
        return (reads() + writes()) * model.gavg() / 1000.0

    if queues:
        yield Columns(name, "Device Q Depth", instances, _constant(len(instances), model, QUEUE_DEPTH))
        yield Columns(name, "Active Commands", instances, lambda: np.minimum(outstanding(), QUEUE_DEPTH))
        yield Columns(name, "Queued Commands", instances, lambda: np.floor((reads() + writes()) * model.qavg / 1000.0))
        yield Columns(name, "% Used", instances, lambda: 100.0 * np.minimum(outstanding() / QUEUE_DEPTH, 1.0))
        yield Columns(name, "Load", instances, lambda: outstanding() / QUEUE_DEPTH)
    yield Columns(name, "Commands/sec", instances, lambda: reads() + writes())
    yield Columns(name, "Reads/sec", instances, reads)
    yield Columns(name, "Writes/sec", instances, writes)
    yield Columns(name, "MBytes Read/sec", instances, lambda: reads() / 128.0)
    yield Columns(name, "MBytes Written/sec", instances, lambda: writes() / 128.0)
    for per in ("Command", "Read", "Write"):
        for part in ("Driver", "Kernel", "Guest", "Queue"):
            yield Columns(
                name,
                f"Average {part} MilliSec/{per}",
                instances,
                partial(_latency, model, part),
            )
    yield Columns(name, "Aborts/sec", instances, lambda: model.aborts)
    yield Columns(name, "Resets/sec", instances, lambda: model.resets)


def _virtual_disk_columns(model: HostModel) -> Iterator[Columns]:
    per_vm = model.shape.disks_per_vm
    names: list[str | None] = [
        f"{model.vm_names[i // per_vm]}:scsi{i % per_vm % 4}:{i % per_vm // 4}" for i in range(len(model.disk_lun))
    ]
    for counter, values in {
        "Commands/sec": model.disk_iops,
        "Reads/sec": lambda: model.disk_reads,
        "Writes/sec": lambda: model.disk_writes,
        "MBytes Read/sec": lambda: model.disk_reads / 128.0,
        "MBytes Written/sec": lambda: model.disk_writes / 128.0,
        "Average MilliSec/Read": model.disk_latency,
        "Average MilliSec/Write": model.disk_latency,
    }.items():
        yield Columns("Virtual Disk", counter, names, values)


def _port_columns(model: HostModel) -> Iterator[Columns]:
    vms = len(model.vm_names)
    names: list[str | None] = ["vSwitch0:33554434:vmnic0", "vSwitch0:33554436:vmk0"]
    for vm in range(vms):
        switch, port, client = model.port_name(vm).split(":", 2)
        names.append(f"{switch}:{port}:{_world_id(vm, 0)}:{client}")

    def with_uplinks(of_vms: Floats) -> Floats:
        return np.vstack([np.zeros((2, of_vms.shape[1]), dtype=np.float32), of_vms])

    def packets() -> Floats:
        cpu = model.used.reshape(vms, model.shape.vcpus_per_vm, -1).mean(axis=1)
        return with_uplinks(40.0 * cpu)

    for counter, values in {
        "Packets Transmitted/sec": packets,
        "MBits Transmitted/sec": lambda: packets() * 0.004,
        "Packets Received/sec": packets,
        "MBits Received/sec": lambda: packets() * 0.004,
        "% Outbound Packets Dropped": lambda: with_uplinks(model.tx_dropped),
        "% Received Packets Dropped": lambda: with_uplinks(model.rx_dropped),
    }.items():
        yield Columns("Network Port", counter, names, values)


def _padding(model: HostModel, count: int) -> Columns:
    names: list[str | None] = [f"0x{i:x}" for i in range(count)]

    def interrupts() -> NDArray[np.float32]:
        levels = model.rng.uniform(0, 400, count).astype(np.float32)
        return np.repeat(levels[:, np.newaxis], model.shape.sample_count, axis=1)

    return Columns(_PADDING_OBJECT, "Interrupts/second", names, interrupts)
