"""Jobs that the inventory's events tell of (backups, scans): when they ran, and whether that was in busy hours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.derived import Recorded, derived
from leadline.core.model.events import events_of
from leadline.core.model.finding import Evidence, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.arithmetic.episodes import sample_bounds
from leadline.estate.arithmetic.timeline import whole_of_parts, window_mean
from leadline.estate.derived.series import Places, SeriesPlace, placed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity, Inventory

BUSY_QUANTILE = 0.75  # busy hours are the busiest quarter of the time
# What a machine's load is read from, the first that was recorded; all in percent of its CPUs.
LOAD_METRICS = ("guest_cpu_busy_pct", "cpu_used_pct", "cpu_run_pct")


def job_windows(inventory: Inventory, entity: Entity, job: str) -> list[Window]:
    """When a job ran: from each ``JOB-start`` to the next ``JOB-end``; one without an end is left out."""
    windows = []
    start: int | None = None
    for moment in events_of(inventory, entity, {f"{job}-start", f"{job}-end"}):
        if moment.kind.endswith("-start"):
            start = moment.time_ns if start is None else start
        elif start is not None:
            windows.append(Window(start, moment.time_ns))
            start = None
    return [window for window in windows if window.end_ns > window.start_ns]


def in_busy_hours(
    context: RuleContext, machine: Entity, windows: Iterable[Window]
) -> Iterator[tuple[Window, Evidence]]:
    """Those of a machine's job windows that lie in its busiest quarter, each with the evidence.

    A job makes load itself, so the load during it proves nothing. What counts is the load on either side, over spans
    as long as the job: above the 75th percentile of the load outside of all the jobs, the job lies in busy hours. The
    recording must hold ``recorded_min`` seconds outside of jobs; META gives that limit.
    """
    spans = list(windows)
    if not spans:
        return
    for place in context.table(_loads_by_machine).get(machine, ()):
        group = place.alone()
        starts, ends = sample_bounds(group)
        outside = np.isfinite(group.values[0])
        for span in spans:
            outside &= (ends <= span.start_ns) | (starts >= span.end_ns)
        if float((ends - starts)[outside].sum()) / 1e9 < context.limit("recorded_min"):
            continue
        busy = float(np.quantile(group.values[0][outside], BUSY_QUANTILE))
        for span in spans:
            around = _beside(group, span, outside)
            if around > busy:
                limit = f"three quarters of the other time below {show(busy, 'pct')}"
                text = f"load beside the job: {show(around, 'pct')}; {limit}"
                yield span, Evidence(text, group.metric, machine, "mean", around, busy, "pct")
        return


def _beside(group: SeriesGroup, span: Window, outside: NDArray[np.bool_]) -> float:
    """Mean load before and after a job; NaN when neither side was recorded."""
    length = span.end_ns - span.start_ns
    free = replace(group, values=np.where(outside, group.values, np.nan))
    starts = np.array([span.start_ns - length, span.end_ns], dtype=np.int64)
    ends = np.array([span.start_ns, span.end_ns + length], dtype=np.int64)
    sides = window_mean(free, starts, ends)[0]
    known = sides[np.isfinite(sides)]
    return float(known.mean()) if known.size else float("nan")


@derived(*LOAD_METRICS)
def _loads_by_machine(reader: Recorded) -> Places:
    """The load of each guest and VM, that of the other where one runs in the other: of the first metric recorded.

    One series per recording, the longest first.
    """
    by_metric = [_loads_of(reader, metric) for metric in LOAD_METRICS]
    inventory = reader.inventory
    loads: dict[Entity, list[SeriesPlace]] = {}
    for machine in (*inventory.of_kind(EntityKind.GUEST), *inventory.of_kind(EntityKind.VM)):
        if machine.kind is EntityKind.VM:
            same = [machine, *inventory.guests_of(machine)]
        else:
            same = [one for one in (machine, inventory.vm_of(machine)) if one is not None]
        recorded = ([place for one in same for place in known.get(one, ())] for known in by_metric)
        places = next((places for places in recorded if places), [])
        loads[machine] = sorted(places, key=lambda place: -place.group.times_ns.size)
    return loads


def _loads_of(reader: Recorded, metric: str) -> Places:
    """A metric of guests and VMs, of a VM's vCPUs together where the VM itself was not recorded."""
    loads = dict(placed(reader.of(metric, EntityKind.GUEST, EntityKind.VM)))
    wholes = [whole_of_parts(group, EntityKind.VM, "mean") for group in reader.of(metric, EntityKind.VCPU)]
    for vm, places in placed(wholes).items():
        loads.setdefault(vm, places)
    return loads
