"""The physical CPUs of the host are busy, with nothing left for bursts and for the hypervisor itself.

Finds:
    Host CPU utilisation, the higher of core and thread utilisation, above 85 % (warning) or 95 % (critical) for at
    least a minute. A host recorded per physical CPU only is judged by the mean over them.

Why:
    The hypervisor needs cores too: every disk request and network packet of a VM passes through it. Near 100 % VMs
    wait for each other and I/O completes late, although each guest sees CPU to spare. A database's response time
    rises from there on, whatever the size of its VM.

Do:
    Plan vCPUs for 80 % at peak, hosts for 85 % at most. Move VMs away or add cores; take vCPUs from VMs that do not
    use them, and keep batch work and backups out of the peak.

When it is wrong:
    With hyper-threading the core utilisation reaches 100 % while the second threads still have something to give; the
    load average and ready time tell whether VMs wait. Less than a minute of it is a burst, not a state.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): its planned peak is a guest
    at 76 % on a host at 85 %; response times degrade once the host is at 100 %. EsxtopDrill c_map.csv: 95 % critical.
    Judgement: one minute, so that a short burst is not called a state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.arithmetic.episodes import Episode, find_episodes
from leadline.estate.arithmetic.timeline import host_groups
from leadline.estate.language.templates import Over, finding_of_episodes
from leadline.rules._families.symptoms import VM_WAITS_FOR_CPU

META = RuleMeta(
    code="CPU106",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    causes=("cpu-taken",),
    needs=("host_cpu_core_util_pct|host_cpu_util_pct|host_cpu_used_pct",),
    thresholds={
        "warn": Threshold(85.0, "pct", "Virtualizing large databases: VMware CPU capacity planning"),
        "crit": Threshold(95.0, "pct", "EsxtopDrill c_map.csv"),
        "duration": Threshold(60.0, "s", "Judgement: less than a minute is a burst"),
    },
    explains=(
        "cpu-ready-high",
        "cpu-costop-high",
        "host-cpu-load-average",
        "guest-cpu-looks-idle-host-saturated",
        *VM_WAITS_FOR_CPU,
        "db-component-response-time",
        "vsan-kernel-cpu-ready",
    ),
    examines="host's CPUs",
)

_UTILISATION = ("host_cpu_core_util_pct", "host_cpu_util_pct")
_USED = "host_cpu_used_pct"  # scaled by frequency, not the time busy: only where nothing else was recorded


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host; the measure with the higher share of busy time is the evidence."""
    groups = [group for metric in _UTILISATION for group in host_groups(context, metric)]
    examined = {entity for group in groups for entity in group.entities}
    for group in host_groups(context, _USED):
        rows = [row for row, host in enumerate(group.entities) if host not in examined]
        if rows:
            groups.append(group.take(rows))
    episodes: dict[Entity, list[Episode]] = {}
    for group in groups:
        for episode in _episodes(context, group):
            episodes.setdefault(episode.entity, []).append(episode)
    for host, host_episodes in episodes.items():
        worst = max(host_episodes, key=lambda episode: episode.median)
        of_worst = [episode for episode in host_episodes if episode.group.metric == worst.group.metric]
        nouns = {_UTILISATION[0]: "core utilisation", _UTILISATION[1]: "CPU utilisation", _USED: "CPU use"}
        spec = Over(metric=worst.group.metric, noun=nouns[worst.group.metric])
        yield finding_of_episodes(context, host, of_worst, spec)


def _episodes(context: RuleContext, group: SeriesGroup) -> Iterator[Episode]:
    # Reading used time above 100 % (turbo) is still a full core, not more than one.
    values = np.minimum(group.values, 100.0)
    met = np.nan_to_num(values, nan=0.0) > context.limit("warn")
    yield from find_episodes(replace(group, values=values), met, values, context.limit("duration"))
