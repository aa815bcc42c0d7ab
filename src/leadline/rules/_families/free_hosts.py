"""A VM gives memory up though its host has plenty: a limit of the VM or of its pool takes it, no shortage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.series import mean_of

MIB_IN_GIB = 1024.0
USES = ("host_memory_free_mib", "host_memory_machine_mib", "host_memory_state_count", "memory_swap_write_mib_per_s")
FREE_MIN = Threshold(10.0, "pct", "Judgement: a host reclaims below 6 % of free memory at most, mostly far less")
KEPT_SHARE = 0.9  # Judgement: a balloon that shrinks by more is let go: the shortage is over


def limits_told(context: RuleContext, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings of memory that is taken from VMs; where the host had memory to give, a limit is named, with its advice.

    Memory that is only coming back is not taken: a VM must be swapped out, or its balloon must stay. The rule has
    `USES` and the limit ``free_min``, and its *Do* a paragraph "Where the host has memory free".
    """
    for finding in findings:
        free = _free_on_host(context, finding)
        if free is None or not _is_taken_now(context, finding):
            yield finding
            continue
        host_free = f"while {show((free.value or 0.0) / MIB_IN_GIB, 'gib')} of its host are free"
        yield replace(
            finding,
            summary=f"{finding.summary} {host_free}: a limit of the VM or of its pool takes it",
            evidence=(*finding.evidence, free),
            remedy=context.advice("Where the host has memory free"),
        )


def _free_on_host(context: RuleContext, finding: Finding) -> Evidence | None:
    """The free memory of a VM's host as evidence; None where it is short of memory, or that was not recorded."""
    host = finding.entity.ancestor(EntityKind.HOST)
    if finding.entity.kind is not EntityKind.VM or host is None:
        return None
    free, machine = (mean_of(context, metric, host, finding.windows) for metric in USES[:2])
    state = mean_of(context, "host_memory_state_count", host, finding.windows)
    if free is None or machine is None or machine <= 0.0 or (state is not None and state > 0.0):
        return None
    if 100.0 * free < context.limit("free_min") * machine:
        return None
    of_all = f"{show(free / MIB_IN_GIB, 'gib')} of {show(machine / MIB_IN_GIB, 'gib')}"
    return Evidence(
        f"{host.label()} had {of_all} free meanwhile",
        metric="host_memory_free_mib",
        entity=host,
        statistic="mean",
        value=free,
        threshold=context.limit("free_min") * machine / 100.0,
        unit="mib",
    )


def _is_taken_now(context: RuleContext, finding: Finding) -> bool:
    if (mean_of(context, "memory_swap_write_mib_per_s", finding.entity, finding.windows) or 0.0) > 0.0:
        return True
    start, end = finding.windows[0].start_ns, finding.windows[-1].end_ns
    middle = (start + end) // 2
    first, last = (
        mean_of(context, "memory_balloon_mib", finding.entity, (window,))
        for window in (Window(start, middle), Window(middle, end))
    )
    return first is not None and last is not None and last > 0.0 and last >= KEPT_SHARE * first
