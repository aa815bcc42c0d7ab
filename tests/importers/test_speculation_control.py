"""Get-SpeculationControlSettings: the console's lines, the object's list and JSON say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.importers import speculation_control
from tests.importers.recordings import codes, source_of

CONSOLE = (Path(__file__).parent / "seeds" / "speculation_control.txt").read_text()
OBJECT = """
BTIHardwarePresent                  : True
BTIWindowsSupportPresent            : True
BTIWindowsSupportEnabled            : True
BTIDisabledBySystemPolicy           : False
BTIDisabledByNoHardwareSupport      : False
BTIKernelRetpolineEnabled           : True
RdclHardwareProtectedReported       : True
RdclHardwareProtected               : False
KVAShadowRequired                   : True
KVAShadowWindowsSupportPresent      : True
KVAShadowWindowsSupportEnabled      : False
KVAShadowPcidEnabled                : False
SSBDHardwareVulnerable              : True
SSBDWindowsSupportEnabledSystemWide : True
L1TFHardwareVulnerable              : False
L1TFInvalidPteBit                   : 0
MDSHardwareVulnerable               : True
MDSWindowsSupportEnabled            : True
SBDRSSDPHardwareVulnerable          : False
FBSDPHardwareVulnerable             : True
PSDPHardwareVulnerable              : False
FBClearWindowsSupportEnabled        : True
"""


def read(tmp_path: Path, text: str) -> Capture:
    source = source_of(tmp_path, text)
    assert speculation_control.sniff(source) > 90
    return speculation_control.read(source, Request())


def states(capture: Capture, guest: str = "guest") -> dict[str, str]:
    known: dict[str, str] = capture.inventory.get(Entity.parse(f"guest:{guest}"), "cpu_vulnerabilities")
    return known


def test_the_lines_of_the_console(tmp_path: Path) -> None:
    capture = read(tmp_path, CONSOLE)
    assert states(capture) == {
        "meltdown": "Mitigation: KVA shadow, PCID",
        "spectre_v2": "Vulnerable: no hardware support",
        "l1tf": "Mitigation: PTE Inversion",
        "mds": "Vulnerable",
        "mmio_stale_data": "Not affected",
        "spec_store_bypass": "Off by default: not enabled system-wide",
    }
    assert codes(capture) == ["no-guest"]


def test_the_list_of_the_object(tmp_path: Path) -> None:
    expected = {
        "meltdown": "Vulnerable",
        "spectre_v2": "Mitigation: Retpolines",
        "l1tf": "Not affected",
        "mds": "Mitigation: Clear CPU buffers",
        "mmio_stale_data": "Mitigation: Clear CPU buffers",
        "spec_store_bypass": "Mitigation: Speculative Store Bypass disabled",
    }
    assert states(read(tmp_path, OBJECT)) == expected
    rows = (line.partition(":") for line in OBJECT.strip().splitlines())
    text = ",\r\n".join(f'    "{name.strip()}":  {value.strip().lower()}' for name, _, value in rows)
    assert states(read(tmp_path, "{\r\n" + text + "\r\n}\r\n")) == expected


def test_each_computer_has_its_states(tmp_path: Path) -> None:
    other = OBJECT.replace("SupportEnabled      : False", "SupportEnabled      : True")
    text = f"{OBJECT}PSComputerName                      : SQL01\n{other}PSComputerName : sql02.example.org\n"
    capture = read(tmp_path, text)
    assert states(capture, "SQL01")["meltdown"] == "Vulnerable"
    assert states(capture, "sql02.example.org")["meltdown"] == "Mitigation: KVA shadow"
    assert codes(capture) == []


def test_a_protected_processor_needs_no_shadow(tmp_path: Path) -> None:
    text = OBJECT.replace("RdclHardwareProtected               : False", "RdclHardwareProtected : True")
    assert states(read(tmp_path, text))["meltdown"] == "Not affected"


def test_a_fix_switched_off_by_policy(tmp_path: Path) -> None:
    text = OBJECT.replace("BTIWindowsSupportEnabled            : True", "BTIWindowsSupportEnabled : False")
    assert states(read(tmp_path, text))["spectre_v2"] == "Vulnerable"
    text = text.replace("BTIDisabledBySystemPolicy           : False", "BTIDisabledBySystemPolicy : True")
    assert states(read(tmp_path, text))["spectre_v2"] == "Vulnerable: disabled by system policy"


def test_an_old_module_leaves_the_rest_unknown(tmp_path: Path) -> None:
    lines = [line for line in OBJECT.splitlines() if line.startswith(("BTI", "KVA"))]
    assert set(states(read(tmp_path, "\n".join(lines)))) == {"meltdown", "spectre_v2"}


def test_as_powershell_redirects_it(tmp_path: Path) -> None:
    source = source_of(tmp_path, CONSOLE.replace("\n", "\r\n").encode("utf-16"))
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "speculation-control"
    assert states(speculation_control.read(source, Request()))["mds"] == "Vulnerable"


def test_a_text_without_an_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whether a vulnerability is fixed"):
        speculation_control.read(
            source_of(tmp_path, "BTIHardwarePresent : True\nKVAShadowRequired : True\n"), Request()
        )
    assert speculation_control.sniff(source_of(tmp_path, "Enabled : True\nThe value is: False\n")) == 0
