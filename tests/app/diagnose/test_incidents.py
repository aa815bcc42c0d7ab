"""Incidents: when it was bad, what is compared with what, and what a verdict may say of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.diagnose.incidents import Lookout, find_incidents
from leadline.core.model.answer import Certainty, Disk, Reason
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Diagnosis, LayerBecause, LoweredBecause, Window
from leadline.core.model.incident import Basis
from leadline.core.model.vocabulary import EntityKind, Layer, LayerState, Severity
from leadline.faces.words.answers import headline
from leadline.faces.words.findings import Quotes

GUEST = Entity(EntityKind.GUEST, "db01")
DISK = Entity(EntityKind.BLOCK_DEVICE, "sdb", GUEST)
DATABASE = Entity(EntityKind.DATABASE, "main", GUEST)
START_NS, NS_PER_S = 1_700_000_000_000_000_000, 1_000_000_000
Runs = Sequence[tuple[float, int]]


def capture(*series: tuple[str, Entity, Runs], seed: int = 1) -> Capture:
    """A sample a second; levels vary by a tenth, zero stays zero."""
    noise = np.random.default_rng(seed)
    builder = CaptureBuilder("a.csv", "table", "table")
    for metric, entity, runs in series:
        values = np.concatenate([np.full(count, level) for level, count in runs])
        times = START_NS + NS_PER_S * np.arange(1, len(values) + 1, dtype=np.int64)
        varied = values * noise.normal(1.0, 0.1, len(values)).clip(0.5, 1.5)
        builder.add_series(metric, entity, times, varied, interval_s=1)
    return builder.build()


def throughput(*runs: tuple[float, int]) -> tuple[str, Entity, Runs]:
    return ("db_tps", DATABASE, runs)


def latency(*runs: tuple[float, int]) -> tuple[str, Entity, Runs]:
    return ("db_latency_ms", DATABASE, runs)


def seconds(window: Window) -> tuple[float, float]:
    return ((window.start_ns - START_NS) / NS_PER_S, (window.end_ns - START_NS) / NS_PER_S)


def state(diagnosis: Diagnosis, layer: Layer) -> LayerState:
    return diagnosis.layer(layer).state


def test_an_outage_between_healthy_minutes_is_the_incident() -> None:
    (incident,) = find_incidents(capture(throughput((42, 60), (0, 30), (42, 60))))
    assert seconds(incident.window) == pytest.approx((60, 90), abs=3)
    assert [edge for window in incident.normal for edge in seconds(window)] == pytest.approx([0, 60, 90, 150], abs=3)
    assert incident.basis is Basis.FELT
    symptom = incident.symptoms[0]
    assert symptom.normal == pytest.approx(42, rel=0.1)
    assert symptom.during == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_no_incident(seed: int) -> None:
    assert find_incidents(capture(throughput((42, 150)), latency((100, 150)), seed=seed)) == ()


def test_more_that_was_asked_for_later_is_no_incident() -> None:
    assert find_incidents(capture(throughput((42, 60), (60, 60)))) == ()
    assert find_incidents(capture(throughput((20, 60), (60, 60)), latency((50, 120)))) == ()


def now_in(recorded: Capture, *past: tuple[float, float]) -> list[tuple[float, float]]:
    """The windows of what a watch finds at the end of a recording."""
    span = recorded.span_ns()
    assert span is not None
    windows = tuple(Window(*(START_NS + round(edge * NS_PER_S) for edge in one)) for one in past)
    found = find_incidents(recorded, Lookout(span[1] - 30 * NS_PER_S, windows))
    return [seconds(one.window) for one in found]


def test_a_worse_incident_that_is_over_hides_none_that_goes_on() -> None:
    recorded = capture(throughput((42, 300)), latency((4, 120), (60, 60), (4, 80), (10, 40)))
    (window,) = now_in(recorded, (120, 180))
    assert window == pytest.approx((260, 300), abs=3)


def test_a_change_of_what_users_ask_for_hides_no_incident_that_goes_on() -> None:
    asked = throughput((42, 120), (300, 180))
    (window,) = now_in(capture(asked, latency((4, 260), (10, 40))))
    assert window == pytest.approx((260, 300), abs=3)
    assert now_in(capture(asked, latency((4, 300)))) == []


def test_of_what_goes_on_the_far_worse_part_is_the_incident() -> None:
    recorded = capture(throughput((100, 120), (80, 140)), latency((4, 120), (5, 100), (80, 40)))
    (window,) = now_in(recorded)
    assert window == pytest.approx((220, 260), abs=3)
    slow_ever_since = capture(throughput((100, 120), (60, 140)), latency((4, 120), (40, 140)))
    (window,) = now_in(slow_ever_since)
    assert window == pytest.approx((120, 260), abs=3)


def test_what_is_over_is_nothing_of_now() -> None:
    assert now_in(capture(throughput((42, 300)), latency((4, 120), (60, 60), (4, 120)))) == []
    (window,) = now_in(capture(throughput((42, 300)), latency((4, 220), (60, 60), (4, 20))))
    assert window == pytest.approx((220, 280), abs=3)


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_no_incident_of_now(seed: int) -> None:
    assert now_in(capture(throughput((42, 300)), latency((20, 300)), seed=seed)) == []


def in_server(*runs: tuple[float, int]) -> tuple[str, Entity, Runs]:
    return ("db_transaction_active_ms", DATABASE, runs)


def test_what_only_the_server_saw_is_felt() -> None:
    """At a fixed rate of transactions nobody does less: that each takes longer is in the server's counters alone."""
    (incident,) = find_incidents(capture(throughput((150, 150)), in_server((2, 60), (5, 30), (2, 60))))
    assert seconds(incident.window) == pytest.approx((60, 90), abs=3)
    assert [symptom.metric for symptom in incident.symptoms] == ["db_transaction_active_ms"]


