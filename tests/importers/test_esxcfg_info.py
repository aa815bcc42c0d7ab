"""esxcfg-info: what the tree says of the host's hardware."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.importers import esxcfg_info
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

TREE = (ROOT / "tests" / "importers" / "seeds" / "esxcfg_info.txt").read_text()
ONE = "         |----HV Support............................................3\n"


def read(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert esxcfg_info.sniff(source) == 93
    return esxcfg_info.read(source, Request())


def settings(capture: Capture) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.facts[Entity.parse("host:esxi")].items()}


def test_the_tree(tmp_path: Path) -> None:
    capture = read(tmp_path, TREE)
    assert settings(capture) == {
        "bios_version": "2.6.0",
        "bios_date": "2017-10-31",
        "model": "PowerEdge R630",
        "vendor": "Dell Inc.",
        "socket_count": 2,
        "core_count": 20,
        "thread_count": 40,
        "hyperthreading": True,
        "hyperthreading_available": True,
        "hv_support": 2,
        "power_policy": "balanced",
        "memory_mib": 274_844_352_512 / 2**20,
    }
    assert codes(capture) == ["no-host"]


def test_a_single_line(tmp_path: Path) -> None:
    text = f"{ONE}            |----World Command Line.................................grep HV Support\n"
    assert settings(read(tmp_path, text)) == {"hv_support": 3}


def test_the_host_of_a_support_bundle(tmp_path: Path) -> None:
    name = "esx-db-esx01.example.org-2026-11-24--09.10-2101.tgz!esx/commands/esxcfg-info_-a.txt"
    source = replace(source_of(tmp_path, TREE), name=name)
    inventory = esxcfg_info.read(source, Request()).inventory
    assert inventory.get(Entity.parse("host:db-esx01.example.org"), "hv_support") == 2


def test_what_is_off_in_the_bios_is_found(tmp_path: Path) -> None:
    findings = diagnose(read(tmp_path, TREE)).findings
    assert "hw-virt-disabled-in-bios" in {finding.rule for finding in findings}


def test_a_vendor_of_a_device_is_not_the_host_s(tmp_path: Path) -> None:
    text = ONE + TREE.partition("PCI Info : \n")[2]
    assert settings(read(tmp_path, text)) == {"hv_support": 3}


@pytest.mark.parametrize("text", [ONE.replace("....3", "....7"), TREE.partition("BIOS Version")[0]])
def test_a_tree_without_hardware_is_refused(tmp_path: Path, text: str) -> None:
    source = source_of(tmp_path, text)
    assert esxcfg_info.sniff(source) == 0
    with pytest.raises(InputError, match="no line of the host's hardware"):
        esxcfg_info.read(source, Request())


def test_it_is_recognised(tmp_path: Path) -> None:
    known = recognise(source_of(tmp_path, TREE), load_units("importer"))
    assert known is not None
    assert known[0] == "esxcfg-info"
