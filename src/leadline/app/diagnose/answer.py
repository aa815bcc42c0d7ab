"""Step six of a verdict: is it the disk? A table, decided in order; the first row that holds is the answer.

| row | holds when | answer |
|---|---|---|
| device | a device is the first cause | yes |
| limit | a limit or a queue before the device is the first cause | yes, a limit |
| guest_waits | guest or database waits for a disk first, and nothing below was recorded | yes, as the guest sees it |
| not_first | a disk is a cause, and another one covers more of the added time | not first |
| elsewhere | another cause covers the incident, and the account gives disks next to nothing | no |
| unfelt, faint | a disk passed a limit that nobody felt, or that its own rule gives little weight | not known |
| some_disk_worse | the account gives disks a good part, or a disk's wait doubled in the incident | not known |
| near | a disk is near its limit, beyond it now and then, or busy with requests waiting | not known |
| damaged | damaged lines were left out, and a disk was not measured for 15 s or more meanwhile | not known |
| quick | disks were measured with power throughout, and no row above holds | no |
| not_during | disks were measured with power, but not during the incident | not known |
| load_tool | results of load tools show the disk, and nothing else does | not known: what they measured |
| too_short, not_recorded | else | not known, what to record |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.layers import disks_examined, faint_disks, looks_at_disks
from leadline.app.diagnose.load_results import slowest_result
from leadline.app.diagnose.near import near_disk, requests_per_s
from leadline.app.diagnose.placing import COVER_MIN, cover, has_weight
from leadline.core.contracts.rule import DISKS, STORAGE, rule_metas
from leadline.core.model.account import AccountBasis, Term
from leadline.core.model.answer import Answer, Certainty, Disk, DiskLevel, Felt, Reason
from leadline.core.model.capture import LEFT_OUT
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, LayerState, Severity
from leadline.core.statistics.changes import changes_of, is_same

if TYPE_CHECKING:
    from leadline.app.diagnose.causes import Explained
    from leadline.app.diagnose.findings import RulesRun
    from leadline.app.diagnose.symptoms import Symptoms
    from leadline.core.model.account import Account
    from leadline.core.model.answer import Cause
    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.finding import Finding, LayerVerdict, Window
    from leadline.core.model.incident import Change, Incident

_QUEUE = "guest_disk_queue_count"
# What a disk shows a guest when it is waited for.
_DISK_WAITS = (
    "guest_disk_await_ms",
    "guest_disk_await_ms_read",
    "guest_disk_await_ms_write",
    "guest_disk_flush_latency_ms",
    _QUEUE,
)
# What a disk takes per request, in milliseconds, by who sees it.
_LATENCIES = (*_DISK_WAITS[:3], "disk_device_latency_ms")
READS = frozenset({*_DISK_WAITS, *_LATENCIES})
_MUCH_RATIO, _MUCH_MS, _MUCH_COUNT = 2.0, 1.0, 1.0  # Judgement: what a disk waits more that is not chance
ELSEWHERE_SHARE = 0.1  # Judgement: of the added time; the disk had no part in it worth naming
SEEN_SHARE = 0.5  # Judgement: of the incident; what was recorded for less of it may have missed it
UNSEEN_S = 15.0  # as long as rules need to see a slow disk
QUICK_MS = 10.0  # EsxtopDrill c_map.csv: a disk's warning; a load tool that measured more did not clear it
DOUBT_SHARE = 0.3  # Judgement: of the added time; so much at disks that no limit explains is not cleared
# Causes that make sessions wait for a disk longer, or more often, while each of its requests takes what it took.
_NOT_OF_DISK = frozenset({"cpu-capped", "commit-delayed", "read-ahead"})


@dataclass(eq=False)
class Case:
    """What one answer is decided from: all that is known of one incident, or of a recording without one.

    Attributes:
        incident: None where none was seen.
        findings: those of the incident, causes first.
        causes: the ones that explain it, the first one most.
    """

    incident: Incident | None
    findings: tuple[Finding, ...]
    causes: tuple[Cause, ...]
    account: Account | None
    run: RulesRun
    explained: Explained
    layers: tuple[LayerVerdict, ...]
    capture: Capture
    felt: Felt

    @cached_property
    def lead(self) -> Finding | None:
        """The finding of the first cause."""
        return self.causes[0].finding if self.causes else None

    @cached_property
    def is_explained(self) -> bool:
        """Whether a cause that was measured explains what was felt, or nothing bad was felt."""
        return self.is_caused or (self.incident is None and self.felt is not Felt.SUFFERED)

    @cached_property
    def is_caused(self) -> bool:
        """Whether a cause was measured; a setting alone explains no incident."""
        return any(has_weight(finding) and not finding.is_symptom for finding in self.findings)

    @cached_property
    def disk_causes(self) -> tuple[Finding, ...]:
        """Causes that blame a device, a limit before it, or that see a disk from above."""
        return tuple(cause.finding for cause in self.causes if _blames_disk(cause.finding))

    @cached_property
    def disk_waits(self) -> tuple[Finding, ...]:
        """What waits for a disk where nothing explains the wait."""
        return tuple(
            one
            for one in self.findings
            if one.is_wait and not one.is_explained and one.severity >= Severity.MEDIUM and _sees_disk(one)
        )

    @cached_property
    def path(self) -> LayerState:
        """The state of the storage path, the layer right below the guest's disks."""
        return next(verdict.state for verdict in self.layers if verdict.layer is Layer.STORAGE_PATH)

    @cached_property
    def saw_disks(self) -> bool:
        """Whether rules with the power to see a slow disk had what they need for most of the incident."""
        if not disks_examined(self.run):
            return False
        window = None if self.incident is None else self.incident.window
        clearing = (power.rule for power in self.run.powers if power.part == DISKS and power.clears)
        names = {name for rule in clearing for need in rule_metas()[rule].needs for name in need.split("|")}
        return window is None or any(_recorded_share(self.capture, name, window) >= SEEN_SHARE for name in names)

    @cached_property
    def is_held_back(self) -> bool:
        """Whether the first cause makes waits for disks longer without the disks, which were recorded."""
        is_measured = self.lead is not None and bool(self.lead.windows)
        return is_measured and self.saw_disks and not _NOT_OF_DISK.isdisjoint(_causes_of(self.lead))

    @cached_property
    def disk_share(self) -> float | None:
        """The share of the added time spent at disks; None where there is no account that could show it."""
        if self.account is None or not (self.account.basis is AccountBasis.SAMPLES or self.saw_disks):
            return None
        return self.account.of(Term.DISK, Term.LOG)

    def answer(self, disk: Disk, because: Reason, certainty: Certainty = Certainty.CANNOT_BE_TOLD) -> Answer:
        """The answer of a row, with what is known of the incident."""
        return Answer(self.incident, disk, because, certainty, self.causes, account=self.account)


