"""VMware configurations; the fixture is composed by hand after what ESXi writes, there is no ESXi to record with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.importers import vmx

DB01 = Entity.parse("vm:db01")


@pytest.fixture
def db01(fixtures: Path) -> Capture:
    return read(fixtures / "vmx" / "db01.vmx")


def read(path: Path, **request: Any) -> Capture:
    return vmx.read(Source(str(path), path), Request(**request))


def written(tmp_path: Path, text: str | bytes, name: str = "x.vmx") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def of_text(tmp_path: Path, *lines: str, **request: Any) -> Capture:
    return read(written(tmp_path, "\n".join(('displayName = "db01"', *lines)) + "\n"), **request)


def facts(capture: Capture, entity: str) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.settings(Entity.parse(entity)).items()}


def warned(capture: Capture) -> list[str]:
    return [warning.code for warning in capture.sources[0].warnings]


def test_the_machine(db01: Capture) -> None:
    known = facts(db01, "vm:db01")
    del known["virtual_devices"]
    assert known == {
        "vcpu_count": 13,
        "cores_per_socket": 13,
        "vnuma_node_count": 2,
        "memory_mib": 65536,
        "memory_reservation_mib": 16384,
        "memory_hot_add": False,
        "hardware_version": 19,
        "guest_os": "debian12-64",
        "cpu_hot_add": True,
        "cpu_limit_mhz": 20000,
        "cpu_reservation_mhz": 2000,
        "latency_sensitivity": "normal",
        "snapshot_count": 1,
        "changed_block_tracking": False,
        "passthrough_devices": [],
        "extra_config": {
            "sched.cpu.units": "mhz",
            "sched.cpu.affinity": "all",
            "sched.cpu.latencysensitivity": "normal",
            "sched.cpu.min": "2000",
            "sched.cpu.max": "20000",
            "sched.cpu.shares": "normal",
            "sched.mem.min": "16384",
            "sched.mem.max": "unlimited",
            "sched.mem.shares": "normal",
            "numa.autosize.cookie": "130132",
            "numa.autosize.vcpu.maxpervirtualnode": "7",
            "sched.scsi0:0.shares": "normal",
            "sched.scsi0:0.throughputcap": "off",
            "sched.scsi1:0.throughputcap": "1500",
        },
    }
    assert warned(db01) == []


def test_what_is_only_inferred_is_marked_as_guessed(db01: Capture) -> None:
    guessed = [name for name, fact in db01.inventory.settings(DB01).items() if fact.guessed]
    assert sorted(guessed) == ["snapshot_count", "vnuma_node_count"]


def test_controllers(db01: Capture) -> None:
    assert {e.name: facts(db01, str(e)) for e in db01.inventory.children(DB01) if e.kind == "adapter"} == {
        "scsi0": {"type": "lsilogicsas"},
        "scsi1": {"type": "pvscsi"},
        "sata0": {"type": "ahci"},
    }


def test_disks_are_those_that_are_present_on_a_present_controller(db01: Capture) -> None:
    assert {e.name: facts(db01, str(e)) for e in db01.inventory.children(DB01) if e.kind == "virtual-disk"} == {
        "scsi0:0": {"adapter": "scsi0", "file": "db01.vmdk"},
        "scsi1:0": {
            "adapter": "scsi1",
            "file": "/vmfs/volumes/ssd-data/db01/db01_data.vmdk",
            "datastore": "ssd-data",
            "iops_limit": 1500.0,
        },
        "scsi1:1": {
            "adapter": "scsi1",
            "file": "/vmfs/volumes/ssd-wal/db01/db01_1-000002.vmdk",
            "datastore": "ssd-wal",
        },
    }


def test_network_adapters(db01: Capture) -> None:
    assert {e.name: facts(db01, str(e)) for e in db01.inventory.children(DB01) if e.kind == "nic"} == {
        "ethernet0": {"type": "vmxnet3", "connected": True, "network": "VM Network"},
        "ethernet1": {"type": "e1000e", "connected": False},
    }


@pytest.mark.parametrize(
    ("line", "setting", "expected"),
    [
        ('monitor.virtual_exec = "Software"', "cpu_virtualisation", "software"),
        ('monitor.virtual_mmu = "hardware"', "mmu_virtualisation", "hardware"),
        ('ctkEnabled = "TRUE"', "changed_block_tracking", True),
        ('tools.syncTime = "FALSE"', "tools_sync_time", False),
        ('tools.syncTime = "TRUE"', "tools_sync_time", True),
        ('cpuid.coresPerSocket = "0"', "cores_per_socket_automatic", True),
        ('sched.mem.pin = "TRUE"', "memory_reservation_locked", True),
        ('firmware = "EFI"', "firmware", "efi"),
        ('memsize = "4096"', "tools_sync_time", None),
        ('memsize = "4096"', "cpu_virtualisation", None),
        ('memsize = "4096"', "extra_config", {}),
    ],
)
def test_settings_of_the_machine(tmp_path: Path, line: str, setting: str, expected: object) -> None:
    assert of_text(tmp_path, line).inventory.get(DB01, setting) == expected


def test_shared_disks_and_controllers(tmp_path: Path) -> None:
    lines = ['scsi1.present = "TRUE"', 'scsi1.virtualDev = "pvscsi"', 'scsi1.sharedBus = "Physical"']
    disks = ['scsi1:0.present = "TRUE"', 'scsi1:0.fileName = "a.vmdk"', 'scsi1:0.sharing = "multi-writer"']
    disks += ['scsi1:0.mode = "independent-persistent"', 'scsi1:1.present = "TRUE"', 'scsi1:1.fileName = "b.vmdk"']
    capture = of_text(tmp_path, *lines, *disks)
    assert facts(capture, "vm:db01/adapter:scsi1") == {"type": "pvscsi", "bus_sharing": "physical"}
    shared = facts(capture, "vm:db01/virtual-disk:scsi1:0")
    assert (shared["sharing"], shared["mode"]) == ("multi-writer", "independent-persistent")
    assert "sharing" not in facts(capture, "vm:db01/virtual-disk:scsi1:1")


def test_passed_through_devices_are_told_from_shares_of_a_card(tmp_path: Path) -> None:
    lines = ['pciPassthru0.present = "TRUE"', 'pciPassthru1.present = "TRUE"', 'pciPassthru1.vgpu = "grid_p40-1q"']
    known = facts(of_text(tmp_path, *lines, 'pciPassthru2.present = "FALSE"'), "vm:db01")
    assert known["passthrough_devices"] == ["pcipassthru0"]
    assert known["vgpu_profile"] == "grid_p40-1q"


def test_other_devices(db01: Capture) -> None:
    assert facts(db01, "vm:db01")["virtual_devices"] == [
        {"name": "floppy0", "type": "floppy", "connected": False},
        {"name": "sata0:0", "type": "cdrom", "connected": True},
        {"name": "serial0", "type": "serial", "connected": True},
        {"name": "usb_xhci", "type": "usb", "connected": False},
    ]


def test_rules_judge_what_the_file_says(fixtures: Path) -> None:
    findings = diagnose(import_paths([fixtures / "vmx" / "db01.vmx"]).capture).findings
    found = {(f.rule, str(f.entity), f.severity.label) for f in findings}
    assert ("vm-snapshot-present", "vm:db01", "medium") in found
    assert [e.statement for f in findings if f.rule == "vm-snapshot-present" for e in f.evidence] == [
        "snapshot_count of db01 is 1",
        "scsi1:1 writes to /vmfs/volumes/ssd-wal/db01/db01_1-000002.vmdk",
    ]
    assert ("vm-unused-virtual-devices", "vm:db01", "low") in found
    assert not [rule for rule, _, _ in found if rule == "vm-nic-not-vmxnet3"]  # the e1000e is not connected


def test_recognised_among_all_importers(fixtures: Path) -> None:
    importers = load_units("importer")
    path = fixtures / "vmx" / "db01.vmx"
    known = recognise(Source(str(path), path), importers)
    assert known is not None
    assert known[0] == "vmx"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    others = [path for path in fixtures.rglob("*") if path.is_file() and path.parent.name != "vmx"]
    assert len(others) > 50
    assert [path.name for path in others if vmx.sniff(Source(str(path), path)) > 0] == []


def test_other_tools_samples_are_not_mine(samples: Path) -> None:
    others = [path for path in samples.rglob("*") if path.is_file() and path.suffix != ".vmx"]
    assert [path.name for path in others if vmx.sniff(Source(str(path), path)) > 0] == []


def test_recognised_without_the_version_keys(tmp_path: Path) -> None:
    path = written(tmp_path, 'numvcpus = "2"\n')
    assert vmx.sniff(Source("x.vmx", path)) > vmx.sniff(Source("x.txt", path)) > 0


def test_one_vcpu_is_not_written(tmp_path: Path) -> None:
    assert facts(of_text(tmp_path, 'memsize = "512"'), "vm:db01")["vcpu_count"] == 1


def test_name_from_the_file_where_there_is_no_display_name(tmp_path: Path) -> None:
    capture = read(written(tmp_path, 'numvcpus = "2"\n', "app 07.vmx"))
    assert facts(capture, "vm:app 07")["vcpu_count"] == 2


def test_pinned_memory_is_reserved_memory(tmp_path: Path) -> None:
    known = facts(of_text(tmp_path, 'memsize = "4096"', 'sched.mem.min = "0"', 'sched.mem.pin = "TRUE"'), "vm:db01")
    assert known["memory_reservation_mib"] == 4096


@pytest.mark.parametrize("value", ["unlimited", "-1", "0"])
def test_no_limit_is_no_limit(tmp_path: Path, value: str) -> None:
    assert "cpu_limit_mhz" not in facts(of_text(tmp_path, f'sched.cpu.max = "{value}"'), "vm:db01")


def test_limits_in_other_units_are_left_out_and_said(tmp_path: Path) -> None:
    capture = of_text(tmp_path, 'sched.cpu.units = "pct"', 'sched.cpu.max = "50"')
    assert "cpu_limit_mhz" not in facts(capture, "vm:db01")
    assert warned(capture) == ["cpu-units"]


@pytest.mark.parametrize(
    ("cap", "limit"),
    [
        ("off", None),
        ("0", None),
        ("unlimited", None),
        ("800", 800),
        ("80IOPS", 80),
        ("2KIOps", 2000),
        ("2 kiops", 2000),
    ],
)
def test_iops_limits(tmp_path: Path, cap: str, limit: float | None) -> None:
    capture = of_text(tmp_path, 'scsi0:0.present = "TRUE"', f'sched.scsi0:0.throughputCap = "{cap}"')
    assert facts(capture, "vm:db01/virtual-disk:scsi0:0").get("iops_limit") == limit


def test_a_bandwidth_cap_is_no_iops_limit(tmp_path: Path) -> None:
    capture = of_text(
        tmp_path, 'nvme0:0.present = "TRUE"', 'sched.nvme0:0.throughputCap = "20MBps"', 'nvme0.present = "TRUE"'
    )
    assert facts(capture, "vm:db01/virtual-disk:nvme0:0") == {"adapter": "nvme0"}
    assert facts(capture, "vm:db01/adapter:nvme0") == {"type": "nvme"}
    assert warned(capture) == ["throughput-cap"]


def test_types_that_are_not_written_stay_unknown(tmp_path: Path) -> None:
    capture = of_text(tmp_path, 'scsi0.present = "TRUE"', 'scsi0:0.present = "TRUE"', 'ethernet0.present = "TRUE"')
    assert facts(capture, "vm:db01/adapter:scsi0") == {}
    assert facts(capture, "vm:db01/nic:ethernet0") == {"connected": True}
    assert set(warned(capture)) == {"no-type"}


def test_base_disks_are_no_snapshot(tmp_path: Path) -> None:
    capture = of_text(tmp_path, 'scsi0:0.fileName = "db01_000001.vmdk"', 'scsi0:0.present = "TRUE"')
    assert facts(capture, "vm:db01")["snapshot_count"] == 0


def test_vnuma_nodes_that_were_chosen_are_no_guess(tmp_path: Path) -> None:
    lines = ('numvcpus = "16"', 'numa.vcpu.maxPerVirtualNode = "4"', 'numa.autosize.vcpu.maxPerVirtualNode = "8"')
    fact = of_text(tmp_path, *lines).inventory.fact(DB01, "vnuma_node_count")
    assert fact is not None
    assert (fact.value, fact.guessed) == (4, False)


def test_a_plugged_in_usb_device_is_connected(tmp_path: Path) -> None:
    capture = of_text(tmp_path, 'usb.present = "TRUE"', 'usb:2.present = "TRUE"', 'usb:2.deviceType = "host"')
    assert facts(capture, "vm:db01")["virtual_devices"] == [{"name": "usb", "type": "usb", "connected": True}]


def test_keys_are_not_case_sensitive_and_the_last_one_counts(tmp_path: Path) -> None:
    capture = of_text(tmp_path, 'NumVCPUs = "2"', 'numvcpus = "4"')
    assert facts(capture, "vm:db01")["vcpu_count"] == 4
    assert warned(capture) == ["twice"]


def test_comments_blank_lines_bare_values_and_line_ends(tmp_path: Path) -> None:
    text = '#!/usr/bin/vmware\r\n\r\n  numvcpus = 4   # four\r\nmemsize="2048"\r\ndisplayName = "db01"\r\n'
    known = facts(read(written(tmp_path, text)), "vm:db01")
    assert (known["vcpu_count"], known["memory_mib"]) == (4, 2048)


@pytest.mark.parametrize("encoding", ["windows-1251", "UTF-8", "GBK"])
def test_names_in_the_declared_encoding(tmp_path: Path, encoding: str) -> None:
    text = f'.encoding = "{encoding}"\nnumvcpus = "2"\ndisplayName = "БД 1"\n'
    capture = read(written(tmp_path, text.encode(encoding)))
    assert facts(capture, "vm:БД 1")["vcpu_count"] == 2
    assert warned(capture) == []


def test_escaped_characters_are_bytes_of_the_encoding(tmp_path: Path) -> None:
    text = '.encoding = "UTF-8"\nnumvcpus = "2"\ndisplayName = "a|22b|7C|D0|91"\n'
    assert facts(read(written(tmp_path, text)), 'vm:a"b|Б')["vcpu_count"] == 2


@pytest.mark.parametrize("encoding", ["klingon", "zlib", "windows-99999"])
def test_unknown_encoding_is_said(tmp_path: Path, encoding: str) -> None:
    capture = of_text(tmp_path, f'.encoding = "{encoding}"', 'numvcpus = "2"')
    assert facts(capture, "vm:db01")["vcpu_count"] == 2
    assert warned(capture) == ["encoding"]


def test_characters_outside_the_declared_encoding_are_said(tmp_path: Path) -> None:
    path = written(tmp_path, b'.encoding = "UTF-8"\nnumvcpus = "2"\nannotation = "\xff"\n')
    assert warned(read(path)) == ["encoding"]


def test_malformed_line_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, 'numvcpus = "2"\nmemsize 2048\ndisplayName = "x"\n')
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.where == f"{path}:2"
    assert caught.value.found == "'memsize 2048'"
    assert caught.value.expected == 'key = "value"'
    assert "Copy the file again" in caught.value.advice


def test_bad_number_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r":2: numvcpus = 'four'; .*a whole number of at least 1"):
        of_text(tmp_path, 'numvcpus = "four"')


@pytest.mark.parametrize("value", ["0", "-4", "9" * 5000, "١٢", "2.5"])
def test_impossible_vcpu_counts_are_errors(tmp_path: Path, value: str) -> None:
    with pytest.raises(InputError, match=":2: numvcpus"):
        of_text(tmp_path, f'numvcpus = "{value}"')


def test_file_without_a_machine_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no setting of a virtual machine"):
        read(written(tmp_path, 'snapshot.lastUID = "3"\n'))


@pytest.mark.parametrize("end", ["gues", "guestOS", "guestOS = ", 'guestOS = "debi'])
def test_cut_last_line_is_dropped_and_said(tmp_path: Path, end: str) -> None:
    capture = read(written(tmp_path, f'displayName = "db01"\nnumvcpus = "2"\n{end}'))
    assert facts(capture, "vm:db01")["vcpu_count"] == 2
    assert warned(capture) == ["cut"]


def test_malformed_last_line_that_ends_is_dropped_only_on_request(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=":3: 'guestOS'"):
        of_text(tmp_path, 'numvcpus = "2"', "guestOS")
    assert warned(of_text(tmp_path, 'numvcpus = "2"', "guestOS", truncate_last=True)) == ["cut"]
