"""Lab files: guests with their virtual hardware, what each runs, and what varies from run to run.

``docs/guides/lab.md`` explains every key with examples; ``examples/lab/`` holds whole ones.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from leadline.core.io.yaml_files import read_model
from leadline.core.model.workload import Seconds, Size, Workload

WHAT, GUIDE = "a lab file", "docs/guides/lab.md"
_STRICT = ConfigDict(extra="forbid", frozen=True)
GUESTS = "guests"  # what varies with ``at_once``
PHASE, BEFORE = "phase", "before"  # what varies with ``steps``, and what the time before the first one is called
PERSISTENT_MEMORY_STEP = 16 * 1024**2  # Source: Linux, drivers/nvdimm/region_devs.c, the region's align
_NAME = r"^[a-z][a-z0-9-]{0,30}$"
Name = Annotated[str, Field(pattern=_NAME)]
AdapterType = Literal["pvscsi", "lsi", "lsi-sas", "megasas", "virtio-scsi", "virtio-blk", "nvme"]


def _cpus(given: object) -> object:
    """A list of CPUs of ``0``, ``[0, 1]`` or ``0-3,6``.

    >>> _cpus("0-2,5")
    (0, 1, 2, 5)
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return (given,)
    if not isinstance(given, str):
        return given
    cpus: list[int] = []
    for part in given.split(","):
        first, _, last = part.partition("-")
        if not first.strip().isdigit() or (last and not last.strip().isdigit()):
            message = f"{given!r} is no list of CPUs such as 0-3,6"
            raise ValueError(message)
        cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


Port = Annotated[int, Field(ge=1, le=65535)]
Cpus = Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_cpus)]


class DiskLimits(BaseModel):
    """What the hypervisor lets a disk do: operations and bytes per second, in both directions together or in each.

    ``iops_size``: an operation larger than that counts as several, as vSphere counts in units of 32 KiB.
    """

    model_config = _STRICT

    iops: Annotated[int, Field(ge=1)] | None = None
    iops_read: Annotated[int, Field(ge=1)] | None = None
    iops_write: Annotated[int, Field(ge=1)] | None = None
    bytes_per_s: Size | None = None
    iops_size: Size | None = None


class LabDisk(BaseModel):
    """A virtual disk.

    Attributes:
        provisioning: ``filled`` with random data before the guest starts, ``full`` (zeros written), ``falloc`` (space
            reserved), ``thin``.
        overlays: snapshots taken before the guest starts: so many qcow2 files over the base.
        shared_limit: disks of a guest with the same name of it share one limit.
        filesystem: made and mounted in the guest at /mnt/NAME; without, the load works on the device.
        queue_depth: of the device in the guest (``/sys/block/*/device/queue_depth``).
        storage: what the storage below can do at most, as `limits` say what the hypervisor lets through.
        null_latency: nothing is stored: every request takes so long at the storage below, however many there are.
        storage_latency: each request takes the storage below so long at least, however many are on their way: what
            makes deep queues worth having (needs nbdkit; at most 16 are on their way, or `host_queue_depth` if less).
        sector: what the storage below works in; smaller or misaligned writes are read, changed and written back there.
        partition_offset: the guest works on a partition that begins there (32256 is 63 sectors, as old systems did).
    """

    model_config = _STRICT

    name: Name
    adapter: Name
    size: Size
    format: Literal["raw", "qcow2"] = "raw"
    cache: Literal["none", "writeback", "directsync", "unsafe"] = "none"
    aio: Literal["threads", "native", "io_uring"] = "threads"
    provisioning: Literal["filled", "full", "falloc", "thin"] = "filled"
    overlays: Annotated[int, Field(ge=0, le=32)] = 0
    limits: DiskLimits | None = None
    storage: DiskLimits | None = None
    null_latency: Annotated[Seconds, Field(gt=0, le=10)] | None = None
    storage_latency: Annotated[Seconds, Field(ge=0.001, le=10)] | None = None
    shared_limit: Name | None = None
    filesystem: Literal["ext4", "xfs"] | None = None
    queue_depth: Annotated[int, Field(ge=1)] | None = None
    scheduler: str | None = None
    sector: Annotated[Size, Field(ge=512, le=65536)] | None = None
    partition_offset: Size = 0

    @model_validator(mode="after")
    def _whole(self) -> LabDisk:
        if self.sector is not None and self.sector & (self.sector - 1):
            message = f"sector {self.sector} is no power of two"
            raise ValueError(message)
        if self.storage_latency is not None and self.overlays:
            message = "storage_latency is of one file: it has no overlays"
            raise ValueError(message)
        if self.partition_offset % 512:
            message = f"partition_offset {self.partition_offset} is no multiple of 512"
            raise ValueError(message)
        if self.null_latency is not None and (self.format != "raw" or self.overlays or self.filesystem is not None):
            message = "a disk with a latency stores nothing: it is raw, without overlays and file system"
            raise ValueError(message)
        return self