Row = Callable[[Case], Answer | None]


def answers_of(
    symptoms: Symptoms,
    explained: Explained,
    accounts: tuple[Account | None, ...],
    run: RulesRun,
    layers: tuple[LayerVerdict, ...],
) -> tuple[Answer, ...]:
    """The answer of each incident, or of the recording where none was seen.

    Args:
        symptoms: the incidents, the worst first.
        explained: findings in order.
        accounts: of each incident.
        run: what the rules could see.
        layers: their states.
    """
    answers = []
    for incident, account in zip(symptoms.incidents or (None,), accounts or (None,), strict=True):
        case = Case(
            incident,
            explained.of(incident),
            explained.causes(incident, account),
            account,
            run,
            explained,
            layers,
            explained.capture,
            symptoms.feeling.felt,
        )
        answers.append(decided(case))
    return tuple(answers)


def decided(case: Case) -> Answer:
    """The answer of the first row of the table that holds."""
    answer = next(filter(None, (row(case) for row in ROWS)))
    return replace(answer, explains=case.is_explained, waiting=None if case.is_explained else _waiting(case))


def _waiting(case: Case) -> Finding | None:
    """What waited meanwhile, of weight."""
    waits = (f for f in case.findings if f.is_wait and f.windows and f.severity >= Severity.MEDIUM)
    incident = case.incident
    return next((f for f in waits if incident is None or cover(f.windows, incident.window) >= COVER_MIN), None)


def device(case: Case) -> Answer | None:
    """A device is the first cause."""
    if case.lead is None or not _blames_device(case.lead):
        return None
    return replace(case.answer(Disk.YES, Reason.DEVICE_SLOW, case.causes[0].certainty), finding=case.lead)


def limit(case: Case) -> Answer | None:
    """A limit or a queue before the device is the first cause; from inside a guest the device itself looks alike."""
    if case.lead is None or not _blames_limit(case.lead):
        return None
    reason = Reason.LIMIT_OR_DEVICE if case.lead.guessed else Reason.LIMIT_REACHED
    return replace(case.answer(Disk.YES_A_LIMIT, reason, case.causes[0].certainty), finding=case.lead)


