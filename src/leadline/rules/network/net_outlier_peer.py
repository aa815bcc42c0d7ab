"""A VM's network traffic differs from that of VMs that do the same work.

Finds:
    VMs of one peer group (`peer_group` in the inventory, five or more of them) whose traffic is more than 3 (info) or
    5 (low) robust standard deviations away from the group's median for at least 5 minutes.

Why:
    Members of a group that should be alike and are not show what no fixed limit can: a load balancer that favours
    one, a member that fell out and gets nothing, one that answers with errors and so with little.

Do:
    Look at the balancer's view of the members first, then at the odd one: its errors, its connections, what was
    changed on it last.

When it is wrong:
    Groups that only look alike on paper (a primary and its replicas differ by design). VMs are compared within one
    recording, so all of them must be in it.

Sources:
    Material on network insight of vmgu.ru: outliers among VMs of one role, top talkers.
    Judgement: 3 and 5 deviations, five members and five minutes; differences below 1 Mbit/s or a tenth of the median
    are never odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import Episode, find_episodes, joined_windows
from leadline.estate.arithmetic.timeline import whole_of_parts

META = RuleMeta(
    code="NET139",
    layer=Layer.NETWORK,
    severity=Severity.LOW,
    needs=("net_rx_mbit_per_s", "net_tx_mbit_per_s", "vm.peer_group"),
    thresholds={
        "warn": Threshold(3.0, "ratio", "Judgement: robust standard deviations"),
        "crit": Threshold(5.0, "ratio", "Judgement: robust standard deviations"),
        "members": Threshold(5.0, "count", "Judgement: a median of fewer says little"),
        "spread_mbit": Threshold(1.0, "mbit_per_s", "Judgement: smaller differences are noise"),
        "spread_share": Threshold(0.1, "ratio", "Judgement: smaller differences are noise"),
        "duration": Threshold(300.0, "s", "Judgement: longer than a batch job of one member"),
    },
    clears=False,
    judgement=True,
)
_MAD_TO_SIGMA = 1.4826  # of a normal distribution


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    for group in context.of("net_rx_mbit_per_s", EntityKind.PORT):
        sent = context.aligned(group, "net_tx_mbit_per_s")
        both = group.values if sent is None else group.values + np.nan_to_num(sent, nan=0.0)
        traffic = whole_of_parts(replace(group, values=both), EntityKind.VM, "sum")
        peers: dict[str, list[int]] = {}
        for row, vm in enumerate(traffic.entities):
            name = context.inventory.get(vm, "peer_group")
            if name is not None:
                peers.setdefault(str(name), []).append(row)
        for name, rows in peers.items():
            if len(rows) >= context.limit("members"):
                yield from _odd(context, traffic.take(rows), name)


def _odd(context: RuleContext, members: SeriesGroup, name: str) -> Iterator[Finding]:
    """Findings of the members of one group that differ from its median."""
    median, distance = _distances(context, members)
    met = np.nan_to_num(distance, nan=0.0) > context.limit("warn")
    episodes_by_vm: dict[Entity, list[Episode]] = {}
    for episode in find_episodes(members, met, distance, context.limit("duration")):
        episodes_by_vm.setdefault(episode.entity, []).append(episode)
    for vm, episodes in episodes_by_vm.items():
        worst = max(episodes, key=lambda episode: episode.median)
        vm_rate = float(np.median(members.values[worst.row][worst.met_indices]))
        usual = float(np.median(median[worst.met_indices]))
        evidence = Evidence(
            f"traffic of {vm.label()}: median {show(vm_rate, 'mbit_per_s')} where the group {name} has "
            f"{show(usual, 'mbit_per_s')}, {worst.median:.1f} robust standard deviations away, {worst.held_s:.0f} s",
            metric=members.metric,
            entity=vm,
            statistic="median",
            value=vm_rate,
            threshold=usual,
            unit="mbit_per_s",
            source=context.source_name(members),
        )
        yield context.finding(
            vm,
            f"{vm.label()} moves {show(vm_rate, 'mbit_per_s')}, its peers {show(usual, 'mbit_per_s')}",
            [evidence],
            severity=META.severity if worst.median > context.limit("crit") else META.severity.lowered(),
            windows=joined_windows([e.window for e in episodes], context.limit("duration")),
            score=worst.median / context.limit("warn"),
        )


def _distances(
    context: RuleContext, members: SeriesGroup
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Median of the members [n] and how many robust standard deviations each is away from it [k, n].

    NaN where fewer than the least number of members were measured.
    """
    enough = np.isfinite(members.values).sum(axis=0) >= context.limit("members")
    values = members.values[:, enough]
    median = np.full(members.values.shape[1], np.nan)
    distance = np.full(members.values.shape, np.nan)
    if enough.any():
        median[enough] = _medians(values)
        away = np.abs(values - median[enough])
        sigma = _MAD_TO_SIGMA * _medians(away)
        least = np.maximum(context.limit("spread_mbit"), context.limit("spread_share") * median[enough])
        distance[:, enough] = away / np.maximum(sigma, least)
    return median, distance


def _medians(values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """The median of each column [n] of values [k, n]; NaN is not measured, and every column has a number."""
    ordered = np.sort(values, axis=0)  # NaN comes last
    counts, columns = np.isfinite(values).sum(axis=0), np.arange(values.shape[1])
    medians: NDArray[np.floating[Any]] = (ordered[(counts - 1) // 2, columns] + ordered[counts // 2, columns]) / 2.0
    return medians
