"""The balloon driver does not run in a VM.

Finds:
    VMs whose balloon driver is reported as not running for at least 60 s: medium where their host is short of memory
    in the same recording (its free-memory state is not "high", it swaps, or it promises more than it has), low
    otherwise.

Why:
    Without the driver the hypervisor cannot ask the guest which pages it can do without. When memory gets short it
    goes straight to compression and swapping, and takes pages without knowing that the buffer pool is in them.

Do:
    Install or repair VMware Tools (open-vm-tools on Linux; the driver vmw_balloon is part of the kernel) and check
    that nobody switched the balloon off with sched.mem.maxmemctl=0. On a database VM whose memory is fully reserved
    the balloon has nothing to do and the finding can wait.

When it is wrong:
    A VM that is still booting has no driver yet; the duration leaves a usual boot out. Appliances without Tools by
    design show it for ever.

Sources:
    EsxtopDrill c_map.csv: Memctl? must be Y.
    Judgement: 60 s for a boot; low while no memory is short, since then nothing would ask the driver for pages.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import Episode, find_episodes, joined_windows
from leadline.estate.arithmetic.timeline import ever_above

META = RuleMeta(
    code="MEM131",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.MEDIUM,
    needs=("memory_balloon_driver_flag",),
    uses=(
        "host_memory_state_count",
        "host_memory_overcommit_1m",
        "host_memory_swap_read_mib_per_s",
        "host_memory_swap_write_mib_per_s",
    ),
    thresholds={
        "shortage": Threshold(0.0, "count", "EsxtopDrill c_map.csv: each must be 0"),
        "duration": Threshold(60.0, "s", "Judgement: a VM that boots has no driver yet"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    episodes_by_vm: dict[Entity, list[Episode]] = {}
    for group in context.of("memory_balloon_driver_flag", EntityKind.VM):
        missing = group.values == 0.0  # NaN is not 0
        rows = [int(row) for row in np.flatnonzero(missing.any(axis=1))]
        if rows:
            part = group.take(rows)
            for episode in find_episodes(part, missing[rows], part.values, context.limit("duration")):
                episodes_by_vm.setdefault(episode.entity, []).append(episode)
    short = _hosts_short_of_memory(context) if episodes_by_vm else {}
    for vm, episodes in episodes_by_vm.items():
        why = short.get(vm.ancestor(EntityKind.HOST))
        held_s = sum(episode.held_s for episode in episodes)
        driver_off = Evidence(
            f"balloon driver of {vm.label()} not running for {held_s:.0f} s",
            metric="memory_balloon_driver_flag",
            entity=vm,
            statistic="lowest",
            value=0.0,
            unit="flag",
            source=context.source_name(episodes[0].group),
        )
        yield context.finding(
            vm,
            f"{vm.label()} runs without the balloon driver" + ("" if why is None else " on a host short of memory"),
            [driver_off] if why is None else [driver_off, why],
            severity=Severity.LOW if why is None else META.severity,
            windows=joined_windows([e.window for e in episodes], context.limit("duration")),
        )


def _hosts_short_of_memory(context: RuleContext) -> dict[Entity | None, Evidence]:
    """Hosts that show a shortage of memory at any time, with the sign of it."""
    short: dict[Entity | None, Evidence] = {}
    for metric in META.uses:
        for group in context.of(metric, EntityKind.HOST):
            above = ever_above(group, context.limit("shortage"))
            for row, host in enumerate(() if above is None else above.entities):
                if above is not None and host not in short:
                    peak = float(np.nanmax(above.values[row]))
                    short[host] = Evidence(
                        f"{metric} of {host.label()} reaches {peak:.3g}",
                        metric=metric,
                        entity=host,
                        statistic="peak",
                        value=peak,
                        threshold=context.limit("shortage"),
                        unit=above.unit,
                        source=context.source_name(above),
                    )
    return short
