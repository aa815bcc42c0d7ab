"""What a disk is for, what lies behind it, and when its latency counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml

from leadline.app.diagnose.diagnosing import diagnose, rule_modules
from leadline.app.read.resolve import resolve
from leadline.core.contracts.rule import RuleContext
from leadline.core.model.capture import Capture, CaptureBuilder, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.derived.disks import Busy, Use, behind, io_rate, means_over, read_write_mean, uses
from leadline.estate.derived.latencies import block_awaits
from leadline.formats.inventory_file import parse_inventory
from tests.estate.oracle_episodes import majority

NS = 1_000_000_000
NAN = float("nan")
SDB = Entity.parse("guest:db01/block-device:sdb")
LUN = Entity.parse("host:esx01/device:naa.1")


def context_of(series: dict[tuple[Entity, str], list[float]], inventory: str = "") -> RuleContext:
    builder = CaptureBuilder("test", "test", "test")
    for (entity, metric), values in series.items():
        times = np.arange(1, len(values) + 1, dtype=np.int64) * 5 * NS
        builder.add_series(metric, entity, times, np.array(values), interval_s=5.0)
    builder.inventory.merge(parse_inventory(inventory, "test"))
    module = rule_modules()["disk-davg-generic"]
    return RuleContext("disk-davg-generic", module.META, module.__doc__ or "", builder.build())


def only_group(context: RuleContext, metric: str) -> SeriesGroup:
    (group,) = context.of(metric)
    return group


LAYERED = """
hosts:
  - name: esx01
    vms:
      - name: db01
        disks:
          - {name: "scsi0:1", device: naa.1, datastore: ds1}
          - {name: "scsi0:2", device: naa.1, role: temp}
guests:
  - name: db01
    devices:
      - {name: sdb, role: data, medium: flash, virtual_disk: "scsi0:1"}
