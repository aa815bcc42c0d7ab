"""What is wrong now, of a diagnosis of the live window: each of it one suspicion, with the places it touches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.app.diagnose.incidents import FELT, POINT_COUNT_MIN, SESSIONS, STOPPED_RATIO, THROUGHPUT
from leadline.app.watch.judging import rule_duration_s
from leadline.core.model.answer import Felt
from leadline.core.model.capture import NS_PER_S
from leadline.core.model.entities import Entity
from leadline.core.model.profile import Profile
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

if TYPE_CHECKING:
    from leadline.core.model.answer import Answer
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Inventory
    from leadline.core.model.finding import Diagnosis, Finding, Window
    from leadline.core.model.incident import Change

MORE_WORK = "db-more-work"
RECENT_S = 30.0  # Judgement: what was bad until then is bad now; averages of 20 s come late
BEGUN_S = 60.0  # Judgement: of a shorter window it cannot be said what is usual
ALARM_RATIO = 2.0  # Judgement: what users wait for, or how many wait, against what is usual
DURATION_SHARE = 0.9  # of a rule's duration: the first sample of a window stands for an interval before it
_STORAGE = frozenset({Layer.STORAGE_PATH, Layer.DATASTORE})
_STORES = frozenset({EntityKind.DATASTORE, EntityKind.DEVICE, EntityKind.DISK_GROUP})
_ALONE = _STORES | {EntityKind.HOST}


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Something that is wrong now.

    Attributes:
        cause: the rule that names the first cause; of what nothing explains, because of what.
        entity: what the cause is about; None where nothing is named.
        window: since when, and until when it was seen.
        places: what it touches: whatever touches the same belongs together.
        answer_index: of the answer it was taken from; None for a finding that nobody felt.
        symptoms: what users felt.
        rules: of its findings, the first cause first.
    """

    cause: str
    entity: Entity | None
    severity: Severity
    window: Window
    places: frozenset[str]
    answer_index: int | None
    symptoms: tuple[Change, ...]
    rules: tuple[str, ...]

    @property
    def was_felt(self) -> bool:
        """Whether users felt it."""
        return bool(self.symptoms)


def recent_ns(now_ns: int) -> int:
    """What was bad until then, UTC nanoseconds, is bad at a time."""
    return now_ns - round(RECENT_S * NS_PER_S)


def suspicions_of(
    diagnosis: Diagnosis, capture: Capture, now_ns: int, profile: Profile | None = None
) -> tuple[Suspicion, ...]:
    """What is wrong at a time, what was felt first.

    A finding that nobody felt counts where it is of high severity, or where it is not known what users feel and its
    severity is medium; and where it lasted for as long as its rule asks, in a window that is long enough: one that has
    only begun is no recording that is too short for a rule.

    Args:
        diagnosis: of the live window.
        capture: the live window.
        now_ns: the time of its newest sample, UTC nanoseconds.
        profile: a site's own limits.
    """
    inventory = capture.inventory
    since_ns = recent_ns(now_ns)
    answers = [
        (place, answer)
        for place, answer in enumerate(diagnosis.answers)
        if answer.incident is not None and answer.incident.window.end_ns >= since_ns
    ]
    alarming = ((place, answer) for place, answer in answers if _is_alarming(answer) and not _is_work_alone(answer))
    felt = [_felt(place, answer, inventory) for place, answer in alarming]
    taken = {rule for one in felt for rule in one.rules}
    taken |= {cause.finding.rule for _, answer in answers if (cause := answer.cause) is not None}
    least = Severity.HIGH if felt or _is_users_state_known(diagnosis, capture, since_ns) else Severity.MEDIUM
    if (span := capture.span_ns()) is not None and now_ns - span[0] < BEGUN_S * NS_PER_S:
        return tuple(felt)
    limits = [
        _unfelt(finding, inventory)
        for finding in _now(diagnosis, since_ns, least, profile or Profile())
        if finding.rule not in taken
    ]
    return (*felt, *limits)


def looking_back(diagnosis: Diagnosis, capture: Capture, window: Window) -> Suspicion | None:
    """What an incident that is over was, of a diagnosis of a time with all of it; None where nothing was felt then."""
    felt = [
        _felt(place, answer, capture.inventory)
        for place, answer in enumerate(diagnosis.answers)
        if answer.incident is not None and answer.incident.symptoms and answer.incident.window.overlaps(window)
    ]
    return max(felt, key=lambda one: one.window.shared_ns(window), default=None)


