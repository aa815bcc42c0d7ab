"""Workbooks shaped like RVTools': made up here, as real ones are their owners' inventories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from openpyxl import Workbook

MADE_AT = datetime(2026, 11, 20, 8, 30)  # noqa: DTZ001 - sheets have no zone
Sheets = Mapping[str, Sequence[Mapping[str, Any]]]


def write(path: Path, sheets: Sheets) -> Path:
    """A workbook of sheets: rows are column -> cell, the columns of a sheet are those of all its rows."""
    book = Workbook(write_only=True)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        columns = list(dict.fromkeys(column for row in rows for column in row))
        sheet.append(columns)
        for row in rows:
            sheet.append([row.get(column) for column in columns])
    book.save(path)
    return path


def estate(vm_count: int, columns: Mapping[str, Sequence[str]] | None = None) -> dict[str, list[dict[str, Any]]]:
    """The sheets of an estate: 25 VMs a host, two disks and a network adapter each, a snapshot on every tenth.

    ``columns`` names the columns of each sheet of a real workbook; those without a value here are filled, so that the
    workbook has the size of a real one.
    """
    sheets: dict[str, list[dict[str, Any]]] = {"vCluster": [_cluster()], "vMetaData": [_meta()], "vDatastore": []}
    for host in range(-(-vm_count // 25)):
        sheets.setdefault("vHost", []).append(_host(host))
        sheets["vDatastore"].append(_datastore(host))
    for index in range(vm_count):
        for name, rows in _machine(index).items():
            sheets.setdefault(name, []).extend(rows)
    for name, wanted in (columns or {}).items():
        for row in sheets.get(name, []):
            for column in wanted:
                row.setdefault(column, f"{column} text")
    return sheets


def _cluster() -> dict[str, Any]:
    flags = {"HA enabled": "True", "AdmissionControlEnabled": "False", "DRS enabled": "True"}
    return {"Name": "prod", "NumHosts": 2, **flags, "DRS default VM behavior": "fullyAutomated"}


def _meta() -> dict[str, Any]:
    return {"RVTools major version": "4.4", "RVTools version": "4.4.5.0", "xlsx creation datetime": MADE_AT}


def _host(index: int) -> dict[str, Any]:
    return {
        "Host": f"esx{index:03}.example.org",
        "Cluster": "prod",
        "CPU Model": "Intel(R) Xeon(R) Gold 6248R",
        "Speed": 2993,
        "HT Active": "True",
        "# CPU": 2,
        "Cores per CPU": 24,
        "# Cores": 48,
        "# Memory": 785_000,
        "Host Power Policy": "Balanced",
        "ESX Version": "VMware ESXi 8.0.2 build-22380479",
        "NTP Server(s)": "ntp1.example.org, ntp2.example.org",
        "NTPD running": "True",
    }


def _datastore(index: int) -> dict[str, Any]:
    sizes = {"Capacity MiB": 4 * 1024**2, "Free MiB": 1024**2, "Provisioned MiB": 5 * 1024**2}
    return {"Name": f"ds{index:03}", "Type": "VMFS", **sizes, "SIOC enabled": "False", "SIOC Threshold": 30}


def _machine(index: int) -> dict[str, list[dict[str, Any]]]:
    name, store = f"vm{index:04}", f"ds{index // 25:03}"
    at = {"VM": name, "Powerstate": "poweredOn", "Template": "False", "Cluster": "prod"}
    at |= {"Host": f"esx{index // 25:03}.example.org", "VM ID": f"vm-{1000 + index}"}
    guest = {"OS according to the configuration file": "Debian GNU/Linux 12 (64-bit)"}
    info = {"DNS Name": f"{name}.example.org", "CPUs": 8, "Memory": 32768, "HW version": "19", "Firmware": "efi"}
    disks = [
        {
            "Disk": f"Hard disk {n + 1}",
            "Capacity MiB": 102_400,
            "Raw": "False",
            "Thin": "True",
            "Eagerly Scrub": "False",
            "Limit": -1,
            "Controller": f"SCSI controller {n}",
            "Unit #": 0,
            "Path": f"[{store}] {name}/{name}_{n}.vmdk",
        }
        for n in range(2)
    ]
    sheets: dict[str, list[dict[str, Any]]] = {
        "vInfo": [{**at, **info, **guest}],
        "vCPU": [{**at, "CPUs": 8, "Sockets": 2, "Cores p/s": 4, "Reservation": 0, "Limit": -1, "Hot Add": "False"}],
        "vMemory": [{**at, "Size MiB": 32768, "Reservation": 0, "Limit": -1, "Hot Add": "True"}],
        "vDisk": [{**at, **disk} for disk in disks],
        "vNetwork": [{**at, "NIC label": "Network adapter 1", "Adapter": "Vmxnet3", "Connected": "True"}],
        "vTools": [{**at, "Tools": "toolsOk", "Tools Version": "12352", "Sync time": "False"}],
        "vSnapshot": [],
    }
    if index % 10 == 0:
        taken = MADE_AT - timedelta(days=index % 7 + 1)
        del at["Template"]
        sheets["vSnapshot"] = [{**at, "Name": "before patch", "Date / time": taken}]
    return sheets
