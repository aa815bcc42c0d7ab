"""Lists of esxcli: facts of a host's storage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.formats.esxcli import records
from leadline.importers import esxcli_lists
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "esxcli-lists.txt").read_text()
LUN = "host:esxi/device:naa.60a1"


def read_text(folder: Path, text: str, name: str = "esxcli.txt") -> Capture:
    source = source_of(folder, text, name)
    assert esxcli_lists.sniff(source) == 92
    return esxcli_lists.read(source, Request())


def facts(capture: Capture, entity: str) -> dict[str, object]:
    return {name: fact.value for name, fact in capture.inventory.settings(Entity.parse(entity)).items()}


def test_everything_of_a_device(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert facts(capture, LUN) == {
        "vendor": "PURE",
        "model": "FlashArray",
        "state": "ok",
        "local": False,
        "medium": "flash",
        "path_plugin": "NMP",
        "queue_depth_count": 64,
        "competing_worlds_count": 32,
        "array_plugin": "VMW_SATP_ALUA",
        "path_policy": "VMW_PSP_RR",
        "rr_mode": "default",
        "rr_switch_count": 1000,
        "transport": "fc",
        "io_count": 435924787,
        "failed_io_count": 53000,
        "reservation_conflict_count": 7,
        "datastore": "ssd wal",
        "paths": ["vmhba2:C0:T0:L1", "vmhba3:C0:T0:L1"],
        "path_count": 2,
        "path_dead_count": 1,
        "path_active_count": 1,
    }
    assert "host:esxi/device:mpx.vmhba33:C0:T0:L0" not in map(str, capture.inventory.facts)
    assert codes(capture) == ["no-host"]


def test_datastores_and_adapters(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    store = facts(capture, "host:esxi/datastore:ssd wal")
    assert store == {"type": "vmfs", "version": "6", "accessible": True, "capacity_gib": 2048, "free_gib": 512}
    assert "host:esxi/datastore:BOOTBANK1" not in map(str, capture.inventory.facts)
    adapter = facts(capture, "host:esxi/adapter:vmhba2")
    assert adapter == {
        "type": "qlnativefc",
        "model": "QLogic Corp QLE2692",
        "status": "online",
        "lun_queue_depth_count": 32,
    }


def test_as_localcli_prints_it_in_a_support_bundle(tmp_path: Path) -> None:
    text = SEED.replace("\nnaa.60a1\n", "\nnaa.60a1:\n").replace("-naa.60a1\n   UID", "-naa.60a1:\n   UID")
    folder = tmp_path / "esx-db-esx01.example.org-2026-11-24--09.10-2101" / "commands"
    folder.mkdir(parents=True)
    source = source_of(folder, text, "localcli_storage-core-device-list.txt")
    capture = esxcli_lists.read(type(source)(str(source.path), source.path), Request())
    assert facts(capture, "host:db-esx01.example.org/device:naa.60a1")["path_count"] == 2
    assert capture.sources[0].host == "db-esx01.example.org"
    assert codes(capture) == []


def test_pasted_without_indentation(tmp_path: Path) -> None:
    text = "\n".join(line.strip() for line in SEED.partition("Volume Name")[0].splitlines())
    assert facts(read_text(tmp_path, text), LUN)["rr_switch_count"] == 1000


def test_json_of_a_support_bundle(tmp_path: Path) -> None:
    entry = {
        "Device Display Name": "PURE Fibre Channel Disk (naa.60a1)",
        "Device": "naa.60a1",
        "Storage Array Type": "VMW_SATP_ALUA",
        "Path Selection Policy": "VMW_PSP_RR",
        "Path Selection Policy Device Config": "{policy=iops,iops=1,bytes=10485760,useANO=0}",
        "Working Paths": ["vmhba2:C0:T0:L1"],
        "Is USB": False,
    }
    known = facts(read_text(tmp_path, json.dumps([entry]), "nmp.json"), LUN)
    assert (known["rr_mode"], known["rr_switch_count"]) == ("iops", 1)


def test_a_fixed_policy_has_no_round_robin(tmp_path: Path) -> None:
    config = "{preferred=vmhba2:C0:T1:L1;current=vmhba2:C0:T1:L1}"
    text = "naa.60b\n   Storage Array Type: VMW_SATP_CX\n   Path Selection Policy: VMW_PSP_FIXED\n"
    text += f"   Path Selection Policy Device Config: {config}\n"
    known = facts(read_text(tmp_path, text), "host:esxi/device:naa.60b")
    assert known == {"path_plugin": "NMP", "array_plugin": "VMW_SATP_CX", "path_policy": "VMW_PSP_FIXED"}


def test_the_latency_mode_counts_no_commands(tmp_path: Path) -> None:
    text = "naa.60b\n   Storage Array Type: VMW_SATP_ALUA\n   Path Selection Policy: VMW_PSP_RR\n"
    text += "   Path Selection Policy Device Config: {policy=latency,latencyEvalTime=180000,samplingCycles=16}\n"
    known = facts(read_text(tmp_path, text), "host:esxi/device:naa.60b")
    assert known["rr_mode"] == "latency"
    assert "rr_switch_count" not in known


def test_where_paths_stand_by_it_is_not_known_how_many_work(tmp_path: Path) -> None:
    known = facts(read_text(tmp_path, SEED.replace("State: dead", "State: standby")), LUN)
    assert known["path_count"] == 2
    assert "path_active_count" not in known


def test_the_disks_of_a_vsan_disk_group(tmp_path: Path) -> None:
    disk = "{0}:\n   Device: {0}\n   Display Name: {0}\n   Is SSD: true\n   VSAN UUID: 52{1}\n"
    disk += "   VSAN Disk Group UUID: 52aa\n   VSAN Disk Group Name: naa.50c\n   In CMMDS: true\n"
    disk += "   Is Capacity Tier: {2}\n\n"
    text = disk.format("naa.50c", 1, "false") + disk.format("naa.50d", 2, "true") + disk.format("naa.50e", 3, "true")
    assert facts(read_text(tmp_path, text), "host:esxi/disk-group:naa.50c") == {
        "uuid": "52aa",
        "cache_device": "naa.50c",
        "capacity_devices": ["naa.50d", "naa.50e"],
        "capacity_device_count": 2,
        "capacity_medium": "flash",
    }


def test_advanced_and_kernel_settings(tmp_path: Path) -> None:
    text = "   Path: /Disk/DiskMaxIOSize\n   Type: integer\n   Int Value: 1024\n   Default Int Value: 32767\n"
    text += "   String Value: \n\n   Path: /UserVars/HostClientPassword\n   Type: string\n   Int Value: 0\n"
    text += "   String Value: geheim\n\n"
    text += "Name                       Type    Configured  Runtime  Default  Description\n"
    text += "-------------------------  ------  ----------  -------  -------  -----------\n"
    text += "hyperthreadingMitigation   Bool    TRUE        TRUE     FALSE    Restrict the simultaneous use\n"
    known = facts(read_text(tmp_path, text), "host:esxi")
    assert known == {
        "advanced_options": {"Disk.DiskMaxIOSize": 1024},
        "kernel_settings": {"hyperthreadingMitigation": "TRUE"},
    }


FIXES = """\
[root@esx01:~] esxcli system settings kernel list -o hyperthreadingMitigation
Name                      Type  Configured  Runtime  Default  Description
------------------------  ----  ----------  -------  -------  -----------------------------
hyperthreadingMitigation  Bool  TRUE        FALSE    FALSE    Keep VMs that do not trust each
                                                              other off the two threads of
                                                              a core.
