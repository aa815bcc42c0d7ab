"""OVF descriptors; ours is written by hand after the specification, the real ones lie beside the checkout."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.estate.knowledge.settings import settings as known_settings
from leadline.importers import ovf

OWN = Path(__file__).parent / "seeds" / "export.ovf"


def read(path: Path) -> Capture:
    return ovf.read(Source(str(path), path), Request())


def changed(tmp_path: Path, old: str, new: str) -> Capture:
    text = OWN.read_text()
    assert old in text
    path = tmp_path / "x.ovf"
    path.write_text(text.replace(old, new))
    return read(path)


def facts(capture: Capture, entity: str) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.settings(Entity.parse(entity)).items()}


def warned(capture: Capture) -> list[str]:
    return [warning.code for warning in capture.sources[0].warnings]


def test_the_machine_in_its_default_configuration() -> None:
    assert facts(read(OWN), "vm:db01") == {
        "hardware_version": 19,
        "guest_os": "debian11_64Guest",
        "cpu_hot_add": True,
        "firmware": "efi",
        "vcpu_count": 8,
        "cores_per_socket": 4,
        "cpu_limit_mhz": 9000,
        "memory_mib": 16384,
        "memory_reservation_mib": 1024,
        "virtual_devices": [{"name": "CD/DVD drive 1", "type": "cdrom", "connected": False}],
    }


def test_disks_and_controllers() -> None:
    capture = read(OWN)
    assert facts(capture, "vm:db01/adapter:scsi1") == {"type": "pvscsi"}
    assert facts(capture, "vm:db01/adapter:nvme0") == {"type": "nvme"}
    assert facts(capture, "vm:db01/virtual-disk:scsi1:0") == {
        "label": "Hard disk 1",
        "adapter": "scsi1",
        "size_gib": 40.0,
        "file": "db01-disk1.vmdk",
    }
    assert facts(capture, "vm:db01/virtual-disk:nvme0:2") == {
        "label": "Hard disk 2",
        "adapter": "nvme0",
        "size_gib": 200.0,
    }
    assert warned(capture) == []


def test_network_adapters() -> None:
    assert facts(read(OWN), "vm:db01/nic:Network adapter 1") == {
        "type": "vmxnet3",
        "connected": True,
        "network": "prod",
    }


def test_every_fact_is_a_setting_of_the_catalogue() -> None:
    for entity, held in read(OWN).inventory.facts.items():
        assert set(held) <= set(known_settings()[entity.kind])


@pytest.mark.parametrize(
    ("unit", "gib"),
    [("byte * 2^20", 40 / 1024), ("GigaBytes", 40.0), ("byte", 40 / 2**30), ("bytes*10^9", 40e9 / 2**30)],
)
def test_units_of_disks(tmp_path: Path, unit: str, gib: float) -> None:
    capture = changed(
        tmp_path,
        'ovf:capacity="40" ovf:capacityAllocationUnits="byte * 2^30"',
        f'ovf:capacity="40" ovf:capacityAllocationUnits="{unit}"',
    )
    assert facts(capture, "vm:db01/virtual-disk:scsi1:0")["size_gib"] == pytest.approx(gib)


@pytest.mark.parametrize("size", ["${unknown}", "4O", "-1", ""])
def test_sizes_that_are_no_numbers_are_left_out_and_said(tmp_path: Path, size: str) -> None:
    capture = changed(tmp_path, 'ovf:capacity="40"', f'ovf:capacity="{size}"')
    assert "size_gib" not in facts(capture, "vm:db01/virtual-disk:scsi1:0")
    assert warned(capture) == ["disk-size"]


@pytest.mark.parametrize("unit", ["parsec", ""])
def test_memory_without_a_known_unit_is_left_out_and_said(tmp_path: Path, unit: str) -> None:
    capture = changed(tmp_path, "byte * 2^20", unit)
    assert "memory_mib" not in facts(capture, "vm:db01")
    assert warned(capture) == ["memory-unit"]


def test_types_that_are_not_written_stay_unknown(tmp_path: Path) -> None:
    capture = changed(tmp_path, "<rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType>", "")
    assert facts(capture, "vm:db01/adapter:scsi1") == {}
    assert warned(capture) == ["no-type"]


def test_the_first_configuration_counts_where_none_is_the_default(tmp_path: Path) -> None:
    known = facts(changed(tmp_path, ' ovf:default="true"', ""), "vm:db01")
    assert (known["vcpu_count"], known["cpu_reservation_mhz"], known["cpu_shares"]) == (2, 2000, 2000)


def test_recognised_among_all_importers() -> None:
    known = recognise(Source(str(OWN), OWN), load_units("importer"))
    assert known is not None
    assert known[0] == "ovf"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    assert [path.name for path in fixtures.rglob("*") if path.is_file() and ovf.sniff(Source("", path))] == []


def test_inside_an_ova(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "db01.ova", "w") as archive:
        archive.add(OWN, "db01.ovf")
        disk = tarfile.TarInfo("db01-disk1.vmdk")
        disk.size = 4
        archive.addfile(disk, io.BytesIO(b"KDMV"))
    imported = import_paths([tmp_path / "db01.ova"])
    assert facts(imported.capture, "vm:db01")["vcpu_count"] == 8
    assert [name.rpartition("!")[2] for name in imported.unrecognised] == ["db01-disk1.vmdk"]


def test_several_disks_of_a_real_export_with_properties(samples: Path) -> None:
    capture = read(samples / "inventory" / "vmware__govmomi__Nested-ESXi-3-Node-VSAN-Template.ovf")
    vms = [entity for entity in capture.inventory.facts if entity.kind == "vm"]
    assert sorted(vm.name for vm in vms) == [f"VSAN-Nested-ESXi-{n}" for n in (1, 2, 3)]
    assert [facts(capture, f"{vms[0]}/virtual-disk:scsi0:{n}")["size_gib"] for n in range(3)] == [2.0, 4.0, 8.0]
    assert facts(capture, f"{vms[0]}/adapter:scsi0") == {"type": "lsilogic"}


def test_a_real_export_of_vcloud(samples: Path) -> None:
    capture = read(samples / "inventory" / "vmware__govmomi__SasPvScsi.ovf")
    assert [facts(capture, f"vm:Vm1/adapter:scsi{n}")["type"] for n in (0, 1)] == ["pvscsi", "lsilogicsas"]
    assert facts(capture, "vm:Vm1/virtual-disk:scsi0:1")["size_gib"] == 8 / 1024
    assert facts(capture, "vm:Vm1")["hardware_version"] == 7


def test_a_real_export_of_an_appliance(samples: Path) -> None:
    path = samples / "inventory" / "vmware__govmomi__photon5.ovf"
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "ovf"
    capture = read(path)
    assert facts(capture, "vm:Photon OS/adapter:sata0") == {"type": "ahci"}
    assert facts(capture, "vm:Photon OS/nic:ethernet0")["type"] == "vmxnet3"
    assert facts(capture, "vm:Photon OS")["memory_mib"] == 2048


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a document type declaration"):
        changed(tmp_path, "<Envelope", '<!DOCTYPE x [<!ENTITY a "aaaa">]><Envelope')


def test_broken_xml_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.ovf:5: XML that breaks"):
        changed(tmp_path, "<Info>disks</Info>", "<Info>disks</Inf>")


def test_an_envelope_without_machines_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no virtual machine with hardware"):
        changed(tmp_path, "VirtualHardwareSection", "Other")
