"""More tasks are ready to run than the guest has CPUs.

Finds:
    Tasks running or runnable (vmstat r) divided by the guest's CPUs above 1 (warning) or 2 (critical), in most samples,
    for at least 30 s.

Why:
    A task beyond the CPUs waits for its turn; its query takes longer by that wait. A database that holds a lock or a
    latch while it waits makes others wait too.

Do:
    Look at what runs (user and system time per process): lock spinning and connection storms queue without useful
    work, a connection pool helps more than CPUs. Otherwise add vCPUs if the host has free cores, or move load away. If
    CPUs look idle beside a long queue, the host gives them no time: see ready time and steal.

When it is wrong:
    It is a count at the moment of the sample: single samples jump, so most of them must agree. Short parallel queries
    use all CPUs on purpose.

Sources:
    yaspe documentation: run queue above the number of vCPUs warns, above twice alerts.
    vmstat(8): r counts running and runnable tasks.
    Judgement: 30 s stands for "sustained".
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.guests import per_cpu
from leadline.estate.language.templates import Over, over_threshold

META = RuleMeta(
    code="GST102",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("cpu-taken", "cpu-busy"),
    needs=("guest_run_queue_count", "guest.cpu_count|vm.vcpu_count"),
    thresholds={
        "warn": Threshold(1.0, "ratio", "yaspe documentation"),
        "crit": Threshold(2.0, "ratio", "yaspe documentation"),
        "duration": Threshold(30.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("guest-load-average-per-core", "db-log-write-latency"),
    examines="CPU",
)

_SPEC = Over(
    metric="guest_run_queue_count",
    noun="run queue per CPU",
    kinds=(EntityKind.GUEST,),
    value=per_cpu,
    mostly=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    yield from over_threshold(context, _SPEC)
