"""Recordings of times that do not touch are judged each by itself: none is the normal of another.

Recordings of one stretch overlap, or follow each other with a pause of a few samples, as rotated files do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.causes import order
from leadline.core.model.answer import Disk
from leadline.core.model.capture import NS_PER_S, Capture
from leadline.core.model.finding import Diagnosis, Window
from leadline.core.model.vocabulary import LayerState

if TYPE_CHECKING:
    from leadline.core.model.answer import Answer
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Finding, LayerVerdict

PAUSE_SAMPLES, PAUSE_S_MIN = 3.0, 5.0  # Judgement: what is lost when a file is rotated or a recorder starts anew
STRETCH_COUNT_MAX = 6  # Judgement: more are a history of samples, not incidents somebody put together
# From what accuses a layer most to what clears it: a layer is cleared where every stretch clears it.
_STATES = (LayerState.CONVICTED, LayerState.SUSPECTED, LayerState.NOT_EXAMINED, LayerState.CLEARED)


def stretches(capture: Capture) -> tuple[Capture, ...]:
    """The parts of a capture whose recordings overlap or follow each other; the inventory is in each."""
    spans = _spans(capture)
    parts: list[tuple[float, set[int]]] = []
    for start, end, pause, source in spans:
        if parts and start <= parts[-1][0] + pause:
            last, members = parts[-1]
            parts[-1] = (max(last, end), members | {source})
        else:
            parts.append((end, {source}))
    if not 1 < len(parts) <= STRETCH_COUNT_MAX:
        return (capture,)
    return tuple(_part(capture, members, is_first=place == 0) for place, (_, members) in enumerate(parts))


def _spans(capture: Capture) -> list[tuple[float, float, float, int]]:
    """Start, end, the pause that may follow, in nanoseconds, and the place of each source with samples; by start."""
    by_source: dict[int, tuple[float, float, float]] = {}
    for group in capture.groups:
        if not len(group.times_ns):
            continue
        step = group.interval_s * NS_PER_S if np.isfinite(group.interval_s) else 0.0
        pause = max(PAUSE_SAMPLES * step, PAUSE_S_MIN * NS_PER_S)
        start, end = float(group.times_ns[0]) - step, float(group.times_ns[-1])
        known = by_source.get(group.source, (start, end, pause))
        by_source[group.source] = (min(start, known[0]), max(end, known[1]), max(pause, known[2]))
    return sorted((*span, source) for source, span in by_source.items())


def _part(capture: Capture, members: set[int], *, is_first: bool) -> Capture:
    """The series of some sources, and their results; results of sources without samples are in the first part."""
    names = {capture.sources[source].name for source in members}
    timed = {capture.sources[source].name for _, _, _, source in _spans(capture)}

    def is_here(source: str) -> bool:
        return any(source.startswith(name) for name in names) or (
            is_first and not any(source.startswith(name) for name in timed)
        )

    groups = [group for group in capture.groups if group.source in members]
    results = [result for result in capture.results if is_here(result.source)]
    return Capture(groups, capture.sources, capture.inventory, results, capture.meter)


def combined(diagnoses: Sequence[Diagnosis], parts: Sequence[Capture]) -> Diagnosis:
    """The diagnoses of the stretches of a recording as one: every answer, the worst incident first."""
    answers = [
        replace(answer, span=None if span is None else Window(*span))
        for diagnosis, span in zip(diagnoses, (part.span_ns() for part in parts), strict=True)
        for answer in diagnosis.answers
    ]
    if len(diagnoses) == 1:
        return replace(diagnoses[0], answers=tuple(answers))
    # Settings are those of the machine, whatever was recorded when: they make no stretch an incident.
    weighty = [one for one in answers if one.incident is not None or any(c.finding.windows for c in one.causes)]
    skipped = set.intersection(*({one.rule for one in diagnosis.skipped} for diagnosis in diagnoses))
    return replace(
        diagnoses[0],
        answers=tuple(sorted(weighty, key=_badness, reverse=True)) or (min(answers, key=_boldness),),
        layers=tuple(map(_worst, zip(*(diagnosis.layers for diagnosis in diagnoses), strict=True))),
        findings=tuple(order(_once(finding for diagnosis in diagnoses for finding in diagnosis.findings))),
        skipped=tuple(one for one in diagnoses[0].skipped if one.rule in skipped),
        rules_run=tuple(dict.fromkeys(rule for diagnosis in diagnoses for rule in diagnosis.rules_run)),
        powers=tuple(power for diagnosis in diagnoses for power in diagnosis.powers),
    )


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings of all stretches; one of a setting, which holds in each, is told once."""
    kept: dict[tuple[str, Entity, str] | int, Finding] = {}
    for place, finding in enumerate(findings):
        kept.setdefault(place if finding.windows else (finding.rule, finding.entity, finding.summary), finding)
    return list(kept.values())


def _badness(answer: Answer) -> tuple[bool, float]:
    return answer.incident is not None, 0.0 if answer.incident is None else answer.incident.badness


def _boldness(answer: Answer) -> bool:
    """Whether an answer clears the disk: a stretch in which it was not seen keeps another from clearing it for all."""
    return answer.disk is Disk.NO


def _worst(verdicts: tuple[LayerVerdict, ...]) -> LayerVerdict:
    return min(verdicts, key=lambda verdict: _STATES.index(verdict.state))
