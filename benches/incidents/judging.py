"""The judgement of one diagnosis by the truth of its recording.

A finding below medium, which the headline passes over, is no finding here, and neither is a symptom of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from benches.incidents.culprits import done_by, is_named, named
from benches.incidents.recordings import Fault, Truth, ns_of
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.answer import Disk
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Diagnosis, Finding, Window
from leadline.core.model.vocabulary import EntityKind, LayerState, Severity
from leadline.faces.words.answers import disk_sentence, headline
from leadline.faces.words.findings import Quotes

OVERLAP_MIN = 0.5  # of the windows of the finding and the fault, by union
# The machine, its processors and its one database server: right where the truth names no entity.
_MACHINE = frozenset(
    {EntityKind.GUEST, EntityKind.VM, EntityKind.HOST, EntityKind.CPU, EntityKind.VCPU, EntityKind.PCPU}
    | {EntityKind.DATABASE}
)
# What an innocent is called, by its kind.
NOUNS = {EntityKind.BLOCK_DEVICE: "disk", EntityKind.PROCESS: "program", EntityKind.DATABASE: "database"}
_BY_OTHERS = frozenset({"cpu-taken", "disk-busy-with-others"})  # causes whose evidence names who did it
_ACCUSED = frozenset({LayerState.CONVICTED, LayerState.SUSPECTED})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a diagnosis said of one view of one recording, and what of that is right.

    Attributes:
        is_faulty: the recording has a fault; otherwise it is healthy.
        is_visible: the view can show the cause of the fault.
        disk: the answer to "is it the disk?": yes, no or unknown.
        rule: of the top finding; None where nothing is accused.
        clearances: what was cleared wrongly: ``disk``, ``layer guest``.
        accusations: what was accused wrongly: ``disk``, ``guest-run-queue-high on db01``.
        has_bystanders: others were at work that have no part in it.
        innocents: whom of those that the truth calls innocent it accuses: ``disk loop3``, ``program dd``.
        is_time_right: the windows of the top finding are those of the fault; None where that is not judged.
        who: whom the causes name, in their order.
        is_who_right: the one who did it is named; None where no recorder saw anybody.
        states: of each layer, as ``guest=convicted``.
        threshold_clearances: what a list of thresholds clears wrongly.
        threshold_accusations: what a list of thresholds accuses wrongly.
    """

    kind: str
    variant: int
    is_set_aside: bool
    view: str
    is_faulty: bool
    is_visible: bool
    disk: str = "unknown"
    rule: str | None = None
    entity: str | None = None
    headline: str = ""
    answer: str = ""
    is_layer_right: bool = False
    is_entity_right: bool = False
    is_cause_right: bool = False
    is_time_right: bool | None = None
    clearances: tuple[str, ...] = ()
    accusations: tuple[str, ...] = ()
    has_bystanders: bool = False
    innocents: tuple[str, ...] = ()
    who: tuple[str, ...] = ()
    is_who_right: bool | None = None
    states: tuple[str, ...] = ()
    threshold_clearances: tuple[str, ...] = field(default=())
    threshold_accusations: tuple[str, ...] = field(default=())

    @property
    def is_top_right(self) -> bool:
        """Whether the top finding names the cause, on the right layer and entity."""
        return self.is_layer_right and self.is_entity_right and self.is_cause_right

    @property
    def says_it_cannot_know(self) -> bool:
        """Whether nothing was accused, and nothing cleared that is to blame."""
        return self.rule is None and not self.accusations and not self.clearances

    @property
    def is_knowable(self) -> bool:
        """Whether there is a cause, and this view can show it."""
        return self.is_faulty and self.is_visible

    @property
    def is_unknowable(self) -> bool:
        """Whether there is a cause that this view cannot show."""
        return self.is_faulty and not self.is_visible


def blank(truth: Truth, view: str, *, is_visible: bool) -> Judgement:
    """The judgement of what Leadline cannot read: it says nothing."""
    is_faulty, has_bystanders = truth.fault is not None, bool(truth.bystanders)
    kind, variant, is_set_aside = truth.kind, truth.variant, truth.set_aside
    return Judgement(kind, variant, is_set_aside, view, is_faulty, is_visible, has_bystanders=has_bystanders)


