"""Rules on programs that wait for a CPU while CPUs are idle: a limit holds them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.rule import Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.series import mean_of
from leadline.estate.language.guests import cpu_count
from leadline.rules._families.levels import looked_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity

SAMPLE_COUNT_MIN = 4
NEEDS = ("process_cpu_wait_pct", "process_cpu_pct")
USES = ("guest_cpu_busy_pct",)
THRESHOLDS = {
    "waits": Threshold(25.0, "pct", "Judgement: a quarter of the time is felt in every answer"),
    "by_run": Threshold(3.0, "ratio", "Judgement: waiting costs it more than working"),
    "busy_max": Threshold(75.0, "pct", "yaspe documentation: 75 % warns"),
    "share": Threshold(0.2, "ratio", "Judgement: of the time looked at"),
}


def capped_program(context: RuleContext, is_meant: Callable[[str], bool]) -> Finding | None:
    """The program that waits most, of those whose names are meant, as a finding on its guest."""
    best: Finding | None = None
    for group in context.of("process_cpu_wait_pct"):
        runs = context.aligned(group, "process_cpu_pct")
        inside = _within(context, group)
        if runs is None or not inside.any():
            continue
        waits, runs = (np.nan_to_num(values.astype(np.float64)) for values in (group.values, runs))
        used = _used_by_guest(group, runs)
        met = inside & (waits >= context.limit("waits"))
        counts = np.count_nonzero(met, axis=1)
        for row in np.flatnonzero(counts >= np.maximum(context.limit("share") * inside.sum(), SAMPLE_COUNT_MIN)):
            if not is_meant(group.entities[int(row)].name.split("[")[0]):
                continue
            guest = group.entities[int(row)].ancestor(EntityKind.GUEST)
            finding = (
                None
                if guest is None
                else _of_process(context, group.take([int(row)]), met[row], runs[row], used[guest])
            )
            if finding is not None and (best is None or finding.score > best.score):
                best = finding
    return best


def _used_by_guest(group: SeriesGroup, runs: NDArray[np.float64]) -> dict[Entity, NDArray[np.float64]]:
    """What all processes of each guest use together, [n], percent of one CPU; ``runs`` [k, n] of each process."""
    used: dict[Entity, NDArray[np.float64]] = {}
    for entity, values in zip(group.entities, runs, strict=True):
        guest = entity.ancestor(EntityKind.GUEST)
        if guest is not None:
            used[guest] = used[guest] + values if guest in used else values
    return used


def _of_process(
    context: RuleContext,
    process: SeriesGroup,
    met: NDArray[np.bool_],
    runs: NDArray[np.float64],
    used_by_all: NDArray[np.float64],
) -> Finding | None:
    """A finding of one process in the samples [n] in which it waits."""
    (entity,) = process.entities
    guest = entity.ancestor(EntityKind.GUEST)
    waited, ran = float(np.nanmean(process.values[0][met])), float(runs[met].mean())
    if guest is None or waited < context.limit("by_run") * ran:
        return None
    used = float(used_by_all[met].mean()) / cpu_count(context, guest)
    busy = mean_of(context, "guest_cpu_busy_pct", guest, looked_at(context))
    used = max(used, busy or 0.0)  # programs that came and went between two samples are in the whole alone
    if not used < context.limit("busy_max"):
        return None
    name = entity.name.split("[")[0]
    summary = (
        f"{name} waits for a CPU {show(waited, 'pct')} of the time while CPUs of {guest.label()} are idle:"
        " a limit holds it back"
    )
    measured = (
        ("process_cpu_wait_pct", entity, waited, f"{entity.name} waited for a CPU {show(waited, 'pct')} of the time"),
        ("process_cpu_pct", entity, ran, f"it ran {show(ran, 'pct')} of the time"),
        ("process_cpu_pct", guest, used, f"all programs together used {show(used, 'pct')} of the CPUs"),
    )
    lines = [Evidence(statement, metric, one, "mean", value, unit="pct") for metric, one, value, statement in measured]
    return context.finding(guest, summary, lines, windows=looked_at(context), score=waited / context.limit("waits"))


def _within(context: RuleContext, group: SeriesGroup) -> NDArray[np.bool_]:
    inside = np.zeros(len(group.times_ns), dtype=bool)
    for window in looked_at(context):
        inside |= (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
    return inside
