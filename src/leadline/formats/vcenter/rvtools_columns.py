"""Which setting each column of an RVTools workbook is, and in what unit or words it is written.

Source: RVTools documentation 4.x, sheets and columns; vSphere Web Services API for the words in them.
"""

from __future__ import annotations

from typing import Any

from leadline.formats.workbook import SheetRow

MIB_PER_GIB = 1024

# Words of RVTools and ours; others are kept as they are.
_POWER = {"poweredon": "on", "poweredoff": "off"}
_PATH_POLICIES = {
    "vmw_psp_rr": "round-robin",
    "roundrobin": "round-robin",
    "vmw_psp_fixed": "fixed",
    "vmw_psp_mru": "most-recently-used",
    "mostrecentlyused": "most-recently-used",
}
_POWER_POLICIES = {
    "high performance": "high-performance",
    "balanced": "balanced",
    "low power": "low-power",
    "custom": "custom",
}
_DRS = {"fullyautomated": "fully-automated", "partiallyautomated": "partially-automated"}
_SHARING = {"sharingnone": "none", "sharingmultiwriter": "multi-writer"}
BUS_SHARING = {"nosharing": "none", "virtualsharing": "virtual", "physicalsharing": "physical"}

# What a setting is read from: the column, and how; a table of words gives ours for RVTools' own.
Columns = dict[str, tuple[str, str | dict[str, str]]]
INFO: Columns = {
    "power_state": ("Powerstate", _POWER),
    "template": ("Template", "flag"),
    "vcpu_count": ("CPUs", "count"),
    "memory_mib": ("Memory", "number"),
    "latency_sensitivity": ("Latency Sensitivity", "lower"),
    "disk_consolidation_needed": ("Consolidation Needed", "flag"),
    "resource_pool": ("Resource pool", "text"),
    "firmware": ("Firmware", "lower"),
    "changed_block_tracking": ("CBT", "flag"),
    "evc_mode": ("min Required EVC Mode Key", "text"),
    "guest_os_reported": ("OS according to the VMware Tools", "text"),
}
CPU: Columns = {
    "vcpu_count": ("CPUs", "count"),
    "socket_count": ("Sockets", "count"),
    "cores_per_socket": ("Cores p/s", "count"),
    "cpu_shares": ("Shares", "number"),
    "cpu_reservation_mhz": ("Reservation", "number"),
    "cpu_limit_mhz": ("Limit", "limit"),
    "cpu_hot_add": ("Hot Add", "flag"),
    "vnuma_with_hot_add": ("Numa Hotadd Exposed", "flag"),
}
MEMORY: Columns = {
    "memory_mib": ("Size MiB", "number"),
    "memory_shares": ("Shares", "number"),
    "memory_reservation_mib": ("Reservation", "number"),
    "memory_reservation_locked": ("Memory Reservation Locked To Max", "flag"),
    "memory_limit_mib": ("Limit", "limit"),
    "memory_hot_add": ("Hot Add", "flag"),
}
DISK: Columns = {
    "size_gib": ("Capacity MiB", "gib"),
    "mode": ("Disk Mode", "text"),
    "raw_device": ("Raw", "flag"),
    "sharing": ("Sharing mode", _SHARING),
    "shares": ("Shares", "number"),
    "iops_limit": ("Limit", "limit"),
}
NIC: Columns = {
    "type": ("Adapter", "lower"),
    "connected": ("Connected", "flag"),
    "network": ("Network", "text"),
}
HOST: Columns = {
    "version": ("ESX Version", "text"),
    "cpu_model": ("CPU Model", "text"),
    "cpu_mhz": ("Speed", "number"),
    "socket_count": ("# CPU", "count"),
    "core_count": ("# Cores", "count"),
    "hyperthreading": ("HT Active", "flag"),
    "hyperthreading_available": ("HT Available", "flag"),
    "memory_mib": ("# Memory", "number"),
    "power_policy": ("Host Power Policy", _POWER_POLICIES),
    "evc_mode": ("Current EVC", "text"),
    "maintenance_mode": ("in Maintenance Mode", "flag"),
    "vendor": ("Vendor", "text"),
    "model": ("Model", "text"),
    "bios_version": ("BIOS Version", "text"),
    "ntp_running": ("NTPD running", "flag"),
}
HOST_ADAPTER: Columns = {"type": ("Driver", "text"), "model": ("Model", "text"), "status": ("Status", "lower")}
HOST_NIC: Columns = {
    "driver": ("Driver", "text"),
    "speed_mbit_per_s": ("Speed", "number"),
    "duplex": ("Duplex", {"true": "full", "false": "half"}),
    "network": ("Switch", "text"),
}
HOST_INTERFACE: Columns = {"network": ("Port Group", "text"), "mtu_bytes": ("MTU", "count")}
HOST_SWITCH: Columns = {"mtu_bytes": ("MTU", "count")}
# A standard switch shapes outbound traffic alone.
HOST_PORT_GROUP: Columns = {
    "promiscuous": ("Promiscuous Mode", "flag"),
    "mac_changes": ("Mac Changes", "flag"),
    "forged_transmits": ("Forged Transmits", "flag"),
    "shaping_out": ("Traffic Shaping", "flag"),
}
DEVICE: Columns = {
    "path_policy": ("Policy", _PATH_POLICIES),
    "queue_depth_count": ("Queue depth", "count"),
    "vendor": ("Vendor", "text"),
    "model": ("Model", "text"),
    "state": ("Oper. State", "lower"),
    "datastore": ("Datastore", "text"),
}
CLUSTER: Columns = {
    "host_count": ("NumHosts", "count"),
    "ha_enabled": ("HA enabled", "flag"),
    "ha_admission_control": ("AdmissionControlEnabled", "flag"),
    "drs_enabled": ("DRS enabled", "flag"),
    "drs_automation": ("DRS default VM behavior", _DRS),
}
DATASTORE: Columns = {
    "type": ("Type", "lower"),
    "capacity_gib": ("Capacity MiB", "gib"),
    "free_gib": ("Free MiB", "gib"),
    "provisioned_gib": ("Provisioned MiB", "gib"),
    "accessible": ("Accessible", "flag"),
    "vm_count": ("# VMs total", "count"),
    "extent_count": ("# Extents", "count"),
    "sioc_enabled": ("SIOC enabled", "flag"),
    "sioc_threshold_ms": ("SIOC Threshold", "number"),
    "host_count": ("# Hosts", "count"),
    "version": ("Version", "text"),
}


def facts_of(row: SheetRow, columns: Columns) -> dict[str, Any]:
    """The settings of a row; None where a cell is empty or unreadable."""
    return {setting: _value(row, column, kind) for setting, (column, kind) in columns.items()}


def _value(row: SheetRow, column: str, kind: str | dict[str, str]) -> Any:  # noqa: ANN401 - of the setting's type
    text = row.text(column) if isinstance(kind, dict) or kind in {"text", "lower"} else None
    if isinstance(kind, dict):
        return None if text is None else kind.get(text.casefold(), text)
    if kind in {"text", "lower"}:
        return text if text is None or kind == "text" else text.casefold()
    if kind == "flag":
        return row.flag(column)
    if kind == "count":
        return row.count(column)
    number = row.number_of(column)
    if number is None or (kind == "limit" and number < 0):
        return None
    return number / MIB_PER_GIB if kind == "gib" else number