def guest_waits(case: Case) -> Answer | None:
    """The guest or its database waits for a disk, and nothing else of weight was measured."""
    lead = case.lead
    seen = tuple(f for f in case.disk_causes if _sees_disk(f)) + case.disk_waits
    if not seen or (lead is not None and lead.windows and not _sees_disk(lead)):
        return None
    first = seen[0]
    if all(f.layer is Layer.DATABASE for f in seen) and not disks_examined(case.run):
        return replace(case.answer(Disk.UNKNOWN, Reason.DATABASE_WAITS), finding=first)
    if all(rule_metas()[f.rule].blames is Blames.SOME_DISK for f in seen):
        return replace(case.answer(Disk.UNKNOWN, Reason.IO_WAIT), finding=first)
    if case.path is LayerState.NOT_EXAMINED:
        answer = case.answer(Disk.YES_AS_SEEN_BY_GUEST, Reason.GUEST_WAITS, Certainty.PROBABLY)
        return replace(answer, finding=first)
    return replace(case.answer(Disk.UNKNOWN, Reason.BELOW_IS_QUICK), finding=first)


def not_first(case: Case) -> Answer | None:
    """A disk is a cause, and another one comes before it; not where the account gives disks next to nothing."""
    further = case.disk_causes or case.disk_waits
    if case.path is LayerState.CLEARED:  # the guest waits, but not for what is below it
        further = tuple(finding for finding in further if not _sees_disk(finding))
    if not further or (case.disk_share is not None and case.disk_share < ELSEWHERE_SHARE):
        return None
    return replace(case.answer(Disk.NOT_FIRST, Reason.ANOTHER_FIRST, Certainty.PROBABLY), finding=further[0])


def elsewhere(case: Case) -> Answer | None:
    """Another cause covers the incident, and the account gives disks next to nothing."""
    share = case.disk_share
    if case.incident is None or not case.is_caused or share is None or share >= ELSEWHERE_SHARE:
        return None
    return replace(case.answer(Disk.NO, Reason.ELSEWHERE, Certainty.IS), level=_slowest(case))


def unfelt(case: Case) -> Answer | None:
    """A disk passed a limit, and nobody felt it."""
    if not case.explained.unfelt_layers():
        return None
    uninvolved = case.explained.uninvolved
    looking = (f for f in case.findings if f.windows and looks_at_disks(f) and f.entity not in uninvolved)
    if case.incident is not None:  # users felt something: of a disk that its rule gave little weight `faint` tells
        looking = (f for f in looking if f.lowered is not None)
    unfelt = next(looking, None)
    return None if unfelt is None else replace(case.answer(Disk.UNKNOWN, Reason.UNFELT), finding=unfelt)


def faint(case: Case) -> Answer | None:
    """A rule found a slow disk, and gives the finding little weight itself."""
    faint = next(
        (f for f in faint_disks(case.explained.as_measured) if f.entity not in case.explained.uninvolved), None
    )
    return None if faint is None else replace(case.answer(Disk.UNKNOWN, Reason.FAINT), finding=faint)


def some_disk_worse(case: Case) -> Answer | None:
    """The account gives disks a good part of the added time, or a disk is waited for far longer in the incident."""
    # More requests of which each is as quick wait in a queue that is no sign of a slow disk.
    without = {_QUEUE} if "read-ahead" in _causes_of(case.lead) else set()
    worse = [change for change in _disk_changes(case) if _is_much(change) and change.metric not in without]
    if worse:
        clearest = max(worse, key=lambda change: change.share)
        return replace(case.answer(Disk.UNKNOWN, Reason.WAITED_LONGER), change=clearest)
    if case.disk_share is not None and case.disk_share >= DOUBT_SHARE and not case.is_held_back:
        return case.answer(Disk.UNKNOWN, Reason.ACCOUNT)
    return None


def near(case: Case) -> Answer | None:
    """A disk is near its limit, beyond it now and then, or busy with requests waiting, and users felt something."""
    if case.incident is None and case.felt is Felt.FINE:
        return None
    level = near_disk(case.run, case.capture, case.incident, case.explained.uninvolved)
    if level is None:
        return None
    return replace(case.answer(Disk.UNKNOWN, level[0], Certainty.MAY_BE), level=level[1])


def damaged(case: Case) -> Answer | None:
    """Damaged lines were left out, and a disk was not measured for so long that it may have been slow unseen."""
    capture = case.capture
    if not case.saw_disks or not any(warning.code == LEFT_OUT for one in capture.sources for warning in one.warnings):
        return None
    disks = (group for group in capture.groups if group.metric.startswith(_LATENCIES))  # of reads and of writes, too
    longest_s = max(map(_longest_gap_s, disks), default=0.0)
    return case.answer(Disk.UNKNOWN, Reason.DAMAGED) if longest_s >= UNSEEN_S else None


def quick(case: Case) -> Answer | None:
    """Disks were measured with the power to see a slow one, and none was; less sure while nothing else explains it."""
    if not case.saw_disks:
        return None
    certainty = Certainty.IS if case.is_explained else Certainty.PROBABLY
    return replace(case.answer(Disk.NO, Reason.QUICK, certainty), level=_slowest(case))


