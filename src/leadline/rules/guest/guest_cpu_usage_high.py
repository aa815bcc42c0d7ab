"""A guest's CPUs are nearly all in use.

Finds:
    Time the guest ran (user and system, stolen time not counted) above 80 % (warning) or 85 % (critical) of its CPUs,
    in most samples, for at least 30 s.

Why:
    Near saturation every burst queues: response time grows with 1/(1 - utilisation), so the step from 85 % to 95 %
    costs more than all before it.

Do:
    Find what uses the CPU first: queries by total time (pg_stat_statements), then processes (pidstat). Tune those, move
    reports to a replica or other hours; then add vCPUs, as long as the host has free cores.

When it is wrong:
    A batch that nobody waits for may use all CPUs. Recordings of the CPUs alone, without the whole, are not judged.

Sources:
    InterSystems community, Virtualizing large databases: VMware CPU capacity planning: plan for 80 % at most; a guest
    at 76 % on a host at 85 % is its planned peak. yaspe documentation differs: 75 % warns, 85 % alerts.
    Judgement: 30 s stands for "sustained".
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Minus, Over, over_threshold

META = RuleMeta(
    code="GST151",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("cpu-taken", "cpu-busy"),
    needs=("guest_cpu_busy_pct",),
    uses=("guest_cpu_steal_pct",),
    thresholds={
        "warn": Threshold(80.0, "pct", "Virtualizing large databases: VMware CPU capacity planning"),
        "crit": Threshold(85.0, "pct", "yaspe documentation"),
        "duration": Threshold(30.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("guest-load-average-per-core",),
    examines="CPU",
)

_SPEC = Over(
    metric="guest_cpu_busy_pct",
    noun="CPU usage",
    kinds=(EntityKind.GUEST,),
    value=Minus(("guest_cpu_steal_pct",)),
    mostly=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    yield from over_threshold(context, _SPEC)
