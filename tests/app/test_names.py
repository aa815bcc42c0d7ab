"""Recordings that name things by ids, beside an inventory that knows these ids: findings name the things."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths

HOST_ID = "5b1f7d1c-0000-1111-2222-0c42a1a1a1a1"
GROUP_ID = "52a1b2c3-aaaa-bbbb-cccc-ddddeeeeffff"
VM_ID = "503a0000-1111-2222-3333-444455556666"
TIMES = [f"2026-11-20 08:{minute:02}:00" for minute in range(0, 60, 5)]
INVENTORY = f"""\
leadline_inventory: 1
clusters:
  - {{name: prod, hosts: [esx01.example]}}
hosts:
  - name: esx01.example
    uuid: {HOST_ID}
    disk_groups:
      - {{name: naa.5000c500cache, uuid: {GROUP_ID.upper()}, capacity_medium: flash}}
    vms:
      - {{name: db01, uuid: {VM_ID}, vrops_id: 60508ea6-287b-42be-953c-1554e506cdc1}}
"""


def entity(kind: str, uuid: str, **labels: float) -> dict[str, object]:
    """What vSAN's performance service says of an entity whose values stay the same."""
    series = [
        {"metricId": {"label": label}, "values": ",".join([str(level)] * len(TIMES))} for label, level in labels.items()
    ]
    return {"entityRefId": f"{kind}:{uuid}", "sampleInfo": ",".join(TIMES), "value": series}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "vsan.json"
    path.write_text(
        json.dumps(
            [
                entity("host-domclient", HOST_ID, congestion=200, latencyAvgRead=90_000, iopsRead=500),
                entity("disk-group", GROUP_ID, logCongestion=220),
                entity("vscsi", f"{VM_ID}|scsi0:1", latencyWrite=1000),
            ]
        )
    )
    return path


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.yaml"
    path.write_text(INVENTORY)
    return path


def named(*paths: Path) -> dict[str, str]:
    """The entity and the summary of a finding, by rule."""
    found = diagnose(import_paths(paths).capture).findings
    return {finding.rule: f"{finding.entity}: {finding.summary}" for finding in found}


def test_without_an_inventory_findings_name_ids(recorded: Path) -> None:
    found = named(recorded)
    assert found["vsan-congestion-high"].startswith((f"host:{HOST_ID}: ", f"disk-group:{GROUP_ID}: "))


def test_with_one_they_name_the_host_and_its_disk_group(recorded: Path, inventory: Path) -> None:
    for order in ([recorded, inventory], [inventory, recorded]):
        capture = import_paths(order).capture
        entities = {str(group.entities[row]) for group, row in capture.series()}
        assert entities == {
            "host:esx01.example",
            "host:esx01.example/disk-group:naa.5000c500cache",
            "host:esx01.example/vm:db01/virtual-disk:scsi0:1",
        }
        found = diagnose(capture).findings
        congested = {str(finding.entity) for finding in found if finding.rule == "vsan-congestion-high"}
        assert congested <= entities
        assert "host:esx01.example" in congested
        told = " ".join([finding.summary for finding in found])
        assert HOST_ID not in told
        assert GROUP_ID not in told


def test_vrops_properties_name_its_statistics(tmp_path: Path) -> None:
    resource = "60508ea6-287b-42be-953c-1554e506cdc1"
    stamps = [1795163400000 + 300_000 * i for i in range(6)]
    keys = {"cpu|readyPct": 30.0, "virtualDisk:scsi0:1|totalReadLatency_average": 1.0}
    stats = [{"timestamps": stamps, "statKey": {"key": key}, "data": [level] * 6} for key, level in keys.items()]
    (tmp_path / "stats.json").write_text(
        json.dumps({"values": [{"resourceId": resource, "stat-list": {"stat": stats}}]})
    )
    held = {"config|name": "db01", "config|hardware|numCpu": "4"}
    properties = [{"name": name, "value": value} for name, value in held.items()]
    (tmp_path / "properties.json").write_text(json.dumps({"resourceId": resource, "property": properties}))
    found = named(tmp_path / "stats.json", tmp_path / "properties.json")
    assert any(text.startswith("vm:db01") for text in found.values())
    assert not any(resource in text for text in found.values())