class Adapter(BaseModel):
    """A virtual storage adapter; ``module_options`` go to its driver in the guest, as ``cmd_per_lun=254``."""

    model_config = _STRICT

    name: Name
    type: AdapterType
    module_options: str = ""


class Nic(BaseModel):
    """A virtual network card; guests on the same network see each other, and nothing else."""

    model_config = _STRICT

    type: Literal["vmxnet3", "e1000", "e1000e", "virtio"] = "vmxnet3"
    network: Name = "lab"
    address: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+\.\d+/\d+$")]


class GuestLoad(BaseModel):
    """What a guest runs: a workload (a name, a file, or written out) on one of its disks, or a shell command.

    Attributes:
        command: run again and again until ``seconds`` are over; what its disks did is counted by the hypervisor.
        disk: name of the disk; for a database its file system holds the cluster.
        wal: name of the disk of streams of role wal, if another.
        start_after_s: how long after the others it starts.
    """

    model_config = _STRICT

    workload: str | dict[str, Any] | None = None
    command: str | None = None
    seconds: Annotated[Seconds, Field(ge=2)] = 10.0
    disk: Name
    wal: Name | None = None
    start_after_s: Seconds = 0.0

    @model_validator(mode="after")
    def _one(self) -> GuestLoad:
        if (self.workload is None) == (self.command is None):
            message = "a load is either a workload or a command"
            raise ValueError(message)
        return self


class LabStep(BaseModel):
    """What the hypervisor does, or a guest is told to do, at a time of a load; the time from it on is told apart.

    Attributes:
        at_s: after all guests of a load have begun it.
        guest: whose disk, or who is told.
        do: ``snapshot`` puts a qcow2 file over the disk's, ``consolidate`` merges all such files into the one below,
            ``command`` runs a shell command in the guest.
        for_s: a command that runs longer is ended then.
        count: so many snapshots, one over the other.
        speed: bytes per second a consolidation copies at most.
        phase: what the time from its beginning on is called (several steps may begin the same); without, none begins.
        then: what the time after its end is called; without, it is not told of.
    """

    model_config = _STRICT

    at_s: Seconds
    guest: Name
    do: Literal["snapshot", "consolidate", "command"]
    disk: Name | None = None
    command: str | None = None
    for_s: Annotated[Seconds, Field(gt=0)] | None = None
    speed: Annotated[Size, Field(ge=1)] | None = None
    count: Annotated[int, Field(ge=1, le=32)] | None = None
    phase: Name | None = None
    then: Name | None = None

    @model_validator(mode="after")
    def _fits(self) -> LabStep:
        needed = ("command", "for_s") if self.do == "command" else ("disk",)
        allowed = {*needed, {"consolidate": "speed", "snapshot": "count"}.get(self.do)}
        for key in ("disk", "command", "for_s", "speed", "count"):
            given = getattr(self, key) is not None
            if given and key not in allowed:
                message = f"{self.do} has no {key}"
                raise ValueError(message)
            if key in needed and not given:
                message = f"{self.do} needs {key}"
                raise ValueError(message)
        if self.then is not None and self.phase is None:
            message = "then is what follows a phase: it needs phase"
            raise ValueError(message)
        if self.do == "snapshot" and self.then is not None:
            message = "snapshot is over at once: its phase lasts until another begins, so it has no then"
            raise ValueError(message)
        return self