[root@esx01:~] esxcli system settings kernel list -o hyperthreadingMitigationIntraVM
Name                             Type  Configured  Runtime  Default  Description
-------------------------------  ----  ----------  -------  -------  ----------------------
hyperthreadingMitigationIntraVM  Bool  FALSE       TRUE     TRUE     Keep vCPUs of a VM off the
                                                                     two threads of a core.
[root@esx01:~] esxcli hardware cpu global get
   CPU Packages: 2
   CPU Cores: 24
   CPU Threads: 48
   Hyperthreading Active: false
   Hyperthreading Supported: true
   Hyperthreading Enabled: true
   HV Support: 3
"""


def test_tables_one_after_the_other_with_wrapped_texts(tmp_path: Path) -> None:
    capture = read_text(tmp_path, FIXES)
    assert facts(capture, "host:esxi") == {
        "kernel_settings": {"hyperthreadingMitigation": "FALSE", "hyperthreadingMitigationIntraVM": "TRUE"},
        "socket_count": 2,
        "core_count": 24,
        "thread_count": 48,
        "hyperthreading": False,
        "hyperthreading_available": True,
    }
    assert codes(capture) == ["no-host"]


def test_a_wrapped_text_belongs_to_its_row() -> None:
    first, *_ = records(FIXES)
    assert first.get("Description") == "Keep VMs that do not trust each other off the two threads of a core."
    assert [one.get("Name") for one in records(FIXES) if one.get("Name")] == [
        "hyperthreadingMitigation",
        "hyperthreadingMitigationIntraVM",
    ]


def test_the_processors_alone_are_recognised(tmp_path: Path) -> None:
    text = "CPU Packages: 1\nCPU Cores: 4\nCPU Threads: 4\nHyperthreading Active: false\nHV Support: 3\n"
    known = facts(read_text(tmp_path, text), "host:esxi")
    assert known == {"socket_count": 1, "core_count": 4, "thread_count": 4, "hyperthreading": False}


def test_the_queue_depth_of_a_driver_without_its_adapters(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED[SEED.index("Name           Type") :])
    assert facts(capture, "host:esxi/adapter:qlnativefc") == {"lun_queue_depth_count": 32}


@pytest.mark.parametrize(
    ("of_all", "of_single", "expected"),
    [
        ("RmPVMRL=0x01", "", "0x01"),
        ("RMFoo=1;RmPVMRL=0x00030001", "", "0x00030001"),
        ("", "", "best-effort"),
        ("RmPVMRL=0x01", "pci=0:3b:0.0;RmPVMRL=0x11", None),
        ("RmPVMRL=?", "", None),
    ],
)
def test_how_vgpus_share_a_card(tmp_path: Path, of_all: str, of_single: str, expected: str | None) -> None:
    rows = [("Name", "Type", "Value", "Description"), (29 * "-", 6 * "-", 40 * "-", 11 * "-")]
    rows += [("NVreg_RegistryDwords", "string", of_all, ""), ("NVreg_RegistryDwordsPerDevice", "string", of_single, "")]
    table = "\n".join(f"{name:<29}  {kind:<6}  {value:<40}  {meaning:<11}" for name, kind, value, meaning in rows)
    depth = f"{'lpfc_lun_queue_depth':<29}  {'int':<6}  {'32':<40}  {'':<11}\n"
    inventory = read_text(tmp_path, f"{table}\n{depth}").inventory
    assert inventory.get(Entity.parse("host:esxi"), "vgpu_scheduler") == expected


def test_a_list_of_nothing_known_is_refused(tmp_path: Path) -> None:
    text = "mpx.vmhba33:C0:T0:L0\n   Device Type: CD-ROM \n   Multipath Plugin: NMP\n   Devfs Path: /vmfs/x\n"
    with pytest.raises(InputError, match="no entry of a device"):
        read_text(tmp_path, text)
