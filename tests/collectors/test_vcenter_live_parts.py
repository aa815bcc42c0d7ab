"""Parts of the live source of vCenter that need no vCenter."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leadline._core import VspherePerfAnswer
from leadline.collectors._vcenter_live.columns import LiveColumns, Placing
from leadline.collectors._vcenter_live.counters import LiveCounter, in_chunks, live_counters
from leadline.collectors._vcenter_live.late import GivenSamples, LiveGap
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

S = 10**9
HOST = Entity(EntityKind.HOST, "esx01")
VM = Entity(EntityKind.VM, "db01", HOST)
REPORTED = [
    (1, "cpu.ready.summation", "millisecond"),
    (2, "cpu.usage.average", "percent"),
    (3, "virtualDisk.readOIO.latest", "number"),
    (4, "virtualDisk.writeOIO.latest", "number"),
    (5, "virtualDisk.totalReadLatency.average", "millisecond"),
    (6, "virtualDisk.readLatencyUS.latest", "microsecond"),
    (7, "mem.active.average", "kiloBytes"),
    (8, "sys.uptime.latest", "second"),
]


def columns(vcpu_count: int | None = 2) -> LiveColumns:
    counters = live_counters(EntityKind.VM, REPORTED, 20.0, frozenset({8}))
    return LiveColumns(Placing({c.key: c for c in counters}, lambda _, __, name: name, lambda _: vcpu_count), 20.0)


def answer(*series: tuple[int, str, str], times: str = "20,2026-11-26T20:00:00Z") -> VspherePerfAnswer:
    values = "".join(
        f"<value><id><counterId>{key}</counterId><instance>{name}</instance></id><value>{text}</value></value>"
        for key, name, text in series
    )
    head = f'<entity type="VirtualMachine">vm-1</entity><sampleInfoCSV>{times}</sampleInfoCSV>'
    text = f"<QueryPerfResponse><returnval>{head}{values}</returnval></QueryPerfResponse>"
    return VspherePerfAnswer.from_bytes(text.encode(), "vc")


def values_of(live: LiveColumns, *series: tuple[int, str, str]) -> dict[tuple[str, Entity], float]:
    one = answer(*series)
    live.take((0, 0), one, [VM], [tuple(one.moments[0][0].tolist())])
    return {
        (group.metric, entity): float(group.values[row, 0])
        for group in live.groups()
        for row, entity in enumerate(group.entities)
    }


def test_values_are_in_the_units_of_metrics() -> None:
    vcpu = Entity(EntityKind.VCPU, "0", VM)
    values = values_of(columns(), (1, "", "4000"), (1, "0", "2000"), (2, "0", "5000"), (7, "", "2048"), (8, "", "77"))
    assert values == {
        ("cpu_ready_pct", VM): 10.0,
        ("cpu_ready_pct", vcpu): 10.0,
        ("cpu_used_pct", vcpu): 50.0,
        ("memory_touched_mib", VM): 2.0,
        ("raw.vcenter.sys.uptime.latest", VM): 77.0,
    }


def test_ready_time_of_a_vm_with_unknown_vcpus_is_a_sum() -> None:
    assert values_of(columns(None), (1, "", "4000")) == {("cpu_ready_pct_sum", VM): 20.0}


def test_parts_of_a_metric_are_added_and_the_finer_counter_counts() -> None:
    disk = Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", VM)
    every = [(key, "scsi0:0", text) for key, text in ((3, "2"), (4, "3"), (5, "1"), (6, "1400"))]
    values = values_of(columns(), *every)
    assert values["virtual_disk_outstanding_count", disk] == 5.0
    assert np.isclose(values["virtual_disk_latency_ms_read", disk], 1.4)
    coarse = values_of(columns(), *every[:3])
    assert coarse["virtual_disk_latency_ms_read", disk] == 1.0


def test_a_sum_with_a_part_that_is_missing_is_not_known() -> None:
    values = values_of(columns(), (3, "scsi0:0", "2"), (4, "scsi0:0", "-1"))
    assert np.isnan(next(iter(values.values())))


def test_rows_of_entities_that_are_gone_are_dropped() -> None:
    live = columns()
    assert values_of(live, (1, "0", "2000"), (7, "", "2048"))
    live.keep({HOST})
    assert values_of(live, (7, "", "1024")) == {("memory_touched_mib", VM): 1.0}


@given(st.lists(st.sampled_from("abcdef"), max_size=30), st.integers(1, 8))
def test_chunks_hold_every_counter_once_within_the_limit(metrics: list[str], limit: int) -> None:
    counters = [LiveCounter(key, "", metric, None, 1.0) for key, metric in enumerate(sorted(metrics))]
    chunks = list(in_chunks(counters, limit))
    assert [counter for chunk in chunks for counter in chunk] == counters
    assert all(0 < len(chunk) <= limit for chunk in chunks)


def test_a_hole_is_asked_for_until_it_is_a_gap() -> None:
    samples = GivenSamples(20, 900.0)
    samples.begin("vm-1", 1000 * S)
    samples.give("vm-1", (1000 * S, 1060 * S))
    assert samples.asked_from("vm-1") == 1000 * S
    assert samples.is_new(1040 * S, samples.state("vm-1"))
    samples.give("vm-1", (1020 * S,))
    assert not samples.is_new(1020 * S, samples.state("vm-1"))
    samples.expire(1939 * S)
    assert not samples.gaps
    samples.give("vm-1", tuple(t * S for t in range(1080, 1960, 20)))
    samples.expire(1940 * S)
    assert samples.gaps == [LiveGap("vm-1", 1020 * S, 1040 * S)]
    assert samples.asked_from("vm-1") == 1940 * S


def test_an_object_that_is_silent_for_longer_is_a_gap_and_one_that_is_gone_is_none() -> None:
    samples = GivenSamples(20, 900.0)
    for key in ("vm-1", "vm-2"):
        samples.begin(key, 1020 * S)
    samples.forget("vm-2")
    samples.expire(2000 * S)
    assert samples.gaps == [LiveGap("vm-1", 1000 * S, 1100 * S)]
