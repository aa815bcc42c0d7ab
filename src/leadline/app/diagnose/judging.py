"""From findings to a verdict per layer and one sentence: why is it slow, is it the disk?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from leadline.app.diagnose.examine import advised
from leadline.app.diagnose.feeling import Feeling, Felt
from leadline.app.diagnose.findings import DISKS
from leadline.app.diagnose.load_results import measured_sentence
from leadline.app.diagnose.near import near_sentence
from leadline.app.diagnose.placing import COVER_MIN, cover
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.finding import Finding, LayerVerdict, Skipped, Verdict
from leadline.core.model.metrics import metric
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, LayerState, Severity
from leadline.core.statistics.changes import change_in, is_same

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.incident import Change, Incident
    from leadline.core.model.power import Power

# Layers whose conviction means "yes, the disk"; the guest only sees it.
_DISK_LAYERS = (Layer.STORAGE_PATH, Layer.DATASTORE)
# Storage-path findings that say a limit or a queue holds I/O back while the device itself is fine.
_NOT_THE_DEVICE = frozenset(
    {"vm-iops-limit-hit", "vsan-iops-limit-latency-artifact", "disk-kavg-high", "disk-qavg-high", "disk-queue-full"}
)
UNSEEN = "Not known: no recording shows the disk's latency."
IO_WAIT = "guest-iowait-high"  # says that something is waited for, not how long

# What a disk shows a guest when it is waited for.
_DISK_WAITS = (
    "guest_disk_await_ms",
    "guest_disk_await_ms_read",
    "guest_disk_await_ms_write",
    "guest_disk_flush_latency_ms",
    "guest_disk_queue_count",
)
READS = frozenset(_DISK_WAITS)
_MUCH_RATIO, _MUCH_MS, _MUCH_COUNT = 2.0, 1.0, 1.0  # Judgement: what a disk waits more that is not chance
ELSEWHERE_SHARE = 0.1  # of the added time; the disk had no part in it worth naming
UNKNOWN = Feeling(Felt.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Ran:
    """What the rules that looked could see, and the rules that could not look.

    ``unfelt`` are layers whose findings lost their weight because users felt nothing: these are not cleared. ``faint``
    are findings of a slow disk that their own rule gave little weight: they convict nobody and clear nobody.
    ``unused`` says what was recorded where nothing of it is looked at. ``near`` are disks near their limits,
    ``brief`` disks beyond them now and then.
    ``disk_share`` is the share of the added time that the account gives to disks; None where there is no account.
    """

    powers: tuple[Power, ...]
    skipped: tuple[Skipped, ...]
    unfelt: frozenset[Layer] = frozenset()
    faint: tuple[Finding, ...] = ()
    unused: str = ""
    near: tuple[Finding, ...] = ()
    brief: tuple[Finding, ...] = ()
    disk_share: float | None = None

    def of(self, layer: Layer) -> tuple[Power, ...]:
        """What the rules of a layer could see."""
        return tuple(power for power in self.powers if power.layer is layer)

    def clearing(self, *layers: Layer) -> frozenset[str]:
        """The parts of some layers that were examined."""
        return frozenset(power.part for power in self.powers if power.layer in layers and power.clears)

    def shortest(self, layer: Layer, part: str | None = None) -> Power | None:
        """The rule of a layer, or of a part of it, that lacks most of the time it needs; None where none lacks any."""
        lacking = [p for p in self.of(layer) if p.can_clear and p.is_short and part in (None, p.part)]
        return max(lacking, key=lambda power: power.needed_s, default=None)


def judge(
    findings: list[Finding],
    ran: Ran,
    capture: Capture,
    incidents: tuple[Incident, ...] = (),
    feeling: Feeling = UNKNOWN,
) -> Verdict:
    """The verdict of findings that are already in order, causes first."""
    explained = any(f.severity >= Severity.MEDIUM and f.windows and not f.is_symptom for f in findings)
    unexplained = not explained and (bool(incidents) or feeling.felt is Felt.SUFFERED)
    layers = tuple(_judge_layer(layer, findings, ran, capture, unexplained=unexplained) for layer in Layer)
    headline = _unexplained(findings, incidents, feeling, layers) if unexplained else _headline(findings, ran, capture)
    answer = _is_it_the_disk(findings, layers, ran)
    if answer == UNSEEN:
        answer = measured_sentence(capture) or answer
    if answer.startswith("No:"):
        answer = _doubted(answer, _Doubts(findings, ran, incidents, capture, unexplained, feeling.felt is Felt.FINE))
    return Verdict(headline, answer, layers)


def _judge_layer(
    layer: Layer, findings: list[Finding], of_all: Ran, capture: Capture, *, unexplained: bool
) -> LayerVerdict:
    layer_findings = tuple(f for f in findings if f.layer is layer and f.severity >= Severity.LOW)
    causes = [f for f in layer_findings if not f.is_symptom]
    if any(f.severity >= Severity.HIGH and f.windows for f in causes):  # a setting alone convicts nobody
        state, reason = LayerState.CONVICTED, causes[0].summary
    elif any(f.severity >= Severity.MEDIUM for f in causes):
        state, reason = LayerState.SUSPECTED, causes[0].summary
    else:
        state, reason = _Clearing(layer, findings, of_all, unexplained).state()
    given = {source.importer for source in capture.sources}
    could_look = any(s.layer is layer for s in of_all.skipped)
    examine = advised(layer, given) if state is LayerState.NOT_EXAMINED and could_look else ()
    run = tuple(power.rule for power in of_all.of(layer))
    looked_at: set[str] = set().union(*(rule_metas()[rule].metrics() for rule in run))
    judged = tuple(name for name in capture.metrics() if name in looked_at)
    return LayerVerdict(layer, state, reason, layer_findings, run, examine, judged)


@dataclass(frozen=True, slots=True)
class _Clearing:
    """Whether a layer that no cause of weight accuses is cleared: only where nothing speaks against it."""

    layer: Layer
    findings: list[Finding]
    ran: Ran
    is_unexplained: bool

    def state(self) -> tuple[LayerState, str]:
        """The state, and why."""
        against = next(self._against(), None)
        if against is not None:
            return LayerState.NOT_EXAMINED, against
        return LayerState.CLEARED, self._only_symptoms() or self._looked()

    def _against(self) -> Iterator[str]:
        """What keeps it from being cleared, the weightiest first."""
        metas = rule_metas()
        waiting = next((f for f in self._weighty() if not f.is_explained), None)
        if waiting is not None:
            yield f"{waiting.summary}, which does not say why"
        examined = self.ran.clearing(self.layer)
        only_symptoms = self._only_symptoms()
        if not examined:
            short = self.ran.shortest(self.layer)
            yield only_symptoms or (_missing(self.layer, self.ran.skipped) if short is None else too_short(short))
        if only_symptoms and not self.is_unexplained and self._is_explained_well():
            return
        if self.layer in self.ran.unfelt:
            summary = next(f.summary for f in self.findings if f.layer is self.layer)
            yield f"{summary}, but nobody felt it: not ruled out"
        faint = next((f for f in self.ran.faint if self.layer in (f.layer, Layer.GUEST)), None)
        if faint is not None:
            yield f"{faint.summary}, of low severity: not ruled out"
        parts = dict.fromkeys(m.examines for m in metas.values() if m.layer is self.layer and m.clears and m.examines)
        unseen = [part for part in parts if part not in examined]
        if unseen:
            seen = [part for part in parts if part in examined]
            fine = f"nothing of weight at its {_and(seen)}; " if seen else ""
            brief = [part for part in unseen if self.ran.shortest(self.layer, part) is not None]
            lacking = f"not recorded for long enough: its {_and(brief)}" if brief else ""
            absent = [part for part in unseen if part not in brief]
            yield fine + "; ".join(filter(None, (lacking, f"not recorded: its {_and(absent)}" if absent else "")))
        if self.is_unexplained:
            yield f"{self._looked()}; not ruled out while what was felt is unexplained"

    def _weighty(self) -> list[Finding]:
        return [f for f in self.findings if f.layer is self.layer and f.severity >= Severity.MEDIUM and f.is_symptom]

    def _only_symptoms(self) -> str:
        symptom = next((f for f in self._weighty() if f.is_explained), None)
        return "" if symptom is None else f"shows symptoms only, explained by {symptom.caused_by}"

    def _is_explained_well(self) -> bool:
        """Whether what explains its symptoms has weight itself."""
        weighty = {(f.rule, f.entity) for f in self.findings if f.severity >= Severity.MEDIUM}
        return all((f.caused_by, f.caused_by_entity) in weighty for f in self._weighty())

    def _looked(self) -> str:
        count = len(self.ran.of(self.layer))
        return f"{count} rule{'s' if count != 1 else ''} looked, nothing of weight"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _unexplained(
    findings: list[Finding], incidents: tuple[Incident, ...], feeling: Feeling, layers: tuple[LayerVerdict, ...]
) -> str:
    """A symptom demands a cause: what was felt, what waited, that nothing explains it, and what was looked at."""
    felt = felt_in(incidents[0]) if incidents else f"{feeling.sentence[0].upper()}{feeling.sentence[1:]}"
    looked = [verdict.layer.value for verdict in layers if _has_looked(verdict) and not verdict.findings]
    without = f" Looked at without a finding: {', '.join(looked)}." if looked else ""
    waits = (f for f in findings if f.is_wait and f.windows and f.severity >= Severity.MEDIUM)
    waiting = next((f for f in waits if not incidents or cover(f.windows, incidents[0].window) >= COVER_MIN), None)
    if waiting is not None:
        return f"{felt}. Meanwhile: {waiting.summary}; nothing recorded says why.{without}"
    return f"{felt}; nothing recorded explains it.{without}"


def _has_looked(verdict: LayerVerdict) -> bool:
    metas = rule_metas()
    return any(metas[name].clears for name in verdict.rules_run)


def felt_in(incident: Incident) -> str:
    """What users felt in an incident, and when: "10:00:36 to 10:01:05 UTC: transactions per second 42/s to 0/s"."""
    times = (incident.window.start_ns, incident.window.end_ns)
    start, end = (datetime.fromtimestamp(ns / 1e9, UTC).strftime("%H:%M:%S") for ns in times)
    if not incident.symptoms:
        return f"{start} to {end} UTC: no change of what users feel was recorded"
    symptom = incident.symptoms[0]
    return f"{start} to {end} UTC: {metric(symptom.metric).meaning.split(',')[0]} went from {symptom}"


@dataclass(frozen=True, slots=True)
class _Doubts:
    """What a "no" is held against."""

    findings: list[Finding]
    ran: Ran
    incidents: tuple[Incident, ...]
    capture: Capture
    is_unexplained: bool
    is_fine: bool


def _doubted(answer: str, doubts: _Doubts) -> str:
    """A "no" only where what was felt is explained, and no disk was slow or waited for much longer meanwhile."""
    unfelt = (f for f in doubts.findings if f.windows and _looks_at_disks(f)) if doubts.ran.unfelt else iter(())
    seen = next(unfelt, None)
    if seen is not None:
        return f"Not known: {seen.summary}, but nobody felt it in this recording."
    if doubts.ran.faint:
        faint = doubts.ran.faint[0]
        return f"Not known: {faint.summary}, {faint.evidence[-1].statement}."
    for incident in doubts.incidents:
        worse = [change for change in _disk_changes(doubts.capture, incident) if _is_much(change)]
        if worse:
            clearest = max(worse, key=lambda change: change.share)
            worsened = (
                f"{metric(clearest.metric).meaning.split(' (')[0]} of {clearest.entity.label()} went from {clearest}"
            )
            return f"Not known: no limit was passed, but {worsened} in the incident."
    share = doubts.ran.disk_share
    is_elsewhere = share is not None and share < ELSEWHERE_SHARE and not doubts.is_unexplained
    near = (
        ""
        if is_elsewhere or doubts.is_fine
        else near_sentence(doubts.ran.near, doubts.ran.brief, doubts.capture, doubts.incidents)
    )
    if near:
        return f"Not known: no limit was passed for long, but {near}."
    if doubts.is_unexplained:
        return "Not known: the disk was looked at and is not slow, but what was felt is not explained."
    return answer


def faint_disks(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings of a slow disk that their own rule gave little weight."""
    low = (f for f in findings if f.windows and f.severity is Severity.LOW)
    return tuple(f for f in low if _looks_at_disks(f) or f.rule in _NOT_THE_DEVICE)


