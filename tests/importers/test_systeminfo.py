"""systeminfo: the list and the table of a Windows computer say the same, whatever separates thousands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import systeminfo
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

LIST = (ROOT / "tests" / "importers" / "seeds" / "systeminfo.txt").read_text()
EXPECTED = {
    "guest_os": "Microsoft Windows Server 2019 Datacenter",
    "kernel_version": "10.0.17763 N/A Build 17763",
    "memory_mib": 32767,
    "socket_count": 2,
    "boot_time": "3/20/2021, 2:12:55 AM",
    "hotfix_count": 3,
    "virtualisation": "vmware",
}
HEADING = (
    '"Host Name","OS Name","OS Version","System Boot Time","System Manufacturer","System Model","Processor(s)",'
    '"Total Physical Memory","Hotfix(s)","Hyper-V Requirements"\r\n'
)
ROW = (
    '"SQL01","Microsoft Windows Server 2019 Datacenter","10.0.17763 N/A Build 17763","3/20/2021, 2:12:55 AM",'
    '"VMware, Inc.","VMware7,1","2 Processor(s) Installed.,[01]: Intel64 ~2993 Mhz,[02]: Intel64 ~2993 Mhz",'
    '"32,767 MB","3 Hotfix(s) Installed.,[01]: KB5020627,[02]: KB5019966,[03]: KB5020374",'
    '"A hypervisor has been detected. Features required for Hyper-V will not be displayed."\r\n'
)


def read(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert systeminfo.sniff(source) == 95
    return systeminfo.read(source, Request())


def guests(capture: Capture) -> dict[str, dict[str, Any]]:
    inventory = capture.inventory
    names = inventory.of_kind(EntityKind.GUEST)
    return {one.name: {name: fact.value for name, fact in inventory.facts[one].items()} for one in names}


def of_guest(folder: Path, text: str) -> dict[str, Any]:
    (known,) = guests(read(folder, text)).values()
    return known


def test_the_list(tmp_path: Path) -> None:
    capture = read(tmp_path, LIST)
    assert guests(capture) == {"SQL01": EXPECTED}
    assert codes(capture) == []


def test_the_table(tmp_path: Path) -> None:
    assert guests(read(tmp_path, HEADING + ROW)) == {"SQL01": EXPECTED}
    both = guests(read(tmp_path, HEADING + ROW + ROW.replace("SQL01", "SQL02").replace("32,767 MB", "1.024 MB")))
    assert (both["SQL01"]["memory_mib"], both["SQL02"]["memory_mib"]) == (32767, 1024)


@pytest.mark.parametrize(
    ("printed", "mib"), [("512 MB", 512), ("130.773 MB", 130_773), ("1\u00a0048\u00a0575 MB", 1_048_575)]
)
def test_separators_of_thousands(tmp_path: Path, printed: str, mib: int) -> None:
    assert of_guest(tmp_path, LIST.replace("32,767 MB", printed))["memory_mib"] == mib


@pytest.mark.parametrize(
    ("maker", "model", "hypervisor"),
    [
        ("Microsoft Corporation", "Virtual Machine", "hyperv"),
        ("Xen", "HVM domU", "xen"),
        ("QEMU", "Standard PC (i440FX + PIIX, 1996)", "kvm"),
        ("Amazon EC2", "m5.xlarge", "kvm"),
        ("Red Hat", "KVM", "kvm"),
        ("innotek GmbH", "VirtualBox", "other"),
        ("Microsoft Corporation", "Surface Pro", None),
        ("LENOVO", "20QN0034MX", None),
    ],
)
def test_the_hypervisor_by_the_maker(tmp_path: Path, maker: str, model: str, hypervisor: str | None) -> None:
    text = LIST.replace("VMware, Inc.\n", f"{maker}\n").replace("VMware7,1", model)
    assert of_guest(tmp_path, text).get("virtualisation") == hypervisor


def test_a_computer_without_hypervisor(tmp_path: Path) -> None:
    text = LIST.replace("VMware, Inc.\n", "Dell Inc.\n").replace("VMware7,1", "PowerEdge R740")
    head = text.partition("Hyper-V Requirements:")[0]
    text = (
        f"{head}Hyper-V Requirements:      VM Monitor Mode Extensions: Yes\n{27 * ' '}Data Execution Prevention: Yes\n"
    )
    assert of_guest(tmp_path, text)["virtualisation"] == "none"


def test_no_hotfix(tmp_path: Path) -> None:
    assert of_guest(tmp_path, LIST.replace("3 Hotfix(s) Installed.", "N/A"))["hotfix_count"] == 0


def test_a_row_that_never_ends_is_passed_over(tmp_path: Path) -> None:
    text = HEADING + ROW + '"' + 200_000 * "x" + "\n"
    assert guests(read(tmp_path, text)) == {"SQL01": EXPECTED}


def test_a_few_lines_are_enough(tmp_path: Path) -> None:
    capture = read(
        tmp_path, "OS Name:                   Microsoft Windows 7 Professional\nTotal Physical Memory:     4,095 MB\n"
    )
    assert guests(capture) == {"guest": {"guest_os": "Microsoft Windows 7 Professional", "memory_mib": 4095}}
    assert codes(capture) == ["no-guest"]


def test_another_language_is_refused(tmp_path: Path) -> None:
    german = "Hostname:                                      SQL01\n"
    german += "Betriebssystemname:                            Microsoft Windows Server 2019 Standard\n"
    german += "Hotfix(es):                                    2 Hotfix(e) installiert.\n"
    german += "".join(f"{47 * ' '}[{number:02}]: KB502062{number}\n" for number in (1, 2))
    source = source_of(tmp_path, german)
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "systeminfo"
    with pytest.raises(InputError, match="English"):
        systeminfo.read(source, Request())


def test_other_texts_are_not_taken(tmp_path: Path) -> None:
    assert systeminfo.sniff(source_of(tmp_path, "Host Name:   SQL01\nOS Name:   Ubuntu\n")) == 0
