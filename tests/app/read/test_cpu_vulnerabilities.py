"""Facts on fixes of the processor: what the kernel says, and of its boot line only what concerns them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leadline.app.read.cpu_vulnerabilities import FOLDER, OPTIONS, fix_options
from leadline.app.read.machine_facts import record_facts
from leadline.core.model.entities import Entity
from leadline.formats.inventory_file import parse_inventory

NOW = datetime(2026, 11, 20, 22, 41, tzinfo=UTC)
SECRET = "hunter2"
STATES = {
    "itlb_multihit": "KVM: Mitigation: VMX unsupported\n",
    "mds": "Mitigation: Clear CPU buffers; SMT Host state unknown\n",
    "meltdown": "Mitigation: PTI\n",
    "spectre_v2": "Mitigation: Retpolines; IBPB: conditional; IBRS_FW; STIBP: disabled; RSB filling\n",
    "tsx_async_abort": "Vulnerable: Clear CPU buffers attempted, no microcode; SMT Host state unknown\n",
    "tsa": "Not affected\n",
}


def tree(root: Path, states: dict[str, str] | None = None, line: str | None = None) -> Path:
    (root / "proc").mkdir()
    folder = root / FOLDER.lstrip("/")
    folder.mkdir(parents=True)
    for name, text in (states or {}).items():
        (folder / name).write_text(text)
    if line is not None:
        (root / "proc" / "cmdline").write_text(line)
    return root


def recorded(root: Path) -> dict[str, Any]:
    guest: dict[str, Any] = record_facts(root, NOW)["guests"][0]
    return guest


def test_each_vulnerability_is_recorded_as_the_kernel_says_it(tmp_path: Path) -> None:
    guest = recorded(tree(tmp_path, STATES))
    assert guest["cpu_vulnerabilities"] == {name: text.strip() for name, text in STATES.items()}
    assert "cpu_fix_options" not in guest


def test_of_the_boot_line_only_the_options_of_fixes_are_kept(tmp_path: Path) -> None:
    line = f"root=UUID=12 ro ip=10.0.0.1 pw={SECRET} mds=full,nosmt nopti mitigations=auto;{SECRET}!\n"
    guest = recorded(tree(tmp_path, STATES, line))
    assert guest["cpu_fix_options"] == {"mds": "full,nosmt", "nopti": "on"}
    assert SECRET not in json.dumps(guest)
    assert "10.0.0.1" not in json.dumps(guest)


def test_a_kernel_booted_without_such_an_option_says_so(tmp_path: Path) -> None:
    guest = recorded(tree(tmp_path, None, "root=/dev/sda1 quiet\n"))
    assert guest["cpu_fix_options"] == {}
    assert "cpu_vulnerabilities" not in guest


def test_a_file_that_is_no_state_of_a_vulnerability_is_left_out(tmp_path: Path) -> None:
    assert "cpu_vulnerabilities" not in recorded(tree(tmp_path, {"Odd name": "Vulnerable\n", "mds": "\n"}))


def test_a_long_state_is_cut(tmp_path: Path) -> None:
    assert len(recorded(tree(tmp_path, {"mds": "Mitigation: " + "x" * 9000}))["cpu_vulnerabilities"]["mds"]) == 400


def test_every_option_is_known_with_dash_and_underscore() -> None:
    for option in OPTIONS:
        for spelling in {option, option.replace("_", "-")}:
            assert fix_options(f"a=b {spelling}=off") == {option: "off"}


def test_the_facts_are_read_back(tmp_path: Path) -> None:
    guest = recorded(tree(tmp_path, STATES, "mitigations=auto,nosmt"))
    inventory = parse_inventory(json.dumps({"guests": [guest]}), "facts.json")
    entity = Entity.parse(f"guest:{guest['name']}")
    assert inventory.get(entity, "cpu_vulnerabilities")["meltdown"] == "Mitigation: PTI"
    assert inventory.get(entity, "cpu_fix_options") == {"mitigations": "auto,nosmt"}
