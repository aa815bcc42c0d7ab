"""The load that was there beside the load that was asked for: what is broken, what is too slow, what cannot be seen."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from leadline.core.contracts.honoured import (
    DatabaseLoad,
    Load,
    LoadCheck,
    LoadState,
    StreamLoad,
    compare,
    notes_of,
    require_honoured,
)
from leadline.core.contracts.honoured_bursts import OverTime, phases
from leadline.core.model.errors import ToolError
from leadline.core.model.workload import Workload, parse_workload

SECONDS = 10.0


def workload(stream: str, settings: str = "{}") -> Workload:
    return parse_workload(f"name: t\nio_settings: {settings}\nio: [{stream}]\n", "t.yaml")


def load(**changes: Any) -> StreamLoad:
    """A hundred reads of 8 KiB a second, one at a time, each 10 ms."""
    plain = StreamLoad("io", SECONDS, reads=1000.0, read_bytes=1000.0 * 8192, jobs=1.0, busy_s=10.0, depth=(1.0, 1.0))
    return replace(plain, **changes)


def states(stream: str, own: Load, settings: str = "{}", cpu: float = math.nan) -> dict[str, LoadState]:
    return {check.key: check.state for check in compare(workload(stream, settings), [own], SECONDS, cpu)}


def broken(stream: str, own: Load, settings: str = "{}") -> list[str]:
    return sorted({key for key, state in states(stream, own, settings).items() if state is LoadState.BROKEN})


def pulsed(on_s: float, off_s: float, step_s: float = 0.1, first_s: float | None = None) -> OverTime:
    """Ten operations in every step with load; ``first_s``: the length of the first burst."""
    ends: list[float] = []
    now, is_on = 0.0, True
    while now < SECONDS - 1e-9:
        length = (first_s if first_s is not None and not ends else on_s) if is_on else off_s
        count = round(min(length, SECONDS - now) / step_s)
        ends += [now + step_s * (n + 1) for n in range(count)] if is_on else []
        now, is_on = now + length, not is_on
    return OverTime(step_s, tuple(ends), (10.0,) * len(ends))


def test_a_load_as_asked_has_nothing_to_say() -> None:
    checks = compare(workload("{block: 8k}"), [load()], SECONDS)
    assert {check.state for check in checks} == {LoadState.HONOURED}
    assert {"measure_s", "block", "read_pct", "jobs", "oio"} == {check.key for check in checks}
    assert notes_of(checks) == ()
    require_honoured(workload("{}"), checks)


@pytest.mark.parametrize(
    ("stream", "changes", "keys"),
    [
        ("{block: 16k}", {}, ["block"]),
        ("{block: {4k: 50, 64k: 50}}", {}, ["block"]),
        ("{block: {4k: 50, 12k: 50}}", {}, []),  # as large on average: told apart by nothing
        ("{read_pct: 70}", {}, ["read_pct"]),
        ("{read_pct: 100}", {"writes": 1.0, "write_bytes": 8192.0}, ["read_pct"]),
        ("{read_pct: 50}", {"writes": 1010.0, "write_bytes": 1010.0 * 8192}, []),
        ("{jobs: 4}", {}, ["jobs", "oio"]),
        ("{oio: 16}", {}, ["oio"]),
        ("{oio: 16}", {"depth": (15.9, 31.0), "busy_s": 160.0}, []),
        ("{oio: 16}", {"jobs": 16.0, "busy_s": 155.0}, []),  # one at a time: jobs stand for requests in flight
        ("{oio: 100}", {"depth": (64.0, math.inf), "busy_s": 1140.0}, ["oio"]),  # a ring that was rounded up
        ("{oio: 100}", {"depth": (64.0, math.inf), "busy_s": 999.0}, []),
        ("{random_pct: 100}", {"random_pct": 0.5}, ["random_pct"]),
        ("{random_pct: 30}", {"random_pct": 31.5}, []),
        ("{think_time_s: 40ms}", {}, ["think_time_s"]),
        ("{think_time_s: 40ms}", {"reads": 200.0, "read_bytes": 200.0 * 8192, "busy_s": 2.0}, []),
        ("{rate_iops: 100}", {"busy_s": 0.1}, []),
        ("{rate_iops: 50}", {"busy_s": 0.1}, ["rate_iops.read"]),
        ("{rate_iops: 200}", {"busy_s": 0.1}, ["rate_iops.read"]),
        ("{}", {"duration_s": 5.0, "busy_s": 5.0}, ["measure_s"]),
        ("{}", {"reads": 0.0}, ["stream"]),
    ],
)
def test_each_key_is_seen_in_what_was_counted(stream: str, changes: dict[str, Any], keys: list[str]) -> None:
    assert broken(stream, load(**changes)) == keys


def test_flushes_are_counted_against_writes() -> None:
    writes = load(reads=0.0, writes=900.0, write_bytes=900.0 * 8192, syncs=300.0)
    assert broken("{read_pct: 0, sync_every: 3}", writes) == []
    assert broken("{read_pct: 0, sync_every: 1}", writes) == ["sync_every"]
    assert broken("{read_pct: 0}", writes) == ["sync_every"]
    assert broken("{read_pct: 0, sync_every: 3}", replace(writes, syncs=0.0)) == ["sync_every"]


def test_a_device_that_is_too_slow_breaks_no_key() -> None:
    """Every request that may be in flight waits: the rate is the device's. With room left it is the tool's."""
    asked = "{rate_iops: 200, oio: 4}"
    slow = load(busy_s=39.0, depth=(3.9, 4.0))
    assert states(asked, slow)["rate_iops.read"] is LoadState.NOT_REACHED
    note = notes_of(compare(workload(asked), [slow], SECONDS))[0]
    assert note == (
        "load was not reached: io: rate_iops.read: asked 200/s, measured 100/s, because all 4 requests that may be in "
        "flight wait: one takes 39 ms"
    )
    idle = load(busy_s=1.0)
    assert states(asked, idle)["rate_iops.read"] is LoadState.BROKEN
    assert states(asked, replace(idle, cpu_pct=95.0))["rate_iops.read"] is LoadState.NOT_REACHED
    assert states(asked, idle, cpu=97.0)["rate_iops.read"] is LoadState.NOT_REACHED
    assert (
        states("{rate_iops: 50, oio: 4}", slow, cpu=97.0)["rate_iops.read"] is LoadState.BROKEN
    )  # too much is never slow


def test_bursts_are_seen_in_the_rate_over_time() -> None:
    asked = "{burst: {on_s: 1, off_s: 1.5}}"
    own = load(over_time=(pulsed(1.0, 1.5),))
    assert states(asked, own)["burst"] is LoadState.HONOURED
    found = compare(workload(asked), [load(over_time=(OverTime(0.1, *_steady()),))], SECONDS)[-1]
    assert found == LoadCheck("io", "burst", "1 s on, 1.5 s off", "no pause", LoadState.BROKEN)
    for other in (
        pulsed(1.0, 0.6),
        pulsed(2.0, 1.5),
        pulsed(0.3, 1.5),
        pulsed(1.0, 4.0),
        pulsed(1.0, 1.5, first_s=2.5),
    ):
        assert broken(asked, load(over_time=(other,))) == ["burst"], other
    one_steady = load(over_time=(pulsed(1.0, 1.5), OverTime(0.1, *_steady())))
    assert broken(asked, one_steady) == ["burst"]


def test_a_stream_that_stops_while_another_pauses_is_told() -> None:
    whole, stopped = OverTime(0.1, *_steady()), pulsed(1.0, 4.0)
    assert states("{}", load(over_time=(whole,)))["burst"] is LoadState.HONOURED
    found = next(c for c in compare(workload("{}"), [load(over_time=(stopped,))], SECONDS) if c.key == "burst")
    assert (found.state, found.asked) == (LoadState.BROKEN, "no pause")
    assert "without any" in found.measured
    slow = load(over_time=(stopped,), reads=50.0, read_bytes=50.0 * 8192)
    assert "burst" not in states("{}", slow)  # so few operations leave gaps


def test_a_device_that_stalls_breaks_no_burst() -> None:
    """Every second burst lacks most of its middle, and one pause begins early."""
    own = pulsed(1.0, 1.5)
    kept = [end for end in own.ends_s if not (2.65 < end < 3.45 or 5.6 < end < 6.05)]
    stalled = OverTime(0.1, tuple(kept), (10.0,) * len(kept))
    assert broken("{burst: {on_s: 1, off_s: 1.5}}", load(over_time=(stalled,))) == []


def _steady() -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(0.1 * n for n in range(1, 101)), (10.0,) * 100


@pytest.mark.parametrize(
    ("stream", "changes", "why"),
    [
        ("{burst: {on_s: 10, off_s: 70}}", {"over_time": (pulsed(1.0, 1.0),)}, "less than one cycle"),
        ("{burst: {on_s: 1, off_s: 1}}", {}, "no rate over time"),
        ("{burst: {on_s: 200ms, off_s: 1}}", {"over_time": (pulsed(1.0, 1.0),)}, "samples of 0.1 s"),
        ("{burst: {on_s: 1, off_s: 1}}", {"busy_s": 900.0, "over_time": (pulsed(1.0, 1.0),)}, "too slow for them"),
        ("{burst: {on_s: 1, off_s: 1}}", {"over_time": (OverTime(0.1, (1.0, 6.0), (5.0, 5.0)),)}, "too few requests"),
    ],
)
def test_bursts_that_cannot_be_seen_are_no_failure(stream: str, changes: dict[str, Any], why: str) -> None:
    found = next(c for c in compare(workload(stream), [load(**changes)], SECONDS) if c.key == "burst")
    assert found.state is LoadState.NOT_SEEN
    assert why in found.measured


def test_the_rate_of_bursts_is_the_rate_while_there_is_load() -> None:
    asked = "{burst: {on_s: 1, off_s: 1.5}, rate_iops: 100}"
    kept = load(reads=400.0, read_bytes=400.0 * 8192, busy_s=0.4, over_time=(pulsed(1.0, 1.5),))
    made_up = load(reads=1000.0, busy_s=1.0, over_time=(pulsed(1.0, 1.5),))
    assert broken(asked, kept) == []
    assert broken(asked, made_up) == ["rate_iops.read"]


def test_phases_know_what_the_round_cut() -> None:
    found = phases(pulsed(1.0, 1.5), 1.5, SECONDS)
    assert found.pause_s == pytest.approx(1.6, abs=0.11)
    assert found.bursts == pytest.approx((0.9, 0.9), abs=0.11)
    assert found.on_share == pytest.approx(0.4, abs=0.06)
    assert phases(OverTime(0.1, (), ()), 1.0, 5.0).on_share == 0.0


def test_the_error_has_four_parts_and_names_every_key() -> None:
    asked = workload("{name: work, burst: {on_s: 1, off_s: 1.5}, read_pct: 100, block: 4k}")
    steady = load(name="work", over_time=(OverTime(0.1, *_steady()),))
    with pytest.raises(ToolError) as caught:
        require_honoured(asked, compare(asked, [steady], SECONDS))
    assert str(caught.value) == (
        "workload t: work: block: measured 8,192 bytes (reads); expected 4,096 bytes on average, as the workload asks. "
        "Do not use its figures: another load ran. Look at the tool's version and its job file. "
        "Also not honoured: work burst."
    )


def test_a_verified_write_is_read_again() -> None:
    own = load(writes=1000.0, write_bytes=1000.0 * 8192)
    assert broken("{read_pct: 0}", own, "{verify: true}") == []
    assert broken("{read_pct: 0}", own) == ["read_pct"]


def test_databases() -> None:
    asked = parse_workload("name: d\ndatabase: {clients: 8, rate_per_s: 100}\n", "d.yaml")
    closed = parse_workload("name: d\ndatabase: {clients: 8}\n", "d.yaml")

    def keys(own: DatabaseLoad, wanted: Workload = asked) -> dict[str, LoadState]:
        return {check.key: check.state for check in compare(wanted, [own], SECONDS)}

    good = DatabaseLoad(SECONDS, 1000.0, clients=8.0, busy_s=3.0)
    assert set(keys(good).values()) == {LoadState.HONOURED}
    assert keys(replace(good, clients=4.0))["clients"] is LoadState.BROKEN
    assert keys(replace(good, transactions=3000.0))["rate_per_s"] is LoadState.BROKEN
    assert keys(replace(good, transactions=500.0))["rate_per_s"] is LoadState.BROKEN
    assert keys(replace(good, transactions=500.0, busy_s=79.0))["rate_per_s"] is LoadState.NOT_REACHED
    assert keys(replace(good, duration_s=30.0))["measure_s"] is LoadState.BROKEN
    assert set(keys(replace(good, busy_s=79.0), closed).values()) == {LoadState.HONOURED}
    assert keys(replace(good, busy_s=9.0), closed)["clients"] is LoadState.BROKEN