def judged(truth: Truth, diagnosis: Diagnosis, view: str, *, is_visible: bool, is_timed: bool) -> Judgement:
    """Judge a diagnosis of one view; ``is_timed`` where the time of the top finding counts."""
    causes = [f for f in diagnosis.findings if f.severity >= Severity.MEDIUM and not f.is_symptom]
    top, fault, disk = next(iter(causes), None), truth.fault, disk_of(diagnosis.answer.disk)
    innocent = named_innocents(truth, diagnosis, causes)
    wanted, whos = done_by(truth, view), named(diagnosis)
    return Judgement(
        truth.kind,
        truth.variant,
        truth.set_aside,
        view,
        fault is not None,
        is_visible,
        disk,
        None if top is None else top.rule,
        None if top is None else top.entity.label(),
        headline(diagnosis, Quotes()),
        disk_sentence(diagnosis.answer, Quotes()),
        fault is not None and top is not None and top.layer in fault.layers,
        fault is not None and top is not None and _is_entity_right(top, truth, fault),
        fault is not None and top is not None and not fault.causes.isdisjoint(causes_of(top)),
        _is_time_right(top, fault) if is_timed and fault is not None else None,
        tuple(wrong_clearances(truth, diagnosis, disk)),
        (*wrong_accusations(truth, causes, disk), *innocent),
        bool(truth.bystanders),
        tuple(dict.fromkeys([*_innocents(truth, (one.entity for one in causes)), *innocent])),
        tuple(f"{who.kind.value} {who.name}" for who in whos),
        is_named(wanted, whos) if wanted else None,
        tuple(f"{layer.layer.value}={layer.state.value}" for layer in diagnosis.layers),
    )


def disk_of(answer: Disk) -> str:
    """The answer to "is it the disk?" in one word: yes, no or unknown."""
    return "yes" if answer.accuses else answer.value


def causes_of(finding: Finding) -> frozenset[str]:
    """The causes a finding may mean; none when it names no cause."""
    return frozenset(rule_metas()[finding.rule].causes)


def wrong_clearances(truth: Truth, diagnosis: Diagnosis, disk: str) -> list[str]:
    """The disk, when it is to blame and the answer is no; cleared layers of those to blame, when none is accused."""
    cleared = ["disk"] if truth.disk == "yes" and disk == "no" else []
    if truth.fault is None:
        return cleared
    verdicts = [diagnosis.layer(layer) for layer in truth.fault.layers]
    if any(verdict.state in _ACCUSED for verdict in verdicts):
        return cleared
    return cleared + [f"layer {v.layer.value}" for v in verdicts if v.state is LayerState.CLEARED]


def wrong_accusations(truth: Truth, causes: Iterable[Finding], disk: str) -> list[str]:
    """The disk, when it is innocent and the answer is yes; findings on an innocent layer or entity.

    In a healthy recording every finding is a wrong accusation.
    """
    accused = ["disk"] if disk == "yes" and (truth.disk == "no" or truth.fault is None) else []
    return accused + [
        f"{finding.rule} on {finding.entity.label()}" for finding in causes if _is_innocent(finding, truth)
    ]


def named_innocents(truth: Truth, diagnosis: Diagnosis, causes: Iterable[Finding]) -> list[str]:
    """Whom of the innocent a cause names as the one who did it, in its evidence or as its culprit."""
    named = [who.entity for answer in diagnosis.answers for cause in answer.causes if (who := cause.who) is not None]
    for finding in causes:
        if not _BY_OTHERS.isdisjoint(causes_of(finding)):
            named += [one.entity for one in finding.evidence if one.entity and one.entity.kind is EntityKind.PROCESS]
    return list(dict.fromkeys(_innocents(truth, (entity for entity in named if entity is not None))))


def _innocents(truth: Truth, entities: Iterable[Entity]) -> Iterator[str]:
    """Those of the entities that the truth calls innocent, with what each is: ``disk loop3``, ``program dd``."""
    for entity in entities:
        for one in truth.innocent.entities:
            if one.is_around(entity):
                yield f"{NOUNS.get(one.kind, one.kind.value)} {one.name.partition('[')[0]}"


def _is_innocent(finding: Finding, truth: Truth) -> bool:
    if truth.fault is None or finding.layer in truth.innocent.layers:
        return True
    return any(entity.is_around(finding.entity) for entity in truth.innocent.entities)


def _is_entity_right(finding: Finding, truth: Truth, fault: Fault) -> bool:
    entity, named = finding.entity, causes_of(finding)
    if entity.kind in _MACHINE and fault.cause not in named and not named.isdisjoint(fault.others):
        return True  # the second of two faults: the entities are those of the first
    if not fault.entities:
        if entity.kind is EntityKind.BLOCK_DEVICE:  # of a fault that may show as a slow disk
            return truth.disk != "no" and not any(one.is_around(entity) for one in truth.innocent.entities)
        return entity.kind in _MACHINE
    return any(one.is_around(entity) for one in fault.entities)


def _is_time_right(finding: Finding | None, fault: Fault) -> bool:
    if finding is None:
        return False
    return overlap(finding.windows, Window(ns_of(fault.start), ns_of(fault.end))) >= OVERLAP_MIN


def overlap(windows: Iterable[Window], fault: Window) -> float:
    """The share of the time of windows and fault together that is both."""
    common = union = 0
    reached = fault.start_ns  # windows are counted once where they overlap each other
    end_last = None
    for window in sorted(windows, key=lambda one: one.start_ns):
        start = window.start_ns if end_last is None else max(window.start_ns, end_last)
        if window.end_ns <= start:
            continue
        end_last = window.end_ns
        union += window.end_ns - start
        common += max(min(window.end_ns, fault.end_ns) - max(start, reached), 0)
    union += fault.end_ns - fault.start_ns - common
    return common / union if union else 0.0
