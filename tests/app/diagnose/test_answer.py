"""The table of answers: one test per row, the first row that holds decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leadline.app.diagnose.answer import Case, decided
from leadline.app.diagnose.causes import Explained
from leadline.app.diagnose.findings import RulesRun
from leadline.core.contracts.rule import DISKS, rule_metas
from leadline.core.model.account import Account, AccountBasis, Share, Term
from leadline.core.model.answer import Answer, Cause, Certainty, Disk, Felt, Reason
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, LayerBecause, LayerReason, LayerVerdict, Window
from leadline.core.model.incident import Basis, Incident
from leadline.core.model.power import Power
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer, LayerState, Severity

S = 1_000_000_000
GUEST = Entity(EntityKind.GUEST, "db01")
DISK = Entity(EntityKind.BLOCK_DEVICE, "sdb", GUEST)
LUN = Entity(EntityKind.DEVICE, "naa.1", Entity(EntityKind.HOST, "esx01"))
INCIDENT = Incident(Window(60 * S, 90 * S), (Window(0, 60 * S),), Basis.FELT)


def finding(rule: str, severity: Severity = Severity.HIGH, guessed: tuple[str, ...] = ()) -> Finding:
    meta = rule_metas()[rule]
    windows = (INCIDENT.window,)
    evidence = (Evidence("45 ms", "guest_disk_await_ms", DISK, "median", 45.0, 10.0, "ms"),)
    return Finding(
        rule, meta.code, meta.layer, DISK, severity, rule, evidence, "", windows, guessed=guessed, is_wait=meta.is_wait
    )


def account(disk: float) -> Account:
    shares = (Share(Term.DISK, DISK, 1, 2, disk, 0, 1, ""), Share(Term.LOCK, None, 1, 2, 1 - disk, 0, 1, ""))
    return Account(1.0, 2.0, shares, AccountBasis.SAMPLES)


def case(
    *findings: Finding,
    incident: Incident | None = INCIDENT,
    disk_share: float | None = None,
    run: RulesRun | None = None,
    path: LayerState = LayerState.NOT_EXAMINED,
    capture: Capture | None = None,
    felt: Felt = Felt.UNKNOWN,
    as_measured: tuple[Finding, ...] | None = None,
) -> Case:
    whole = capture or Capture()
    known = findings if as_measured is None else as_measured
    explained = Explained(findings, known, whole, is_placed=False)
    leads = [f for f in findings if f.severity >= Severity.MEDIUM and not f.is_symptom]
    causes = tuple(Cause("", f.entity, (f,), 1.0, None, Certainty.IS) for f in leads)
    reason = LayerReason(LayerBecause.NO_RULE)
    states = {layer: path if layer is Layer.STORAGE_PATH else LayerState.NOT_EXAMINED for layer in Layer}
    layers = tuple(LayerVerdict(layer, state, reason) for layer, state in states.items())
    of_time = None if disk_share is None else account(disk_share)
    return Case(incident, findings, causes, of_time, run or RulesRun((), (), ()), explained, layers, whole, felt)


def looked(recorded_s: float = 60.0, **more: tuple[Finding, ...]) -> RulesRun:
    """A run of rules on disks below the guest, of which a recording of some seconds has the power to clear."""
    powers = (Power("disk-davg-generic", Layer.STORAGE_PATH, DISKS, recorded_s, 15.0, can_clear=True),)
    return RulesRun((), powers, (), **more)


def answered(made: Case) -> tuple[Disk, Reason]:
    answer = decided(made)
    return answer.disk, answer.because


def test_a_device_that_is_the_first_cause_is_to_blame() -> None:
    assert answered(case(finding("disk-davg-generic"))) == (Disk.YES, Reason.DEVICE_SLOW)


@pytest.mark.parametrize(("guessed", "reason"), [((), Reason.LIMIT_REACHED), (("a limit",), Reason.LIMIT_OR_DEVICE)])
@pytest.mark.parametrize("rule", ["vm-iops-limit-hit", "disk-queue-full", "disk-kavg-high"])
def test_a_limit_or_queue_before_the_device_is_told_apart(rule: str, guessed: tuple[str, ...], reason: Reason) -> None:
    assert answered(case(finding(rule, guessed=guessed))) == (Disk.YES_A_LIMIT, reason)


def test_a_guest_that_waits_is_believed_where_nothing_below_was_recorded() -> None:
    waiting = finding("guest-disk-await-high")
    assert answered(case(waiting)) == (Disk.YES_AS_SEEN_BY_GUEST, Reason.GUEST_WAITS)
    assert answered(case(waiting, path=LayerState.CLEARED)) == (Disk.UNKNOWN, Reason.BELOW_IS_QUICK)


def test_what_waits_for_some_disk_convicts_none() -> None:
    assert answered(case(finding("guest-iowait-high"))) == (Disk.UNKNOWN, Reason.IO_WAIT)
    assert answered(case(finding("db-data-read-latency"))) == (Disk.UNKNOWN, Reason.DATABASE_WAITS)


def test_a_disk_behind_another_cause_is_not_first() -> None:
    both = (finding("guest-cpu-taken"), finding("guest-disk-await-high", Severity.MEDIUM))
    assert answered(case(*both)) == (Disk.NOT_FIRST, Reason.ANOTHER_FIRST)
    assert answered(case(*both, disk_share=0.4)) == (Disk.NOT_FIRST, Reason.ANOTHER_FIRST)


def test_a_disk_that_the_account_gives_next_to_nothing_is_cleared_by_another_cause() -> None:
    both = (finding("guest-cpu-taken"), finding("guest-disk-await-high", Severity.MEDIUM))
    assert answered(case(*both, disk_share=0.05)) == (Disk.NO, Reason.ELSEWHERE)
    assert answered(case(disk_share=0.05))[0] is Disk.UNKNOWN  # nothing explains the incident


def test_a_slow_disk_that_nobody_felt_is_not_cleared() -> None:
    weak = finding("guest-disk-await-high", Severity.LOW)
    strong = replace(weak, severity=Severity.HIGH)
    made = case(weak, run=looked(), incident=None, felt=Felt.FINE, as_measured=(strong,))
    assert answered(made) == (Disk.UNKNOWN, Reason.UNFELT)


def test_a_finding_of_little_weight_on_a_disk_clears_none() -> None:
    assert answered(case(finding("disk-davg-generic", Severity.LOW), run=looked())) == (Disk.UNKNOWN, Reason.FAINT)


def recorded(normal_ms: float, during_ms: float) -> Capture:
    builder = CaptureBuilder("iostat.txt", "iostat", "sysstat")
    times = S * np.arange(1, 91, dtype=np.int64)
    builder.add_series("guest_disk_await_ms", DISK, times, np.where(times > 60 * S, during_ms, normal_ms))
    builder.add_series("disk_device_latency_ms", LUN, times, np.full(90, 0.5))
    return builder.build()


def test_a_disk_that_is_waited_for_twice_as_long_is_not_cleared() -> None:
    made = case(run=looked(), capture=recorded(1.0, 4.0))
    assert answered(made) == (Disk.UNKNOWN, Reason.WAITED_LONGER)
    assert answered(case(run=looked(), capture=recorded(1.0, 1.0))) == (Disk.NO, Reason.QUICK)


def test_a_disk_that_takes_a_good_part_of_the_added_time_is_not_cleared() -> None:
    assert answered(case(run=looked(), disk_share=0.35)) == (Disk.UNKNOWN, Reason.ACCOUNT)
    assert answered(case(run=looked(), disk_share=0.25, capture=recorded(1.0, 1.0))) == (Disk.NO, Reason.QUICK)


@pytest.mark.parametrize("rule", ["db-pg-commit-delay", "guest-reads-small"])
def test_waits_that_a_cause_makes_without_the_disk_are_not_the_disks(rule: str) -> None:
    cause = finding(rule, Severity.MEDIUM)
    assert answered(case(cause, run=looked(), disk_share=0.9, capture=recorded(1.0, 1.0))) == (Disk.NO, Reason.QUICK)
    slower = case(cause, run=looked(), disk_share=0.9, capture=recorded(1.0, 4.0))
    assert answered(slower) == (Disk.UNKNOWN, Reason.WAITED_LONGER)
    setting = case(replace(cause, windows=()), run=looked(), disk_share=0.9, capture=recorded(1.0, 1.0))
    assert answered(setting) == (Disk.UNKNOWN, Reason.ACCOUNT)


def test_a_disk_near_its_limit_is_not_cleared_unless_users_felt_nothing() -> None:
    near = (finding("guest-disk-await-high"),)
    capture = recorded(1.0, 1.0)
    assert answered(case(run=looked(near=near), capture=capture)) == (Disk.UNKNOWN, Reason.NEAR_LIMIT)
    assert answered(case(run=looked(brief=near), capture=capture)) == (Disk.UNKNOWN, Reason.BRIEFLY_SLOW)
    fine = case(run=looked(near=near), capture=capture, incident=None, felt=Felt.FINE)
    assert answered(fine) == (Disk.NO, Reason.QUICK)


def test_disks_that_were_seen_with_power_are_cleared_and_shorter_ones_are_not() -> None:
    assert answered(case(run=looked(), capture=recorded(1.0, 1.0))) == (Disk.NO, Reason.QUICK)
    assert answered(case(run=looked(10.0))) == (Disk.UNKNOWN, Reason.TOO_SHORT)


def test_results_of_load_tools_are_said_where_nothing_else_shows_the_disk() -> None:
    for mean_ms, reason in ((84.0, Reason.LOADED), (4.0, Reason.LOAD_TOOL)):
        sync = Operation("fdatasync", latency_ms={"mean": mean_ms})
        capture = Capture(results=[Result("pg_test_fsync", "fsync", (sync,))])
        assert answered(case(capture=capture)) == (Disk.UNKNOWN, reason)


def test_without_a_disk_nothing_is_known() -> None:
    assert answered(case()) == (Disk.UNKNOWN, Reason.NOT_RECORDED)


def test_an_incident_without_a_cause_is_not_explained() -> None:
    assert not decided(case()).explains
    assert decided(case(incident=None)).explains
    answer: Answer = decided(case(finding("guest-iowait-high")))
    assert answer.waiting is not None


def test_disks_that_were_recorded_outside_the_incident_only_are_not_cleared() -> None:
    builder = CaptureBuilder("iostat.txt", "iostat", "sysstat")
    before = S * np.arange(1, 56, dtype=np.int64)
    builder.add_series("disk_device_latency_ms", LUN, before, np.full(55, 1.0), interval_s=1.0)
    made = case(run=looked(), capture=builder.build())
    assert answered(made) == (Disk.UNKNOWN, Reason.NOT_DURING)
    assert answered(case(run=looked(), capture=recorded(1.0, 1.0))) == (Disk.NO, Reason.QUICK)


def test_a_setting_explains_no_incident() -> None:
    setting = replace(finding("db-pg-checkpoint-config"), windows=())
    assert decided(case(setting, disk_share=0.05)).because is not Reason.ELSEWHERE
