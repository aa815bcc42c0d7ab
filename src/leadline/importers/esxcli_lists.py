r"""Lists of ``esxcli`` and ``localcli``: a host's devices, paths, policies, adapters, datastores and settings.

Reads:
    Text and JSON (``--formatter=json``) of ``storage core device list``, ``device stats get``, ``path list`` and
    ``adapter list``, ``storage nmp device list``, ``storage hpp device list``, ``storage nmp psp roundrobin
    deviceconfig get``, ``storage vmfs extent list``, ``storage filesystem list``, ``vsan storage list``,
    ``system settings advanced list``, ``system settings kernel list``, ``system module parameters list``, ``hardware
    cpu global get``; as pasted or from the folders ``commands`` and ``json`` of a support bundle, several in one file
    too.

Sample:
    .. code-block:: text

        naa.60a1
           Device Display Name: PURE Fibre Channel Disk (naa.60a1)
           Storage Array Type: VMW_SATP_ALUA
           Path Selection Policy: VMW_PSP_RR
           Path Selection Policy Device Config: {policy=rr,iops=1000,bytes=10485760,useANO=0; ...}

Lost:
    CD-ROM drives, enclosures, boot volumes. Whether a LUN of an array is flash: arrays often leave ``Is SSD: false``.
    The working paths of ``nmp device list``, which for some policies are only the one in use: ``path list`` has all.
    How many paths work where some stand by. A list does not name its host: outside of a support bundle it is ``esxi``.

Units:
    Sizes of filesystems are bytes. ``device stats get`` counts since boot.

Sources:
    vSphere ESXCLI reference. VMware KB 2053145 (queue depths), KB 2069356 (Round Robin), KB 1003973 (paths and their
    states), KB 1014953 (multipathing, working paths). Support bundles of ESXi 5.5 to 8.0.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.esxcli import UNNAMED_HOST, VGPU_REGISTRIES, EsxcliRecord, host_of_bundle, records, vgpu_scheduler

META = ImporterMeta(
    tool="esxcli",
    marks=(
        "multipath plugin",
        "path selection",
        "blocks written:",
        '"blocks written"',
        "runtime name",
        "limit type",
        "vmfs uuid",
        "mount point",
        "in cmmds",
        "hba name",
        "int value",
        "runtime  default",
        "lun_queue_depth",
        "lunqdepth",
        "ql2xmaxqdepth",
        "nvreg_registrydwords",
        "hyperthreadingmitigation",
        "hyperthreading supported",
    ),
    layers=(Layer.STORAGE_PATH,),
    record="for what in 'core device list' 'core device stats get' 'core path list' 'nmp device list' "
    "'vmfs extent list' 'filesystem list'; do esxcli storage $what; done > esxcli.txt",
)

_DEVICE = re.compile(r"(?:naa|eui|t10|mpx|sym|vml|nfs)\.[^\s,;]{1,200}")
_SIGNS = (
    frozenset({"Multipath Plugin", "Devfs Path"}),
    frozenset({"Storage Array Type", "Path Selection Policy"}),
    frozenset({"Path Selection Scheme", "Device Display Name"}),
    frozenset({"Blocks Read", "Blocks Written", "Failed Commands"}),
    frozenset({"Runtime Name", "Device", "Adapter", "State"}),
    frozenset({"Limit Type", "Device"}),
    frozenset({"Volume Name", "VMFS UUID", "Device Name"}),
    frozenset({"Mount Point", "Volume Name", "UUID", "Mounted", "Type"}),
    frozenset({"In CMMDS", "Is SSD", "Device"}),
    frozenset({"HBA Name", "Driver"}),
    frozenset({"Path", "Type", "Int Value"}),
    frozenset({"Name", "Configured", "Runtime", "Default"}),
    frozenset({"CPU Packages", "CPU Cores", "CPU Threads"}),
)
_MODULE = frozenset({"Name", "Type", "Value", "Description"})
# A driver's parameter of the commands it sends to one LUN -> the drivers that have it.
_LUN_DEPTHS = {
    "ql2xmaxqdepth": ("qlnativefc", "qla2xxx"),
    "lpfc_lun_queue_depth": ("lpfc", "lpfc820"),
    "lpfc0_lun_queue_depth": ("lpfc",),
    "lun_queue_depth_per_path": ("nfnic",),
    "fnic_max_qdepth": ("fnic",),
    "iscsivmk_lunqdepth": ("iscsi_vmk",),
    "bfa_lun_queue_depth": ("bfa",),
}
_RR_CONFIG = re.compile(r"\{policy=(\w{1,20})|\biops=(\d{1,9})\b")
_RR_MODES = {"rr": "default", "default": "default", "iops": "iops", "bytes": "bytes", "latency": "latency"}
_SCHEMES = {"LB-RR": "default", "LB-IOPS": "iops", "LB-BYTES": "bytes", "LB-LATENCY": "latency"}
_STATES = {"on": "ok"}
_RAID = re.compile(r"RAID ?-?(\d{1,2})", re.IGNORECASE)
_GIB = 2**30


def sniff(source: Source) -> int:
    """Sure by the settings that stand together in no other tool's list."""
    return 92 if any(_kind_of(record) is not None for record in records(source.head_text)) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts of one host.

    Raises:
        InputError: no entry of a known list.
    """
    del request
    builder = CaptureBuilder(source.name, "esxcli-lists", META.tool)
    name = host_of_bundle(source.name)
    facts = _Facts(Entity(EntityKind.HOST, name or UNNAMED_HOST))
    unknown_count = 0
    for record in records(source.text()):
        kind = _kind_of(record)
        if kind is not None:
            kind(facts, record)
        else:
            unknown_count += bool(record.name and len(record.settings) > 1)
    if unknown_count:
        builder.warn("left-out", "entries of lists that are not known were left out", unknown_count)
    facts.finish()
    if not facts.known:
        raise InputError(
            source.name,
            found="no entry of a device, path, adapter, datastore or setting",
            expected="lists such as those of esxcli storage core device list",
            advice=f"Record on the host: {META.record}",
        )
    if not name:
        builder.warn("no-host", "the list does not name its host: taken as one called esxi")
    for entity, settings in facts.known.items():
        builder.inventory.add(entity, source.name, **settings)
    builder.inventory.add(facts.host, source.name)
    return builder.build(host=name or None)


@dataclass(slots=True)
class _Facts:
    """What is known so far, by entity; and what is put together at the end."""

    host: Entity
    known: dict[Entity, dict[str, Any]] = field(default_factory=dict)
    paths: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    groups: dict[str, list[EsxcliRecord]] = field(default_factory=lambda: defaultdict(list))
    depths: dict[str, int] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    registries: dict[str, str] = field(default_factory=dict)

    def add(self, kind: EntityKind, name: str, **settings: Any) -> None:  # noqa: ANN401 - as of `Inventory.add`
        """Keep the settings that are known of a part of the host."""
        known = {key: value for key, value in settings.items() if value not in (None, "")}
        if name and known:
            self.known.setdefault(Entity(kind, name, self.host), {}).update(known)

    def of_host(self, setting: str, name: str, value: object) -> None:
        """Keep an entry of a map of the host."""
        self.known.setdefault(self.host, {}).setdefault(setting, {})[name] = value

    def finish(self) -> None:
        """Put together paths of devices, disk groups and queue depths of adapters."""
        for device, states in self.paths.items():
            count = {state: list(states.values()).count(state) for state in ("active", "dead", "standby")}
            self.add(
                EntityKind.DEVICE,
                device,
                paths=list(states),
                path_count=len(states),
                path_dead_count=count["dead"],
                path_active_count=None if count["standby"] else count["active"],
            )
        if (scheduler := vgpu_scheduler(self.registries)) is not None:
            self.known.setdefault(self.host, {})["vgpu_scheduler"] = scheduler
        for group, disks in self.groups.items():
            _add_group(self, group, disks)
        for name, depth in self.depths.items():
            adapters = [adapter for adapter, driver in self.drivers.items() if driver in _LUN_DEPTHS[name]]
            for adapter in adapters or _LUN_DEPTHS[name][:1]:  # the parameters alone name the driver only
                self.add(EntityKind.ADAPTER, adapter, lun_queue_depth_count=depth)


def _device_of(record: EsxcliRecord) -> str:
    """The device a record speaks of; the path's own identifier is none."""
    for text in (record.get("Device", "Device Name"), record.name, record.get("Devfs Path").rpartition("/")[2]):
        if match := _DEVICE.fullmatch(text):
            return match[0]
    match = re.search(r"\(([^()\s]{3,200})\)$", record.get("Display Name", "Device Display Name"))
    return match[1] if match and _DEVICE.fullmatch(match[1]) else ""


