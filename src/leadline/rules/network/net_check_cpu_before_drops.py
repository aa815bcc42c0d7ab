"""A VM's port drops packets while its vCPUs wait for a physical CPU.

Finds:
    Drops at a VM's port in the same windows in which the worst vCPU of the VM is ready for more than 5 %, for at least
    15 s. It is a note on how to read net-drops-vm-port, not a fault of its own.

Why:
    A guest whose vCPU waits for a core does not empty its receive ring; the ring fills up and the switch drops what
    comes next. Larger rings and faster uplinks then change nothing.

Do:
    Cure the CPU contention first and look at the drops again. Only drops that stay are the network's.

When it is wrong:
    Both may have one cause of their own, a burst of traffic that also needs CPU. Then ready time is high on the host
    as a whole.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): exclude a CPU problem
    first. Broadcom KB 312565: CPU starvation, ready time included, is one of two causes of receive drops.
    EsxtopDrill c_map.csv: 5 % ready.
    Judgement: 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.core.statistics.rows import median_of_sorted
from leadline.estate.arithmetic.episodes import Episode, find_episodes, joined_windows
from leadline.estate.arithmetic.timeline import ever_above, on_same_windows, whole_of_parts
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="NET102",
    layer=Layer.NETWORK,
    severity=Severity.INFO,
    causes=("network-loss",),
    needs=("net_rx_dropped_pct|net_tx_dropped_pct", "cpu_ready_pct"),
    thresholds={
        "drops": Threshold(0.0, "pct", "Yellow-Bricks esxtop thresholds"),
        "ready": Threshold(5.0, "pct", "EsxtopDrill c_map.csv"),
        "duration": THREE_SAMPLES,
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per port of a VM."""
    episodes_by_port: dict[Entity, list[tuple[Episode, SeriesGroup, float]]] = {}
    drops = list(_dropping(context))
    ready = _ready(context) if drops else {}
    for group, index, vm in drops:
        for of_vm in ready.get(vm, []):
            episodes_by_port.setdefault(group.entities[index], []).extend(_both(context, group.take([index]), of_vm))
    for port, episodes in episodes_by_port.items():
        if episodes:
            yield _finding(context, port, episodes)


def _dropping(context: RuleContext) -> Iterator[tuple[SeriesGroup, int, Entity]]:
    """Series of ports that drop anything, as group and row, with the VM each belongs to."""
    for metric in ("net_rx_dropped_pct", "net_tx_dropped_pct"):
        for whole in context.of(metric, EntityKind.PORT):
            group = ever_above(whole, context.limit("drops"))
            if group is None:
                continue
            for index, port in enumerate(group.entities):
                vm = port.ancestor(EntityKind.VM)
                if vm is not None:
                    yield group, index, vm


def _ready(context: RuleContext) -> dict[Entity, list[SeriesGroup]]:
    """Ready time of the worst vCPU of every VM that waits, one series each."""
    ready: dict[Entity, list[SeriesGroup]] = {}
    for group in context.of("cpu_ready_pct", EntityKind.VCPU, EntityKind.VM):
        waiting = ever_above(group, context.limit("ready"))
        if waiting is None:
            continue
        worst = whole_of_parts(waiting, EntityKind.VM, "highest")
        for row, vm in enumerate(worst.entities):
            ready.setdefault(vm, []).append(worst.take([row]))
    return ready


def _both(context: RuleContext, drops: SeriesGroup, ready: SeriesGroup) -> Iterator[tuple[Episode, SeriesGroup, float]]:
    """Episodes of both at once, of the drops; with the group of the ready time and its median then."""
    grid, dropped, waited = on_same_windows(drops, ready)
    met = np.nan_to_num(dropped, nan=0.0) > context.limit("drops")
    met &= np.nan_to_num(waited, nan=0.0) > context.limit("ready")
    windows = replace(grid, metric=drops.metric, entities=drops.entities, values=dropped, source=drops.source)
    for episode in find_episodes(windows, met, dropped, context.limit("duration")):
        yield episode, ready, median_of_sorted(np.sort(waited[0][episode.met_indices]))


def _finding(context: RuleContext, port: Entity, episodes: list[tuple[Episode, SeriesGroup, float]]) -> Finding:
    episode, ready, waited = max(episodes, key=lambda item: item[2])
    vm = ready.entities[0]
    numbers = (
        (episode.group, port, "drops", episode.median, "drops"),
        (ready, vm, "ready time of the worst vCPU", waited, "ready"),
    )
    evidence = [
        Evidence(
            f"{noun} of {entity.label()}: median {show(value, 'pct')} over {episode.held_s:.0f} s",
            metric=group.metric,
            entity=entity,
            statistic="median",
            value=value,
            threshold=context.limit(limit),
            unit="pct",
            source=context.source_name(group),
        )
        for group, entity, noun, value, limit in numbers
    ]
    return context.finding(
        port,
        f"{port.label()} drops packets while vCPUs of {vm.label()} are ready for {show(waited, 'pct')}: CPU first",
        evidence,
        windows=joined_windows([e.window for e, _, _ in episodes], context.limit("duration")),
    )
