"""The log of a virtual machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.events import events_of
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import vmware_log
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "vmware.log").read_text()
FIELD = ROOT.parent / "shared" / "field" / "hypervisor-esxi-logs" / "vmware.log"
KINDS = ("snapshot-created", "snapshot-quiesced", "snapshot-consolidated")
NINE = 1_795_510_800  # 2026-11-24 09:00 UTC


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return vmware_log.read(source_of(folder, text, "vmware.log"), request or Request())


def test_standstills_of_a_named_vm(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    group = group_of(capture, "vm_stopped_s", "host:esx01.lab/vm:db01")
    assert group.values[0].tolist() == [0.412345, 3.658889, 0.0]
    assert seconds(group) == [NINE - 1, NINE + 5.876, NINE + 10]
    assert codes(capture) == []
    assert capture.sources[0].clock_known


def test_snapshots_are_events(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    vm = Entity(EntityKind.VM, "db01", Entity(EntityKind.HOST, "esx01.lab"))
    assert [(event.kind, event.text) for event in events_of(capture.inventory, vm, KINDS)] == [
        ("snapshot-quiesced", "quiesced snapshot 'VEEAM BACKUP' begins"),
        ("snapshot-created", "snapshot ends"),
        ("snapshot-consolidated", "consolidation begins"),
        ("snapshot-consolidated", "consolidation begins a further iteration"),
        ("snapshot-consolidated", "consolidation ends"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "2012-03-23T16:22:51.876Z| vcpu-0| Checkpoint_Unstun: vm stopped for 3658889 us",
        "2016-06-08T22:55:23.785Z| vcpu-0| I120: Checkpoint_Unstun: vm stopped for 3658889 us",
        "vmware-2.log:2021-06-08T22:55:23.785Z| vcpu-12| I005+ Checkpoint_Unstun: vm stopped for 3658889 us",
        "2023-06-08T22:55:23.785Z In(05) vcpu-0 - Checkpoint_Unstun: vm stopped for 3658889 us",
        "Mar 23 16:22:51.876| vcpu-0| Checkpoint_Unstun: vm stopped for 3658889 us",
    ],
)
def test_forms_of_all_versions(line: str, tmp_path: Path) -> None:
    source = source_of(tmp_path, f"{line}\n", "vmware.log")
    chosen = recognise(source, load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "vmware-log"
    capture = vmware_log.read(source, Request())
    assert values_of(capture, "vm_stopped_s", "vm:vm").tolist() == [3.658889]
    assert "no-name" in codes(capture)


def test_times_in_a_zone_are_put_into_utc(tmp_path: Path) -> None:
    line = "2026-11-24T10:00:05.876+01:00| vmx| I005: Checkpoint_Unstun: vm stopped for 20 us\n"
    assert seconds(group_of(read_text(tmp_path, line), "vm_stopped_s", "vm:vm")) == [NINE + 5.876]


def test_standstills_without_a_time_are_counted(tmp_path: Path) -> None:
    capture = read_text(tmp_path, f"{SEED}vmx| Checkpoint_Unstun: vm stopped for 3711025 us\n")
    assert codes(capture) == ["no-time"]
    with pytest.raises(InputError, match="vmware"):
        read_text(tmp_path, "vmx| Checkpoint_Unstun: vm stopped for 3711025 us\n")


def test_the_log_of_a_report(tmp_path: Path) -> None:
    if not FIELD.is_file():
        pytest.skip("the field cases are not beside this checkout")
    capture = vmware_log.read(Source(FIELD.name, FIELD), Request())
    assert values_of(capture, "vm_stopped_s", "vm:vm").tolist() == [3.658889, 237.087978]
