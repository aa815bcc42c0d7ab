"""VM configurations of the vSphere API; ours is written by hand after its reference."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError, LeadlineError
from leadline.estate.knowledge.settings import settings as known_settings
from leadline.importers import vm_config

OWN = Path(__file__).parent / "seeds" / "vm-config.json"


def read(path: Path) -> Capture:
    return vm_config.read(Source(str(path), path), Request())


def of(tmp_path: Path, document: object) -> Capture:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    return read(path)


def facts(capture: Capture, entity: str) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.settings(Entity.parse(entity)).items()}


def test_the_machine() -> None:
    capture = read(OWN)
    assert facts(capture, "vm:db01") == {
        "vcpu_count": 8,
        "cores_per_socket": 4,
        "memory_mib": 32768,
        "hardware_version": 20,
        "guest_os": "debian12_64Guest",
        "template": False,
        "firmware": "efi",
        "cpu_hot_add": True,
        "memory_hot_add": False,
        "cpu_limit_mhz": 12000,
        "cpu_reservation_mhz": 0,
        "cpu_shares": 8000,
        "memory_reservation_mib": 32768,
        "memory_shares": 327680,
        "memory_reservation_locked": True,
        "latency_sensitivity": "normal",
        "tools_sync_time": True,
        "virtual_devices": [{"name": "Floppy drive 1", "type": "floppy", "connected": False}],
        "snapshot_count": 1,
    }
    assert capture.inventory.facts[Entity.parse("vm:db01")]["snapshot_count"].guessed


def test_disks() -> None:
    capture = read(OWN)
    assert facts(capture, "vm:db01/adapter:scsi1") == {"type": "pvscsi"}
    assert facts(capture, "vm:db01/virtual-disk:scsi1:0") == {
        "label": "Hard disk 1",
        "adapter": "scsi1",
        "size_gib": 100.0,
        "provisioning": "thick-eager",
        "mode": "persistent",
        "raw_device": False,
        "sharing": "none",
        "iops_limit": 1500,
        "shares": 1000,
        "file": "[ds1] db01/db01-000002.vmdk",
        "datastore": "ds1",
    }
    assert facts(capture, "vm:db01/virtual-disk:nvme0:3") == {
        "label": "Hard disk 2",
        "adapter": "nvme0",
        "size_gib": 1.0,
        "mode": "independent_persistent",
        "raw_device": True,
        "file": "[ds2] db01/rdm.vmdk",
        "datastore": "ds2",
    }


def test_network_adapters() -> None:
    assert facts(read(OWN), "vm:db01/nic:Network adapter 1") == {
        "type": "e1000e",
        "connected": True,
        "network": "prod",
    }


def test_every_fact_is_a_setting_of_the_catalogue() -> None:
    for entity, held in read(OWN).inventory.facts.items():
        assert set(held) <= set(known_settings()[entity.kind])


def test_every_shape_of_document_gives_the_same(tmp_path: Path) -> None:
    config = json.loads(OWN.read_text())["virtualMachines"][0]["config"]
    for document in (config, [config], {"config": config}):
        assert facts(of(tmp_path, document), "vm:db01") == facts(read(OWN), "vm:db01")


def test_a_real_configuration(samples: Path) -> None:
    path = samples / "inventory" / "vmware__govmomi__vminfo.json"
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "vm-config"
    capture = read(path)
    assert facts(capture, "vm:test")["memory_mib"] == 2048
    assert facts(capture, "vm:test")["snapshot_count"] == 0
    assert "cpu_limit_mhz" not in facts(capture, "vm:test")
    disk = facts(capture, "vm:test/virtual-disk:scsi0:0")
    assert (disk["size_gib"], disk["provisioning"], disk["datastore"]) == (4.0, "thick-lazy", "datastore1")
    assert facts(capture, "vm:test/nic:Network adapter 1")["type"] == "vmxnet3"


def test_recognised_among_all_importers() -> None:
    known = recognise(Source(str(OWN), OWN), load_units("importer"))
    assert known is not None
    assert known[0] == "vm-config"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    assert [path.name for path in fixtures.rglob("*") if path.is_file() and vm_config.sniff(Source("", path))] == []


@pytest.mark.parametrize("document", [[], {}, {"config": {"hardware": {}}}, {"name": "", "hardware": {}}, 3, "x"])
def test_documents_without_a_machine_are_errors(tmp_path: Path, document: object) -> None:
    with pytest.raises(InputError, match="no configuration of a named machine"):
        of(tmp_path, document)


def test_cut_json_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(OWN.read_text()[:400])
    with pytest.raises(InputError, match=r"x\.json:[0-9]+: JSON that breaks"):
        read(path)


JSON_VALUES = st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5), st.just([]))
PATHS = ("name", "version", "hardware", "cpuAllocation", "tools", "latencySensitivity", "guestId")
DEVICE_KEYS = (
    "_typeName",
    "key",
    "busNumber",
    "controllerKey",
    "unitNumber",
    "capacityInBytes",
    "backing",
    "deviceInfo",
)


@given(key=st.sampled_from(PATHS), device_key=st.sampled_from(DEVICE_KEYS), value=JSON_VALUES, index=st.integers(0, 5))
def test_values_of_any_type_give_a_capture_or_an_error(
    key: str, device_key: str, value: object, index: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = json.loads(OWN.read_text())
    config = document["virtualMachines"][0]["config"]
    config["hardware"]["device"][index][device_key] = value
    folder = tmp_path_factory.mktemp("json")
    with contextlib.suppress(LeadlineError):
        of(folder, document)
    config[key] = value
    with contextlib.suppress(LeadlineError):
        assert isinstance(of(folder, document), Capture)