def test_what_clients_measured_counts_before_what_the_server_did() -> None:
    slower_in_server = in_server((2, 60), (5, 30), (2, 60))
    assert find_incidents(capture(throughput((150, 150)), slower_in_server, latency((8, 150)))) == ()


def test_half_of_the_work_as_quick_as_ever_in_the_server_may_be_half_of_the_answers() -> None:
    fewer = throughput((150, 60), (60, 30), (150, 60))
    assert find_incidents(capture(fewer, in_server((2, 150))))
    assert find_incidents(capture(fewer, latency((2, 150)))) == ()


def test_two_incidents_are_two() -> None:
    quiet, slow = (1_500, 50), (9_000, 25)
    found = find_incidents(capture(latency(quiet, slow, quiet, (20_000, 25), quiet)))
    assert sorted(seconds(incident.window)[0] for incident in found) == pytest.approx([50, 125], abs=2)
    for incident in found:
        for window in incident.normal:
            assert not any(
                window.overlaps(other.window) and seconds(other.window)[0] + 2 < seconds(window)[1] for other in found
            )


def test_what_was_nearly_as_bad_is_nobodys_normal() -> None:
    """The recording begins while the trouble before it still ends: two seconds too few for an incident."""
    quick, slow = (2.4, 20), (2_200, 20)
    (incident,) = find_incidents(capture(latency((1_500, 2), quick, slow, quick)))
    assert seconds(incident.window) == pytest.approx((22, 42), abs=1)
    assert seconds(incident.normal[0])[0] == pytest.approx(2, abs=1)
    assert incident.symptoms[0].normal == pytest.approx(2.4, rel=0.1)
    (incident,) = find_incidents(capture(throughput((0, 2), (60, 20), (0, 20), (60, 20))))
    assert seconds(incident.normal[0])[0] == pytest.approx(2, abs=1)
    assert incident.symptoms[0].normal == pytest.approx(60, rel=0.1)


def test_a_level_that_was_the_same_before_explains_nothing() -> None:
    recorded = capture(
        throughput((42, 60), (0, 30), (42, 60)),
        ("guest_disk_await_ms", DISK, [(60, 150)]),
        ("disk_reads_per_s", DISK, [(300, 150)]),
    )
    diagnosis = diagnose(recorded)
    (await_high,) = [finding for finding in diagnosis.findings if finding.rule == "guest-disk-await-high"]
    assert await_high.severity.label == "low"
    assert await_high.lowered is not None
    assert await_high.lowered.because is LoweredBecause.AS_ALWAYS
    assert "nothing recorded explains it" in headline(diagnosis, Quotes())
    assert diagnosis.answer.disk is Disk.UNKNOWN


