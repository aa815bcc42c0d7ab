"""A live window holds the last samples, each once, and its tables are those of a capture that is read anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.watch.window import LiveSeries, LiveWindow
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.derived import Recorded, Upkeep, derived
from leadline.core.model.entities import Entity, EntityColumn, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.series import places_by_entity

S = 1_000_000_000
VMS = [Entity(EntityKind.VM, f"vm{i}") for i in range(3)]
READY, USED = "cpu_ready_pct", "cpu_used_pct"


def window_of(span_s: float = 60.0, metrics: tuple[str, ...] = (READY,)) -> tuple[LiveWindow, list[LiveSeries]]:
    window = LiveWindow(span_s, [SourceInfo("vcenter", "vcenter", "vCenter")])
    column = window.entities(VMS)
    return window, [window.series(metric, column, 20.0) for metric in metrics]


def values_of(capture: Capture, metric: str = READY) -> list[list[float]]:
    (group,) = capture.of(metric)
    return [[float(value) for value in row] for row in group.values]


def test_a_window_holds_the_samples_of_its_span() -> None:
    window, (ready,) = window_of()
    for number in range(1, 12):
        capture = window.step(number * 20 * S, [(ready, np.array([number, 2.0, np.nan]))])
    (group,) = capture.of(READY)
    assert group.times_ns.tolist() == [9 * 20 * S, 10 * 20 * S, 11 * 20 * S]
    assert values_of(capture)[0] == [9.0, 10.0, 11.0]
    assert np.isnan(group.values[2]).all()


def test_a_sample_that_is_sent_twice_is_kept_once() -> None:
    window, (ready,) = window_of()
    window.step(20 * S, [(ready, np.array([1.0, 1.0, 1.0]))])
    capture = window.step(20 * S, [(ready, np.array([9.0, 9.0, 9.0]))])
    assert values_of(capture)[0] == [1.0]
    assert window.changed == frozenset()


def test_series_that_got_no_samples_leave_the_window() -> None:
    window, (ready, used) = window_of(metrics=(READY, USED))
    window.step(20 * S, [(ready, np.ones(3)), (used, np.ones(3))])
    for number in range(2, 6):
        capture = window.step(number * 20 * S, [(ready, np.ones(3))])
    assert capture.of(USED) == []
    assert window.changed == {READY}


def test_series_that_are_dropped_are_gone() -> None:
    window, (ready, used) = window_of(metrics=(READY, USED))
    window.step(20 * S, [(ready, np.ones(3)), (used, np.ones(3))])
    window.drop(used)
    assert window.step(40 * S, [(ready, np.ones(3))]).metrics() == [READY]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=40), st.integers(20, 200))
def test_a_window_is_the_end_of_the_whole_recording(steps: list[int], span_s: int) -> None:
    window, (ready,) = window_of(float(span_s))
    times = np.cumsum(steps) * 20 * S
    whole = np.arange(3 * len(steps), dtype=np.float64).reshape(3, -1)
    for time_ns, column in zip(times.tolist(), whole.T, strict=True):
        capture = window.step(time_ns, [(ready, column)])
    inside = times > times[-1] - span_s * S
    (group,) = capture.of(READY)
    assert group.times_ns.tolist() == times[inside].tolist()
    assert values_of(capture) == whole[:, inside].tolist()


@derived()
def _counts(reader: Recorded, metric: str) -> int:
    return sum(group.values.shape[1] for group in reader.of(metric))


@derived(upkeep=Upkeep.WHOLE)
def _names(reader: Recorded) -> list[str]:
    return [entity.name for entity in reader.inventory.of_kind(EntityKind.VM)]


def _plus(total: object, reader: Recorded) -> float:
    assert isinstance(total, float)
    return total + sum(float(group.values.sum()) for group in reader.of(READY))


@derived(READY, append=_plus, upkeep=Upkeep.APPEND)
def _total(reader: Recorded) -> float:
    return sum(float(group.values.sum()) for group in reader.of(READY))


def test_tables_are_kept_brought_up_to_date_or_made_anew() -> None:
    window, (ready, used) = window_of(metrics=(READY, USED))
    window.inventory.add(VMS[0], "test")
    first = window.step(20 * S, [(ready, np.ones(3)), (used, np.ones(3))])
    names, total = first.table(_names), first.table(_total)
    assert (first.table(_counts, READY), first.table(_counts, USED), total) == (1, 1, 3.0)
    second = window.step(40 * S, [(ready, np.array([2.0, 2.0, 2.0]))])
    assert second.table(_names) is names
    assert second.table(_counts, READY) == 2
    assert second.table(_total) == 9.0
    window.inventory.add(VMS[1], "test")
    third = window.step(60 * S, [(ready, np.ones(3))])
    assert third.table(_names) == ["vm0", "vm1"]


def test_a_definition_reads_what_it_declares() -> None:
    @derived(USED)
    def wrong(reader: Recorded) -> int:
        return len(reader.of(READY))

    with pytest.raises(LookupError, match="wrong reads cpu_ready_pct and does not declare it"):
        Capture().table(wrong)


def test_tables_that_hold_arrays_leave_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    @derived()
    def large(reader: Recorded, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.zeros(1000)

    monkeypatch.setattr("leadline.core.model.derived.KEPT_BYTES_MAX", 20_000)
    capture = Capture()
    first = capture.table(large, "first")
    assert capture.table(large, "first") is first
    for name in ("second", "third"):
        capture.table(large, name)
    assert capture.table(large, "first") is not first


def test_places_of_a_window_are_those_of_the_step() -> None:
    window, (ready,) = window_of()
    for number in range(1, 4):
        capture = window.step(number * 20 * S, [(ready, np.array([number, 2.0, 3.0]))])
        (place,) = capture.table(places_by_entity, READY)[VMS[0]]
        assert place.alone().values[0][-1] == number


def test_columns_answer_what_lists_do() -> None:
    window, _ = window_of()
    mixed = [*VMS, Entity(EntityKind.HOST, "esx01")]
    column = window.entities(mixed)
    group = SeriesGroup(READY, column, np.array([20 * S]), np.arange(4.0)[:, None], 20.0)
    plain = SeriesGroup(READY, mixed, np.array([20 * S]), np.arange(4.0)[:, None], 20.0)
    for kind in (EntityKind.VM, EntityKind.HOST, EntityKind.DEVICE):
        ours, theirs = (Capture([one]).of(READY, kind) for one in (group, plain))
        assert [list(g.entities) for g in ours] == [list(g.entities) for g in theirs]
        assert [g.values.tolist() for g in ours] == [g.values.tolist() for g in theirs]
    assert group.row(VMS[1]) == plain.row(VMS[1])


def taken(times_s: list[int], entities: dict[str, list[float]], metric: str = READY, name: str = "a.txt") -> Capture:
    times = np.array(times_s, dtype=np.int64) * 1_000_000_000
    group = SeriesGroup(metric, [Entity.parse(one) for one in entities], times, np.array(list(entities.values())), 1.0)
    return Capture([group], [SourceInfo(name, "psi", "Linux")])


def row(capture: Capture, entity: str, metric: str = READY) -> dict[int, float]:
    (group,) = [one for one in capture.of(metric) if one.row(Entity.parse(entity)) is not None]
    values = group.row(Entity.parse(entity))
    assert values is not None
    seconds = (group.times_ns // 1_000_000_000).tolist()
    return {second: float(value) for second, value in zip(seconds, values, strict=True) if not np.isnan(value)}


def test_captures_are_taken_once_and_new_series_get_rows() -> None:
    window = LiveWindow(60.0, [])
    window.take(taken([1, 2], {"vm:a": [1.0, 2.0]}))
    window.take(taken([2, 3], {"vm:b": [7.0, 8.0], "vm:a": [9.0, 3.0]}))
    assert row(window.capture, "vm:a") == {1: 1.0, 2: 2.0, 3: 3.0}
    assert row(window.capture, "vm:b") == {2: 7.0, 3: 8.0}
    assert [info.name for info in window.capture.sources] == ["a.txt"]
    assert window.capture.sources[0].end_ns == 3_000_000_000


def test_a_column_that_is_another_one_than_that_of_the_window_is_put_to_its_rows() -> None:
    window = LiveWindow(60.0, [])
    window.take(taken([1], {"vm:a": [1.0], "vm:b": [2.0]}))
    moved = EntityColumn([Entity.parse("vm:c"), Entity.parse("vm:a")])
    for second in (2, 3):
        part = taken([second], {"vm:c": [30.0 + second], "vm:a": [10.0 + second]})
        window.take(Capture([group.relabelled(entities=moved) for group in part.groups], part.sources))
    window.take(taken([4], {"vm:d": [4.0]}))
    part = taken([5], {"vm:c": [35.0], "vm:a": [15.0]})
    window.take(Capture([group.relabelled(entities=moved) for group in part.groups], part.sources))
    assert row(window.capture, "vm:a") == {1: 1.0, 2: 12.0, 3: 13.0, 5: 15.0}
    assert row(window.capture, "vm:c") == {2: 32.0, 3: 33.0, 5: 35.0}
    assert row(window.capture, "vm:b") == {1: 2.0}


def settings(host: str, **facts: Any) -> Capture:
    """What a vCenter says of a VM that runs on a host."""
    inventory = Inventory()
    inventory.add(Entity.parse(f"host:{host}/vm:a"), "vc", vcpu_count=4, **facts)
    inventory.links[Entity.parse("guest:a")] = Entity.parse(f"host:{host}/vm:a")
    return Capture([], [], inventory)


def test_a_vm_that_moved_is_on_one_host() -> None:
    window, here, there = LiveWindow(60.0, []), Entity.parse("host:x/vm:a"), Entity.parse("host:y/vm:a")
    window.take(settings("x"))
    moved = settings("y")
    moved.inventory.gone = {here: "vc"}
    window.take(moved)
    assert list(window.capture.inventory.facts) == [there]
    assert window.capture.inventory.links == {Entity.parse("guest:a"): there}
    version = window.inventory.version
    window.take(moved)
    assert window.inventory.version == version


def test_a_limit_that_was_taken_away_is_no_more_and_what_others_know_stays() -> None:
    window, vm = LiveWindow(60.0, []), Entity.parse("host:x/vm:a")
    event = {"time": "2026-09-21T00:00:00", "kind": "vmotion", "text": "moved"}
    window.take(settings("x", cpu_limit_mhz=2000, events=[event]))
    other = Inventory()
    other.add(vm, "esxtop.csv", world_id=7)
    window.take(Capture([], [], other))
    anew = settings("x")
    anew.inventory.gone = {vm: "vc"}
    window.take(anew)
    known = {name: fact.value for name, fact in window.capture.inventory.facts[vm].items()}
    assert known == {"vcpu_count": 4, "events": [event], "world_id": 7}


def test_what_is_late_is_put_where_it_belongs() -> None:
    window = LiveWindow(10.0, [])
    for second in range(1, 20):
        window.take(taken([second], {"vm:a": [float(second)], "vm:b": [float(second) if second != 15 else np.nan]}))
    window.take(taken([15, 20], {"vm:b": [150.0, 20.0]}))
    assert row(window.capture, "vm:b")[15] == 150.0
    assert row(window.capture, "vm:a") == {second: float(second) for second in range(11, 20)}
    window.take(taken([2], {"vm:a": [5.0]}))  # it has left the window
    assert min(row(window.capture, "vm:a")) == 11


def test_a_moment_that_was_left_out_is_put_between() -> None:
    window = LiveWindow(5.0, [])
    for second in (*range(1, 20), 21, 22):
        window.take(taken([second], {"vm:a": [float(second)]}))
    window.take(taken([20], {"vm:a": [20.0]}))
    assert row(window.capture, "vm:a") == {second: float(second) for second in range(18, 23)}


def test_series_that_are_sampled_a_little_apart_stay_apart() -> None:
    window = LiveWindow(60.0, [])
    for second in range(1, 10):
        for shift, vm in enumerate("abc"):
            part = taken([second], {f"vm:{vm}": [float(second)]})
            window.take(part.shifted(shift / 1000.0))
    assert sorted(len(group.times_ns) for group in window.capture.of(READY)) == [9, 9, 9]
    window.take(taken([10], {"vm:a": [10.0], "vm:new": [1.0]}))
    assert len(window.capture.of(READY)) == 3


def test_what_has_left_the_window_is_forgotten() -> None:
    window = LiveWindow(10.0, [])
    for second in range(1, 100):
        window.take(taken([second], {f"vm:{second}": [1.0], "vm:a": [2.0]}))
    window.forget_gone()
    (group,) = window.take(taken([100], {"vm:b": [3.0], "vm:a": [2.0]})).of(READY)
    assert len(group.entities) <= 13
    assert row(window.capture, "vm:a") == dict.fromkeys(range(91, 101), 2.0)
    assert row(window.capture, "vm:b") == {100: 3.0}
    for second in range(200, 220):
        window.take(taken([second], {"vm:a": [1.0]}, name="another.txt"))
    window.forget_gone()
    assert len(window.take(taken([221], {"vm:a": [1.0]}, name="another.txt")).of(READY)) == 1


def test_what_was_ahead_of_a_clock_that_is_put_back_is_forgotten() -> None:
    window = LiveWindow(60.0, [])
    for second in (1, 2, 3600, 3601):
        window.take(taken([second], {"vm:a": [float(second)]}))
    window.drop_newer(10 * S)
    window.take(taken([11, 12], {"vm:a": [11.0, 12.0]}))
    assert row(window.capture, "vm:a") == {11: 11.0, 12: 12.0}


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.floats(0, 9, width=32)), max_size=60))
def test_a_window_of_captures_is_what_was_given_first(samples: list[tuple[int, int, float]]) -> None:
    window = LiveWindow(1000.0, [])
    first: dict[tuple[int, int], float] = {}
    for second, vm, value in samples:
        first.setdefault((second, vm), value)
        window.take(taken([second + 1], {f"vm:{vm}": [value]}))
    known: dict[tuple[int, int], float] = {}
    for vm in range(4):
        if any(group.row(Entity.parse(f"vm:{vm}")) is not None for group in window.capture.of(READY)):
            known |= {(second - 1, vm): value for second, value in row(window.capture, f"vm:{vm}").items()}
    assert known == first