def _take_device(facts: _Facts, record: EsxcliRecord) -> None:
    if record.get("Device Type") not in {"", "Direct-Access"}:
        return
    is_local = record.flag("Is Local")
    is_flash = record.flag("Is SSD")
    raid = _RAID.fullmatch(record.get("RAID Level"))
    facts.add(
        EntityKind.DEVICE,
        _device_of(record),
        vendor=record.get("Vendor"),
        model=record.get("Model"),
        state=_STATES.get(record.get("Status"), record.get("Status")),
        local=is_local,
        medium="flash" if is_flash else "hdd" if is_local and is_flash is False else None,
        path_plugin=record.get("Multipath Plugin"),
        queue_depth_count=record.number("Device Max Queue Depth") or None,
        competing_worlds_count=record.number("No of outstanding IOs with competing worlds") or None,
        raid_level=f"raid{int(raid[1])}" if raid else None,
    )


def _take_nmp(facts: _Facts, record: EsxcliRecord) -> None:
    config = record.get("Path Selection Policy Device Config")
    entries = [match.groups() for match in _RR_CONFIG.finditer(config)]
    policy = next((word for word, _ in entries if word), None)
    count = next((int(number) for _, number in entries if number), None)
    facts.add(
        EntityKind.DEVICE,
        _device_of(record),
        path_plugin="NMP",
        array_plugin=record.get("Storage Array Type"),
        path_policy=record.get("Path Selection Policy"),
        rr_mode=None if policy is None else _RR_MODES.get(policy, policy),
        rr_switch_count=count if policy in {"rr", "iops"} else None,
    )


def _take_hpp(facts: _Facts, record: EsxcliRecord) -> None:
    scheme = record.get("Path Selection Scheme")
    count = re.search(r"\biops=(\d{1,9})\b", record.get("Path Selection Scheme Config"))
    mode = _SCHEMES.get(scheme.upper())
    facts.add(
        EntityKind.DEVICE,
        _device_of(record),
        path_plugin="HPP",
        local=record.flag("Is Local"),
        medium="flash" if record.flag("Is SSD") else None,
        path_policy="round-robin" if mode else scheme.casefold(),
        rr_mode=mode,
        rr_switch_count=int(count[1]) if count and mode in {"default", "iops"} else None,
    )


def _take_stats(facts: _Facts, record: EsxcliRecord) -> None:
    done, failed = ([record.number(f"{word}{way} Operations") for way in ("Read", "Write")] for word in ("", "Failed "))
    facts.add(
        EntityKind.DEVICE,
        _device_of(record),
        io_count=sum(done) if None not in done else None,
        failed_io_count=sum(failed) if None not in failed else None,
        reservation_conflict_count=record.number("Reservation Conflicts"),
    )


def _take_path(facts: _Facts, record: EsxcliRecord) -> None:
    device = _device_of(record)
    if not device:
        return
    facts.paths[device][record.get("Runtime Name")] = record.get("State").casefold()
    transport = record.get("Transport").casefold()
    facts.add(EntityKind.DEVICE, device, transport=transport if transport in {"fc", "iscsi", "sas", "sata"} else None)


def _take_round_robin(facts: _Facts, record: EsxcliRecord) -> None:
    mode = _RR_MODES.get(record.get("Limit Type").casefold())
    count = record.number("IOOperation Limit") or None
    is_counted = mode in {"default", "iops"}
    facts.add(EntityKind.DEVICE, _device_of(record), rr_mode=mode, rr_switch_count=count if is_counted else None)


def _take_extent(facts: _Facts, record: EsxcliRecord) -> None:
    facts.add(EntityKind.DEVICE, _device_of(record), datastore=record.get("Volume Name"))


def _take_filesystem(facts: _Facts, record: EsxcliRecord) -> None:
    kind, _, version = record.get("Type").partition("-")
    kind = {"vmfs": "vmfs", "nfs": "nfs", "nfs41": "nfs41", "vsan": "vsan", "vvol": "vvol"}.get(kind.casefold(), "")
    size, free = record.number("Size"), record.number("Free")
    if not kind:
        return
    facts.add(
        EntityKind.DATASTORE,
        record.get("Volume Name"),
        type=kind,
        version=version,
        accessible=record.flag("Mounted"),
        capacity_gib=size / _GIB if size else None,
        free_gib=free / _GIB if size and free is not None else None,
    )


def _take_vsan(facts: _Facts, record: EsxcliRecord) -> None:
    group = record.get("VSAN Disk Group UUID", "vSAN Disk Group UUID")
    if group:
        facts.groups[group].append(record)


def _add_group(facts: _Facts, group: str, disks: list[EsxcliRecord]) -> None:
    capacity = [disk for disk in disks if disk.flag("Is Capacity Tier")]
    cache = [disk for disk in disks if disk.flag("Is Capacity Tier") is False]
    kinds = {disk.flag("Is SSD") for disk in capacity}
    name = disks[0].get("VSAN Disk Group Name", "vSAN Disk Group Name") or group
    facts.add(
        EntityKind.DISK_GROUP,
        name,
        uuid=group,
        cache_device=_device_of(cache[0]) if len(cache) == 1 else None,
        capacity_devices=[_device_of(disk) for disk in capacity] or None,
        capacity_device_count=len(capacity) or None,
        capacity_medium={True: "flash", False: "hdd"}.get(bool(kinds.pop())) if len(kinds) == 1 else None,
    )


def _take_adapter(facts: _Facts, record: EsxcliRecord) -> None:
    adapter, driver = record.get("HBA Name"), record.get("Driver")
    facts.drivers[adapter] = driver
    status = {"link-up": "online", "online": "online", "link-down": "offline", "offline": "offline"}
    model = re.sub(r"^\([\w:.]{1,20}\) ?", "", record.get("Description"))
    facts.add(EntityKind.ADAPTER, adapter, type=driver, model=model, status=status.get(record.get("Link State")))


def _take_option(facts: _Facts, record: EsxcliRecord) -> None:
    name = record.get("Path").strip("/").replace("/", ".")
    number, text = record.number("Int Value"), record.get("String Value")
    is_secret = re.search(r"pass|secret|key|token", name, re.IGNORECASE)
    if record.get("Type") == "integer" and number is not None:
        facts.of_host("advanced_options", name, number)
    elif text and not is_secret:
        facts.of_host("advanced_options", name, text)


def _take_kernel(facts: _Facts, record: EsxcliRecord) -> None:
    facts.of_host("kernel_settings", record.get("Name"), record.get("Runtime"))


def _take_processors(facts: _Facts, record: EsxcliRecord) -> None:
    settings = {
        "socket_count": record.number("CPU Packages"),
        "core_count": record.number("CPU Cores"),
        "thread_count": record.number("CPU Threads"),
        "hyperthreading": record.flag("Hyperthreading Active"),
        "hyperthreading_available": record.flag("Hyperthreading Supported"),
    }
    known = {name: value for name, value in settings.items() if value is not None}
    facts.known.setdefault(facts.host, {}).update(known)


def _take_parameter(facts: _Facts, record: EsxcliRecord) -> None:
    number = record.number("Value")
    name = record.get("Name").casefold()
    if name in VGPU_REGISTRIES:
        facts.registries[name] = record.get("Value")
    if number and name in _LUN_DEPTHS:
        facts.depths[name] = number


_Taker = Callable[[_Facts, EsxcliRecord], None]
_TAKERS: tuple[_Taker, ...] = (
    _take_device,
    _take_nmp,
    _take_hpp,
    _take_stats,
    _take_path,
    _take_round_robin,
    _take_extent,
    _take_filesystem,
    _take_vsan,
    _take_adapter,
    _take_option,
    _take_kernel,
    _take_processors,
)


def _kind_of(record: EsxcliRecord) -> _Taker | None:
    """How a record is taken in, by the settings that it has; None for one of another list."""
    names = record.settings.keys()
    for sign, taker in zip(_SIGNS, _TAKERS, strict=True):
        if sign <= names:
            return taker
    if names >= _MODULE and record.get("Name").casefold() in (*_LUN_DEPTHS, *VGPU_REGISTRIES):
        return _take_parameter
    return None
