"""The host has as much CPU work as it has cores, or more.

Finds:
    One-minute CPU load average of the host at or above 1.0 (warning: all cores are in use) or 2.0 (critical: the host
    is overloaded).

Why:
    The load average counts what runs and what waits to run, relative to all physical cores: at 1.0 every core has
    something to do, at 2.0 as much again is waiting. Utilisation ends at 100 %; the load average tells how far beyond
    it the demand goes.

Do:
    Move VMs to other hosts or add cores until the load at peak stays below 1.0; take vCPUs from VMs that do not use
    them. Look at the ready time of the database's own VM to see how much of the overload it bears.

When it is wrong:
    It is an average over a minute and falls slowly after a burst. It is of the whole host: VMs with reservations or
    high shares may not feel it.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): 1.0 is all cores in full
    use, 2.0 and more is overload. EsxtopDrill c_map.csv differs: 0.8 warning, 1.0 critical. The slides are followed:
    a host planned for 85 % at peak has a load average of 0.85 and is as it should be.
    Judgement: 15 s is three samples of esxtop's default 5 s; each already stands for a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.symptoms import VM_WAITS_FOR_CPU

_SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL"

META = RuleMeta(
    code="CPU105",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    causes=("cpu-taken",),
    needs=("host_cpu_load_1m",),
    thresholds={
        "warn": Threshold(1.0, "ratio", _SLIDES),
        "crit": Threshold(2.0, "ratio", _SLIDES),
        "duration": THREE_SAMPLES,
    },
    explains=("guest-cpu-looks-idle-host-saturated", *VM_WAITS_FOR_CPU),
    examines="host's CPUs",
)

_SPEC = Over(
    metric="host_cpu_load_1m", noun="CPU load average", kinds=(EntityKind.HOST,), inclusive=True, averaged_s=60.0
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    yield from over_threshold(context, _SPEC)
