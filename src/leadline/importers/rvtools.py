"""RVTools: the inventory of a vCenter as a workbook.

Reads:
    ``.xlsx`` of RVTools 3 and 4, the whole workbook or single sheets: vInfo, vCPU, vMemory, vDisk, vNetwork, vSnapshot,
    vTools, vCD, vUSB, vFloppy, vCluster, vHost, vHBA, vNIC, vSC_VMK, vSwitch, vPort, vMultiPath, vDatastore,
    vMetaData. Columns are found by name (``MB`` of old versions is ``MiB``), so their order and added columns do not
    matter. Numbers, flags and times are read as numbers or as the text a locale prints.

Sample:
    .. code-block:: text

        vDisk: db01 | Hard disk 2 | 1.048.576 | persistent | False | True | -1 | SCSI controller 1 | 0
        vSnapshot: db01 | before patch | 14.10.2026 22:15:03
        vTools: db01 | toolsOld | 11365 | True

Lost:
    What a SCSI controller is: RVTools names ``SCSI controller 0``, not its type; ``.vmx``, OVF and vCenter tell. NUMA,
    DRS rules, vSAN, annotations, licences, the contents of guests. A slash date like 03/04/2026 when no other date of
    the sheet tells day from month.

Units:
    Sizes are MiB, also where an old version says MB; CPU reservation and limit MHz; disk limit operations per second;
    -1 is no limit. The age of a snapshot is counted to the time the workbook was made, on the same clock.

Sources:
    RVTools documentation, 4.x, "What information is available" (sheets and columns).
    vSphere Web Services API: VirtualMachineToolsStatus, VirtualMachinePowerState, HostMultipathInfo, SharesInfo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.vcenter.rvtools_columns import (
    BUS_SHARING,
    CLUSTER,
    CPU,
    DATASTORE,
    DEVICE,
    DISK,
    HOST,
    HOST_ADAPTER,
    HOST_INTERFACE,
    HOST_NIC,
    HOST_PORT_GROUP,
    HOST_SWITCH,
    INFO,
    MEMORY,
    MIB_PER_GIB,
    NIC,
    Columns,
    facts_of,
)
from leadline.formats.workbook import SheetRow, WorkbookSheet, day_is_first, read_sheets, sheet_names

META = ImporterMeta(
    tool="RVTools",
    marks=("pk\x03\x04",),
    layers=(Layer.VM, Layer.HOST, Layer.DATASTORE),
    record="RVTools.exe -s VCENTER -c ExportAll2xlsx -d C:\\TEMP -f rvtools.xlsx",
)

SECONDS_PER_DAY = 86_400
_OF_VMS = ("vInfo", "vCPU", "vMemory", "vDisk", "vNetwork", "vSnapshot", "vTools", "vCD", "vUSB", "vFloppy")
_OF_HOSTS = ("vHost", "vHBA", "vNIC", "vSC_VMK", "vSwitch", "vPort", "vMultiPath")
_KEYS = dict.fromkeys(_OF_VMS, "VM") | dict.fromkeys(_OF_HOSTS, "Host")
_KEYS |= {"vCluster": "Name", "vDatastore": "Name"}
_SHEETS = {*_KEYS, "vMetaData"}

_CONTROLLER = re.compile(r"(SCSI|SATA|NVME|IDE)(?: controller)? ([0-9]{1,3})", re.IGNORECASE)
_BUS_TYPES = {"sata": "ahci", "nvme": "nvme", "ide": "ide"}
_HARDWARE = re.compile(r"(?:vmx-)?0*([0-9]{1,3})")
_TOOLS = {
    "toolsok": ("guestToolsCurrent", "guestToolsRunning"),
    "toolsold": ("guestToolsNeedUpgrade", "guestToolsRunning"),
    "toolsnotrunning": (None, "guestToolsNotRunning"),
    "toolsnotinstalled": ("guestToolsNotInstalled", "guestToolsNotRunning"),
}
_DEVICES = {"vCD": "cdrom", "vUSB": "usb", "vFloppy": "floppy"}


def sniff(source: Source) -> int:
    """Sure by the names of the sheets of a workbook."""
    if not source.head.startswith(b"PK\x03\x04"):
        return 0
    known = set(_SHEETS) & {_sheet_name(name) for name in sheet_names(source.path)}
    return 95 if known else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only.

    Raises:
        InputError: the workbook is damaged, or has none of the columns of RVTools.
        LimitError: it is larger than the documented limits.
    """
    del request
    builder = CaptureBuilder(source.name, "rvtools", META.tool)
    names = {name: _sheet_name(name) for name in sheet_names(source.path)}
    read_in = read_sheets(source.path, builder, [name for name, plain in names.items() if plain in _SHEETS])
    sheets = {names[name]: _with_old_names(sheet) for name, sheet in read_in.items()}
    machines = _Machines(builder)
    readers: dict[str, Callable[[WorkbookSheet], None]] = {
        "vHost": lambda sheet: _read_hosts(sheet, builder),
        "vCluster": lambda sheet: _read_named(sheet, EntityKind.CLUSTER, CLUSTER, builder),
        "vDatastore": lambda sheet: _read_named(sheet, EntityKind.DATASTORE, DATASTORE, builder),
        "vInfo": machines.read_info,
        "vCPU": lambda sheet: machines.read_columns(sheet, CPU),
        "vMemory": lambda sheet: machines.read_columns(sheet, MEMORY),
        "vDisk": machines.read_disks,
        "vNetwork": machines.read_nics,
        "vTools": machines.read_tools,
        "vHBA": lambda sheet: _read_parts(sheet, EntityKind.ADAPTER, "Device", HOST_ADAPTER, builder),
        "vNIC": lambda sheet: _read_parts(sheet, EntityKind.NIC, "Network Device", HOST_NIC, builder),
        "vSC_VMK": lambda sheet: _read_parts(sheet, EntityKind.NIC, "Device", HOST_INTERFACE, builder),
        "vSwitch": lambda sheet: _read_parts(sheet, EntityKind.VIRTUAL_SWITCH, "Switch", HOST_SWITCH, builder),
        "vPort": lambda sheet: _read_parts(sheet, EntityKind.PORT_GROUP, "Port Group", HOST_PORT_GROUP, builder),
        "vMultiPath": lambda sheet: _read_parts(sheet, EntityKind.DEVICE, "Disk", DEVICE, builder),
    }
    known = [name for name, key in _KEYS.items() if name in sheets and key in sheets[name].columns]
    if not known:
        raise InputError(
            source.name,
            found="no column of RVTools in its sheets",
            expected="the column VM, Host or Name in the first row",
            advice="Export it again, and leave the first rows as they are.",
        )
    for name, reader in readers.items():
        if name in known:
            reader(sheets[name])
    if "vSnapshot" in known:
        machines.read_snapshots(sheets["vSnapshot"], _created_at(sheets.get("vMetaData"), sheets["vSnapshot"], source))
    machines.add_devices({name: sheets[name] for name in _DEVICES if name in known})
    return builder.build(tool_version=_version(sheets.get("vMetaData")))