def _looks_at_disks(finding: Finding) -> bool:
    return rule_metas()[finding.rule].examines == DISKS


def _is_much(change: Change) -> bool:
    least = _MUCH_MS if change.unit == "ms" else _MUCH_COUNT
    return change.during >= _MUCH_RATIO * change.normal and change.during - change.normal >= least


def _disk_changes(capture: Capture, incident: Incident) -> Iterator[Change]:
    for name in _DISK_WAITS:
        for group in capture.of(name, EntityKind.BLOCK_DEVICE):
            changes = (change_in(group, row, incident) for row in range(len(group.entities)))
            yield from (change for change in changes if change is not None and not is_same(change))


def too_short(power: Power, cleared: str = "it") -> str:
    """How long was recorded, and how long a rule needs."""
    recorded = f"only {show(power.recorded_s, 's')} {'was' if power.recorded_s == 1.0 else 'were'} recorded"
    if power.is_alone:
        boot = ", which may be an average since boot" if power.is_since_boot else ""
        recorded = f"one report was recorded{boot}"
    if power.needed_s == 0.0:
        return f"{recorded}, too little to clear {cleared}"
    return f"{recorded}, and {show(power.needed_s, 's')} are needed to clear {cleared}"


def _missing(layer: Layer, skipped: tuple[Skipped, ...]) -> str:
    waiting = sum(1 for s in skipped if s.layer is layer)
    if not waiting:
        return "no rule looks at it yet"
    return f"nothing recorded shows it; {waiting} rule{'s' if waiting != 1 else ''} waiting"


