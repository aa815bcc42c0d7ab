"""Another program takes the CPUs that the database needs.

Finds:
    Programs that are no database use at least a third of the CPU time that all programs use, and at least half a CPU
    more than in the normal time, while the CPUs are 75 % busy or tasks wait for one. The three busiest are named.
    Without processes in the recording: at least 1.5 times as much CPU used as in the normal time, 60 % or more, while
    the database did not do that much more.

Why:
    The database's sessions queue for a CPU behind whatever else runs; each statement and each flush waits for its turn.

Do:
    Look at the programs that are named, or record `pidstat -u 1`. Move them to another machine or hour, or limit
    them: cpu.max or cpu.weight of their control group, nice.

When it is wrong:
    An application server that shares the machine on purpose is another program too: then the machine is too small.

Sources:
    pidstat(1), %CPU and %wait.
    Judgement: a third of the CPUs is enough to make a busy database queue.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.guests import cpu_count
from leadline.rules._families.changes import LONGER_TRANSACTIONS, changed, cpu_used, ratio, shown, throughput
from leadline.rules._families.levels import looked_at
from leadline.rules._families.programs import SHOWN_COUNT, Consumer, programs

_OWN_WORK = ("db_logical_reads_per_s", "db_logons_per_s", "db_rows_changed_per_s")

META = RuleMeta(
    code="GST156",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("process_cpu_pct|guest_cpu_busy_pct|guest_cpu_user_pct",),
    uses=(
        "process_cpu_wait_pct",
        "guest_cpu_system_pct",
        "db_tps",
        "db_qps",
        "db_active_sessions_count",
        *_OWN_WORK,
    ),
    thresholds={
        "share": Threshold(0.33, "ratio", "Judgement: enough to make a busy database queue"),
        "least": Threshold(50.0, "pct", "Judgement: half a CPU"),
        "named": Threshold(0.1, "ratio", "Judgement: of what they take together"),
        "busy": Threshold(75.0, "pct", "yaspe documentation: 75 % warns"),
        "waiting": Threshold(100.0, "pct", "Judgement: one task waits for a CPU at any time"),
        "more": Threshold(1.5, "ratio", "Judgement: beyond the noise of a busy second"),
        "used": Threshold(60.0, "pct", "Judgement: from here on tasks begin to queue"),
    },
    explains=(
        *LONGER_TRANSACTIONS,
        "guest-cpu-usage-high",
        "guest-run-queue-high",
        "guest-load-average-per-core",
        "guest-cpu-system-share",
        "db-log-write-latency",
        "db-data-read-latency",
    ),
    clears=False,
    causes=("cpu-taken",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the guest."""
    used = programs(context, "process_cpu_pct", looked_at(context))
    if not used:
        yield from _by_change(context)
        return
    others = [program for program in used if not program.is_database]
    if sum(program.during for program in others) < context.limit("share") * sum(program.during for program in used):
        return
    guest = used[0].entity.ancestor(EntityKind.GUEST)
    if guest is None or sum(program.more for program in others) < context.limit("least"):
        return
    waiting = sum(program.during for program in programs(context, "process_cpu_wait_pct", looked_at(context)))
    busy = sum(program.during for program in used) / max(cpu_count(context, guest), 1.0)
    if busy >= context.limit("busy") or waiting >= context.limit("waiting"):
        yield _named(context, guest, others, busy)


def _named(context: RuleContext, guest: Entity, others: list[Consumer], busy: float) -> Finding:
    cpus = sum(program.during for program in others) / 100.0
    others = [program for program in others if program.during >= context.limit("named") * cpus * 100.0]
    names = " and ".join(program.name for program in others[:SHOWN_COUNT])
    return context.finding(
        guest,
        f"{names} {'uses' if len(others) == 1 else 'use'} {cpus:.2g} CPUs beside the database on {guest.label()}",
        [program.evidence for program in others[:SHOWN_COUNT]],
        windows=looked_at(context),
        score=busy / context.limit("used"),
    )


def _by_change(context: RuleContext) -> Iterator[Finding]:
    """More CPU used than the database's own work explains."""
    cpu, done = cpu_used(context), throughput(context)
    own_work = [change for change in map(context.change, _OWN_WORK) if change is not None]
    if cpu is None or done is None or not own_work:
        return
    work = max(1.0, ratio(done), *(ratio(change) for change in own_work))
    if cpu.during >= context.limit("used") and ratio(cpu) >= context.limit("more") * work:
        summary = f"Another program takes CPU: {shown(cpu)} used, and the database does not do that much more"
        yield changed(context, cpu.entity, summary, (cpu, done, *own_work))
