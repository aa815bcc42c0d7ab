"""The audit: configuration rules alone, and SARIF."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leadline.app.diagnose.auditing import audit, by_rule, configuration_rules
from leadline.app.diagnose.diagnosing import rule_modules
from leadline.app.read.importing import import_paths
from leadline.faces.cli.main import build_app
from leadline.faces.sarif import sarif_document

TEXT = """
leadline_inventory: 1
hosts:
  - name: esx01
    core_count: 8
    numa_node_count: 2
    vms:
      - name: db01
        vcpu_count: 4
        snapshot_count: 2
        snapshot_age_days: 30
        adapters: [{name: scsi0, type: lsilogic}]
        disks: [{name: "scsi0:0", adapter: scsi0, role: system}, {name: "scsi0:1", adapter: scsi0, role: data}]
        nics: [{name: ethernet0, type: e1000}]
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.yaml"
    path.write_text(TEXT)
    return path


def test_only_rules_of_settings_run(inventory: Path) -> None:
    found = audit(import_paths([inventory]).capture)
    names = set(configuration_rules())
    assert "cpu-ready-high" not in names
    assert {"vm-nic-not-vmxnet3", "vm-snapshot-present"} <= set(found.rules_run) <= names
    assert {s.rule for s in found.skipped} <= names
    assert {"vm-disk-controller-not-pvscsi", "vm-nic-not-vmxnet3", "vm-snapshot-present"} <= set(
        by_rule(found.findings)
    )


def test_sarif_has_a_rule_and_a_place_for_every_result(inventory: Path) -> None:
    findings = audit(import_paths([inventory]).capture).findings
    run = sarif_document(findings, rule_modules())["runs"][0]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    assert len(run["results"]) == len(findings) > 0
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == str(inventory)


def test_the_verb(inventory: Path, tmp_path: Path) -> None:
    sarif = tmp_path / "out.sarif"
    done = CliRunner().invoke(build_app(), ["audit", str(inventory), "--fail-on", "medium", "--sarif", str(sarif)])
    assert done.exit_code == 1, done.output
    assert "vm-nic-not-vmxnet3" in done.output
    assert json.loads(sarif.read_text())["version"] == "2.1.0"
    plain = CliRunner().invoke(build_app(), ["audit", str(inventory), "--json"])
    document = json.loads(plain.output)
    assert document["schema"] == "leadline.audit/1"
    assert document["findings"]