def _headline(findings: list[Finding], ran: Ran, capture: Capture) -> str:
    top = findings[0] if findings else None
    if top is None or top.severity < Severity.MEDIUM or top.is_explained:
        if not capture.results and all(source.start_ns is None for source in capture.sources):
            return "Nothing was measured: none of these files holds a sample."
        return ran.unused or "Nothing in these recordings explains slowness."
    return f"{top.summary}; nothing recorded says why." if top.is_wait else top.summary


def _is_it_the_disk(findings: list[Finding], layers: tuple[LayerVerdict, ...], ran: Ran) -> str:
    causes = [f for f in findings if not f.is_symptom and f.severity >= Severity.MEDIUM]
    slow = [f for f in causes if f.windows and f.layer in _DISK_LAYERS and f.rule not in _NOT_THE_DEVICE]
    held_back = [f for f in causes if f.rule in _NOT_THE_DEVICE]
    waits = [f for f in findings if f.is_wait and not f.is_explained and f.severity >= Severity.MEDIUM]
    seen = [f for f in (*causes, *waits) if _looks_at_disks(f) or f.rule == IO_WAIT]
    if slow:
        return f"{'Yes' if slow[0] is causes[0] else 'Also, but not first'}: {slow[0].summary}."
    if held_back:
        rule = held_back[0].rule
        if held_back[0].guessed:
            seen_by_guest = f"Yes as the guest sees it ({held_back[0].summary})"
            return f"{seen_by_guest}; a limit or the device itself, nothing below was recorded."
        return f"No, the device is not to blame: I/O is held back before it ({rule})."
    if seen:
        return _seen_from_above(seen, layers, ran)
    if _disk_examined(ran):
        return "No: the disk was looked at and is not slow."
    short = [ran.shortest(layer, DISKS) for layer in (Layer.GUEST, *_DISK_LAYERS)]
    seen_shortly = next((power for power in short if power is not None), None)
    return UNSEEN if seen_shortly is None else f"Not known: {too_short(seen_shortly, 'a disk')}."


