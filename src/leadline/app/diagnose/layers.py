"""Step six of a verdict, in part: the state of each layer, with the reason as a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.app.diagnose.examine import advised
from leadline.core.contracts.rule import DISKS, rule_metas
from leadline.core.model.answer import Felt
from leadline.core.model.finding import Finding, LayerBecause, LayerReason, LayerVerdict
from leadline.core.model.vocabulary import Blames, Layer, LayerState, Severity

if TYPE_CHECKING:
    from leadline.app.diagnose.causes import Explained
    from leadline.app.diagnose.findings import RulesRun
    from leadline.app.diagnose.symptoms import Symptoms
    from leadline.core.model.capture import Capture


def layers_of(run: RulesRun, explained: Explained, symptoms: Symptoms, capture: Capture) -> tuple[LayerVerdict, ...]:
    """The state of each layer, from the database down.

    Args:
        run: what the rules could see.
        explained: their findings, in order.
        symptoms: a layer is not cleared while what was felt is not explained.
        capture: what was recorded.
    """
    has_cause = any(f.severity >= Severity.MEDIUM and f.windows and not f.is_symptom for f in explained.findings)
    unexplained = not has_cause and (bool(symptoms.incidents) or symptoms.feeling.felt is Felt.SUFFERED)
    return tuple(_layer(_Looked(layer, run, explained, unexplained), capture) for layer in Layer)


def disks_examined(run: RulesRun) -> bool:
    """Whether a rule that looked had the power to see a slow disk: below the guest, or in it from every side."""
    if DISKS in run.cleared_parts(Layer.STORAGE_PATH, Layer.DATASTORE):
        return True
    seeing = {name for name, meta in rule_metas().items() if meta.clears and meta.examines == DISKS}
    guest = {name for name in seeing if rule_metas()[name].layer is Layer.GUEST}
    return guest <= {power.rule for power in run.powers if power.clears}


def looks_at_disks(finding: Finding) -> bool:
    """Whether the rule of a finding tells of disks."""
    return rule_metas()[finding.rule].examines == DISKS


def faint_disks(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings of a slow disk, or of one behind a limit, that their own rule gave little weight."""
    low = (f for f in findings if f.windows and f.severity is Severity.LOW)
    return tuple(f for f in low if looks_at_disks(f) or rule_metas()[f.rule].blames is Blames.LIMIT)


def _layer(looked: _Looked, capture: Capture) -> LayerVerdict:
    of_layer = tuple(f for f in looked.findings if f.layer is looked.layer and f.severity >= Severity.LOW)
    causes = [f for f in of_layer if not f.is_symptom]
    if any(f.severity >= Severity.HIGH and f.windows for f in causes):  # a setting alone convicts nobody
        state, reason = LayerState.CONVICTED, LayerReason(LayerBecause.CAUSE, causes[0])
    elif any(f.severity >= Severity.MEDIUM for f in causes):
        state, reason = LayerState.SUSPECTED, LayerReason(LayerBecause.CAUSE, causes[0])
    else:
        state, reason = looked.state()
    could_look = any(s.layer is looked.layer for s in looked.run.skipped)
    is_open = state is LayerState.NOT_EXAMINED and could_look
    given = {source.importer for source in capture.sources}
    examine = advised(looked.layer, given, capture.metrics()) if is_open else ()
    rules = tuple(power.rule for power in looked.run.of(looked.layer))
    read = frozenset[str]().union(*(rule_metas()[rule].metrics() for rule in rules))
    judged = tuple(name for name in capture.metrics() if name in read)
    return LayerVerdict(looked.layer, state, reason, of_layer, rules, examine, judged)


@dataclass(frozen=True, slots=True)
class _Looked:
    """A layer that was looked at: whether it is cleared, which it is only where nothing speaks against it."""

    layer: Layer
    run: RulesRun
    explained: Explained
    is_unexplained: bool

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.explained.findings

    def state(self) -> tuple[LayerState, LayerReason]:
        """The state of a layer that no cause of weight accuses, and why."""
        against = next(self._against(), None)
        if against is not None:
            return LayerState.NOT_EXAMINED, against
        return LayerState.CLEARED, self._only_symptoms() or self._nothing_found(LayerBecause.NOTHING_FOUND)

    def _against(self) -> Iterator[LayerReason]:
        """What keeps it from being cleared, the weightiest first."""
        waiting = next((f for f in self._symptoms() if not f.is_explained), None)
        if waiting is not None:
            yield LayerReason(LayerBecause.WAIT, waiting)
        examined = self.run.cleared_parts(self.layer)
        only_symptoms = self._only_symptoms()
        if not examined:
            yield only_symptoms or self._not_looked()
        if only_symptoms and not self.is_unexplained and self._is_explained_well():
            yield from self._unseen()
            return
        if self.layer in self.explained.unfelt_layers():
            yield LayerReason(LayerBecause.UNFELT, next(f for f in self.findings if f.layer is self.layer))
        faint = faint_disks(self.explained.as_measured)
        nearby = next((f for f in faint if self.layer in (f.layer, Layer.GUEST)), None)
        if nearby is not None:
            yield LayerReason(LayerBecause.FAINT, nearby)
        yield from self._unseen()
        if self.is_unexplained:
            yield self._nothing_found(LayerBecause.UNEXPLAINED)

    def _unseen(self) -> Iterator[LayerReason]:
        """The parts of the layer that were not looked at, where there are some."""
        examined = self.run.cleared_parts(self.layer)
        metas = rule_metas().values()
        parts = dict.fromkeys(m.examines for m in metas if m.layer is self.layer and m.clears and m.examines)
        unseen = [part for part in parts if part not in examined]
        if unseen:
            brief = tuple(part for part in unseen if self.run.shortest(self.layer, part) is not None)
            absent = tuple(part for part in unseen if part not in brief)
            seen = tuple(part for part in parts if part in examined)
            yield LayerReason(LayerBecause.PARTS_UNSEEN, seen=seen, brief=brief, absent=absent)

    def _not_looked(self) -> LayerReason:
        short = self.run.shortest(self.layer)
        if short is not None:
            return LayerReason(LayerBecause.TOO_SHORT, power=short)
        waiting = sum(1 for skipped in self.run.skipped if skipped.layer is self.layer)
        return LayerReason(LayerBecause.NOT_RECORDED if waiting else LayerBecause.NO_RULE, rule_count=waiting)

    def _symptoms(self) -> list[Finding]:
        return [f for f in self.findings if f.layer is self.layer and f.severity >= Severity.MEDIUM and f.is_symptom]

    def _only_symptoms(self) -> LayerReason | None:
        symptom = next((f for f in self._symptoms() if f.is_explained), None)
        return None if symptom is None else LayerReason(LayerBecause.SYMPTOMS_ONLY, symptom)

    def _is_explained_well(self) -> bool:
        """Whether what explains its symptoms has weight itself."""
        weighty = {(f.rule, f.entity) for f in self.findings if f.severity >= Severity.MEDIUM}
        return all((f.caused_by, f.caused_by_entity) in weighty for f in self._symptoms())

    def _nothing_found(self, because: LayerBecause) -> LayerReason:
        return LayerReason(because, rule_count=len(self.run.of(self.layer)))