class Guest(BaseModel):
    """A guest: its virtual hardware, where it runs, and its load.

    Attributes:
        count: so many alike, called NAME-1, NAME-2 …
        numa_nodes: vCPUs and memory are split evenly over so many virtual NUMA nodes.
        persistent_memory: of an NVDIMM that the guest has as /dev/dax0.0, beside its memory.
        host_cpus: CPUs of this machine its threads may run on; all without.
        host_queue_depth: requests of all its disks this machine works on at once (QEMU's thread pool; 64 without).
        cpu_quota_pct: percent of one CPU of this machine it may use (needs a writable cgroup).
        accelerator: ``kvm`` or ``tcg`` for this guest alone; one that needs KVM is left out, and said to be, where KVM
            does not work. ``auto`` is KVM where it works.
        prepare: shell commands run in the guest before its load.
        ports: TCP ports of the guest by which this machine alone reaches it, and the port here (at 127.0.0.1) each is
            reached by; the guest reaches nothing through them.
    """

    model_config = _STRICT

    name: Name
    count: Annotated[int, Field(ge=1, le=64)] = 1
    vcpus: Annotated[int, Field(ge=1, le=64)] = 1
    memory: Size = 768 * 1024**2
    numa_nodes: Annotated[int, Field(ge=1, le=8)] = 1
    adapters: tuple[Adapter, ...] = ()
    disks: tuple[LabDisk, ...] = ()
    nics: tuple[Nic, ...] = ()
    ports: dict[Port, Port] = Field(default_factory=dict)
    persistent_memory: Size | None = None
    host_cpus: Cpus = ()
    host_queue_depth: Annotated[int, Field(ge=1, le=1024)] | None = None
    cpu_quota_pct: Annotated[float, Field(gt=0)] | None = None
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"
    prepare: tuple[str, ...] = ()
    load: GuestLoad | None = None

    @field_validator("memory")
    @classmethod
    def _enough(cls, given: int) -> int:
        if given < 384 * 1024**2:
            message = "a guest needs at least 384m of memory"
            raise ValueError(message)
        return given

    @field_validator("persistent_memory")
    @classmethod
    def _whole_blocks(cls, given: int | None) -> int | None:
        if given is not None and (given < 64 * 1024**2 or given % PERSISTENT_MEMORY_STEP):
            message = "persistent_memory is at least 64m, and a multiple of 16m"
            raise ValueError(message)
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Guest:
        adapters = {adapter.name: adapter.type for adapter in self.adapters}
        disks = {disk.name for disk in self.disks}
        for disk in self.disks:
            if disk.adapter not in adapters:
                raise _unknown(f"disk {disk.name}: adapter", disk.adapter, adapters)
        if len(adapters) != len(self.adapters) or len(disks) != len(self.disks):
            message = "two adapters or two disks have the same name"
            raise ValueError(message)
        for single in (name for name, kind in adapters.items() if kind in ("virtio-blk", "nvme")):
            if sum(disk.adapter == single for disk in self.disks) > 1:
                message = f"adapter {single} holds one disk; give each disk a separate adapter"
                raise ValueError(message)
        for wanted in () if self.load is None else (self.load.disk, self.load.wal):
            if wanted is not None and wanted not in disks:
                raise _unknown("load: disk", wanted, disks)
        if self.ports and self.count > 1:
            message = "ports are of one guest: several would share a port of this machine"
            raise ValueError(message)
        if len(set(self.ports.values())) != len(self.ports):
            message = "two ports of the guest have the same port of this machine"
            raise ValueError(message)
        if self.vcpus % self.numa_nodes:
            message = f"{self.vcpus} vCPUs cannot be split over {self.numa_nodes} NUMA nodes"
            raise ValueError(message)
        return self