"""


def test_a_role_holds_for_what_lies_below() -> None:
    context = context_of({(LUN, "disk_device_latency_ms"): [1.0]}, LAYERED)
    known = uses(context)
    assert known[Entity.parse("host:esx01/vm:db01/virtual-disk:scsi0:1")] == Use(Role.DATA, False, "flash")
    assert known[LUN] == Use(Role.DATA, False, "flash")  # data needs more than temp
    assert behind(context.inventory, SDB) == [LUN, Entity.parse("host:esx01/datastore:ds1")]


def test_a_given_role_wins_over_a_more_demanding_guess() -> None:
    context = context_of({(LUN, "disk_device_latency_ms"): [1.0]}, LAYERED)
    context.inventory.add(LUN, "name", guessed=True, role="wal")
    assert uses(context)[LUN] == Use(Role.DATA, False, "flash")


def test_a_disk_of_unknown_use_is_left_out() -> None:
    context = context_of({(LUN, "disk_device_latency_ms"): [1.0]})
    assert uses(context) == {}
    assert behind(context.inventory, SDB) == []


def test_guessed_roles_are_said_in_the_finding() -> None:
    lun = Entity.parse("host:esx01/device:pg-wal-lun")
    context = context_of({(lun, "disk_device_latency_ms"): [8.0] * 12, (lun, "disk_iops"): [300.0] * 12})
    found = diagnose(resolve(context.capture), rules=["disk-davg-wal", "disk-davg-generic"]).findings
    assert [(f.rule, f.guessed) for f in found] == [("disk-davg-wal", ("esx01 pg-wal-lun holds wal",))]


def test_a_guessed_log_disk_does_not_speak_for_the_database() -> None:
    disk = Entity.parse("guest:db01/block-device:pgwal")
    context = context_of({(disk, "guest_disk_await_ms"): [8.0] * 12, (disk, "disk_writes_per_s"): [90.0] * 12})
    capture = resolve(context.capture)
    found = diagnose(capture, rules=["db-log-write-latency", "guest-disk-await-high"]).findings
    assert [(f.rule, f.guessed) for f in found] == [("guest-disk-await-high", ("db01 pgwal holds wal",))]


@pytest.mark.parametrize(
    ("rate", "latency", "counts"),
    [
        (50.0, 3.0, True),  # exactly the least load
        (49.0, 3.0, False),
        (10.0, 100.0, True),  # exactly one command under way at any time
        (10.0, 99.0, False),
        (NAN, 99.0, False),  # this sample's load was not measured, that of others was
    ],
)
def test_an_average_counts_from_the_least_load_on(rate: float, latency: float, counts: bool) -> None:
    context = context_of({(LUN, "disk_device_latency_ms"): [latency, 1.0], (LUN, "disk_iops"): [rate, 60.0]})
    values = Busy()(context, only_group(context, "disk_device_latency_ms"))
    assert bool(np.isfinite(values[0, 0])) is counts


def test_without_any_rate_every_latency_counts() -> None:
    context = context_of({(LUN, "disk_device_latency_ms"): [3.0, NAN]})
    values = Busy()(context, only_group(context, "disk_device_latency_ms"))
    np.testing.assert_array_equal(values, [[3.0, NAN]])


def test_a_disk_without_a_rate_counts_beside_one_with() -> None:
    other = replace(LUN, name="naa.2")
    series = {(disk, "disk_device_latency_ms"): [3.0] for disk in (LUN, other)}
    context = context_of({**series, (LUN, "disk_iops"): [1.0]})
    values = Busy()(context, only_group(context, "disk_device_latency_ms"))
    np.testing.assert_array_equal(values, [[NAN], [3.0]])


def test_time_above_the_device_is_the_virtual_disks_and_the_guests() -> None:
    virtual = Entity.parse("host:esx01/vm:db01/virtual-disk:scsi0:1")
    series = {
        (LUN, "disk_device_latency_ms"): 1.0,
        (LUN, "disk_kernel_latency_ms"): 0.5,
        (LUN, "disk_iops"): 300.0,
        (virtual, "virtual_disk_latency_ms_read"): 21.5,
        (SDB, "guest_disk_await_ms"): 25.0,
        (SDB, "disk_iops"): 300.0,
    }
    context = context_of({key: [value] * 12 for key, value in series.items()}, LAYERED)
    (found,) = diagnose(context.capture, rules=["disk-latency-layer-attribution"]).findings
    assert [round(e.value or 0.0, 2) for e in found.evidence] == [20.0, 3.5, 1.0, 0.5]
    assert "20 ms (80 %) in front of the virtual disk" in found.summary


def test_rate_is_the_first_that_was_measured() -> None:
    series = {
        (SDB, "guest_disk_await_ms"): [1.0, 1.0, 1.0],
        (SDB, "disk_iops"): [90.0, NAN, NAN],
        (SDB, "disk_reads_per_s"): [1.0, 30.0, NAN],
        (SDB, "disk_writes_per_s"): [2.0, NAN, NAN],
    }
    context = context_of(series)
    rate = io_rate(context, only_group(context, "guest_disk_await_ms"))
    np.testing.assert_array_equal(rate, [[90.0, 30.0, NAN]])


def test_mean_of_reads_and_writes_is_weighted_by_their_rates() -> None:
    series = {
        (SDB, "guest_disk_await_ms_read"): [1.0, 1.0, 0.0, NAN],
        (SDB, "guest_disk_await_ms_write"): [11.0, NAN, 0.0, NAN],
        (SDB, "disk_reads_per_s"): [90.0, 90.0, 0.0, 10.0],
        (SDB, "disk_writes_per_s"): [10.0, 10.0, 0.0, 10.0],
    }
    context = context_of(series)
    mean = read_write_mean(context, only_group(context, "guest_disk_await_ms_read"), "guest_disk_await_ms_write")
    np.testing.assert_allclose(mean, [[2.0, 1.0, 0.0, NAN]])


def test_partitions_are_left_out_only_beside_their_disk() -> None:
    part, lonely = replace(SDB, name="sdb1"), replace(SDB, name="nvme0n1p2")
    context = context_of({(disk, "guest_disk_await_ms"): [1.0] for disk in (SDB, part, lonely)})
    (group,) = block_awaits(context)
    assert list(group.entities) == [SDB, lonely]


def test_means_over_windows_are_weighted_by_time() -> None:
    context = context_of({(LUN, "disk_device_latency_ms"): [1.0, 1.0, 4.0, NAN]})
    groups = context.of("disk_device_latency_ms", EntityKind.DEVICE)
    windows = [Window(0, 10 * NS), Window(10 * NS, 15 * NS)]
    assert means_over(groups, windows) == {LUN: pytest.approx(2.0)}
    assert means_over(groups, [Window(15 * NS, 20 * NS)]) == {}
    assert means_over(groups, windows, SDB) == {}


def test_majority_needs_more_than_half_of_what_was_measured() -> None:
    context = context_of({(LUN, "disk_device_latency_ms"): [9.0, 0.0, 9.0, 9.0, NAN, 9.0, 0.0, 0.0]})
    group = only_group(context, "disk_device_latency_ms")
    with np.errstate(invalid="ignore"):
        met = group.values > 5.0
    expected = [[False, True, True, True, True, False, False, False]]
    np.testing.assert_array_equal(majority(group, met, group.values, 15.0), expected)
    np.testing.assert_array_equal(majority(group, met, group.values, 9.0), met)  # windows of one sample


def test_no_device_is_judged_by_two_rules() -> None:
    """Whatever the role, exactly one of the three rules looks at a device."""
    names = ("disk-davg-wal", "disk-davg-data", "disk-davg-generic")
    for role in (None, *Role):
        fact = {} if role is None else {"role": role.value}
        disk = {"name": "scsi0:1", "device": "naa.1", **fact}
        text = yaml.safe_dump({"hosts": [{"name": "esx01", "vms": [{"name": "db01", "disks": [disk]}]}]})
        context = context_of({(LUN, "disk_device_latency_ms"): [80.0] * 12, (LUN, "disk_iops"): [300.0] * 12}, text)
        found = diagnose(context.capture, rules=names).findings
        assert len(found) == 1, role


def test_a_disk_that_two_tools_recorded_is_told_of_once() -> None:
    """One second of one tool, twenty of the other: the finer recording has the clearer plateau."""
    captures = []
    for name, interval_s, held in (("iostat", 1, 60.0), ("sar", 20, 59.2)):
        count = 180 // interval_s
        times = np.arange(1, count + 1, dtype=np.int64) * interval_s * NS
        limited = (times > 60 * NS) & (times <= 180 * NS)
        builder = CaptureBuilder(name, name, name)
        builder.add_series("guest_disk_await_ms", SDB, times, np.where(limited, 17.0, 0.2), interval_s=interval_s)
        builder.add_series("disk_writes_per_s", SDB, times, np.where(limited, held, 300.0), interval_s=interval_s)
        captures.append(builder.build())
    for order in (captures, captures[::-1]):
        (found,) = diagnose(Capture.merged(order), rules=["vm-iops-limit-hit"]).findings
        assert (found.severity.label, found.evidence[0].value) == ("medium", 60.0)


def test_a_capture_without_series_gives_nothing() -> None:
    assert diagnose(Capture(), rules=["vm-iops-limit-hit", "disk-davg-generic"]).findings == ()
