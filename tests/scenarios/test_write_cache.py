"""Write caches as a scenario."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.scenario import Outcome
from leadline.core.model.errors import InputError

PLAIN: dict[str, Any] = {
    "name": "own",
    "timing": {"warm_up_s": 5, "measure_s": 20, "window_s": 0.5},
    "size": "4m",
    "workload": {"io": [{"block": "4k", "read_pct": 0, "oio": 8, "working_set": "1g"}]},
    "disk": {"seek_least": "1ms", "seek_most": "10ms", "rpm": 7200, "mb_per_s": 150},
}


def run(**change: Any) -> Outcome:
    return outcome_of({"system": "write-cache", **PLAIN, **change})


def value(own: Outcome, name: str) -> float:
    return own.measure("guests", name).value


def test_each_cache_keeps_what_it_promises() -> None:
    through, memory, log = (run(cache=kind) for kind in ("write-through", "ram-write-back", "log-structured"))
    # A seek of 1 + 9 x 8/15 ms on average, half a turn.
    assert value(through, "latency_ms_mean") == pytest.approx(8 * (5.8 + 4.17), 0.05)
    assert value(memory, "lost_mib_max") == pytest.approx(4.0, 0.05)
    assert [value(own, "lost_mib_max") for own in (through, log)] == [0.0, 0.0]
    assert value(log, "iops") > value(through, "iops")
    assert value(memory, "fill_pct") == pytest.approx(100.0, 0.02)


def test_a_sequential_stream_follows_itself() -> None:
    io = [{"block": "64k", "read_pct": 0, "random_pct": 0, "oio": 1, "working_set": "1g"}]
    own = run(cache="write-through", workload={"io": io})
    assert value(own, "disk_sequential_pct") > 99.0
    assert value(own, "iops") == pytest.approx(150e6 / 65536, 0.02)


def test_an_offered_rate_is_done() -> None:
    io = [{"block": "4k", "rate_iops": {"write": 50}, "working_set": "1g"}]
    own = run(workload={"io": io})
    assert value(own, "iops") == pytest.approx(50.0, 0.15)
    assert own.results[0].operations[0].histogram is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cache": "battery"}, "no write cache battery; there are log-behind-ram"),
        ({"workload": {"io": [{"block": "4k"}]}}, "writes only"),
        ({"workload": {"io": [{"read_pct": 0}, {"read_pct": 0, "name": "b"}]}}, "one stream"),
        ({"workload": {"io": [{"read_pct": 0, "block": "64k", "working_set": "4k"}]}}, "a working set of 4,096 bytes"),
    ],
)
def test_what_is_no_scenario_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(**change)


def test_what_the_simulator_refuses_is_told_in_four_parts() -> None:
    with pytest.raises(InputError) as caught:
        run(size="1k")
    assert "cache size: 0" in str(caught.value)