def _is_alarming(answer: Answer) -> bool:
    """Whether what was felt is worth a call: it has doubled, or less than that for a glaring reason.

    Who runs a diagnosis has heard complaints; a watch has not, and latency that grows by half comes and goes all day.
    """
    symptoms = () if answer.incident is None else answer.incident.symptoms
    if any(one.metric in THROUGHPUT or one.during >= ALARM_RATIO * one.normal for one in symptoms):
        return True
    return answer.explains and answer.cause is not None and answer.cause.finding.severity >= Severity.HIGH


def _is_work_alone(answer: Answer) -> bool:
    """Whether all that was felt is that users asked for less, or for more without waiting longer.

    Who complains knows that users wait; a watch sees work come and go, as at both ends of every day.
    """
    symptoms = () if answer.incident is None else answer.incident.symptoms
    if not symptoms:
        return False
    if answer.cause is None:
        return all(one.metric in THROUGHPUT and one.during > STOPPED_RATIO * one.normal for one in symptoms)
    return answer.cause.finding.rule == MORE_WORK and all(one.metric in SESSIONS for one in symptoms)


def _is_users_state_known(diagnosis: Diagnosis, capture: Capture, since_ns: int) -> bool:
    """Whether it is measured what users feel: then nothing is wrong for them where nothing was found."""
    if diagnosis.feeling is not None and diagnosis.feeling.felt is Felt.FINE:
        return True
    groups = (group for metric in FELT for group in capture.of(metric))
    return any(len(group.times_ns) >= POINT_COUNT_MIN and group.times_ns[-1] >= since_ns for group in groups)


def _felt(place: int, answer: Answer, inventory: Inventory) -> Suspicion:
    incident = answer.incident
    assert incident is not None  # by the caller
    cause = answer.cause if answer.explains else None
    severity = max([Severity.MEDIUM, *(finding.severity for one in answer.causes for finding in one.findings)])
    entities = [symptom.entity for symptom in incident.symptoms]
    findings = [finding for one in answer.causes for finding in one.findings]
    places = {name for finding in findings for name in places_of(inventory, finding.entity, finding.layer)}
    places |= {name for entity in entities for name in places_of(inventory, entity, Layer.DATABASE)}
    return Suspicion(
        cause=answer.because.value if cause is None else cause.finding.rule,
        entity=cause.entity if cause is not None else next(iter(entities), None),
        severity=severity,
        window=incident.window,
        places=frozenset(places),
        answer_index=place,
        symptoms=incident.symptoms,
        rules=tuple(dict.fromkeys(finding.rule for finding in findings)),
    )


def _now(diagnosis: Diagnosis, since_ns: int, least: Severity, profile: Profile) -> Iterator[Finding]:
    """Findings of now that nothing explains."""
    for finding in diagnosis.findings:
        is_now = bool(finding.windows) and finding.windows[-1].end_ns >= since_ns
        if is_now:
            longest_s = max(window.duration_s for window in finding.windows)
            is_now = longest_s >= DURATION_SHARE * rule_duration_s(finding.rule, profile, 0.0)
        if is_now and finding.severity >= least and not finding.is_explained:
            yield finding


def _unfelt(finding: Finding, inventory: Inventory) -> Suspicion:
    return Suspicion(
        cause=finding.rule,
        entity=finding.entity,
        severity=finding.severity,
        window=finding.windows[-1],
        places=places_of(inventory, finding.entity, finding.layer),
        answer_index=None,
        symptoms=(),
        rules=(finding.rule,),
    )


def places_of(inventory: Inventory, entity: Entity, layer: Layer) -> frozenset[str]:
    """What an entity is and lies on, as far as what is wrong in a layer may reach.

    A VM, its guest and its database are one place for whatever is wrong. A host, a datastore and a device are one for
    what is wrong in the same layer: a busy CPU and a slow datastore of one host are two incidents.
    """
    lineage = inventory.full_lineage(entity)
    is_storage = layer in _STORAGE
    touched = {one for one in lineage if one.kind is not EntityKind.CLUSTER and (is_storage or one.kind not in _STORES)}
    reach = "storage" if is_storage else layer.value
    return frozenset(f"{reach}: {one}" if one.kind in _ALONE else str(one) for one in touched)


def entity_at(place: str) -> Entity:
    """The entity of a place, as `places_of` writes it.

    >>> str(entity_at("storage: datastore:gold")), str(entity_at("host:esx1/vm:db: old"))
    ('datastore:gold', 'host:esx1/vm:db: old')
    """
    reach, _, rest = place.partition(": ")
    return Entity.parse(rest if rest and ":" not in reach else place)