def not_during(case: Case) -> Answer | None:
    """Disks were recorded with power, but not while it was bad."""
    return case.answer(Disk.UNKNOWN, Reason.NOT_DURING) if disks_examined(case.run) else None


def load_tool(case: Case) -> Answer | None:
    """Only the results of load tools show the disk: quick, or slow under requests that no rule judges it by."""
    measured = slowest_result(case.capture)
    if measured is None:
        return None
    reason = Reason.LOAD_TOOL if measured.mean_ms < QUICK_MS else Reason.LOADED
    return replace(case.answer(Disk.UNKNOWN, reason), measured=measured)


def too_short(case: Case) -> Answer | None:
    """Disks were recorded, for less time than a rule needs."""
    powers = [case.run.shortest(layer, DISKS) for layer in (Layer.GUEST, *STORAGE)]
    shortest = next((power for power in powers if power is not None), None)
    return None if shortest is None else replace(case.answer(Disk.UNKNOWN, Reason.TOO_SHORT), power=shortest)


def not_recorded(case: Case) -> Answer:
    """Nothing recorded shows a disk."""
    return case.answer(Disk.UNKNOWN, Reason.NOT_RECORDED)


ROWS: tuple[Row, ...] = (
    device,
    limit,
    guest_waits,
    not_first,
    elsewhere,
    unfelt,
    faint,
    some_disk_worse,
    near,
    damaged,
    quick,
    not_during,
    too_short,
    load_tool,
    not_recorded,
)


def _longest_gap_s(group: SeriesGroup) -> float:
    """The longest time between two samples of a series in which it was not measured."""
    step_s = group.interval_s if np.isfinite(group.interval_s) else 0.0
    longest_s = 0.0
    for values in group.values:
        measured = group.times_ns[np.isfinite(values)]
        if len(measured) > 1:
            longest_s = max(longest_s, float(np.diff(measured).max()) / 1e9 - step_s)
    return longest_s


def _recorded_share(capture: Capture, metric: str, window: Window) -> float:
    """The share of a span that the samples of a metric stand for, 0 to 1; of the series that was measured most."""
    longest = 0.0
    for group in capture.of(metric):
        inside = (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
        known = np.isfinite(group.values[:, inside]).any(axis=0)
        step_s = group.interval_s if np.isfinite(group.interval_s) else 1.0
        longest = max(longest, float(np.count_nonzero(known)) * max(step_s, 1.0))
    return min(longest / max(window.duration_s, 1.0), 1.0)


def _slowest(case: Case) -> DiskLevel | None:
    """The slowest disk in the incident, or in the recording: the mean of its requests; None where none was recorded."""
    window = None if case.incident is None else case.incident.window
    levels = []
    for metric in _LATENCIES:
        for group in case.capture.of(metric):
            inside = np.ones(len(group.times_ns), dtype=bool)
            if window is not None:
                inside = (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
            latency_ms = group.values[:, inside].astype(np.float64)
            weights = requests_per_s(case.capture, group)[:, inside]
            for disk, row, weight in zip(group.entities, latency_ms, weights, strict=True):
                known = np.isfinite(row) & (weight > 0)
                if known.any() and disk not in case.explained.uninvolved:
                    mean_ms = float(np.average(row[known], weights=weight[known]))
                    levels.append(DiskLevel(disk, mean_ms, "ms", float("nan"), 1.0))
    return max(levels, key=lambda level: level.value, default=None)


def _blames_device(finding: Finding) -> bool:
    meta = rule_metas()[finding.rule]
    return bool(finding.windows) and finding.layer in STORAGE and meta.blames is Blames.DEVICE


def _blames_limit(finding: Finding) -> bool:
    return rule_metas()[finding.rule].blames is Blames.LIMIT


def _causes_of(finding: Finding | None) -> tuple[str, ...]:
    return () if finding is None else rule_metas()[finding.rule].causes


def _sees_disk(finding: Finding) -> bool:
    """Whether a finding of a guest or a database tells of a disk, or that some disk is waited for."""
    return looks_at_disks(finding) or rule_metas()[finding.rule].blames is Blames.SOME_DISK


def _blames_disk(finding: Finding) -> bool:
    return _blames_device(finding) or _blames_limit(finding) or _sees_disk(finding)


def _is_much(change: Change) -> bool:
    least = _MUCH_MS if change.unit == "ms" else _MUCH_COUNT
    return change.during >= _MUCH_RATIO * change.normal and change.during - change.normal >= least


def _disk_changes(case: Case) -> Iterator[Change]:
    if case.incident is None:
        return
    for metric in _DISK_WAITS:
        changes = changes_of(case.capture, metric, case.incident, EntityKind.BLOCK_DEVICE)
        used = (change for change in changes if change.entity not in case.explained.uninvolved)
        yield from (change for change in used if not is_same(change))