def _seen_from_above(seen: list[Finding], layers: tuple[LayerVerdict, ...], ran: Ran) -> str:
    """The answer where the guest or its database waits, and no layer below was found slow."""
    summary = seen[0].summary
    if all(finding.layer is Layer.DATABASE for finding in seen) and not _disk_examined(ran):
        return f"Not known: {summary}; whether a disk takes that time or a busy CPU was not recorded."
    if all(finding.rule == IO_WAIT for finding in seen):
        return f"Not known: {summary}; which disk is waited for, and how long, was not recorded."
    if _state(layers, Layer.STORAGE_PATH) is LayerState.NOT_EXAMINED:
        return f"Yes as the guest sees it ({summary}); which layer below adds the time was not recorded."
    return "The guest waits for its disk, but no layer below it was found slow."


def _state(layers: tuple[LayerVerdict, ...], layer: Layer) -> LayerState:
    return next(verdict.state for verdict in layers if verdict.layer is layer)


def _disk_examined(ran: Ran) -> bool:
    """Whether a rule that looked had the power to see a slow disk: below the guest, or in it from every side."""
    if DISKS in ran.clearing(*_DISK_LAYERS):
        return True
    seeing = {name for name, meta in rule_metas().items() if meta.clears and meta.examines == DISKS}
    guest = {name for name in seeing if rule_metas()[name].layer is Layer.GUEST}
    return guest <= {power.rule for power in ran.powers if power.clears}
