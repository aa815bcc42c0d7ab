"""The recording of an incident: when it is written, how far it reaches, and what is in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leadline.app.watch import incident_captures
from leadline.app.watch.incident_captures import IncidentCaptures
from leadline.app.watch.surroundings import Surroundings
from leadline.core.io.parquet import load
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, EntityColumn, Inventory
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import EntityKind, Severity
from leadline.stores.incidents import LiveIncident
from leadline.stores.samples import Retention, SampleStore

START_NS = 1_789_948_800 * NS_PER_S
OPENED_S = 1800
PLENTY = 1 << 30
HOSTS = [Entity(EntityKind.HOST, f"esx{number}") for number in range(3)]
VMS = [Entity(EntityKind.VM, f"db{number}", HOSTS[number // 2]) for number in range(6)]
GUEST = Entity(EntityKind.GUEST, "db0.example")
DATABASE = Entity(EntityKind.DATABASE, "orders", GUEST)


def at(seconds: float) -> int:
    return START_NS + round(seconds * NS_PER_S)


def incident(number: str = "20260921-003000-1", closed_s: float | None = None, **other: object) -> LiveIncident:
    closed_ns = None if closed_s is None else at(closed_s)
    known = LiveIncident(
        number, at(OPENED_S), at(OPENED_S), closed_ns, Severity.HIGH, "cpu-ready", str(VMS[0]), "title", "text",
        places=(str(VMS[0]), "hypervisor-cpu: host:esx0"),
    )  # fmt: skip
    return replace(known, **other)  # type: ignore[arg-type]


def estate() -> Inventory:
    """Three hosts with two VMs each; the disks of the first VM and of the last one lie on one datastore."""
    inventory = Inventory()
    for host in HOSTS:
        inventory.add(host, "vc", cluster="gold")
    for number, vm in enumerate(VMS):
        inventory.add(vm, "vc", vcpu_count=4)
        store = "shared" if number in (0, 5) else f"local{number}"
        inventory.add(Entity(EntityKind.VIRTUAL_DISK, "disk 1", vm), "vc", datastore=store)
        inventory.add(Entity(EntityKind.DATASTORE, store), "vc", type="vmfs")
    inventory.add(DATABASE, "pg")
    inventory.links[GUEST] = VMS[0]
    return inventory


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SampleStore]:
    """Six hours of all VMs, a sample a minute."""
    times_ns = START_NS + np.arange(0, 6 * 3600, 60, dtype=np.int64) * NS_PER_S
    values = np.tile(np.arange(len(VMS), dtype=np.float32)[:, None], (1, len(times_ns)))
    group = SeriesGroup("cpu_ready_pct", EntityColumn(VMS), times_ns, values, 60.0)
    with SampleStore(tmp_path / "store", keep=Retention(raw_s=1e9)) as store:
        store.append(Capture([group], [SourceInfo("vc", "vcenter", "vCenter")], estate()))
        yield store


@pytest.fixture
def captures(store: SampleStore) -> IncidentCaptures:
    return IncidentCaptures(store.folder / "incidents", store, PLENTY)


def written(captures: IncidentCaptures, second: float, window: Capture | None = None) -> list[str]:
    return list(captures.write_due(at(second), lambda: window or Capture()))


def reach(captures: IncidentCaptures, number: str = "20260921-003000-1") -> tuple[float, float]:
    """From when until when a recording has samples, seconds."""
    span = load(captures.path(number), "recording").span_ns()
    assert span is not None
    return (span[0] - START_NS) / NS_PER_S, (span[1] - START_NS) / NS_PER_S


def test_it_reaches_from_ten_minutes_before_to_ten_minutes_after(captures: IncidentCaptures) -> None:
    captures.take(incident())
    assert written(captures, OPENED_S + 60)
    assert reach(captures) == (1200, 1800)
    captures.take(incident(closed_s=3600))
    assert written(captures, 3660)
    assert written(captures, 4260)
    assert reach(captures) == (1200, 4140)
    assert not written(captures, 9000)


def test_it_is_written_anew_when_it_has_grown_by_half(captures: IncidentCaptures) -> None:
    captures.take(incident())
    seconds = [second for second in range(OPENED_S, OPENED_S + 7200, 60) if written(captures, second)]
    assert [second - OPENED_S for second in seconds] == [0, 300, 780, 1500, 2580, 4200, 6600]


def test_it_is_written_when_the_incident_is_over(captures: IncidentCaptures) -> None:
    captures.take(incident())
    assert written(captures, 5000)
    captures.take(incident(closed_s=5060))
    assert written(captures, 5100)
    assert not written(captures, 5160)


def test_of_a_long_incident_the_beginning_is_recorded_once(captures: IncidentCaptures) -> None:
    captures.take(incident())
    count = sum(len(written(captures, second)) for second in range(OPENED_S, 6 * 3600, 60))
    assert count == 9
    assert reach(captures) == (1200, 1200 + 4 * 3600 - 60)
    whole = load(captures.path("20260921-003000-1"), "recording")
    assert "the first 4 hours of a longer incident; the store has the rest" in str(whole.sources)
    captures.take(incident(closed_s=6 * 3600))
    assert not written(captures, 7 * 3600)


def test_the_next_watch_completes_it(store: SampleStore, captures: IncidentCaptures) -> None:
    captures.take(incident())
    assert written(captures, OPENED_S + 60)
    os.utime(captures.path("20260921-003000-1"), ns=(at(OPENED_S + 60), at(OPENED_S + 60)))
    after = IncidentCaptures(captures.folder, store, PLENTY)
    after.take_up([incident(closed_s=3600)])
    assert written(after, 4200)
    assert reach(after) == (1200, 4140)


def test_of_a_large_estate_what_is_around_it_is_recorded(
    captures: IncidentCaptures, store: SampleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incident_captures, "SERIES_MAX", 3)
    window = store.read(at(0), at(3600))
    captures.take(incident())
    assert list(captures.write_due(at(3600), lambda: window))
    part = load(captures.path("20260921-003000-1"), "recording")
    assert {entity.name for group in part.groups for entity in group.entities} == {"db0", "db1", "db5"}
    names = {entity.name for entity in part.inventory.facts}
    assert {"db0", "db1", "db5", "shared", "orders"} <= names
    assert not {"db2", "db3", "db4", "local3"} & names
    assert part.inventory.links == {GUEST: VMS[0]}
    assert "of what shares a host, a datastore or a device with the incident" in str(part.sources)


def test_one_that_cannot_be_written_keeps_no_other_from_it(
    captures: IncidentCaptures, store: SampleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = store.read

    def failing(start_ns: int, *rest: int) -> Capture:
        if start_ns == at(OPENED_S - 600):
            raise ToolError("store", found="damaged", expected="samples", advice="None.")
        return read(start_ns, *rest)

    monkeypatch.setattr(store, "read", failing)
    captures.take(incident())
    captures.take(incident("20260921-004000-2", opened_ns=at(2400)))
    due = captures.write_due(at(3600), Capture)
    assert next(due) == "20260921-004000-2"
    with pytest.raises(ToolError):
        next(due)


def test_the_oldest_go_when_there_are_too_many(captures: IncidentCaptures) -> None:
    numbers = [f"20260921-0030{number:02}-1" for number in range(5)]

    def record(some: list[str], second: float) -> list[str]:
        for number in some:
            captures.take(incident(number))
            captures.take(incident(number, closed_s=2400))
        return written(captures, second)

    assert record(numbers[:4], 3600) == numbers[:4]
    captures.bytes_max = round(3.5 * captures.path(numbers[0]).stat().st_size)
    assert record(numbers[4:], 3700) == numbers[4:]
    assert sorted(path.stem for path in captures.folder.iterdir()) == numbers[2:]


def test_what_is_around_a_datastore_are_its_vms_wherever_they_run() -> None:
    around = Surroundings.of(["storage: datastore:shared"], estate())
    assert [vm.name for vm in VMS if around.holds(vm)] == ["db0", "db5"]
    assert around.holds(Entity(EntityKind.DATASTORE, "shared", HOSTS[1]))
    assert around.holds(DATABASE)
    assert not around.holds(HOSTS[1])
