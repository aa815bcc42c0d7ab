"""vSAN's objects: which hosts and devices hold the disks of VMs, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.guide.walking import StepState, walk
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Severity
from leadline.faces.words.guides import document, listed_lines
from leadline.importers import vsan_objects
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

TEXT = (ROOT / "tests" / "importers" / "seeds" / "vsan_objects.txt").read_text()
DISK = Entity.parse("vm:db01/virtual-disk:db01_1.vmdk")


def read(folder: Path, text: str = TEXT, *, truncate_last: bool = False) -> Capture:
    source = source_of(folder, text)
    assert vsan_objects.sniff(source) == 94
    return vsan_objects.read(source, Request(truncate_last=truncate_last))


def settings(capture: Capture) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.facts[DISK].items()}


def test_a_disk_with_a_lost_copy(tmp_path: Path) -> None:
    """Two stripes of each copy; the host of one copy is gone. The object of the VM's folder is no disk."""
    capture = read(tmp_path)
    assert list(capture.inventory.facts) == [DISK]
    assert settings(capture) == {
        "file": "/vmfs/volumes/vsan:52f4bd33f4da6d38-b2cf9cd1ea0cdd43/47cbdc58-e01c-9e33-dada-020010d5dfa3/db01_1.vmdk",
        "vsan_stripe_count": 2,
        "vsan_ftt": 1,
        "vsan_force_provisioning": False,
        "vsan_raid": "raid-1",
        "vsan_object_health": "reduced-availability-with-no-rebuild-delay-timer",
        "vsan_placement": [
            "esx1.lab mpx.vmhba1:C0:T1:L0",
            "esx1.lab mpx.vmhba1:C0:T3:L0",
            "esx2.lab (absent)",
            "esx2.lab (absent)",
            "witness esx3.lab mpx.vmhba1:C0:T1:L0",
        ],
        "vsan_absent_component_count": 2,
    }
    assert codes(capture) == []


def test_parity_below_a_mirror_of_sites_is_the_layout(tmp_path: Path) -> None:
    assert settings(read(tmp_path, TEXT.replace("RAID_0", "RAID_5")))["vsan_raid"] == "raid-5"


def test_a_guide_says_which_hosts_hold_the_vm(tmp_path: Path) -> None:
    capture = read(tmp_path)
    diagnosis = diagnose(capture)
    (finding,) = [one for one in diagnosis.findings if one.rule == "vsan-object-unhealthy"]
    assert finding.severity is Severity.HIGH
    assert "2 of its components absent" in finding.summary
    assert any("esx2.lab (absent)" in evidence.statement for evidence in finding.evidence)
    walked = walk("vsan", diagnosis, capture.inventory)
    by_title = {one.step.title: one for one in walked.steps}
    ((label, value),) = listed_lines(by_title["Host"])
    assert label == DISK.label()
    assert value.startswith("esx1.lab mpx.vmhba1:C0:T1:L0; ")
    assert by_title["Disk group"].state is StepState.PROBLEM
    assert document(walked)["steps"][2]["listed"][0]["entity"] == str(DISK)


def test_an_old_release_prints_no_path(tmp_path: Path) -> None:
    old = "\n".join(line for line in TEXT.splitlines() if not line.strip().startswith(("Path:", "Type:")))
    capture = read(tmp_path, old + "\n")
    assert not capture.inventory.facts
    assert codes(capture) == ["no-path"]


def test_indented_as_people_quote_it(tmp_path: Path) -> None:
    quoted = "".join(f"    {line}\n" for line in TEXT.splitlines())
    assert settings(read(tmp_path, quoted)) == settings(read(tmp_path))


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    capture = read(tmp_path, TEXT + "Object UUID: 16cbdc58-30a2-11c5-7a1c-020010d5dfa3", truncate_last=True)
    assert list(capture.inventory.facts) == [DISK]


def test_no_object_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no object"):
        vsan_objects.read(source_of(tmp_path, "Health: healthy\n"), Request())
