"""vCPUs are switched, moved between cores, or run out of their time slice unusually often.

Finds:
    Per vCPU for at least 15 s: more than 1,000 switches, 400 migrations or 10 expired time slices per second (low),
    or half of that (informative).

Why:
    A vCPU that is put on and off its core all the time, or moved to another, finds its caches cold each time. Causes
    are a guest that halts and wakes for every small request, spinning threads, and more runnable vCPUs than cores.

Do:
    Take vCPUs away until those that are left are busy, and look inside for threads that spin or poll. Expired slices
    together with ready time mean contention: follow that.

When it is wrong:
    A database with very many short requests switches often by design. The limits come from one public source and
    nobody published what they cost: take the finding as a hint, not as a cause.

Sources:
    EsxtopDrill c_map.csv: switches 500 and 1,000, migrations 200 and 400, expired slices 5 and 10 per second.
    Judgement: never above low, since it is a single source; 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import THREE_SAMPLES

_SOURCE = "EsxtopDrill c_map.csv"

META = RuleMeta(
    code="CPU134",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.LOW,
    needs=("cpu_switches_per_s|cpu_migrations_per_s|cpu_quantum_expirations_per_s",),
    thresholds={
        "warn": Threshold(500.0, "per_s", _SOURCE),
        "crit": Threshold(1000.0, "per_s", _SOURCE),
        "migrations_warn": Threshold(200.0, "per_s", _SOURCE),
        "migrations_crit": Threshold(400.0, "per_s", _SOURCE),
        "expirations_warn": Threshold(5.0, "per_s", _SOURCE),
        "expirations_crit": Threshold(10.0, "per_s", _SOURCE),
        "duration": THREE_SAMPLES,
    },
    clears=False,
)

_KINDS = (EntityKind.VCPU,)
_SPECS = (
    Over("cpu_switches_per_s", "switches of a vCPU", kinds=_KINDS, roll_up=EntityKind.VM),
    Over(
        "cpu_migrations_per_s",
        "migrations of a vCPU",
        kinds=_KINDS,
        roll_up=EntityKind.VM,
        warn="migrations_warn",
        crit="migrations_crit",
    ),
    Over(
        "cpu_quantum_expirations_per_s",
        "expired time slices of a vCPU",
        kinds=_KINDS,
        roll_up=EntityKind.VM,
        warn="expirations_warn",
        crit="expirations_crit",
    ),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; what is furthest beyond its limit leads."""
    yield from over_any(context, _SPECS)
