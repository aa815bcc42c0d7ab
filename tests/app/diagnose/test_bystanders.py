"""A slow disk that the database does not use is no cause, where it is known what the database lies on."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.app.diagnose.bystanders import are_apart, uninvolved_disks
from leadline.app.diagnose.causes import joined
from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding, Lowered, LoweredBecause, Window
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

GUEST = Entity(EntityKind.GUEST, "db01")
DATA, OTHER = (Entity(EntityKind.BLOCK_DEVICE, name, GUEST) for name in ("sdb", "sdc"))
TIMES = 1_000_000_000 * np.arange(1, 91, dtype=np.int64)


def capture(
    *, named: str | None = "sdb", log: str | None = "sda", swapped_kib_per_s: float = 0.0, slow: Entity = OTHER
) -> Capture:
    """Ninety seconds of two disks, of which one needs 80 ms per request."""
    builder = CaptureBuilder("iostat.txt", "iostat", "sysstat")
    for disk in (DATA, OTHER):
        level = 80.0 if disk == slow else 0.8
        builder.add_series("guest_disk_await_ms", disk, TIMES, np.full(90, level))
        builder.add_series("disk_reads_per_s", disk, TIMES, 200.0 + 20.0 * np.sin(np.arange(90)))
        builder.add_series("disk_writes_per_s", disk, TIMES, 50.0 + 9.0 * np.cos(np.arange(90)))
    builder.add_series("guest_swap_in_kib_per_s", GUEST, TIMES, np.full(90, swapped_kib_per_s))
    made = builder.build()
    for name, role in () if named is None else ((named, "data"), (log or named, "wal")):
        made.inventory.add(Entity(EntityKind.BLOCK_DEVICE, name, GUEST), "inventory.yaml", role=role)
    return made


def test_a_slow_disk_beside_the_database_s_is_not_accused() -> None:
    diagnosis = diagnose(capture())
    slow = next(finding for finding in diagnosis.findings if finding.entity == OTHER)
    assert slow.lowered is not None
    assert slow.lowered.because is LoweredBecause.BYSTANDER
    assert not diagnosis.answer.disk.accuses
    assert diagnosis.answer.causes == ()


def test_the_database_s_disk_is_accused_beside_a_quick_one() -> None:
    answer = diagnose(capture(slow=DATA)).answer
    assert answer.disk.accuses
    assert answer.cause is not None
    assert answer.cause.entity == DATA


def test_the_place_of_the_log_must_be_known_too() -> None:
    made = capture()
    del made.inventory.facts[Entity(EntityKind.BLOCK_DEVICE, "sda", GUEST)]
    assert uninvolved_disks(made) == frozenset()
    assert diagnose(made).answer.disk.accuses


@pytest.mark.parametrize(
    ("named", "swapped"), [(None, 0.0), ("dm-0", 0.0), ("vg0-data", 0.0), ("loop0", 0.0), ("sdb", 900.0)]
)
def test_any_disk_may_be_the_cause_where_it_is_not_known_what_is_used(named: str | None, swapped: float) -> None:
    made = capture(named=named, swapped_kib_per_s=swapped)
    assert uninvolved_disks(made) == frozenset()
    assert diagnose(made).answer.disk.accuses


@pytest.mark.parametrize(("follows", "is_beside"), [(DATA, True), (OTHER, False), (None, False)])
def test_while_the_guest_swaps_a_disk_that_follows_it_is_the_one_swapped_to(
    follows: Entity | None, is_beside: bool
) -> None:
    moved = np.abs(np.sin(np.arange(90))) * 8.0
    builder = CaptureBuilder("iostat.txt", "iostat", "sysstat")
    for disk in (DATA, OTHER):
        steady = 14.0 + 0.1 * (np.arange(90) % 7)
        builder.add_series("disk_read_mib_per_s", disk, TIMES, moved if disk == follows else steady)
    builder.add_series("guest_swap_in_kib_per_s", GUEST, TIMES, 1024.0 * moved)
    swapping = builder.build()
    for name, role in (("sdb", "data"), ("sda", "wal")):
        swapping.inventory.add(Entity(EntityKind.BLOCK_DEVICE, name, GUEST), "inventory.yaml", role=role)
    assert (OTHER in uninvolved_disks(swapping)) is is_beside


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("sda", "sdb", True),
        ("sda1", "sda2", False),
        ("loop0", "loop3", True),
        ("dm-0", "sda", False),
        ("md0", "nvme0n1", False),
        ("loop0", "sda", False),
    ],
)
def test_disks_are_apart_where_none_may_lie_on_the_other(one: str, other: str, apart: bool) -> None:
    disks = [Entity(EntityKind.BLOCK_DEVICE, name, GUEST) for name in (one, other)]
    assert are_apart(*disks) is apart


def finding(rule: str, entity: Entity, *, is_beside: bool = False) -> Finding:
    windows = (Window(0, 60_000_000_000),)
    lowered = Lowered(LoweredBecause.BYSTANDER) if is_beside else None
    severity = Severity.LOW if is_beside else Severity.MEDIUM
    return Finding(rule, "X", Layer.GUEST, entity, severity, "", (), "", windows, lowered=lowered)


def test_a_disk_that_nobody_uses_explains_what_the_machine_waits_for_and_no_other_disk() -> None:
    beside = finding("guest-disk-taken", OTHER, is_beside=True)
    limit, waits = finding("vm-iops-limit-hit", DATA), finding("guest-iowait-high", GUEST)
    marked = {one.rule: one.caused_by for one in joined([beside, limit, waits], capture())}
    assert marked == {"guest-disk-taken": None, "vm-iops-limit-hit": None, "guest-iowait-high": "vm-iops-limit-hit"}
    alone = {one.rule: one.caused_by for one in joined([beside, waits], capture())}
    assert alone == {"guest-disk-taken": None, "guest-iowait-high": "guest-disk-taken"}
