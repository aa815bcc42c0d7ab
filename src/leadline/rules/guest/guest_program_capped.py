"""A program waits for a CPU while CPUs are idle: a limit holds it back.

Finds:
    A program with a process that waits for a CPU for at least a quarter of the time (of one CPU), three times as long as it runs, while
    less than three quarters of the machine's CPUs are used.

Why:
    A process that could run on an idle CPU and does not is held back by a limit: cpu.max of its control group, a
    container's CPU limit, a quota. An application that is capped is slow, and slows the database it holds locks in,
    while every CPU graph of the machine looks idle.

Do:
    Read cpu.stat of its control group (nr_throttled, throttled_usec) and raise cpu.max, or the container's limit. When
    the program is the application, its database needs nothing.

When it is wrong:
    Programs that are pinned to a busy CPU (taskset, cpusets) wait for that one; CPUs of virtual machines that are
    stolen look idle from within.

Sources:
    pidstat(1), %wait; Linux Documentation/admin-guide/cgroup-v2.rst, cpu.max.
    Judgement: a quarter of the time is felt in every answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.guests import cpu_count
from leadline.rules._families.levels import level, looked_at
from leadline.rules._families.programs import programs

META = RuleMeta(
    code="GST158",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("process_cpu_wait_pct", "process_cpu_pct"),
    uses=("guest_cpu_busy_pct",),
    thresholds={
        "waits": Threshold(25.0, "pct", "Judgement: a quarter of the time is felt in every answer"),
        "by_run": Threshold(3.0, "ratio", "Judgement: waiting costs it more than working"),
        "busy_max": Threshold(75.0, "pct", "yaspe documentation: 75 % warns"),
        "more": Threshold(3.0, "ratio", "Judgement: beyond what the same load varies"),
    },
    explains=("net-time-outside-server", "db-transactions-held-open", "net-client-server-wait"),
    clears=False,
    causes=("partner-capped", "cpu-capped"),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the guest; the program that waits most is named."""
    windows = looked_at(context)
    runs = {program.name: program for program in programs(context, "process_cpu_pct", windows)}
    for waiting in programs(context, "process_cpu_wait_pct", windows):
        guest, running = waiting.entity.ancestor(EntityKind.GUEST), runs.get(waiting.name)
        if guest is None or running is None or waiting.most < context.limit("waits"):
            continue
        if waiting.most < context.limit("by_run") * running.most:
            continue
        if waiting.during < context.limit("more") * (waiting.during - waiting.more):
            continue
        busy = level(context, "guest_cpu_busy_pct", EntityKind.GUEST)
        used = sum(program.during for program in runs.values()) / max(cpu_count(context, guest), 1.0)
        if (used if busy is None else busy.during) < context.limit("busy_max"):
            summary = (
                f"{waiting.name} waits for a CPU {show(waiting.most, 'pct')} of the time while CPUs of"
                f" {guest.label()} are idle: a limit holds it back"
            )
            score = waiting.most / context.limit("waits")
            yield context.finding(guest, summary, [waiting.evidence, running.evidence], windows=windows, score=score)
            return