def _sheet_name(name: str) -> str:
    """A sheet's own name; an export of single sheets puts its program's name before it."""
    return name.removeprefix("RVTools_tab").removeprefix("tab")


def _with_old_names(sheet: WorkbookSheet) -> WorkbookSheet:
    """The sheet, its columns also by the names version 4 gives them."""
    for title, index in list(sheet.columns.items()):
        sheet.columns.setdefault(re.sub(r"\bMB\b", "MiB", title), index)
    sheet.columns.setdefault("Size MiB", sheet.columns.get("Memory", -1))
    if sheet.columns["Size MiB"] < 0:
        del sheet.columns["Size MiB"]
    return sheet


def _version(meta: WorkbookSheet | None) -> str | None:
    return next((row.text("RVTools version") for row in meta), None) if meta is not None else None


def _created_at(meta: WorkbookSheet | None, snapshots: WorkbookSheet, source: Source) -> datetime:
    """When the workbook was made, on the clock of the machine that made it; else when the file was last written."""
    column = "xlsx creation datetime"
    stamps = [*snapshots.texts("Date / time"), *(meta.texts(column) if meta is not None else ())]
    snapshots.day_first = day_is_first(stamps)
    if meta is not None:
        meta.day_first = snapshots.day_first
        created = next((row.time(column) for row in meta), None)
        if created is not None:
            return created
    return datetime.fromtimestamp(source.mtime_ns / 1e9, tz=UTC).replace(tzinfo=None)


def _host(row: SheetRow, builder: CaptureBuilder) -> Entity | None:
    name = row.text("Host")
    if name is None:
        return None
    host = Entity(EntityKind.HOST, name)
    builder.inventory.add(host, builder.info.name, cluster=row.text("Cluster"))
    return host


