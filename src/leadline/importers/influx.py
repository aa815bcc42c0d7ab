"""Influx line protocol as Telegraf writes it: vSphere, libvirt, disks, processors, memory and load.

Reads:
    Lines of ``inputs.vsphere`` (``vsphere_vm_*``, ``vsphere_host_*``, ``vsphere_datastore_*``; with vSAN,
    ``vsphere_vsan_performance_*``), ``inputs.diskio``,
    ``inputs.cpu``, ``inputs.mem``, ``inputs.system`` and ``inputs.libvirt`` (vCPUs, disks, balloon), from Telegraf's
    file output or an export.

Sample:
    .. code-block:: text

        vsphere_vm_cpu,cpu=instance-total,esxhostname=esx01,vmname=db01 ready_summation=1380i 1795163420000000000
        diskio,host=db01,name=sdb reads=120i,read_time=480i,io_time=300i 1795163420000000000

Lost:
    Other measurements; numbers of the vsphere input without a canonical metric are kept as ``raw.influx.COUNTER`` when
    everything is asked for. The first sample of a disk: its counters count since boot, so a rate needs two. A rate over
    a restart of the machine.

Units:
    diskio counts operations, bytes and milliseconds since boot. Per cent are per cent: the vsphere input divides the
    API's hundredths. Its sums are of 20 s. Times are nanoseconds since 1970, or the unit their number of digits tells.

Sources:
    InfluxDB documentation, line protocol. Telegraf documentation: inputs.vsphere, inputs.diskio, inputs.cpu,
    inputs.mem, inputs.system, inputs.libvirt. Linux Documentation/admin-guide/iostats.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.json_documents import NUMBER_MAX
from leadline.formats.samples import Samples, epoch_ns
from leadline.formats.vcenter.counters import REALTIME_S, CounterSamples
from leadline.importers._influx.libvirt import LibvirtLines
from leadline.importers._influx.vsan import add_vsan, vsan_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CPU = ("user", "nice", "system", "iowait", "steal", "irq", "softirq", "guest", "idle")
META = ImporterMeta(
    tool="Telegraf line protocol",
    marks=("vsphere_", "libvirt_", "diskio,", "cpu,", "mem,", "system,"),
    layers=(Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.STORAGE_PATH, Layer.GUEST),
    fields={
        **{f"cpu.usage_{name}": Field(f"guest_cpu_{name}_pct", "pct") for name in _CPU},
        "system.load1": Field("guest_load_1m", "count"),
        "system.load5": Field("guest_load_5m", "count"),
        "system.load15": Field("guest_load_15m", "count"),
        "mem.free": Field("guest_memory_free_mib", "bytes"),
        "mem.available": Field("guest_memory_available_mib", "bytes"),
        "mem.cached": Field("guest_memory_cached_mib", "bytes"),
        "mem.buffered": Field("guest_memory_buffers_mib", "bytes"),
        "mem.dirty": Field("guest_memory_dirty_mib", "bytes"),
        "mem.active": Field("guest_memory_active_mib", "bytes"),
        "mem.inactive": Field("guest_memory_inactive_mib", "bytes"),
    },
    record='telegraf --config telegraf.conf, with [[outputs.file]] files = ["metrics.influx"]',
)

_PART = r"(?:[^,=\s\\]|\\.)++"
_VALUE = r'(?:"(?:[^"\\]|\\.)*"|[^,\s"]+)'
_LINE = re.compile(
    rf"((?:[^,\s\\]|\\.)+)((?:,{_PART}=(?:[^,\s\\]|\\.)*)*) +({_PART}={_VALUE}(?:,{_PART}={_VALUE})*)(?: +([0-9]+))?"
)
_PAIR = re.compile(rf",({_PART})=((?:[^,\s\\]|\\.)*)")
_FIELD = re.compile(rf"(?:^|,)({_PART})=({_VALUE})")
_MARK = re.compile(
    r"^(?:vsphere_(?:vm|host|datastore|cluster|vsan)_[\w-]+|libvirt_\w+|diskio|cpu|mem|system),"
    r"[^\n]*=[^\n]* [\w%.\\ -]+=[^\n]* [0-9]{10,19}$",
    re.MULTILINE,
)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?[iu]?")
_COUNTER = re.compile(r"vsphere_(vm|host|datastore)_(\w+)")
_ROLLUP = re.compile(r"(\w+)_(summation|average|latest|maximum|minimum|none)")
_INSTANCE_TAGS = ("cpu", "disk", "interface", "lun", "adapter", "path")
_TOTALS = frozenset({"instance-total", "cpu-total", "*"})
_DISK_FIELDS = (
    "reads",
    "writes",
    "read_bytes",
    "write_bytes",
    "read_time",
    "write_time",
    "io_time",
    "weighted_io_time",
)


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    tags: dict[str, str]
    fields: dict[str, float]
    texts: dict[str, str]
    time_ns: int


def sniff(source: Source) -> int:
    """Sure by Telegraf's measurements in whole lines with a time."""
    return 88 if _MARK.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of every machine and disk.

    Raises:
        InputError: a line is not line protocol, has no time, or no line is of a known measurement.
    """
    builder = CaptureBuilder(source.name, "influx", META.tool)
    counters, samples = CounterSamples("influx", request), Samples()
    disks: dict[Entity, dict[int, dict[str, float]]] = {}
    libvirt, vsan = LibvirtLines(), vsan_samples()
    unknown = known = 0
    for line in _lines(source, request, builder):
        counter = _COUNTER.fullmatch(line.name)
        known += 1
        if counter is not None:
            _add_counters(line, counter[1], counter[2], counters)
        elif line.name == "diskio" and line.tags.get("name"):
            disk = Entity(EntityKind.BLOCK_DEVICE, line.tags["name"], _guest(line))
            disks.setdefault(disk, {}).setdefault(line.time_ns, {}).update(line.fields)
        elif line.name in {"cpu", "mem", "system"}:
            _add_guest(line, request, samples, builder)
        elif not (
            libvirt.add(line.name, line.tags, line.fields, line.texts, line.time_ns)
            or add_vsan(line.name, line.tags, line.fields, line.time_ns, request, vsan)
        ):
            known -= 1
            unknown += 1
    if not known:
        raise InputError(
            source.name,
            found="no measurement of vsphere, libvirt, diskio, cpu, mem or system",
            expected="lines like diskio,host=db01,name=sdb reads=120i 1795163420000000000",
            advice="Record with the inputs this importer knows.",
        )
    if unknown:
        builder.warn("unknown", "lines of other measurements were left out", unknown)
    for disk, moments in disks.items():
        _add_disk(disk, moments, request, builder)
    for gathered in (samples, vsan):
        gathered.into(builder)
    counters.into(builder)
    libvirt.into(source, request, builder, META.record)
    return builder.build()


def _lines(source: Source, request: Request, builder: CaptureBuilder) -> Iterator[_Line]:
    text = source.text()
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        parsed = _parsed(bare)
        if parsed is None:
            if number == len(lines) and (request.truncate_last or not text.endswith(("\n", "\r"))):
                builder.warn("cut", "the last line was cut off and left out")
                return
            raise InputError(
                f"{source.name}:{number}",
                found=repr(bare[:60]),
                expected="measurement,tag=text field=number time",
                advice="Record it again with Telegraf's file output in the format influx.",
            )
        yield parsed


def _parsed(line: str) -> _Line | None:
    match = _LINE.fullmatch(line)
    time_ns = None if match is None or match[4] is None else _time_ns(int(match[4][:20]))
    if match is None or time_ns is None:
        return None
    fields, texts = {}, {}
    for name, text in _FIELD.findall(match[3]):
        if _NUMBER.fullmatch(text):
            value = float(text.rstrip("iu"))
            fields[_unescaped(name)] = value if abs(value) < NUMBER_MAX else float("nan")
        elif text.startswith('"'):
            texts[_unescaped(name)] = _unescaped(text[1:-1])
    tags = {_unescaped(name): _unescaped(value) for name, value in _PAIR.findall(match[2])}
    return _Line(_unescaped(match[1]), tags, fields, texts, time_ns)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text


def _time_ns(stamp: int) -> int | None:
    """UTC nanoseconds of a time in the unit its size tells: seconds now have 10 digits, nanoseconds 19."""
    for least, unit_ns in ((10**17, 1), (10**14, 1_000), (10**11, 1_000_000)):
        if stamp >= least:
            return stamp if unit_ns == 1 and epoch_ns(stamp, 1) is not None else epoch_ns(stamp, unit_ns)
    return epoch_ns(stamp, 1_000_000_000)


def _guest(line: _Line) -> Entity:
    host = line.tags.get("host")
    return Entity(EntityKind.GUEST, host) if host else UNNAMED_GUEST


def _add_counters(line: _Line, resource: str, group: str, counters: CounterSamples) -> None:
    tags = line.tags
    host_name = tags.get("esxhostname") or (tags.get("source") if resource == "host" else None)
    host = Entity(EntityKind.HOST, host_name) if host_name else None
    if resource == "vm":
        name = tags.get("vmname") or tags.get("source")
        owner = Entity(EntityKind.VM, name, host) if name else None
    elif resource == "host":
        owner = host
    else:
        name = tags.get("dsname") or tags.get("source")
        owner = Entity(EntityKind.DATASTORE, name) if name else None
    instance = next((tags[tag] for tag in _INSTANCE_TAGS if tag in tags), "")
    instance = "" if instance in _TOTALS else instance
    for field, value in line.fields.items():
        rollup = _ROLLUP.fullmatch(field)
        if owner is not None and rollup is not None:
            run = counters.put(owner, f"{group}.{rollup[1]}.{rollup[2]}", instance, line.time_ns, value)
            if resource != "datastore":
                run.interval_s = REALTIME_S


def _add_guest(line: _Line, request: Request, samples: Samples, builder: CaptureBuilder) -> None:
    guest = _guest(line)
    entity = guest
    if line.name == "cpu":
        cpu = line.tags.get("cpu", "cpu-total")
        entity = guest if cpu in _TOTALS else Entity(EntityKind.CPU, cpu.removeprefix("cpu"), guest)
        idle = line.fields.get("usage_idle")
        if idle is not None and request.wants("guest_cpu_busy_pct"):
            samples.put("guest_cpu_busy_pct", entity, line.time_ns, 100.0 - idle - line.fields.get("usage_iowait", 0.0))
    for name, value in line.fields.items():
        known = META.fields.get(f"{line.name}.{name}")
        if known is not None and request.wants(known.metric):
            samples.put(known.metric, entity, line.time_ns, value * factor(known.unit, metric_of(known.metric).unit))
    count = line.fields.get("n_cpus", float("nan"))
    if line.name == "system" and 0 < count < 1e6:
        builder.inventory.add(guest, builder.info.name, cpu_count=int(count))
    total = line.fields.get("total", float("nan"))
    if line.name == "mem" and total > 0:
        builder.inventory.add(guest, builder.info.name, memory_mib=total / 2**20)


def _add_disk(disk: Entity, moments: dict[int, dict[str, float]], request: Request, builder: CaptureBuilder) -> None:
    """Rates between samples of counters since boot; NaN over a restart, and where there was nothing to average."""
    if len(moments) < 2:
        builder.warn("one-sample", f"{disk.name} has one sample; its counters since boot are no rates")
        return
    times = np.array(sorted(moments), dtype=np.int64)
    seconds = np.diff(times) / 1e9
    step: dict[str, NDArray[np.float64]] = {}
    for name in _DISK_FIELDS:
        counted = np.array([moments[int(t)].get(name, np.nan) for t in times], dtype=np.float64)
        delta = np.diff(counted)
        step[name] = np.where(delta < 0, np.nan, delta)
    operations, busy_ms = step["reads"] + step["writes"], step["read_time"] + step["write_time"]
    series = {
        "disk_reads_per_s": step["reads"] / seconds,
        "disk_writes_per_s": step["writes"] / seconds,
        "disk_iops": operations / seconds,
        "disk_read_mib_per_s": step["read_bytes"] / seconds / 2**20,
        "disk_write_mib_per_s": step["write_bytes"] / seconds / 2**20,
        "guest_disk_util_pct": step["io_time"] / (seconds * 1000.0) * 100.0,
        "guest_disk_queue_count": step["weighted_io_time"] / (seconds * 1000.0),
        "guest_disk_await_ms_read": _mean(step["read_time"], step["reads"]),
        "guest_disk_await_ms_write": _mean(step["write_time"], step["writes"]),
        "guest_disk_await_ms": _mean(busy_ms, operations),
    }
    for metric, values in series.items():
        if request.wants(metric) and not np.all(np.isnan(values)):
            builder.add_series(metric, disk, times[1:], values)


def _mean(total: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    mean = np.full(len(total), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean
