"""What a watch keeps is read like a recording: a span of it, one machine of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.app.read.resolve import resolve
from leadline.app.read.stored import StoredPart, stored_capture
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, EntityColumn, Inventory
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.stores.samples import SampleStore

EXAMPLE = Path("examples/incidents/throttled-wal-disk")
START_NS = 1_790_000_000 * NS_PER_S


@pytest.fixture(scope="module")
def recorded() -> Capture:
    return import_paths([EXAMPLE]).capture


@pytest.fixture(scope="module")
def folder(recorded: Capture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    with SampleStore(path) as store:
        store.append(recorded)
    return path


def read(folder: Path, **part: str) -> Capture:
    return stored_capture(Path(f"store:{folder}"), StoredPart(**part))


def span_s(capture: Capture) -> float:
    span = capture.span_ns()
    assert span is not None
    return (span[1] - span[0]) / NS_PER_S


def estate(vms_per_host: int) -> Capture:
    """Two hosts with VMs that have a disk each, on one datastore; a guest in the first one."""
    hosts = [Entity(EntityKind.HOST, name) for name in ("esx1", "esx2")]
    vms = [Entity(EntityKind.VM, f"vm{host.name[3:]}{i}", host) for host in hosts for i in range(vms_per_host)]
    disks = [Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", vm) for vm in vms]
    guest, gold = Entity(EntityKind.GUEST, "db01"), Entity(EntityKind.DATASTORE, "gold")
    times_ns = START_NS + np.arange(4, dtype=np.int64) * 20 * NS_PER_S
    series: dict[str, list[Entity]] = {
        "host_cpu_core_util_pct": hosts,
        "cpu_ready_pct": vms,
        "vdisk_total_iops": disks,
        "guest_load_1m": [guest],
        "datastore_read_ms": [gold],
    }
    groups = [
        SeriesGroup(metric, EntityColumn(of), times_ns, np.ones((len(of), 4), dtype=np.float32), 20.0)
        for metric, of in series.items()
    ]
    inventory = Inventory(links={guest: vms[0]})
    for vm, disk in zip(vms, disks, strict=True):
        inventory.add(vm, "vc", vcpu_count=4)
        inventory.add(disk, "vc", datastore="gold")
    inventory.add(gold, "vc", capacity_bytes=2**40)
    return Capture(groups, [SourceInfo("vc", "vcenter", "vCenter", host="vc1")], inventory)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_of_one_machine_little_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_compacted: bool) -> None:
    with SampleStore(tmp_path) as store:
        store.append(estate(vms_per_host=50))
        if is_compacted:
            store.maintain(whole=True)
    given: list[int] = []
    whole = SampleStore.read

    def counted(self: SampleStore, *args: Any, **chosen: Any) -> Capture:
        capture = whole(self, *args, **chosen)
        given.append(capture.series_count)
        return capture

    monkeypatch.setattr(SampleStore, "read", counted)
    capture = read(tmp_path, vm="db01")
    names = {str(entity) for group in capture.groups for entity in group.entities}
    vm, disk = "host:esx1/vm:vm10", "host:esx1/vm:vm10/virtual-disk:scsi0:0"
    assert names == {"host:esx1", vm, disk, "guest:db01", "datastore:gold"}
    assert max(given) == capture.series_count == 5
    facts = {str(entity) for entity in capture.inventory.facts}
    assert facts == {vm, disk, "datastore:gold"}
    assert [one.name for one in capture.inventory.links.values()] == ["vm10"]


@pytest.mark.parametrize("name", ["vm10", "db01", "VM1[0]"])
def test_a_machine_has_the_names_of_its_parts(tmp_path: Path, name: str) -> None:
    with SampleStore(tmp_path) as store:
        store.append(estate(vms_per_host=2))
    assert read(tmp_path, vm=name).series_count == 5


@pytest.mark.parametrize(("name", "advice"), [("wm20", "There are vm20"), ("nowhere", "db01, vm10, vm11 and 2 more")])
def test_a_name_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path, name: str, advice: str) -> None:
    with SampleStore(tmp_path) as store:
        store.append(estate(vms_per_host=2))
    with pytest.raises(UsageError, match=f"nothing of {name}.*{advice}"):
        read(tmp_path, vm=name)


def test_it_is_diagnosed_as_the_recording_is(folder: Path, recorded: Capture) -> None:
    of_files, of_store = diagnose(recorded).answer, diagnose(resolve(read(folder))).answer
    assert of_files.cause is not None and of_store.cause is not None
    assert of_store.cause.finding.rule == of_files.cause.finding.rule
    assert of_store.disk is of_files.disk


@pytest.mark.parametrize(
    ("since", "until", "seconds"),
    [("60s", None, 60), ("1m", None, 60), ("23:49:47", "23:50:17", 30), ("2026-11-20T23:49:47Z", "23:50:17", 30)],
)
def test_a_span(folder: Path, since: str, until: str | None, seconds: float) -> None:
    capture = stored_capture(Path(f"store:{folder}"), StoredPart(since, until))
    assert span_s(capture) == pytest.approx(seconds, abs=2.0)


def test_one_machine_with_its_database(folder: Path) -> None:
    capture = read(folder, vm="DB*")
    assert capture.of("guest_load_1m")
    with pytest.raises(UsageError, match="nothing of web01"):
        read(folder, vm="web01")


@pytest.mark.parametrize(
    "part", [{"since": "yesterday"}, {"until": "25:00"}, {"since": "23:50:00", "until": "23:40:00"}]
)
def test_what_is_no_time_is_said(folder: Path, part: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"--from|--to"):
        read(folder, **part)


def test_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sample store"):
        read(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