@dataclass(slots=True)
class _Machines:
    """VMs by what identifies them in every sheet: their id, else name and host."""

    builder: CaptureBuilder
    by_key: dict[tuple[str | None, ...], Entity] = field(default_factory=dict)
    taken: dict[Entity, tuple[str | None, ...]] = field(default_factory=dict)
    from_info: list[Entity] = field(default_factory=list)

    def rows(self, sheet: WorkbookSheet) -> Iterator[tuple[SheetRow, Entity]]:
        """Rows that name a VM, with it."""
        for row in sheet:
            name = row.text("VM")
            if name is not None:
                yield row, self._of(row, name)

    def _of(self, row: SheetRow, name: str) -> Entity:
        by_name = ("", name, row.text("Host"))
        vm_id = row.text("VM ID")
        key = by_name if vm_id is None else (vm_id, name, row.text("VI SDK UUID"))
        vm = self.by_key.get(key)
        if vm is None:
            vm = Entity(EntityKind.VM, name, _host(row, self.builder))
            if self.taken.setdefault(vm, key) != key and vm_id is not None:
                self.builder.warn("same-name", "VMs of the same name on one host are told apart by their id")
                vm = Entity(EntityKind.VM, f"{name} ({vm_id})", vm.parent)
            self.by_key[key] = vm
            self.by_key.setdefault(by_name, vm)
        return vm

    def add(self, entity: Entity, facts: dict[str, Any]) -> None:
        self.builder.inventory.add(entity, self.builder.info.name, **facts)

    def read_columns(self, sheet: WorkbookSheet, columns: Columns) -> None:
        for row, vm in self.rows(sheet):
            self.add(vm, facts_of(row, columns))

    def read_info(self, sheet: WorkbookSheet) -> None:
        guests: dict[str, set[Entity]] = {}
        for row, vm in self.rows(sheet):
            hardware = _HARDWARE.fullmatch(row.text("HW version") or "")
            facts = facts_of(row, INFO)
            facts["hardware_version"] = None if hardware is None else int(hardware[1])
            facts["config_datastore"] = _datastore(row.text("Path"))
            facts["guest_os"] = row.text("OS according to the configuration file") or row.text("OS")
            self.add(vm, facts)
            self.from_info.append(vm)
            name = row.text("DNS Name")
            for guest in {name, name.partition(".")[0]} if name is not None else ():
                guests.setdefault(guest, set()).add(vm)
        for guest, vms in guests.items():
            if len(vms) == 1:
                # Only a link: a guest that no recording tells of would be one more to choose from.
                self.builder.inventory.links[Entity(EntityKind.GUEST, guest)] = next(iter(vms))

    def read_tools(self, sheet: WorkbookSheet) -> None:
        for row, vm in self.rows(sheet):
            version, running = _TOOLS.get((row.text("Tools") or "").casefold(), (None, None))
            facts = {"tools_version": row.text("Tools Version"), "tools_sync_time": row.flag("Sync time")}
            self.add(vm, {**facts, "tools_version_status": version, "tools_running_status": running})

    def read_disks(self, sheet: WorkbookSheet) -> None:
        for row, vm in self.rows(sheet):
            label = row.text("Disk") or row.text("Label")
            adapter = row.text("Controller")
            controller = _CONTROLLER.fullmatch(adapter or "")
            unit = row.count("Unit #") if row.cell("Unit #") is not None else row.count("SCSI Unit #")
            name = label
            if controller is not None:
                adapter = f"{controller[1].lower()}{int(controller[2])}"
                name = label if unit is None else f"{adapter}:{unit}"
            if name is None:
                continue
            if adapter is not None:
                kind = None if controller is None else _BUS_TYPES.get(controller[1].lower())
                shared = (row.text("Shared Bus") or "").casefold()
                self.add(
                    Entity(EntityKind.ADAPTER, adapter, vm), {"type": kind, "bus_sharing": BUS_SHARING.get(shared)}
                )
            path = row.text("Path") or row.text("Disk Path")
            facts = facts_of(row, DISK) | {"label": label, "adapter": adapter, "file": path}
            facts["provisioning"] = _provisioning(row.flag("Thin"), row.flag("Eagerly Scrub"))
            facts["datastore"] = _datastore(path)
            self.add(Entity(EntityKind.VIRTUAL_DISK, name, vm), facts)

    def read_nics(self, sheet: WorkbookSheet) -> None:
        counts: dict[Entity, int] = {}
        for row, vm in self.rows(sheet):
            counts[vm] = counts.get(vm, 0) + 1
            name = row.text("NIC label") or f"Network adapter {counts[vm]}"
            self.add(Entity(EntityKind.NIC, name, vm), facts_of(row, NIC))

    def read_snapshots(self, sheet: WorkbookSheet, made_at: datetime) -> None:
        ages: dict[Entity, dict[str, float]] = {vm: {} for vm in self.from_info}
        counts: dict[Entity, int] = {}
        sizes: dict[Entity, float] = {}
        for row, vm in self.rows(sheet):
            counts[vm] = counts.get(vm, 0) + 1
            size = row.number_of("Size MiB (total)")
            if size is not None:
                sizes[vm] = sizes.get(vm, 0.0) + size / MIB_PER_GIB
            taken = row.time("Date / time")
            if taken is not None:
                name = row.text("Name") or f"snapshot {counts[vm]}"
                vm_ages = ages.setdefault(vm, {})
                vm_ages[name if name not in vm_ages else f"{name} ({counts[vm]})"] = max(
                    (made_at - taken).total_seconds() / SECONDS_PER_DAY, 0.0
                )
        for vm in {**ages, **counts}:
            known = ages.get(vm) or None
            oldest = None if known is None else max(known.values())
            count = counts.get(vm, 0)
            self.add(vm, {"snapshot_count": count, "snapshot_ages_days": known, "snapshot_age_days": oldest})
            self.add(vm, {"snapshot_size_gib": sizes.get(vm)})

    def add_devices(self, sheets: dict[str, WorkbookSheet]) -> None:
        """Floppies, CD drives and USB devices; a VM without any may have ports RVTools does not list."""
        devices: dict[Entity, list[dict[str, Any]]] = {}
        for sheet_name, sheet in sheets.items():
            kind = _DEVICES[sheet_name]
            for row, vm in self.rows(sheet):
                name = row.text("Device Node") or kind
                devices.setdefault(vm, []).append({"name": name, "type": kind, "connected": row.flag("Connected")})
        for vm, vm_devices in devices.items():
            self.add(vm, {"virtual_devices": vm_devices})