def test_a_level_that_came_with_the_incident_explains_it() -> None:
    recorded = capture(
        throughput((42, 60), (4, 30), (42, 60)),
        ("guest_disk_await_ms", DISK, [(0.8, 60), (60, 30), (0.8, 60)]),
        ("disk_reads_per_s", DISK, [(300, 150)]),
    )
    diagnosis = diagnose(recorded)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "guest-disk-await-high"
    assert diagnosis.answer.disk is Disk.YES_AS_SEEN_BY_GUEST
    assert seconds(diagnosis.incidents[0].window) == pytest.approx((60, 90), abs=2)


def test_a_high_level_without_a_healthy_minute_is_judged_by_its_limit() -> None:
    recorded = capture(("guest_disk_await_ms", DISK, [(60, 60)]), ("disk_reads_per_s", DISK, [(300, 60)]))
    assert diagnose(recorded).answer.because is Reason.LIMIT_OR_DEVICE


def test_an_incident_that_nothing_explains_heads_the_verdict_and_clears_no_layer() -> None:
    recorded = capture(
        throughput((42, 60), (0, 30), (42, 60)),
        ("guest_cpu_busy_pct", GUEST, [(5, 150)]),
        ("guest_swap_in_kib_per_s", GUEST, [(0, 150)]),
        ("guest_disk_await_ms", DISK, [(0.5, 150)]),
        ("disk_reads_per_s", DISK, [(300, 150)]),
        ("guest_disk_util_pct", DISK, [(10, 150)]),
    )
    diagnosis = diagnose(recorded)
    assert headline(diagnosis, Quotes()).startswith(
        "22:14:18 to 22:14:50 UTC: Transactions per second went from 41.8/s to 0/s"
    )
    assert LayerState.CLEARED not in {verdict.state for verdict in diagnosis.layers}
    assert diagnosis.answer.because is Reason.QUICK
    assert diagnosis.answer.certainty is Certainty.PROBABLY


def test_no_where_the_disk_was_waited_for_much_longer_below_its_limit() -> None:
    recorded = capture(
        throughput((42, 60), (4, 30), (42, 60)),
        ("db_blocked_sessions_count", DATABASE, [(0, 60), (5, 30), (0, 60)]),
        ("guest_disk_await_ms", DISK, [(0.2, 60), (1.8, 30), (0.2, 60)]),
        ("disk_reads_per_s", DISK, [(300, 150)]),
        ("guest_disk_util_pct", DISK, [(10, 150)]),
    )
    diagnosis = diagnose(recorded)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "db-lock-waits"
    assert diagnosis.answer.because is Reason.WAITED_LONGER


def test_databases_that_nobody_uses_do_not_hide_how_long_others_wait() -> None:
    """PostgreSQL always has template1 and postgres beside the one that works, at 0 transactions a second."""
    idle = Entity(EntityKind.DATABASE, "template1", GUEST)
    slow = ("db_transaction_active_ms", DATABASE, [(5, 150), (8, 60)])
    recorded = capture(throughput((250, 210)), ("db_tps", idle, [(0, 210)]), slow)
    (incident,) = find_incidents(recorded)
    assert seconds(incident.window) == pytest.approx((150, 210), abs=3)


def test_locks_are_judged_by_the_spans_they_were_waited_for() -> None:
    """Sessions that waited for a slow log in the morning do not make the locks of the afternoon follow a disk."""
    event = Entity(EntityKind.DATABASE, "LWLock:WALWrite", DATABASE)
    recorded = capture(
        throughput((42, 120), (6, 30), (42, 60), (4, 30), (42, 60)),
        ("db_blocked_sessions_count", DATABASE, [(0, 120), (3, 30), (0, 60), (5, 30), (0, 60)]),
        ("db_wait_event_sessions_count", event, [(0, 120), (6, 30), (0, 150)]),
    )
    locks = [finding for finding in diagnose(recorded).findings if finding.rule == "db-lock-waits"]
    spans = {finding.severity: [seconds(window) for window in finding.windows] for finding in locks}
    assert spans[Severity.HIGH] == [pytest.approx((210, 240), abs=3)]
    assert spans[Severity.LOW] == [pytest.approx((120, 150), abs=3)]
    assert ["disk" in finding.evidence[-1].statement for finding in locks].count(True) == 1


