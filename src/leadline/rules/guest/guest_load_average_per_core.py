"""More tasks want to run or wait for I/O than the guest has CPUs.

Finds:
    The 1-minute load average divided by the guest's CPUs above 0.8 (warning) or 1.0 (critical) for at least 60 s, or
    in the one sample that uptime or a screen of top gives. Low severity when the CPUs were recorded too and stood
    idle, with no I/O outstanding, for more than 20 % of that time.

Why:
    Below 1 there is CPU left, at 1 none, above 1 tasks queue: a load of 80 on 32 CPUs means that on average one and a
    half tasks wait behind each running one.

Do:
    Split the load before blaming the CPU: tasks ready to run (vmstat r) ask for CPU, blocked ones (vmstat b) for
    quicker storage. Then add vCPUs, if the host has cores for them, or take load off; or follow the disk findings.

When it is wrong:
    Linux counts tasks in uninterruptible sleep, mostly waiting for a disk, as load: a slow disk alone raises it with
    idle CPUs. It is an exponential average and lags behind by minutes: load from before the recording is still in
    it. In a container it may be the whole machine's. That is why the CPUs' idle time is looked at too.

Sources:
    Cloud4Y, disk subsystem diagnosis with iostat, fio and ioping: 0.7 to 0.8 per core is good practice, above 1 queues.
    yaspe documentation: the same per-CPU reading.
    Linux kernel, kernel/sched/loadavg.c: uninterruptible tasks are counted.
    Judgement: 60 s, the time over which the average itself is taken; 20 % idle is room that queueing tasks would use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.language.guests import per_cpu
from leadline.estate.language.templates import Over, over_threshold

META = RuleMeta(
    code="GST101",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("cpu-taken", "cpu-busy"),
    needs=("guest_load_1m", "guest.cpu_count|vm.vcpu_count"),
    uses=("guest_cpu_idle_pct",),
    thresholds={
        "warn": Threshold(0.8, "ratio", "Cloud4Y, disk subsystem diagnosis with iostat, fio and ioping"),
        "crit": Threshold(1.0, "ratio", "Cloud4Y, disk subsystem diagnosis with iostat, fio and ioping"),
        "idle": Threshold(20.0, "pct", "Judgement: room that queueing tasks would use"),
        "duration": Threshold(60.0, "s", "Judgement: the time the average is taken over"),
    },
    examines="CPU",
    is_wait=True,
)

_SPEC = Over(
    metric="guest_load_1m", noun="load average per CPU", kinds=(EntityKind.GUEST,), value=per_cpu, averaged_s=60.0
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    idles = context.of("guest_cpu_idle_pct", EntityKind.GUEST)
    for finding in over_threshold(context, _SPEC):
        idle = means_over(idles, finding.windows, finding.entity).get(finding.entity)
        if idle is None or idle <= context.limit("idle"):
            yield finding
            continue
        idle_evidence = Evidence(
            f"but the CPUs were idle {show(idle, 'pct')} of that time with no I/O outstanding",
            metric="guest_cpu_idle_pct",
            entity=finding.entity,
            statistic="mean",
            value=idle,
            threshold=context.limit("idle"),
            unit="pct",
        )
        yield replace(
            finding, severity=min(finding.severity, Severity.LOW), evidence=(*finding.evidence, idle_evidence)
        )
