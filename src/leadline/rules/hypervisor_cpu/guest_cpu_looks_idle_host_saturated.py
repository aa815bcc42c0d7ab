"""The guest's CPU counters show room while its VM has to wait for physical CPUs.

Finds:
    The guest counts between 10 % and 90 % CPU while, over the same windows, a vCPU of its VM waits ready for more than
    5 % or the host's cores are more than 95 % busy, for at least 15 s. Recordings with different sample times are
    averaged over the windows of the coarser one first. Where no guest was recorded, the VM's used CPU time stands for
    it and the finding is low.

Why:
    A guest counts the time it was given. What the hypervisor kept back appears in none of its percentages, or as
    steal where the guest can count that. So the database is called "not CPU bound", and the search goes on in the
    disks. A virtual machine can show 80 % on a host that is at 100 %.

Do:
    Do not size or acquit the CPU from counters inside the guest. Record esxtop or the vCenter counters for the same
    minutes, and follow what they show: ready time, co-stop, limits, host utilisation.

When it is wrong:
    The recordings must be of the same time: a clock without a zone or with an offset pairs the wrong minutes. A guest
    whose host name is not its VM's name must be linked in an inventory file; until then it is not compared. A busy
    host does not harm a VM with a full reservation: then ready time stays low.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): a VM reported 80 % while its
    host was at 100 %, another 86 % with a run queue of 25.
    EsxtopDrill c_map.csv: 5 % ready.
    Judgement: 90 % as "looks idle" and 95 % as "host full" frame what was reported there; below 10 % a guest is idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import Episode, find_episodes, joined_windows
from leadline.estate.arithmetic.timeline import ever_above, host_groups, on_same_windows, whole_of_parts
from leadline.estate.language.templates import Minus
from leadline.rules._families.limits import THREE_SAMPLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

META = RuleMeta(
    code="CPU110",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    causes=("cpu-taken",),
    needs=("guest_cpu_busy_pct|cpu_used_pct", "cpu_ready_pct|host_cpu_core_util_pct|host_cpu_util_pct"),
    uses=("cpu_max_limited_pct",),
    thresholds={
        "guest_max": Threshold(90.0, "pct", "Judgement: InterSystems saw 80 % and 86 % on saturated hosts"),
        "guest_min": Threshold(10.0, "pct", "Judgement: a guest below this has no work to wait with"),
        "ready": Threshold(5.0, "pct", "EsxtopDrill c_map.csv"),
        "host": Threshold(95.0, "pct", "Judgement: no core left for the hypervisor"),
        "duration": THREE_SAMPLES,
    },
    clears=False,
    judgement=True,
)


@dataclass(frozen=True, slots=True)
class _Sign:
    """One sign of contention: series of VMs or hosts, the name of the limit, and words for it."""

    group: SeriesGroup
    limit: str
    noun: str


@dataclass(frozen=True, slots=True)
class _Match:
    """An episode of contention with what the guest counted meanwhile (median, pct)."""

    episode: Episode
    sign: _Sign
    view: SeriesGroup
    guest_median: float


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    signs: dict[Entity, list[_Sign]] = {}
    for sign in _signs(context):
        for row, owner in enumerate(sign.group.entities):
            signs.setdefault(owner, []).append(replace(sign, group=sign.group.take([row])))
    matches_by_vm: dict[Entity, list[_Match]] = {}
    for vm, view in _views(context):
        vm_signs = [sign for owner in vm.lineage() for sign in signs.get(owner, [])]
        matches_by_vm.setdefault(vm, []).extend(
            match for sign in vm_signs for match in _matches(context, vm, view, sign)
        )
    for vm, matches in matches_by_vm.items():
        if matches:
            yield _finding(context, vm, matches)


def _views(context: RuleContext) -> Iterator[tuple[Entity, SeriesGroup]]:
    """VMs with the CPU share their guest counts, one series each; used time where the guest was not recorded."""
    seen: set[Entity] = set()
    for group in context.of("guest_cpu_busy_pct", EntityKind.GUEST):
        for row, guest in enumerate(group.entities):
            vm = context.inventory.vm_of(guest)
            if vm is not None:
                seen.add(vm)
                yield vm, group.take([row])
    for group in context.of("cpu_used_pct", EntityKind.VM):
        for row, vm in enumerate(group.entities):
            if vm not in seen:
                yield vm, group.take([row])


def _signs(context: RuleContext) -> Iterator[_Sign]:
    without_limit = Minus(("cpu_max_limited_pct",))
    for group in context.of("cpu_ready_pct", EntityKind.VCPU, EntityKind.VM):
        ready = ever_above(group, context.limit("ready"), partial(without_limit, context))
        if ready is not None:
            yield _Sign(whole_of_parts(ready, EntityKind.VM, "highest"), "ready", "ready time per vCPU")
    cores = host_groups(context, "host_cpu_core_util_pct")
    for group in cores or host_groups(context, "host_cpu_util_pct"):
        busy = ever_above(group, context.limit("host"))
        if busy is not None:
            yield _Sign(busy, "host", "host CPU utilisation")


def _matches(context: RuleContext, vm: Entity, view: SeriesGroup, sign: _Sign) -> Iterator[_Match]:
    grid, guest, contention = on_same_windows(view, sign.group)
    met = _between(guest, context.limit("guest_min"), context.limit("guest_max"))
    met &= np.nan_to_num(contention, nan=0.0) > context.limit(sign.limit)
    windows = replace(grid, metric=sign.group.metric, entities=[vm], values=contention)
    for episode in find_episodes(windows, met, contention, context.limit("duration")):
        yield _Match(episode, sign, view, float(np.median(guest[0][episode.met_indices])))


def _between(values: NDArray[np.floating[Any]], low: float, high: float) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        inside: NDArray[np.bool_] = (values >= low) & (values < high)
    return inside


def _finding(context: RuleContext, vm: Entity, matches: list[_Match]) -> Finding:
    matches = sorted(matches, key=lambda m: m.episode.median / context.limit(m.sign.limit), reverse=True)
    lead = matches[0]
    from_guest = lead.view.entities[0].kind is EntityKind.GUEST
    counter = "guest counts" if from_guest else "VM is charged"
    summary = (
        f"{vm.label()}: the {counter} {show(lead.guest_median, 'pct')} CPU while {lead.sign.noun} is "
        f"{show(lead.episode.median, 'pct')}"
    )
    evidence = [item for match in matches[:2] for item in _evidence(context, match)]
    guessed = list(_doubts(context, lead))
    if not from_guest:
        guessed.append(f"the CPU share the guest of {vm.label()} counts, from the VM's used time")
    return context.finding(
        vm,
        summary,
        evidence,
        severity=Severity.MEDIUM if from_guest else Severity.LOW,
        windows=joined_windows([m.episode.window for m in matches], context.limit("duration")),
        score=lead.episode.median / context.limit(lead.sign.limit),
        guessed=guessed,
    )


def _evidence(context: RuleContext, match: _Match) -> Iterator[Evidence]:
    seen = "CPU as counted inside" if match.view.entities[0].kind is EntityKind.GUEST else "used CPU"
    for group, noun, value, limit in (
        (match.view, seen, match.guest_median, "guest_max"),
        (match.sign.group, match.sign.noun, match.episode.median, match.sign.limit),
    ):
        entity = group.entities[0]
        yield Evidence(
            f"{noun} of {entity.label()}: median {show(value, 'pct')} over {match.episode.held_s:.0f} s",
            metric=group.metric,
            entity=entity,
            statistic="median",
            value=value,
            threshold=context.limit(limit),
            unit="pct",
            source=context.source_name(group),
        )


def _doubts(context: RuleContext, match: _Match) -> Iterator[str]:
    """Sources whose clock was assumed, where two sources had to be put on one time line."""
    one, other = match.view.source, match.sign.group.source
    for index in (one, other) if one != other else ():
        source = context.capture.sources[index]
        if not source.clock_known:
            yield f"the clock of {source.name}"