def test_a_busy_machine_that_nobody_feels_is_neither_accused_nor_cleared() -> None:
    recorded = capture(latency((2, 90)), throughput((100, 90)), ("guest_cpu_busy_pct", GUEST, [(97, 90)]))
    diagnosis = diagnose(recorded)
    assert headline(diagnosis, Quotes()) == "Nothing in these recordings explains slowness."
    guest = diagnosis.layer(Layer.GUEST)
    assert guest.state is LayerState.NOT_EXAMINED
    assert guest.reason.because is LayerBecause.UNFELT


def test_a_guest_is_cleared_only_where_its_cpus_memory_and_disks_were_seen() -> None:
    series: list[tuple[str, Entity, Runs]] = [
        ("guest_cpu_busy_pct", GUEST, [(5, 90)]),
        ("guest_run_queue_count", GUEST, [(0, 90)]),
        ("guest_load_1m", GUEST, [(0.1, 90)]),
        ("guest_swap_in_kib_per_s", GUEST, [(0, 90)]),
    ]
    without_disks = diagnose(capture(*series)).layer(Layer.GUEST)
    assert without_disks.state is LayerState.NOT_EXAMINED
    assert "disks" in without_disks.reason.absent


def test_a_given_incident_is_compared_without_a_search() -> None:
    recorded = capture(
        throughput((42, 60), (40, 30), (42, 60)), ("db_blocked_sessions_count", DATABASE, [(0, 60), (5, 30), (0, 60)])
    )
    assert find_incidents(recorded) == ()
    window = Window(START_NS + 60 * NS_PER_S, START_NS + 90 * NS_PER_S)
    diagnosis = diagnose(recorded, incident=window)
    (incident,) = diagnosis.incidents
    assert (incident.window, incident.basis) == (window, Basis.TOLD)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "db-lock-waits"


def test_a_slow_minute_within_slow_minutes_is_not_compared() -> None:
    """Where the short normal is slow as well, it is the same trouble; limits judge."""
    recorded = capture(
        latency((1_000, 8), (2_000, 12)),
        ("guest_disk_await_ms", DISK, [(60, 20)]),
        ("disk_reads_per_s", DISK, [(300, 20)]),
    )
    diagnosis = diagnose(recorded)
    assert diagnosis.incidents == ()
    assert diagnosis.answer.disk is Disk.YES_AS_SEEN_BY_GUEST


def test_seconds_before_the_first_work_are_no_incident() -> None:
    """Nobody asked for anything yet: the first transactions took two seconds, not ten."""
    tps, took = throughput((0, 10), (48, 60)), latency((0, 10), (1_900, 60))
    assert find_incidents(capture(tps, took)) == ()
    slow = latency((0, 10), (1_900, 30), (4_500, 30), (1_900, 30))
    (incident,) = find_incidents(capture(throughput((0, 10), (48, 30), (47, 30), (48, 30)), slow))
    assert seconds(incident.window) == pytest.approx((40, 70), abs=3)


def test_a_standstill_from_the_first_second_is_one() -> None:
    """What ended first had waited since the beginning."""
    stood, waited = throughput((0, 20), (48, 60)), latency((0, 20), (19_000, 3), (20, 57))
    (incident,) = find_incidents(capture(stood, waited))
    assert seconds(incident.window)[0] == pytest.approx(0, abs=2)


def test_a_short_normal_is_used_where_the_incident_is_far_worse() -> None:
    """17 s at 1.8 s, then 9 s a transaction: too short to be sure of what is normal, but another state."""
    found = diagnose(capture(latency((1_800, 17), (9_000, 60)), throughput((40, 17), (8, 60))))
    (incident,) = found.incidents
    assert seconds(incident.window)[0] == pytest.approx(17, abs=4)
    little = diagnose(capture(latency((1_800, 14), (2_700, 60)), throughput((40, 14), (30, 60))))
    assert little.incidents == ()


def test_what_waits_is_said_where_nothing_explains_the_incident() -> None:
    waiting = ("guest_cpu_iowait_pct", GUEST, ((3, 60), (67, 30), (3, 60)))
    found = diagnose(capture(throughput((50, 60), (2, 30), (50, 60)), waiting))
    assert ". Meanwhile: I/O wait 6" in headline(found, Quotes())
    assert "nothing recorded says why" in headline(found, Quotes())