def _datastore(path: str | None) -> str | None:
    """The datastore in a path like ``[ssd-1] db01/db01.vmx``."""
    return path[1:].partition("]")[0] if path is not None and path.startswith("[") else None


def _provisioning(thin: bool | None, scrubbed: bool | None) -> str | None:
    if thin:
        return "thin"
    if thin is None or scrubbed is None:
        return None
    return "thick-eager" if scrubbed else "thick-lazy"


def _read_hosts(sheet: WorkbookSheet, builder: CaptureBuilder) -> None:
    for row in sheet:
        host = _host(row, builder)
        if host is not None:
            facts = facts_of(row, HOST)
            cores, threaded = facts["core_count"], facts["hyperthreading"]
            facts["thread_count"] = None if cores is None or threaded is None else cores * (2 if threaded else 1)
            servers = row.text("NTP Server(s)")
            released = row.time("BIOS Date")
            facts["bios_date"] = None if released is None else released.date().isoformat()
            facts["ntp_servers"] = None if servers is None else [s for s in re.split(r"[,;\s]+", servers) if s]
            builder.inventory.add(host, builder.info.name, **facts)


def _read_named(sheet: WorkbookSheet, kind: EntityKind, columns: Columns, builder: CaptureBuilder) -> None:
    """Clusters and datastores, which belong to no host."""
    for row in sheet:
        name = row.text("Name")
        if name is not None:
            builder.inventory.add(Entity(kind, name), builder.info.name, **facts_of(row, columns))


def _read_parts(sheet: WorkbookSheet, kind: EntityKind, column: str, columns: Columns, builder: CaptureBuilder) -> None:
    """Parts of hosts; of devices also how many paths they have."""
    states = [title for title in sheet.columns if re.fullmatch(r"Path [0-9]+ state", title)]
    for row in sheet:
        host, name = _host(row, builder), row.text(column)
        if host is None or name is None:
            continue
        facts = facts_of(row, columns)
        paths = [state.casefold() for title in states if (state := row.text(title)) is not None]
        if paths:
            facts["path_count"] = len(paths)
            facts["path_active_count"] = sum(state.startswith("active") for state in paths)
            facts["path_dead_count"] = paths.count("dead")
        switch = row.text("Switch") if kind is EntityKind.PORT_GROUP else None
        parent = host if switch is None else Entity(EntityKind.VIRTUAL_SWITCH, switch, host)
        builder.inventory.add(Entity(kind, name, parent), builder.info.name, **facts)
