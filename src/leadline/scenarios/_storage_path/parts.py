"""What a scenario of a storage path holds: virtual machines, disks, hosts, devices, copies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from leadline import _core
from leadline.core.contracts.ignored_keys import UNLIMITED, Ignored, unhonoured
from leadline.core.contracts.scenario import STRICT, FileOf, IoWorkloadOf, Name, Scenario, named_streams
from leadline.core.model.workload import Seconds, Size, Stream, Workload
from leadline.scenarios._draws import DrawOf

SCHEDULERS = tuple(_core.SIMULATION_SCHEDULERS)
# Keys of disks that not every scheduler honours; limits stand before the queue and hold under all.
HONOURED: dict[str, tuple[str, ...]] = {
    "fifo": (),
    "round-robin": (),
    "sfq": ("shares",),
    "mclock": ("shares", "reservation_iops", "idle_credit"),
    "sioc-v1": ("shares",),
    "sioc-v2": ("shares", "reservation_iops", "idle_credit"),
}
WINDOWED = "sioc-v1"  # sets windows by the congestion threshold of a device
DEPTH = 64
TRACE = "trace"  # what the stream of a recorded load is called
# Requests a disk may have under way by the adapter's driver. Source: Broadcom KB 2053145, "Large-scale workloads with
# intensive I/O patterns might require queue depths significantly greater than paravirtual SCSI default values".
ADAPTER_DEPTHS = {"pvscsi": 64, "lsi": 32, "lsi-sas": 32, "virtio-scsi": 128, "nvme": 256}


class Disk(BaseModel):
    """A virtual disk: its device, its limit and what it is entitled to."""

    model_config = STRICT

    device: str | None = None
    iops_limit: Annotated[float, Field(gt=0, le=1e9)] | None = None
    iops_burst: Annotated[int, Field(ge=1, le=10**9)] = 1
    shares: Annotated[float, Field(gt=0)] = 1000.0
    reservation_iops: Annotated[float, Field(ge=0)] = 0.0
    idle_credit: Annotated[float, Field(ge=0, le=1e9)] = 0.0

    @model_validator(mode="after")
    def _may_have_its_reservation(self) -> Self:
        if self.iops_limit is not None and self.reservation_iops > self.iops_limit:
            message = f"reservation_iops {self.reservation_iops:g} is above iops_limit {self.iops_limit:g}"
            raise ValueError(message)
        return self


class Trace(BaseModel):
    """Requests as they were recorded: the files of one trace, and the disk where it has several."""

    model_config = STRICT

    files: Annotated[tuple[FileOf, ...], Field(min_length=1)]
    disk: str | None = None
    speed: Annotated[float, Field(gt=0, le=1000)] = 1.0
    repeat: bool = True

    @model_validator(mode="before")
    @classmethod
    def _one(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """A single file without more."""
        return {"files": [given]} if isinstance(given, str) else given


class Vm(Disk):
    """Virtual machines of one kind with a disk each; streams of a role may have another."""

    name: Name
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    workload: IoWorkloadOf | None = None
    trace: Trace | None = None
    load_factor: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    host: str | None = None
    adapter: Literal["pvscsi", "lsi", "lsi-sas", "virtio-scsi", "nvme"] | None = None
    adapter_depth: Annotated[int, Field(ge=1, le=65_536)] | None = None
    disks: dict[Literal["data", "wal", "temp", "backup"], Disk] = Field(default_factory=dict)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """What its workload does; nothing without one."""
        return () if self.loaded is None else self.loaded.io

    @property
    def loaded(self) -> Workload | None:
        """Its workload with the rates of its open streams times ``load_factor``."""
        if self.workload is None or self.load_factor == 1.0:
            return self.workload
        rates = [
            None if stream.rate_iops is None else stream.rate_iops.times(self.load_factor)
            for stream in self.workload.io
        ]
        pairs = zip(self.workload.io, rates, strict=True)
        streams = tuple(stream.model_copy(update={"rate_iops": rate}) for stream, rate in pairs)
        return self.workload.model_copy(update={"io": streams})

    @property
    def depth(self) -> int:
        """Requests under way at most: as given, else what its adapter's driver allows a disk."""
        return self.adapter_depth or ADAPTER_DEPTHS.get(self.adapter or "", DEPTH)

    def names(self) -> list[str]:
        """One name for each."""
        return [self.name] if self.count == 1 else [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class Host(BaseModel):
    """A host: how many requests it has at a device, and which goes next."""

    model_config = STRICT

    name: Name
    queue_depth: Annotated[int, Field(ge=1, le=65_536)] = 64
    scheduler: str = "fifo"

    @field_validator("scheduler")
    @classmethod
    def _known(cls, given: str) -> str:
        if given not in SCHEDULERS:
            message = f"no scheduler {given}; there are {', '.join(SCHEDULERS)}"
            raise ValueError(message)
        return given


class Drive(BaseModel):
    """A hard disk's mechanics: shortest seek, with settling, and that from edge to edge; turns; transfer."""

    model_config = STRICT

    settle: Annotated[Seconds, Field(gt=0, le=1)] = 0.001
    full_stroke: Annotated[Seconds, Field(gt=0, le=1)] = 0.016
    rpm: Annotated[float, Field(gt=0, le=100_000)] = 7200.0
    mb_per_s: Annotated[float, Field(gt=0)] = 200.0
    inner_mb_per_s: Annotated[float, Field(gt=0)] | None = None
    size: Annotated[Size, Field(ge=2**20)] = 4 * 1024**4
    queue: Annotated[int, Field(ge=1, le=256)] = 1

    @model_validator(mode="after")
    def _grows(self) -> Drive:
        if self.full_stroke < self.settle:
            message = "the seek from edge to edge (full_stroke) is not shorter than the shortest (settle)"
            raise ValueError(message)
        return self


class Network(BaseModel):
    """What lies between the hosts and a device: a latency each way, and megabytes per second in each direction."""

    model_config = STRICT

    latency: Annotated[Seconds, Field(ge=0, le=100)] = 0.0
    mb_per_s: Annotated[float, Field(gt=0)] = 1250.0


class Device(BaseModel):
    """A device: what it takes for a request, and for how many at once."""

    model_config = STRICT

    name: Name
    parallelism: Annotated[int, Field(ge=1, le=65_536)] = 1
    service: DrawOf | None = None
    write_service: DrawOf | None = None
    sequential_service: DrawOf | None = None
    mb_per_s: Annotated[float, Field(gt=0)] | None = None
    curve: tuple[tuple[Annotated[float, Field(gt=0)], Annotated[Seconds, Field(gt=0)]], ...] = ()
    spread: Annotated[float, Field(ge=0, le=10)] = 0.0
    drive: Drive | None = None
    network: Network | None = None
    congestion_threshold: Annotated[Seconds, Field(gt=0, le=100)] = 0.03

    def ignored(self, place: str) -> Iterator[Ignored]:
        """Keys that a device of its kind has no use for."""
        if self.service is None:
            kind = "curve" if self.curve else "drive"
            for key in ("write_service", "sequential_service", "mb_per_s"):
                yield Ignored(f"{place}.{key}", f"a device with a {kind} ignores it", "a device with a service")
        if not self.curve:
            yield Ignored(f"{place}.spread", "a device without a curve ignores it", "a curve")

    @model_validator(mode="after")
    def _one(self) -> Device:
        if sum((self.service is not None, bool(self.curve), self.drive is not None)) != 1:
            message = "a device has either a service time, a curve or a drive"
            raise ValueError(message)
        if self.drive is not None and self.parallelism > 1:
            message = "a drive works on one request; give each drive a separate device"
            raise ValueError(message)
        loads = [rate * latency for rate, latency in self.curve]
        if any(later <= earlier for earlier, later in pairwise(loads)):
            message = "the load of a curve (operations per second times latency) grows from point to point"
            raise ValueError(message)
        return self


class Copy(BaseModel):
    """So many blocks at a time read from the disk of one VM (``VM`` or ``VM/role``) and written to that of another."""

    model_config = STRICT

    name: Name = "copy"
    read: str
    write: str
    block: Annotated[Size, Field(ge=512, le=2**30)] = 65_536
    oio: Annotated[int, Field(ge=1, le=65_536)] = 8

    @property
    def ends(self) -> tuple[str, str]:
        """The disk read from and the one written to."""
        return self.read, self.write


class StoragePath(Scenario):
    """A scenario file of this system."""

    system: Literal["storage-path"] = "storage-path"
    vms: Annotated[tuple[Vm, ...], Field(min_length=1)]
    hosts: Annotated[tuple[Host, ...], Field(min_length=1)] = (Host(name="host"),)
    devices: Annotated[tuple[Device, ...], Field(min_length=1)]
    copies: tuple[Copy, ...] = ()

    def loads(self) -> list[dict[str, Any]]:
        """The streams of all VMs, and the copies as streams of the VMs they read from and write to."""
        owned = [(vm.name, stream) for vm in self.vms for stream in vm.streams]
        return named_streams(owned + [(disk.partition("/")[0], stream) for disk, stream in self.copied()])

    def ignored(self) -> Iterator[Ignored]:
        """What schedulers do not honour, and what a disk, a device or a host without a use for it does not."""
        for vm in self.vms:
            host = self.hosts[index_of(self.hosts, vm.host)]
            for place, disk in (
                (f"vms.{vm.name}", vm),
                *((f"vms.{vm.name}.disks.{r}", d) for r, d in vm.disks.items()),
            ):
                yield from unhonoured(HONOURED, host.scheduler, place, f"scheduler, of host {host.name}")
                if disk.iops_limit is None:
                    yield Ignored(f"{place}.iops_burst", *UNLIMITED)
            yield from self._idle_disks(vm)
        if all(host.scheduler != WINDOWED for host in self.hosts):
            because = f"no host's scheduler is {WINDOWED}, the only one that looks at it"
            yield Ignored("devices.*.congestion_threshold", because, f"a host with scheduler {WINDOWED}")
        for device in self.devices:
            yield from device.ignored(f"devices.{device.name}")

    def _idle_disks(self, vm: Vm) -> Iterator[Ignored]:
        """Disks of a VM that no stream, trace or copy uses."""
        copied = {end for copy in self.copies for end in copy.ends}
        roles = [stream.role if stream.role in vm.disks else None for stream in vm.streams]
        for role in vm.disks:
            if role not in roles and not any(f"{name}/{role}" in copied for name in vm.names()):
                because = f"no stream of VM {vm.name} has the role {role}"
                yield Ignored(f"vms.{vm.name}.disks.{role}", because, f"a stream with role: {role}, or a copy")
        if None not in roles and vm.trace is None and not copied & set(vm.names()):
            because = f"all streams of VM {vm.name} go to disks of their roles"
            for key in Disk.model_fields:
                yield Ignored(f"vms.{vm.name}.{key}", because, f"the key at the disk of a role: vms.{vm.name}.disks")

    def copied(self) -> list[tuple[str, Stream]]:
        """Both steps of every copy: the disk, and what is done to it."""
        return [
            (disk, Stream(name=copy.name, block={copy.block: 100.0}, read_pct=pct, random_pct=0.0, oio=copy.oio))
            for copy in self.copies
            for disk, pct in ((copy.read, 100.0), (copy.write, 0.0))
        ]

    def disk_names(self) -> list[str]:
        """Every disk, as ``VM`` or ``VM/role``, in the order the simulator counts them."""
        disks = []
        for vm in self.vms:
            for name in vm.names():
                disks += [name, *(f"{name}/{role}" for role in vm.disks)]
        return disks

    @model_validator(mode="after")
    def _fits(self) -> StoragePath:
        names = [name for vm in self.vms for name in vm.names()]
        for kind, kind_names in (("VMs", names), ("hosts", names_of(self.hosts)), ("devices", names_of(self.devices))):
            if len(set(kind_names)) != len(kind_names):
                message = f"two {kind} have the same name"
                raise ValueError(message)
        for vm in self.vms:
            wanted = [("host", vm.host, names_of(self.hosts))]
            wanted += [("device", disk.device, names_of(self.devices)) for disk in (vm, *vm.disks.values())]
            for kind, name, known in wanted:
                if name is not None and name not in known:
                    message = f"VM {vm.name}: no {kind} {name}; there are {', '.join(known)}"
                    raise ValueError(message)
        self._check_copies()
        return self

    def _check_copies(self) -> None:
        disks = self.disk_names()
        for copy in self.copies:
            for name in copy.ends:
                if name not in disks:
                    message = f"copy {copy.name}: no disk {name}; there are {', '.join(disks)}"
                    raise ValueError(message)
        ends = [(end, copy.name) for copy in self.copies for end in {name.partition("/")[0] for name in copy.ends}]
        streams = [(name, stream.name) for vm in self.vms for name in vm.names() for stream in vm.streams] + ends
        streams += [(name, TRACE) for vm in self.vms if vm.trace is not None for name in vm.names()]
        if len(set(streams)) != len(streams):
            message = "two copies, or a copy, a trace and a stream, of a VM have the same name"
            raise ValueError(message)
        loaded = {name for name, _ in streams}
        idle = [name for vm in self.vms for name in vm.names() if name not in loaded]
        if idle:
            message = f"VM {idle[0]} has neither a workload nor a trace nor a copy"
            raise ValueError(message)


def names_of(items: Any) -> list[str]:  # noqa: ANN401 - hosts or devices
    """The names of hosts or devices."""
    return [item.name for item in items]


def index_of(items: Any, name: str | None) -> int:  # noqa: ANN401 - hosts or devices
    """Which one it is, the first without a name."""
    return 0 if name is None else names_of(items).index(name)
