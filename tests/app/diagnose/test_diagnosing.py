"""Joining of findings and the verdict."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.answer import Disk, Reason
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Diagnosis
from leadline.core.model.profile import Profile
from leadline.core.model.vocabulary import EntityKind, Layer, LayerState
from leadline.faces.words.answers import headline
from leadline.faces.words.findings import Quotes

HOST = Entity(EntityKind.HOST, "esx01")
VM = Entity(EntityKind.VM, "db01", HOST)
VCPU = Entity(EntityKind.VCPU, "0", VM)
GUEST = Entity(EntityKind.GUEST, "db01")
DISK = Entity(EntityKind.BLOCK_DEVICE, "sdb", GUEST)
LUN = Entity(EntityKind.DEVICE, "naa.1", HOST)
N = 60
TIMES = 5_000_000_000 * np.arange(1, N + 1, dtype=np.int64)


def capture(*series: tuple[str, Entity, float], name: str = "a.csv") -> Capture:
    builder = CaptureBuilder(name, "esxtop", "esxtop")
    for metric, entity, level in series:
        builder.add_series(metric, entity, TIMES, np.full(N, level))
    return builder.build()


def slow_lun() -> tuple[tuple[str, Entity, float], ...]:
    return (
        ("disk_device_latency_ms", LUN, 60.0),
        ("disk_kernel_latency_ms", LUN, 0.1),
        ("disk_guest_latency_ms", LUN, 60.1),
        ("disk_iops", LUN, 500.0),
    )


def states(diagnosis: Diagnosis) -> dict[Layer, LayerState]:
    return {verdict.layer: verdict.state for verdict in diagnosis.layers}


def test_a_slow_device_is_the_disk_and_its_symptoms_are_not_causes() -> None:
    found = diagnose(capture(*slow_lun()))
    assert found.top is not None
    assert found.top.rule == "disk-davg-generic"
    assert found.answer.disk is Disk.YES
    assert states(found)[Layer.STORAGE_PATH] is LayerState.SUSPECTED  # no role is known, so the limit is a judgement
    gavg = next(f for f in found.findings if f.rule == "disk-gavg-high")
    assert gavg.caused_by == "disk-davg-generic"


def test_symptoms_come_after_every_cause() -> None:
    found = diagnose(capture(*slow_lun(), ("cpu_ready_pct", VCPU, 7.0)))
    kinds = [f.is_symptom for f in found.findings]
    assert kinds == sorted(kinds)


def test_ready_time_is_not_the_disk() -> None:
    found = diagnose(
        capture(("cpu_ready_pct", VCPU, 20.0), ("disk_device_latency_ms", LUN, 0.5), ("disk_iops", LUN, 99.0))
    )
    assert found.answer.because is Reason.QUICK
    assert states(found)[Layer.HYPERVISOR_CPU] is LayerState.CONVICTED
    assert states(found)[Layer.STORAGE_PATH] is LayerState.CLEARED


def test_what_was_not_recorded_is_not_cleared() -> None:
    found = diagnose(capture(("cpu_ready_pct", VCPU, 0.5)))
    assert found.answer.disk is Disk.UNKNOWN
    guest = found.layer(Layer.GUEST)
    assert guest.state is LayerState.NOT_EXAMINED
    assert any("iostat" in command for command in guest.examine)
    assert {s.rule for s in found.skipped} >= {"disk-davg-generic", "guest-disk-await-high"}


def test_a_metric_that_was_never_measured_does_not_clear() -> None:
    found = diagnose(capture(("cpu_ready_pct", VCPU, float("nan"))))
    assert states(found)[Layer.HYPERVISOR_CPU] is LayerState.NOT_EXAMINED


def test_a_guest_alone_says_that_the_layer_below_was_not_recorded() -> None:
    series = [("guest_disk_await_ms", DISK, 80.0), ("disk_reads_per_s", DISK, 200.0), ("disk_writes_per_s", DISK, 50.0)]
    found = diagnose(capture(*series))
    assert found.answer.disk is Disk.YES_AS_SEEN_BY_GUEST


def test_two_recordings_of_one_thing_make_one_finding() -> None:
    parts = [capture(("cpu_ready_pct", VCPU, 20.0), name=name) for name in ("a.csv", "b.csv")]
    found = diagnose(Capture.merged(parts))
    (ready,) = [f for f in found.findings if f.rule == "cpu-ready-high"]
    assert {e.source for e in ready.evidence} == {"a.csv", "b.csv"}


def test_a_profile_switches_a_rule_off() -> None:
    found = diagnose(capture(("cpu_ready_pct", VCPU, 20.0)), Profile(disabled=frozenset({"cpu-ready-high"})))
    assert "cpu-ready-high" not in found.rules_run
    assert all(f.rule != "cpu-ready-high" for f in found.findings)


def test_nothing_measured_is_said() -> None:
    found = diagnose(Capture())
    assert headline(found, Quotes()).startswith("Nothing was measured")


@pytest.mark.parametrize("level", [0.0, 4.9, 5.0])
def test_at_or_below_a_limit_nothing_is_found(level: float) -> None:
    found = diagnose(capture(("cpu_ready_pct", VCPU, level)))
    assert [f for f in found.findings if f.rule == "cpu-ready-high"] == []


def test_a_recording_with_a_header_and_no_sample_measured_nothing() -> None:
    builder = CaptureBuilder("header.csv", "esxtop", "esxtop")
    builder.add_series("cpu_ready_pct", VCPU, TIMES[:0], np.empty(0))
    assert headline(diagnose(builder.build()), Quotes()).startswith("Nothing was measured")
    sampled = diagnose(capture(("cpu_ready_pct", VCPU, 0.0)))
    assert headline(sampled, Quotes()) == "Nothing in these recordings explains slowness."