class Lab(BaseModel):
    """A lab file.

    Attributes:
        question: what it answers; ``means`` and ``does_not_mean``: what the answer says about production.
        vary: value lists by key of the workload's streams or database load (``oio``, ``block``, ``clients`` …); every
            combination is run.
        repeats: so often, in an order shuffled by the seed, so that drift of the machine hits all alike.
        together: all guests are loaded at the same time, otherwise one after the other.
        at_once: so many guests, the first of the file, are loaded at the same time, one number after the other.
        steps: what is done during each load, of guests that are loaded then; loads must be commands, as a workload
            fills its disk and warms up for as long as it needs before it is measured.
    """

    model_config = _STRICT

    leadline_lab: Literal[1] = 1
    name: Name
    question: str = ""
    means: str = ""
    does_not_mean: str = ""
    guests: Annotated[tuple[Guest, ...], Field(min_length=1)]
    vary: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(default_factory=dict)
    repeats: Annotated[int, Field(ge=1, le=100)] = 1
    together: bool = False
    at_once: tuple[Annotated[int, Field(ge=1)], ...] = ()
    steps: tuple[LabStep, ...] = ()
    seed: int = 1

    @model_validator(mode="after")
    def _names(self) -> Lab:
        names = [guest.name for guest in self.guests]
        if len(set(names)) != len(names):
            message = "two guests have the same name"
            raise ValueError(message)
        for guest in self.guests:
            for variant in self.variants():
                _check_load(guest, variant)
        loaded = sum(guest.load is not None for guest in self.machines())
        if self.at_once and max(self.at_once) > loaded:
            message = f"at_once: {max(self.at_once)} guests, but {loaded} have a load"
            raise ValueError(message)
        for step in self.steps:
            _check_step(step, self.machines())
        return self

    def machines(self) -> list[Guest]:
        """Every guest, those of ``count`` above 1 with a number."""
        return [
            guest.model_copy(update={"name": f"{guest.name}-{number}" if guest.count > 1 else guest.name, "count": 1})
            for guest in self.guests
            for number in range(1, guest.count + 1)
        ]

    def cases(self) -> list[dict[str, Any]]:
        """What results are told by: every combination of what varies, with the number of guests and the phases."""
        numbers = [{GUESTS: count} for count in self.at_once] or [{}]
        phases = [{PHASE: phase} for phase in self.phases()] or [{}]
        return [{**number, **variant, **phase} for number in numbers for variant in self.variants() for phase in phases]

    def phases(self) -> list[str]:
        """Names of the times that steps divide a load into, in their order."""
        steps = sorted(self.steps, key=lambda step: step.at_s)
        named = [BEFORE] if steps and steps[0].at_s > 0 else []
        named += [name for step in steps for name in (step.phase, step.then) if name is not None]
        return list(dict.fromkeys(named))

    def variants(self) -> list[dict[str, Any]]:
        """Every combination of what varies."""
        return [dict(zip(self.vary, values, strict=True)) for values in product(*self.vary.values())]


def varied(workload: Workload, variant: dict[str, Any]) -> Workload:
    """A workload with keys of its streams, database load, settings or timing set.

    Raises:
        ValueError: no part of it has such a key, or the value is not valid there.
    """
    plain = workload.model_dump(mode="json", exclude_defaults=True)
    for key, value in variant.items():
        part = _part_with(workload, key)
        if part == "io":
            plain["io"] = [{**stream, key: value} for stream in plain["io"]]
        else:
            plain[part] = {**plain.get(part, {}), key: value}
    return Workload.model_validate(plain)


def _part_with(workload: Workload, key: str) -> str:
    parts: dict[str, object] = {"timing": workload.timing, "io_settings": workload.io_settings}
    if workload.io:
        parts["io"] = workload.io[0]
    if workload.database is not None:
        parts["database"] = workload.database
    for name, part in parts.items():
        if key in type(part).model_fields:  # type: ignore[attr-defined]
            return name
    message = f"vary: {key} is no key of the workload"
    raise ValueError(message)


def _check_load(guest: Guest, variant: dict[str, Any]) -> None:
    if guest.load is not None and isinstance(guest.load.workload, dict):
        varied(Workload.model_validate({"name": guest.name, **guest.load.workload}), variant)


def _check_step(step: LabStep, machines: list[Guest]) -> None:
    guests = {guest.name: guest for guest in machines}
    if step.guest not in guests:
        raise _unknown("steps: guest", step.guest, guests)
    guest = guests[step.guest]
    disks = {disk.name for disk in guest.disks}
    if step.disk is not None and step.disk not in disks:
        raise _unknown("steps: disk", step.disk, disks)
    if any(disk.name == step.disk and disk.storage_latency is not None for disk in guest.disks):
        message = f"steps: disk {step.disk} has storage_latency, which is of one file: it has no snapshots"
        raise ValueError(message)
    if guest.load is None or guest.load.command is None:
        message = f"steps: guest {guest.name} has no load by command, whose clock steps follow"
        raise ValueError(message)
    if step.at_s >= guest.load.seconds:
        message = f"steps: {step.at_s:g} s is after the end of the load of {guest.load.seconds:g} s"
        raise ValueError(message)


def _unknown(kind: str, name: str, known: object) -> ValueError:
    return ValueError(f"{kind} {name} is not there; there is {', '.join(sorted(known)) or 'none'}")  # type: ignore[call-overload]


def read_lab(path: Path) -> Lab:
    """The lab a file describes.

    Raises:
        InputError: not readable or not a lab, with line and column.
    """
    return read_model(path, Lab, WHAT, GUIDE)
