"""RVTools workbooks, made up in the shape of real ones; real ones are their owners' inventories."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError, LeadlineError, LimitError
from leadline.estate.knowledge.settings import settings as known_settings
from leadline.formats import workbook
from leadline.formats.workbook import to_number, to_time
from leadline.importers import rvtools
from tests.importers.rvtools_workbook import MADE_AT, Sheets, estate, write

HOST = "host:esx000.example.org"
DB01 = "host:esx01/vm:db01"
AT = {"VM": "db01", "Host": "esx01", "VM ID": "vm-7"}


def read(path: Path) -> Capture:
    return rvtools.read(Source(str(path), path), Request())


def of(tmp_path: Path, sheets: Sheets) -> Capture:
    return read(write(tmp_path / "x.xlsx", sheets))


def facts(capture: Capture, entity: str) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.settings(Entity.parse(entity)).items()}


def warned(capture: Capture) -> list[str]:
    return [warning.message for warning in capture.sources[0].warnings]


@pytest.fixture(scope="module")
def eleven(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    return read(write(tmp_path_factory.mktemp("rvtools") / "a.xlsx", estate(11)))


def test_a_machine(eleven: Capture) -> None:
    assert facts(eleven, f"{HOST}/vm:vm0010") == {
        "power_state": "on",
        "template": False,
        "vcpu_count": 8,
        "memory_mib": 32768,
        "firmware": "efi",
        "hardware_version": 19,
        "guest_os": "Debian GNU/Linux 12 (64-bit)",
        "socket_count": 2,
        "cores_per_socket": 4,
        "cpu_reservation_mhz": 0,
        "cpu_hot_add": False,
        "memory_reservation_mib": 0,
        "memory_hot_add": True,
        "tools_version": "12352",
        "tools_version_status": "guestToolsCurrent",
        "tools_running_status": "guestToolsRunning",
        "tools_sync_time": False,
        "snapshot_count": 1,
        "snapshot_age_days": 4.0,
        "snapshot_ages_days": {"before patch": 4.0},
    }
    assert warned(eleven) == []


def test_a_machine_without_a_snapshot_has_none(eleven: Capture) -> None:
    known = facts(eleven, f"{HOST}/vm:vm0001")
    assert known["snapshot_count"] == 0
    assert "snapshot_age_days" not in known


def test_disks_have_the_names_other_recordings_give_them(eleven: Capture) -> None:
    assert facts(eleven, f"{HOST}/vm:vm0003/virtual-disk:scsi1:0") == {
        "label": "Hard disk 2",
        "adapter": "scsi1",
        "size_gib": 100.0,
        "raw_device": False,
        "provisioning": "thin",
        "file": "[ds000] vm0003/vm0003_1.vmdk",
        "datastore": "ds000",
    }
    assert facts(eleven, f"{HOST}/vm:vm0003/adapter:scsi1") == {}  # its type is not in the workbook


def test_network_adapters(eleven: Capture) -> None:
    assert facts(eleven, f"{HOST}/vm:vm0003/nic:Network adapter 1") == {"type": "vmxnet3", "connected": True}


def test_a_host(eleven: Capture) -> None:
    assert facts(eleven, HOST) == {
        "cluster": "prod",
        "cpu_model": "Intel(R) Xeon(R) Gold 6248R",
        "cpu_mhz": 2993,
        "hyperthreading": True,
        "socket_count": 2,
        "core_count": 48,
        "thread_count": 96,
        "memory_mib": 785_000,
        "power_policy": "balanced",
        "version": "VMware ESXi 8.0.2 build-22380479",
        "ntp_servers": ["ntp1.example.org", "ntp2.example.org"],
        "ntp_running": True,
    }


def test_cluster_and_datastore(eleven: Capture) -> None:
    assert facts(eleven, "cluster:prod") == {
        "host_count": 2,
        "ha_enabled": True,
        "ha_admission_control": False,
        "drs_enabled": True,
        "drs_automation": "fully-automated",
    }
    assert facts(eleven, "datastore:ds000") == {
        "type": "vmfs",
        "capacity_gib": 4096.0,
        "free_gib": 1024.0,
        "provisioned_gib": 5120.0,
        "sioc_enabled": False,
        "sioc_threshold_ms": 30,
    }


def test_version_and_no_series(eleven: Capture) -> None:
    assert eleven.sources[0].tool_version == "4.4.5.0"
    assert eleven.series_count == 0


def test_every_fact_is_a_setting_of_the_catalogue(eleven: Capture) -> None:
    catalogue = known_settings()
    unknown = {
        (entity.kind.value, name)
        for entity, held in eleven.inventory.facts.items()
        for name in held
        if name not in catalogue.get(entity.kind, {})
    }
    assert unknown == set()


def test_guests_are_linked_by_their_dns_name(eleven: Capture) -> None:
    vm = eleven.inventory.vm_of(Entity.parse("guest:vm0004.example.org"))
    assert str(vm) == f"{HOST}/vm:vm0004"
    assert eleven.inventory.vm_of(Entity.parse("guest:vm0004")) == vm
    assert eleven.inventory.of_kind(Entity.parse("guest:x").kind) == []


def test_devices_and_paths_of_hosts(tmp_path: Path) -> None:
    states = {"Path 1 state": "active", "Path 2 state": "Active (I/O)", "Path 3 state": "standby", "Path 4 state": ""}
    paths = {"Host": "esx01", "Datastore": "ds1", "Disk": "naa.1", "Policy": "VMW_PSP_RR", "Queue depth": 64, **states}
    card = {"Host": "esx01", "Network Device": "vmnic0", "Driver": "nmlx5_core", "Speed": 25000, "Duplex": True}
    hba = {"Host": "esx01", "Device": "vmhba2", "Driver": "lpfc", "Model": "LPe32002", "Status": "Online"}
    capture = of(tmp_path, {"vMultiPath": [paths], "vNIC": [card], "vHBA": [hba]})
    assert facts(capture, "host:esx01/device:naa.1") == {
        "path_policy": "round-robin",
        "queue_depth_count": 64,
        "datastore": "ds1",
        "path_count": 3,
        "path_active_count": 2,
        "path_dead_count": 0,
    }
    assert facts(capture, "host:esx01/nic:vmnic0") == {
        "driver": "nmlx5_core",
        "speed_mbit_per_s": 25000,
        "duplex": "full",
    }
    assert facts(capture, "host:esx01/adapter:vmhba2") == {"type": "lpfc", "model": "LPe32002", "status": "online"}


def test_a_dead_path_is_counted(tmp_path: Path) -> None:
    row = {"Host": "esx01", "Disk": "naa.1", "Path 1 state": "active", "Path 2 state": "Dead"}
    known = facts(of(tmp_path, {"vMultiPath": [row]}), "host:esx01/device:naa.1")
    assert (known["path_count"], known["path_active_count"], known["path_dead_count"]) == (2, 1, 1)


def test_networks_of_hosts(tmp_path: Path) -> None:
    at = {"Host": "esx01"}
    switch = {**at, "Switch": "vSwitch1", "MTU": 9000}
    flags = {"Promiscuous Mode": "True", "Mac Changes": "False", "Forged Transmits": "False", "Traffic Shaping": "True"}
    group = {**at, "Switch": "vSwitch1", "Port Group": "storage", **flags}
    interface = {**at, "Device": "vmk1", "Port Group": "storage", "MTU": 1500}
    capture = of(tmp_path, {"vSwitch": [switch], "vPort": [group], "vSC_VMK": [interface]})
    assert facts(capture, "host:esx01/virtual-switch:vSwitch1") == {"mtu_bytes": 9000}
    assert facts(capture, "host:esx01/virtual-switch:vSwitch1/port-group:storage") == {
        "promiscuous": True,
        "mac_changes": False,
        "forged_transmits": False,
        "shaping_out": True,
    }
    assert facts(capture, "host:esx01/nic:vmk1") == {"network": "storage", "mtu_bytes": 1500}


def test_what_of_a_machine_later_columns_tell(tmp_path: Path) -> None:
    info = {**AT, "CBT": "True", "min Required EVC Mode Key": "intel-skylake", "Path": "[ssd 1] db01/db01.vmx"}
    info |= {"OS according to the VMware Tools": "Debian GNU/Linux 12 (64-bit)"}
    snapshots = [{**AT, "Name": name, "Date / time": MADE_AT, "Size MiB (total)": 1536} for name in ("a", "b")]
    disk = {
        **AT,
        "Disk": "Hard disk 1",
        "Controller": "SCSI controller 1",
        "Unit #": 0,
        "Shared Bus": "physicalSharing",
    }
    cpu = {**AT, "Numa Hotadd Exposed": "True"}
    capture = of(tmp_path, {"vInfo": [info], "vSnapshot": snapshots, "vDisk": [disk], "vCPU": [cpu]})
    known = facts(capture, DB01)
    assert known["changed_block_tracking"] is True
    assert known["evc_mode"] == "intel-skylake"
    assert known["config_datastore"] == "ssd 1"
    assert known["guest_os_reported"] == "Debian GNU/Linux 12 (64-bit)"
    assert known["snapshot_size_gib"] == 3.0
    assert known["vnuma_with_hot_add"] is True
    assert facts(capture, f"{DB01}/adapter:scsi1")["bus_sharing"] == "physical"


def test_what_of_a_host_later_columns_tell(tmp_path: Path) -> None:
    known = facts(
        of(tmp_path, {"vHost": [{"Host": "esx01", "HT Available": "True", "BIOS Date": MADE_AT}]}), "host:esx01"
    )
    assert known["hyperthreading_available"] is True
    assert known["bios_date"] == "2026-11-20"


def test_limits(tmp_path: Path) -> None:
    disk = {**AT, "Disk": "Hard disk 1", "Limit": "1.000", "Controller": "NVME controller 0", "SCSI Unit #": 3}
    cpu, memory = {**AT, "Limit": "12,000"}, {**AT, "Limit": -1, "Reservation": 4096}
    capture = of(tmp_path, {"vCPU": [cpu], "vMemory": [memory], "vDisk": [disk]})
    assert facts(capture, DB01) == {"cpu_limit_mhz": 12000, "memory_reservation_mib": 4096}
    assert facts(capture, f"{DB01}/virtual-disk:nvme0:3")["iops_limit"] == 1000
    assert facts(capture, f"{DB01}/adapter:nvme0") == {"type": "nvme"}


@pytest.mark.parametrize(
    ("thin", "scrub", "expected"),
    [
        (True, False, "thin"),
        ("False", "True", "thick-eager"),
        (0, 0, "thick-lazy"),
        ("", "False", None),
        ("False", "", None),
    ],
)
def test_provisioning(tmp_path: Path, thin: object, scrub: object, expected: str | None) -> None:
    disk = {**AT, "Disk": "Hard disk 1", "Thin": thin, "Eagerly Scrub": scrub}
    assert facts(of(tmp_path, {"vDisk": [disk]}), f"{DB01}/virtual-disk:Hard disk 1").get("provisioning") == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("toolsOld", ("guestToolsNeedUpgrade", "guestToolsRunning")),
        ("toolsNotRunning", (None, "guestToolsNotRunning")),
        ("toolsNotInstalled", ("guestToolsNotInstalled", "guestToolsNotRunning")),
        ("", (None, None)),
    ],
)
def test_tools(tmp_path: Path, status: str, expected: tuple[str | None, str | None]) -> None:
    known = facts(of(tmp_path, {"vTools": [{**AT, "Tools": status}]}), DB01)
    assert (known.get("tools_version_status"), known.get("tools_running_status")) == expected


def test_other_devices(tmp_path: Path) -> None:
    drives = [{**AT, "Device Node": "CD/DVD drive 1", "Connected": "True"}]
    sticks = [{**AT, "Device Node": "USB 1", "Connected": "False"}]
    assert facts(of(tmp_path, {"vCD": drives, "vUSB": sticks}), DB01)["virtual_devices"] == [
        {"name": "CD/DVD drive 1", "type": "cdrom", "connected": True},
        {"name": "USB 1", "type": "usb", "connected": False},
    ]


def test_columns_of_version_3(tmp_path: Path) -> None:
    disk = {**AT, "Disk": "Hard disk 1", "Capacity MB": "10.240"}
    capture = of(tmp_path, {"tabvDisk": [disk], "tabvMemory": [{**AT, "Size MB": 2048}]})
    assert facts(capture, f"{DB01}/virtual-disk:Hard disk 1")["size_gib"] == 10.0
    assert facts(capture, DB01)["memory_mib"] == 2048


@pytest.mark.parametrize("text", ["1,048,576", "1.048.576", "1 048 576", "1\u202f048\u00a0576", "1'048'576", "1048576"])
def test_sizes_as_locales_print_them(tmp_path: Path, text: str) -> None:
    disk = {**AT, "Disk": "Hard disk 1", "Capacity MiB": text}
    assert facts(of(tmp_path, {"vDisk": [disk]}), f"{DB01}/virtual-disk:Hard disk 1")["size_gib"] == 1024.0


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.250", 0.25), ("-1", -1), ("12.5", 12.5), ("1.234,50", 1234.5), ("1,00,000", 100000), (".5", 0.5)]
    + [(bad, None) for bad in ("", "x", "1.2.3", "1,2,3", "٣", "1e5", "--1", ",", "1,", "NaN")],
)
def test_numbers(text: str, number: float | None) -> None:
    assert to_number(text) == number


TIMES: list[tuple[object, bool]] = [
    (MADE_AT - timedelta(days=14), True),
    ("2026-11-06 08:30:00", True),
    ("2026/11/06 08:30:00", True),
    ("06.11.2026 08:30", True),
    ("06.11.2026 8.30.00", True),
    ("6-11-2026 08:30:00", True),
    (46332.354166666664, True),
    ("11/06/2026 08:30:00 AM", False),
]


@pytest.mark.parametrize(("stamp", "known"), TIMES)
def test_snapshot_times_as_locales_print_them(tmp_path: Path, stamp: object, known: bool) -> None:
    meta = [{"RVTools version": "4.4", "xlsx creation datetime": MADE_AT}]
    capture = of(tmp_path, {"vSnapshot": [{**AT, "Name": "a", "Date / time": stamp}], "vMetaData": meta})
    age = facts(capture, DB01).get("snapshot_age_days")
    assert (age == pytest.approx(14.0)) if known else (age is None)
    assert facts(capture, DB01)["snapshot_count"] == 1
    assert bool(warned(capture)) != known


@pytest.mark.parametrize(
    ("other", "age"), [("25/10/2026 08:30:00", 14.0), ("10/25/2026 8:30:00 AM", 162.0), ("13/10/2026", 14.0)]
)
def test_one_date_that_tells_day_from_month_tells_for_all(tmp_path: Path, other: str, age: float) -> None:
    snapshots = [{**AT, "Date / time": "06/11/2026 08:30:00"}, {**AT, "VM": "b", "VM ID": "8", "Date / time": other}]
    meta = [{"xlsx creation datetime": MADE_AT}]
    known = facts(of(tmp_path, {"vSnapshot": snapshots, "vMetaData": meta}), DB01)
    assert known["snapshot_age_days"] == pytest.approx(age)


def test_the_oldest_of_several_snapshots_counts(tmp_path: Path) -> None:
    taken = [{**AT, "Name": "a", "Date / time": MADE_AT - timedelta(days=n)} for n in (1, 9, 3)]
    known = facts(of(tmp_path, {"vSnapshot": taken, "vMetaData": [{"xlsx creation datetime": MADE_AT}]}), DB01)
    assert (known["snapshot_count"], known["snapshot_age_days"]) == (3, 9.0)
    assert known["snapshot_ages_days"] == {"a": 1.0, "a (2)": 9.0, "a (3)": 3.0}


def test_afternoon() -> None:
    assert str(to_time("1/2/2026 12:05:00 AM", day_first=False)) == "2026-01-02 00:05:00"
    assert str(to_time("1/2/2026 1:05 pm", day_first=False)) == "2026-01-02 13:05:00"
    assert to_time("31.02.2026 10:00", day_first=None) is None


def test_machines_of_one_name_are_told_apart(tmp_path: Path) -> None:
    rows = [{**AT, "CPUs": 2}, {**AT, "VM ID": "vm-8", "CPUs": 4}]
    capture = of(tmp_path, {"vInfo": rows, "vCPU": [{**AT, "VM ID": "vm-8", "Sockets": 1}]})
    assert facts(capture, DB01) == {"vcpu_count": 2}
    assert facts(capture, "host:esx01/vm:db01 (vm-8)") == {"vcpu_count": 4, "socket_count": 1}
    assert warned(capture) == ["VMs of the same name on one host are told apart by their id"]


def test_machines_without_an_id(tmp_path: Path) -> None:
    row = {"VM": "db01", "Host": "esx01"}
    capture = of(tmp_path, {"vInfo": [{**row, "CPUs": 2}], "vMemory": [{**row, "Size MiB": 512}]})
    assert facts(capture, DB01) == {"vcpu_count": 2, "memory_mib": 512}


def test_cells_that_are_not_what_they_should_be_are_left_out_and_said(tmp_path: Path) -> None:
    info = {**AT, "CPUs": "many", "Template": "perhaps", "Memory": "much"}
    capture = of(tmp_path, {"vInfo": [info, {**info, "VM": "b", "VM ID": "8"}]})
    assert facts(capture, DB01) == {}
    assert [warning.count for warning in capture.sources[0].warnings] == [2, 2, 2]
    assert "cells of vInfo, column 'CPUs' that are not numbers were left out" in warned(capture)


@pytest.mark.parametrize("cpus", [-2, 2.5, True])
def test_impossible_counts_are_left_out(tmp_path: Path, cpus: object) -> None:
    assert "vcpu_count" not in facts(of(tmp_path, {"vInfo": [{**AT, "CPUs": cpus}]}), DB01)


def test_rows_without_a_name_are_no_machines(tmp_path: Path) -> None:
    assert len(of(tmp_path, {"vInfo": [{**AT}, {"VM": "", "Host": "esx01"}, {}]}).inventory.facts) == 2


def test_recognised_among_all_importers(tmp_path: Path) -> None:
    path = write(tmp_path / "x.xlsx", {"vInfo": [AT]})
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "rvtools"


def test_other_workbooks_are_not_mine(tmp_path: Path) -> None:
    path = write(tmp_path / "x.xlsx", {"Sheet1": [AT]})
    assert rvtools.sniff(Source(str(path), path)) == 0


def test_a_workbook_without_its_list_of_sheets_is_not_mine(tmp_path: Path) -> None:
    path = write(tmp_path / "x.xlsx", {"vInfo": [AT]})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != "xl/workbook.xml"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert rvtools.sniff(Source(str(path), path)) == 0


def test_other_files_are_not_mine(fixtures: Path) -> None:
    assert [path.name for path in fixtures.rglob("*") if path.is_file() and rvtools.sniff(Source("", path))] == []


def test_columns_of_the_real_tool_are_the_ones_read(samples: Path, tmp_path: Path) -> None:
    columns = json.loads((samples / "rvtools" / "rvtools-4.x-sheet-columns.json").read_text())
    for name, rows in estate(1).items():
        assert [column for row in rows for column in row if column not in columns[name]] == []
    capture = of(tmp_path, estate(1, columns))
    assert facts(capture, f"{HOST}/vm:vm0000")["vcpu_count"] == 8


def test_sheets_without_their_columns_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column of RVTools in its sheets; expected the column VM.*first row"):
        of(tmp_path, {"vInfo": [{"Name": "db01"}]})


def test_a_workbook_goes_through_the_whole_import(tmp_path: Path) -> None:
    path = write(tmp_path / "x.xlsx", {"vInfo": [{**AT, "CPUs": 2}]})
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(path, "x.xlsx")
    for given_path in (path, tmp_path / "all.zip"):
        assert facts(import_paths([given_path]).capture, DB01) == {"vcpu_count": 2}


def repacked(path: Path, member: str, change: tuple[bytes, bytes]) -> Path:
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content.replace(*change) if name == member else content)
    path.write_bytes(stream.getvalue())
    return path


@pytest.mark.parametrize("far", [b' r="XFD1048576"', b' r="A1048576"', b"\nr = 'AAA2'"])
def test_a_cell_far_outside_is_a_limit_not_all_memory(tmp_path: Path, far: bytes) -> None:
    path = write(tmp_path / "x.xlsx", {"vInfo": [AT]})
    repacked(path, "xl/worksheets/sheet1.xml", (b' r="C2"', far))
    with pytest.raises(LimitError, match="199999 rows"):
        read(path)


def test_a_damaged_sheet_is_one_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x.xlsx", {"vInfo": [AT]})
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("xl/worksheets/sheet1.xml").header_offset + 90
    content = bytearray(path.read_bytes())
    content[start] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match="unreadable as a workbook"):
        read(path)


@pytest.mark.parametrize(("raised", "seen"), [("PanicException", InputError), ("KeyboardInterrupt", KeyboardInterrupt)])
def test_a_panic_of_the_reader_is_one_error_and_an_interrupt_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str, seen: type[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise type(raised, (BaseException if raised == "PanicException" else seen,), {})

    monkeypatch.setattr(workbook, "_read_sheets", fail)
    with pytest.raises(seen):
        of(tmp_path, {"vInfo": [AT]})


def test_a_workbook_that_unpacks_to_too_much_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "UNPACKED_BYTES_MAX", 100)
    with pytest.raises(LimitError, match="a sheet that is too large"):
        of(tmp_path, {"vInfo": [AT]})


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"])
def test_a_cell_without_end_is_a_limit_not_all_memory(tmp_path: Path, part: str) -> None:
    path = write(tmp_path / "x.xlsx", {"vInfo": [AT]})
    text = b"<t>" + bytes(range(97, 123)) * 600_000 + b"</t>"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[part] = members.get(part, b"<sst></sst>").replace(b"</", text + b"</", 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(LimitError, match="a cell of more than 512 KiB"):
        read(path)


def test_a_part_that_hides_its_size_is_one_error(tmp_path: Path) -> None:
    """The archive says 100 bytes, the packed data hold 20 MB, and the reader would unpack them all."""
    path = write(tmp_path / "x.xlsx", {"vInfo": [AT]})
    repacked(path, "xl/worksheets/sheet1.xml", (b"</worksheet>", b" " * 20_000_000 + b"</worksheet>"))
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    path.write_bytes(content.replace(struct.pack("<I", size), struct.pack("<I", 100)))
    with pytest.raises(LeadlineError):
        read(path)


def test_a_cut_workbook_is_one_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x.xlsx", {"vInfo": [AT]})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="unreadable as a workbook"):
        read(path)
