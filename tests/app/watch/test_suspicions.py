"""What counts as wrong now: what is felt, what is severe, what lasted; and the places that join it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.watch.suspicions import places_of, suspicions_of
from leadline.core.model.answer import Cause, Certainty, Feeling, Felt
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Diagnosis, Finding, Window
from leadline.core.model.vocabulary import Layer, Severity

S = 1_000_000_000
NOW = 1000
GUEST = Entity.parse("guest:db01")
BUSY = Finding(
    "guest-cpu-usage-high", "GST101", Layer.GUEST, GUEST, Severity.MEDIUM, "is busy", (), "", (Window(0, NOW * S),)
)


def diagnosis(*findings: Finding, felt: Felt = Felt.UNKNOWN) -> Diagnosis:
    return Diagnosis((), (), findings, (), feeling=Feeling(felt))


def rate(last: int) -> Capture:
    times = np.arange(last - 120, last + 1, dtype=np.int64) * S
    group = SeriesGroup("db_tps", [Entity.parse("database:orders")], times, np.ones((1, 121)), 1.0)
    return Capture([group], [SourceInfo("x", "x", "x")])


def rules(some: Diagnosis, capture: Capture | None = None) -> list[str]:
    return [one.cause for one in suspicions_of(some, capture or Capture(), NOW * S)]


def test_a_limit_that_is_passed_now_counts_where_nothing_is_known_of_users() -> None:
    assert rules(diagnosis(BUSY)) == ["guest-cpu-usage-high"]
    assert rules(diagnosis(BUSY, felt=Felt.FINE)) == []
    assert rules(diagnosis(BUSY), rate(NOW)) == []
    assert rules(diagnosis(BUSY), rate(NOW - 300)) == ["guest-cpu-usage-high"], "users are not measured any more"
    assert rules(diagnosis(replace(BUSY, severity=Severity.HIGH)), rate(NOW)) == ["guest-cpu-usage-high"]


@pytest.mark.parametrize(
    "change",
    [
        {"severity": Severity.LOW},
        {"windows": ()},
        {"windows": (Window(0, (NOW - 100) * S),)},
        {"windows": (Window((NOW - 5) * S, NOW * S),)},
        {"caused_by": "another"},
    ],
    ids=["minor", "a setting", "over", "shorter than its rule asks", "explained"],
)
def test_what_does_not_count(change: dict[str, object]) -> None:
    assert rules(diagnosis(replace(BUSY, **change))) == []  # type: ignore[arg-type]


def estate() -> Inventory:
    inventory = Inventory()
    for number in (1, 2):
        vm = Entity.parse(f"host:esx1/vm:db{number}")
        inventory.add(vm, "x")
        inventory.links[Entity.parse(f"guest:db{number}")] = vm
        inventory.add(Entity.parse(f"host:esx1/vm:db{number}/virtual-disk:scsi0:0"), "x", datastore="gold")
    inventory.add(Entity.parse("datastore:gold"), "x")
    return inventory


@pytest.mark.parametrize(("during", "is_wrong"), [(0.5, False), (0.05, True)], ids=["half the work", "a standstill"])
def test_less_work_that_nothing_explains_is_no_incident_of_a_watch(during: float, is_wrong: bool) -> None:
    """At the end of a day users ask for less; only who complains says that they wait."""
    noise = np.random.default_rng(1)
    values = noise.normal(1.0, 0.05, 300) * np.where(np.arange(300) < 240, 250.0, 250.0 * during)
    times = np.arange(NOW - 299, NOW + 1, dtype=np.int64) * S
    group = SeriesGroup("db_tps", [Entity.parse("database:orders")], times, values[None, :], 1.0)
    capture = Capture([group], [SourceInfo("x", "x", "x")])
    assert bool(suspicions_of(diagnose(capture), capture, NOW * S)) is is_wrong


@pytest.mark.parametrize(("slower", "is_wrong"), [(1.0, False), (3.0, True)], ids=["as quick", "slower"])
def test_more_work_is_an_incident_of_a_watch_where_users_wait_longer(slower: float, is_wrong: bool) -> None:
    noise = np.random.default_rng(1)
    later = np.arange(300) >= 240
    times = np.arange(NOW - 299, NOW + 1, dtype=np.int64) * S
    levels = {
        "db_tps": np.where(later, 250.0, 100.0),
        "db_active_sessions_count": np.where(later, 4.0, 0.5),
        "db_transaction_active_ms": np.where(later, 2.0 * slower, 2.0),
    }
    database = [Entity.parse("database:orders")]
    groups = [
        SeriesGroup(metric, database, times, (values * noise.normal(1.0, 0.05, 300))[None, :], 1.0)
        for metric, values in levels.items()
    ]
    capture = Capture(groups, [SourceInfo("x", "x", "x")])
    diagnosed = diagnose(capture)
    assert diagnosed.answer.cause is not None
    assert bool(suspicions_of(diagnosed, capture, NOW * S)) is is_wrong


@pytest.mark.parametrize(
    ("slower", "blocked", "is_wrong"),
    [(1.6, 0.0, False), (1.6, 5.0, True), (2.4, 0.0, True)],
    ids=["half as slow again", "and sessions wait for a lock", "twice as slow"],
)
def test_nobody_is_called_for_a_little_that_nothing_explains(slower: float, blocked: float, is_wrong: bool) -> None:
    noise = np.random.default_rng(1)
    later = np.arange(300) >= 220
    times = np.arange(NOW - 299, NOW + 1, dtype=np.int64) * S
    database = [Entity.parse("guest:db01/database:orders")]
    levels = {
        "db_tps": np.full(300, 250.0),
        "db_transaction_active_ms": np.where(later, 5.0 * slower, 5.0) * noise.normal(1.0, 0.1, 300),
        "db_blocked_sessions_count": np.where(later, blocked, 0.0),
    }
    groups = [SeriesGroup(metric, database, times, values[None, :], 1.0) for metric, values in levels.items()]
    capture = Capture(groups, [SourceInfo("x", "x", "x")])
    assert diagnose(capture).incidents, "a diagnosis speaks of it"
    assert bool(suspicions_of(diagnose(capture), capture, NOW * S)) is is_wrong


def test_what_explains_nothing_does_not_name_an_incident() -> None:
    times = np.arange(NOW - 299, NOW + 1, dtype=np.int64) * S
    slower = np.where(np.arange(300) >= 240, 40.0, 4.0) * np.random.default_rng(1).normal(1.0, 0.05, 300)
    group = SeriesGroup("db_latency_ms", [Entity.parse("database:orders")], times, slower[None, :], 1.0)
    capture = Capture([group], [SourceInfo("x", "x", "x")])
    diagnosed = diagnose(capture)
    finding = replace(BUSY, rule="guest-time-not-synced")
    setting = Cause("", GUEST, (finding,), 1.0, None, Certainty.IS)
    answer = replace(diagnosed.answer, causes=(setting,), explains=False)
    (suspicion,) = suspicions_of(replace(diagnosed, answers=(answer,)), capture, NOW * S)
    assert suspicion.cause == answer.because.value
    (named,) = suspicions_of(replace(diagnosed, answers=(replace(answer, explains=True),)), capture, NOW * S)
    assert named.cause == "guest-time-not-synced"


def test_a_guest_its_database_and_its_vm_are_one_place() -> None:
    inventory = estate()
    database = places_of(inventory, Entity.parse("guest:db1/database:orders"), Layer.DATABASE)
    vm = places_of(inventory, Entity.parse("host:esx1/vm:db1/vcpu:0"), Layer.HYPERVISOR_CPU)
    assert not database.isdisjoint(vm)


def test_neighbours_on_a_host_are_one_place_for_what_is_wrong_in_the_same_layer() -> None:
    inventory = estate()
    first = places_of(inventory, Entity.parse("host:esx1/vm:db1"), Layer.HYPERVISOR_CPU)
    second = places_of(inventory, Entity.parse("host:esx1/vm:db2"), Layer.HYPERVISOR_CPU)
    storage = places_of(inventory, Entity.parse("host:esx1/vm:db2/virtual-disk:scsi0:0"), Layer.STORAGE_PATH)
    assert not first.isdisjoint(second)
    assert first.isdisjoint(storage)


def test_disks_on_one_datastore_are_one_place() -> None:
    inventory = estate()
    first = places_of(inventory, Entity.parse("host:esx1/vm:db1/virtual-disk:scsi0:0"), Layer.STORAGE_PATH)
    assert any("gold" in place for place in first)


def test_a_window_that_has_only_begun_shows_no_limit_that_nobody_felt() -> None:
    times = np.array([NOW - 20, NOW], dtype=np.int64) * S
    begun = Capture([SeriesGroup("guest_load_1m", [GUEST], times, np.ones((1, 2)), 1.0)], [SourceInfo("x", "x", "x")])
    assert rules(diagnosis(replace(BUSY, severity=Severity.HIGH)), begun) == []
