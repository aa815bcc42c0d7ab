"""The host has promised more memory to its VMs than it has.

Finds:
    The one-minute average of memory overcommitment of a host above 0 (low) or 1 (medium) for at least 60 s. 0.5 means
    that the VMs are configured with one and a half times the memory that is there for them.

Why:
    As long as the VMs do not touch all they were promised nothing happens, and nobody notices. When they do at once,
    after a failed host, at the end of the month, the host takes memory back by ballooning, compression and swapping,
    and a database pays first because it uses all it has.

Do:
    Keep hosts of production databases without overcommitment: reserve the memory of database VMs, shrink VMs that
    were given more than they use, move VMs to other hosts, or add memory.

When it is wrong:
    Overcommitment alone slows nobody: look for balloon, compression and swapping beside it. Hosts of test machines
    are overcommitted on purpose.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): overspent memory is a
    cause of bad performance. EsxtopDrill c_map.csv: 0 and 1.
    Judgement: 60 s, since the value is an average over a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

META = RuleMeta(
    code="MEM132",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.MEDIUM,
    causes=("memory-short",),
    needs=("host_memory_overcommit_1m",),
    thresholds={
        "warn": Threshold(0.0, "ratio", "EsxtopDrill c_map.csv"),
        "crit": Threshold(1.0, "ratio", "EsxtopDrill c_map.csv"),
        "duration": Threshold(60.0, "s", "Judgement: the value is an average over a minute"),
    },
    clears=False,  # a host that promised no more than it has may still enforce a VM's limit by ballooning
)

_SPEC = Over("host_memory_overcommit_1m", "memory overcommitment", kinds=(EntityKind.HOST,))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    yield from over_threshold(context, _SPEC)
