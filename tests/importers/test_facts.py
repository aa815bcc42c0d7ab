"""Facts of a guest: read back into the inventory, and used together with a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.importers import facts
from tests.importers.recordings import codes, source_of

SEED = Path(__file__).parent / "seeds" / "facts.json"
IOSTAT = """\
Linux 6.1.0-18-amd64 (db01) \t11/20/2026 \t_x86_64_\t(8 CPU)

11/20/2026 10:41:00 PM
Device            r/s     rkB/s r_await     w/s     wkB/s w_await  aqu-sz  %util
sdb              0.00      0.00    0.00    1.00      8.00    1.00    0.01   0.10

"""


def document(**guest: Any) -> str:
    return json.dumps({"leadline_facts": 1, "guests": [{"name": "db01", **guest}]})


def read(tmp_path: Path, text: str) -> Any:
    return facts.read(source_of(tmp_path, text, "facts.json"), Request())


def test_settings_reach_the_inventory(tmp_path: Path) -> None:
    inventory = read(tmp_path, SEED.read_text()).inventory
    guest, log = Entity.parse("guest:db01"), Entity.parse("guest:db01/block-device:sdc")
    assert inventory.get(guest, "cpu_count") == 8
    assert inventory.get(guest, "sysctl")["vm.swappiness"] == 60
    assert inventory.get(guest, "module_parameters")["vmw_pvscsi.cmd_per_lun"] == 64
    assert inventory.get(log, "partition_starts_bytes") == {"sdc1": 32256}
    assert inventory.fact(log, "role").value == "wal"
    assert not inventory.fact(log, "role").guessed
    assert inventory.get(Entity.parse("guest:db01/database:16-main"), "parameters")["shared_buffers"] == "24GB"


@pytest.mark.parametrize(
    "head", ['{"leadline_facts": 1}', '\n {\n  "schema": "leadline.facts/1",\n "leadline_facts": 1}']
)
def test_is_recognised_by_its_mark(tmp_path: Path, head: str) -> None:
    known = recognise(source_of(tmp_path, head), load_units("importer"))
    assert known is not None
    assert known[0] == "facts"


def test_what_could_not_be_read_is_said(tmp_path: Path) -> None:
    hidden = [f"/secret{i}" for i in range(5)]
    text = json.dumps({"leadline_facts": 1, "guests": [], "unreadable": hidden})
    capture = read(tmp_path, text)
    assert codes(capture) == ["unreadable"]
    assert capture.sources[0].warnings[0].count == 5
    assert "/secret0, /secret1, /secret2, ..." in capture.sources[0].warnings[0].message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"leadline_facts": 2, "guests": []}', "version 2"),
        ('{"leadline_facts": 1, "guests": []}\n{"leadline_facts": 1}', "2 documents"),
        (document(cpu_count=-1), "cpu_count"),
        (document(pasword="x"), "pasword"),
        (document(devices=5), "devices"),
        ('{"leadline_facts": 1, "guests": [', "damaged JSON"),
        ('{"leadline_facts": 1, "guests": [{"name": "\\ud800"}]}', "not YAML"),
    ],
)
def test_what_is_no_facts_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, text)


def test_diagnosis_uses_facts_and_recording_together(tmp_path: Path) -> None:
    (tmp_path / "iostat.txt").write_text(IOSTAT)
    (tmp_path / "facts.json").write_text(SEED.read_text())
    imported = import_paths([tmp_path / "iostat.txt", tmp_path / "facts.json"], Request())
    guests = {entity.name for entity in imported.capture.inventory.facts if entity.kind.value == "guest"}
    assert guests == {"db01"}
    found = {(finding.rule, str(finding.entity)) for finding in diagnose(imported.capture).findings}
    assert ("guest-swappiness-high", "guest:db01") in found
    assert ("guest-partition-misaligned", "guest:db01/block-device:sdc") in found
    assert ("guest-fs-mount-options", "guest:db01/block-device:sdc") in found
    assert ("guest-hugepages-missing", "guest:db01") in found
    assert ("guest-io-scheduler", "guest:db01/block-device:sdb") in found
