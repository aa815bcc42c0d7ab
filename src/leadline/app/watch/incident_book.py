"""The life of incidents: opened when it lasts, updated, closed when it is over for a while, opened again on return.

One cause is one incident: what touches the same places at the same time belongs to it. Flapping is one incident, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.watch.judging import GAP_S, rule_duration_s
from leadline.app.watch.placing import PlacedIncidents
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.capture import NS_PER_S
from leadline.core.model.finding import Window
from leadline.core.model.metrics import metric
from leadline.core.model.profile import Profile
from leadline.core.model.vocabulary import Better
from leadline.stores.incidents import LiveIncident

if TYPE_CHECKING:
    from leadline.app.watch.suspicions import Suspicion
    from leadline.core.model.capture import Capture
    from leadline.core.model.incident import Change

OPEN_AFTER_S = 10.0  # Judgement: a rule has its own duration; a symptom that is gone by then is a hiccup
HICCUP_S = 15.0  # Judgement: what was felt for a shorter time and is over nobody need be told of
CLOSE_AFTER_S = 60.0  # Judgement: as long as nothing was seen it may come back
REOPEN_WITHIN_S = 900.0  # Judgement: what comes back within a quarter of an hour is the same incident, flapping
REOPEN_ANY_S = 60.0  # Judgement: and whatever its cause seems to be when it comes back as soon as that
GIVE_UP_S = 1800.0  # a symptom that is not measured any more keeps no incident open for longer
RECOVERED_SHARE = 0.5  # of the way back from what it was meanwhile to what it was before
RECENT_SAMPLES = 5


class LifeStep(StrEnum):
    """What became of an incident in a judgement."""

    OPENED = "opened"
    CHANGED = "changed"  # its severity or first cause is another one
    SEEN = "seen"
    CLOSED = "closed"
    REOPENED = "reopened"


@dataclass(frozen=True, slots=True)
class IncidentStep:
    """An incident and what became of it."""

    step: LifeStep
    incident: LiveIncident


def still_needed(steps: Sequence[IncidentStep]) -> list[IncidentStep]:
    """Steps without those that only saw an incident of which a later step tells."""
    last = {step.incident.id: place for place, step in enumerate(steps)}
    return [
        step for place, step in enumerate(steps) if step.step is not LifeStep.SEEN or last[step.incident.id] == place
    ]


@dataclass(eq=False)
class _Waiting:
    """A suspicion that has not lasted long enough yet."""

    suspicion: Suspicion
    first_ns: int
    seen_ns: int


@dataclass(eq=False)
class IncidentBook:
    """The incidents that are open, and those closed a short while ago.

    Args:
        say: title and text of a suspicion, as people read it.
    """

    say: Callable[[Suspicion], tuple[str, str]]
    _open: PlacedIncidents = field(default_factory=PlacedIncidents)
    _closed: PlacedIncidents = field(default_factory=PlacedIncidents)
    # How often each cause, with what it is about, was the first one of an incident.
    _named: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    _waiting: list[_Waiting] = field(default_factory=list)
    _number: int = 0

    def take_up(self, incidents: Iterable[LiveIncident]) -> None:
        """Go on with what was stored when the last watch ended."""
        for incident in incidents:
            (self._open if incident.is_open else self._closed)[incident.id] = incident
            number = incident.id.rpartition("-")[2]
            self._number = max(self._number, int(number) if number.isdecimal() else 0)  # no id comes a second time

    def open_ones(self) -> tuple[LiveIncident, ...]:
        """The incidents that go on."""
        return tuple(self._open.values())

    def get(self, number: str) -> LiveIncident | None:
        """An incident that is open or was closed a short while ago."""
        return self._open.get(number) or self._closed.get(number)

    def past_ones(self) -> tuple[Window, ...]:
        """When those were that are over, until they had recovered."""
        return tuple(Window(one.opened_ns, one.closed_ns or one.seen_ns) for one in self._closed.values())

    def with_capture(self, number: str, path: str) -> LiveIncident:
        """An incident with the place of its own recording, from now on."""
        known = self._open if number in self._open else self._closed
        known[number] = replace(known[number], capture=path)
        return known[number]

    def concluded(self, step: IncidentStep, suspicion: Suspicion, words: tuple[str, str]) -> IncidentStep:
        """An incident that was closed, called by what it turned out to be: its suspicion, title and text."""
        incident = self._closed[step.incident.id]
        title, text = words
        incident = replace(
            incident,
            cause=suspicion.cause,
            entity=_entity_text(suspicion),
            title=title,
            text=text,
            rules=tuple(dict.fromkeys((*suspicion.rules, *incident.rules))),
        )
        self._closed[incident.id] = incident
        return replace(step, incident=incident)

    def judged(self, suspicions: Iterable[Suspicion], capture: Capture, now_ns: int) -> list[IncidentStep]:
        """Take a judgement in; what became of each incident it concerns.

        Args:
            suspicions: what is wrong now.
            capture: the live window, in which symptoms are looked up.
            now_ns: the time of the newest sample, UTC nanoseconds.
        """
        self._put_back(now_ns)
        steps: list[IncidentStep] = []
        waiting: list[_Waiting] = []
        waited = {place: one for one in reversed(self._waiting) for place in one.suspicion.places}
        for suspicion in suspicions:
            known = _belongs_to(suspicion, self._open)
            if known is not None:
                is_over = self._is_over_for_users(known, suspicion, capture)
                steps.append(self._seen(known, suspicion, known.seen_ns if is_over else now_ns))
                continue
            if self._is_left_over(suspicion):
                continue
            first_ns = min((waited[place].first_ns for place in suspicion.places & waited.keys()), default=now_ns)
            if now_ns - first_ns < OPEN_AFTER_S * NS_PER_S or _was_hiccup(suspicion, capture):
                waiting.append(_Waiting(suspicion, first_ns, now_ns))
            else:
                steps.append(self._opened(suspicion, now_ns))
        self._waiting = waiting
        steps.extend(self._over(capture, now_ns))
        return steps

    def _put_back(self, now_ns: int) -> None:
        """Let nothing be later than now: else a clock that was ahead would keep incidents open until that time."""
        self._waiting = [one for one in self._waiting if one.first_ns <= now_ns]
        for incident in [one for one in self._open.values() if one.seen_ns > now_ns]:
            self._open[incident.id] = replace(incident, seen_ns=now_ns)
        for incident in [one for one in self._closed.values() if (one.closed_ns or 0) > now_ns]:
            self._closed[incident.id] = replace(incident, seen_ns=min(incident.seen_ns, now_ns), closed_ns=now_ns)

    def _is_over_for_users(self, incident: LiveIncident, suspicion: Suspicion, capture: Capture) -> bool:
        """Whether users felt an incident and do not any more: a limit that is passed beside it keeps it open no longer.

        Rules look at all of their window, so what was bad in the incident counts in it for a while.
        """
        if suspicion.was_felt or not incident.was_felt:
            return False
        return bool(incident.symptoms) and have_recovered(incident.symptoms, capture) is True

    def _is_left_over(self, suspicion: Suspicion) -> bool:
        """Whether a limit was passed in an incident that is over for users, and is seen because of that."""
        if suspicion.was_felt:
            return False
        felt = [one for one in self._closed.touching(suspicion.places) if one.was_felt]
        return any(suspicion.window.start_ns < (one.closed_ns or 0) for one in felt)

    def _opened(self, suspicion: Suspicion, now_ns: int) -> IncidentStep:
        back = _belongs_to(suspicion, self._closed)
        if back is not None and _returns(back, suspicion, now_ns):
            del self._closed[back.id]
            if (back.cause, back.entity) != (suspicion.cause, _entity_text(suspicion)):
                self._named.pop(back.id, None)  # it is called by what it is now
            back = replace(back, closed_ns=None, reopened_count=back.reopened_count + 1)
            self._open[back.id] = back
            return replace(self._seen(back, suspicion, now_ns), step=LifeStep.REOPENED)
        self._number += 1
        opened = datetime.fromtimestamp(suspicion.window.start_ns / NS_PER_S, UTC)
        title, text = self.say(suspicion)
        incident = LiveIncident(
            id=f"{opened:%Y%m%d-%H%M%S}-{self._number}",
            opened_ns=suspicion.window.start_ns,
            seen_ns=now_ns,
            closed_ns=None,
            severity=suspicion.severity,
            cause=suspicion.cause,
            entity=_entity_text(suspicion),
            title=title,
            text=text,
            rules=suspicion.rules,
            places=tuple(sorted(suspicion.places)),
            was_felt=suspicion.was_felt,
            symptoms=suspicion.symptoms,
        )
        self._open[incident.id] = incident
        return IncidentStep(LifeStep.OPENED, incident)

    def _seen(self, incident: LiveIncident, suspicion: Suspicion, now_ns: int) -> IncidentStep:
        """An incident that goes on: what was felt says more of it than a limit that was passed beside it."""
        is_beside = suspicion.cause != incident.cause and suspicion.severity <= incident.severity
        if not suspicion.was_felt and (incident.was_felt or is_beside):
            places = {*incident.places, *suspicion.places}
            rules = tuple(dict.fromkeys((*incident.rules, *suspicion.rules)))
            updated = replace(incident, seen_ns=now_ns, rules=rules, places=tuple(sorted(places)))
            self._open[incident.id] = updated
            return IncidentStep(LifeStep.SEEN, updated)
        updated = replace(
            self._renamed(incident, suspicion),
            seen_ns=now_ns,
            severity=max(incident.severity, suspicion.severity),
            rules=tuple(dict.fromkeys((*suspicion.rules, *incident.rules))),
            places=tuple(sorted({*incident.places, *suspicion.places})),
            was_felt=incident.was_felt or suspicion.was_felt,
            symptoms=suspicion.symptoms or incident.symptoms,
        )
        self._open[incident.id] = updated
        changed = updated.severity > incident.severity or updated.cause != incident.cause
        return IncidentStep(LifeStep.CHANGED if changed else LifeStep.SEEN, updated)

    def _renamed(self, incident: LiveIncident, suspicion: Suspicion) -> LiveIncident:
        """An incident called by what was its first cause most often so far; of as many the last one.

        What explains it is judged anew every few seconds, each time from a little more, and may waver.
        """
        key = (suspicion.cause, _entity_text(suspicion))
        named = self._named.setdefault(incident.id, Counter({(incident.cause, incident.entity): 1}))
        is_worse = suspicion.severity > incident.severity and not incident.was_felt
        named[key] = max(named.values()) if is_worse else named[key] + 1
        if named[key] < max(named.values()):
            return incident
        title, text = self.say(suspicion)
        return replace(incident, cause=suspicion.cause, entity=key[1], title=title, text=text)

    def _over(self, capture: Capture, now_ns: int) -> list[IncidentStep]:
        """Close what was not seen for a while, unless what users felt has not gone back."""
        steps = []
        for incident in list(self._open.values()):
            quiet_s = (now_ns - incident.seen_ns) / NS_PER_S
            if quiet_s < CLOSE_AFTER_S or _may_be_unseen(incident, capture, now_ns):
                continue
            state = have_recovered(incident.symptoms, capture)
            if state is False or (state is None and quiet_s < GIVE_UP_S):
                if state is False:
                    self._open[incident.id] = replace(incident, seen_ns=now_ns - round((CLOSE_AFTER_S - 1) * NS_PER_S))
                continue
            closed = replace(incident, closed_ns=now_ns)
            del self._open[incident.id]
            self._closed[incident.id] = closed
            steps.append(IncidentStep(LifeStep.CLOSED, closed))
        limit_ns = now_ns - round(REOPEN_WITHIN_S * NS_PER_S)
        for known in [one for one in self._closed.values() if (one.closed_ns or 0) < limit_ns]:
            del self._closed[known.id]
            self._named.pop(known.id, None)
        return steps


def _was_hiccup(suspicion: Suspicion, capture: Capture) -> bool:
    """Whether what users felt was short and is over: it counts as of now for half a minute after it."""
    is_short = suspicion.was_felt and suspicion.window.duration_s < HICCUP_S
    return is_short and have_recovered(suspicion.symptoms, capture) is True


def _may_be_unseen(incident: LiveIncident, capture: Capture, now_ns: int) -> bool:
    """Whether its rule, which nobody felt, cannot have seen it again, as the window began after it: a new watch."""
    span = capture.span_ns()
    if incident.symptoms or span is None or incident.opened_ns >= span[0]:
        return False
    is_rule = incident.cause in rule_metas()
    duration_s = rule_duration_s(incident.cause, Profile(), GAP_S) if is_rule else GAP_S
    return now_ns - span[0] < (duration_s + CLOSE_AFTER_S) * NS_PER_S


def _returns(closed: LiveIncident, suspicion: Suspicion, now_ns: int) -> bool:
    """Whether an incident has come back: the same cause for some time, whatever it seems to be for a short while."""
    is_same_cause = (closed.cause, closed.entity) == (suspicion.cause, _entity_text(suspicion))
    return now_ns - (closed.closed_ns or 0) < (REOPEN_WITHIN_S if is_same_cause else REOPEN_ANY_S) * NS_PER_S


def _entity_text(suspicion: Suspicion) -> str:
    return "" if suspicion.entity is None else str(suspicion.entity)


def _belongs_to(suspicion: Suspicion, incidents: PlacedIncidents) -> LiveIncident | None:
    """The incident that touches the same places, the one with the same cause before others."""
    same = incidents.touching(suspicion.places)
    return min(same, key=lambda one: (one.cause != suspicion.cause, one.opened_ns), default=None)


def have_recovered(symptoms: Iterable[Change], capture: Capture) -> bool | None:
    """Whether what users felt is back near what it was; None where that is not measured, True where nothing was felt.

    A window that only holds bad samples has no normal any more, so each symptom is held against its own.
    """
    states = [state for symptom in symptoms if (state := _has_recovered(symptom, capture)) is not None]
    if not states:
        return True if not tuple(symptoms) else None
    return all(states)


def _has_recovered(symptom: Change, capture: Capture) -> bool | None:
    rows = [row for group in capture.of(symptom.metric) if (row := group.row(symptom.entity)) is not None]
    recent = np.concatenate([row[-RECENT_SAMPLES:] for row in rows]) if rows else np.empty(0)
    recent = recent[~np.isnan(recent)]
    if not len(recent):
        return None
    level = float(np.median(recent))
    if not np.isfinite(symptom.during) or not np.isfinite(symptom.normal):
        return True
    limit = symptom.during + RECOVERED_SHARE * (symptom.normal - symptom.during)
    return level >= limit if metric(symptom.metric).better is Better.HIGH else level <= limit
