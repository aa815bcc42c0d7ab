"""The hypervisor ran something else while the guest wanted to run.

Finds:
    Steal time above 5 % (warning) or 10 % (critical), in most samples, for at least 30 s.

Why:
    Stolen time is time a vCPU was ready and got no physical CPU. The guest's work takes longer by it, and nothing
    inside the guest can change that.

Do:
    Look at the host: ready time, co-stop, CPU limits and saturation say why. Ask the provider of a cloud machine, or
    take an instance without CPU credits or oversubscription.

When it is wrong:
    ESXi reports steal only when the VM's steal clock is enabled, and nested hypervisors pass on their own view: no
    steal proves nothing. A CPU limit shows as steal too.

Sources:
    yaspe documentation: 5 % warns, 10 % alerts.
    proc(5), /proc/stat: steal.
    Judgement: 30 s stands for "sustained".
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

META = RuleMeta(
    code="GST104",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("cpu-taken", "cpu-capped"),
    needs=("guest_cpu_steal_pct",),
    thresholds={
        "warn": Threshold(5.0, "pct", "yaspe documentation"),
        "crit": Threshold(10.0, "pct", "yaspe documentation"),
        "duration": Threshold(30.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("guest-run-queue-high", "guest-load-average-per-core"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest; from its CPUs where the whole was not recorded."""
    whole = bool(context.of("guest_cpu_steal_pct", EntityKind.GUEST))
    spec = Over(
        metric="guest_cpu_steal_pct",
        noun="steal time",
        kinds=(EntityKind.GUEST if whole else EntityKind.CPU,),
        roll_up=EntityKind.GUEST,
        mostly=True,
    )
    yield from over_threshold(context, spec)
