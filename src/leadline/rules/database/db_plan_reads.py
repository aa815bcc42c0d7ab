"""A statement spends its time on reads: its plan waited for blocks that were not in the buffer pool.

Finds:
    A plan of 100 ms or longer that spent more than 50 % (warning) or 80 % (critical) of the time of its processes on
    reads of tables and indexes.

Why:
    The mean time of a read says what the disk has to do with it: below 0.1 ms the page cache or a quick flash answered,
    and there are too many reads; above 5 ms the disk is slow or busy, and each read is a wait.

Do:
    Run the statement twice: only a first run reads what later ones find in memory. When each read takes long, follow
    the disk under the data through the layers, beginning with iostat -x in the guest. When the reads are quick and
    many, give the statement an index that leads to fewer blocks, or give shared_buffers more memory.

When it is wrong:
    A first run after a restart reads everything. Reads that the kernel makes ahead take no time of their own.

Sources:
    PostgreSQL documentation, EXPLAIN (BUFFERS) and track_io_timing. Judgement: half of the time is most of what can be
    won; 5 ms is what a disk that turns takes, 0.1 ms what a flash drive takes at best.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.latest import by_entity

_READ, _TOOK, _PROCESSES = "db_plan_read_ms", "db_plan_ms", "db_plan_processes_count"
_BLOCKS = "db_plan_blocks_read_count"

META = RuleMeta(
    code="DBS186",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-slow", "cold-cache", "statement"),
    needs=(_READ, _TOOK),
    uses=(_PROCESSES, _BLOCKS),
    thresholds={
        "warn": Threshold(50.0, "pct", "Judgement: most of what can be won"),
        "crit": Threshold(80.0, "pct", "Judgement: nearly all of the time"),
        "took_ms": Threshold(100.0, "ms", "Judgement: nobody asks about a quicker statement"),
        "slow_read_ms": Threshold(5.0, "ms", "Judgement: what a disk that turns takes"),
        "quick_read_ms": Threshold(0.1, "ms", "Judgement: what a flash drive takes at best"),
    },
    clears=False,
    examines="disks",
    is_wait=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per plan."""
    took, processes, blocks = (by_entity(context, metric) for metric in (_TOOK, _PROCESSES, _BLOCKS))
    for plan, read_ms in by_entity(context, _READ).items():
        took_ms = took.get(plan, 0.0)
        if took_ms < context.limit("took_ms"):
            continue
        # Times are sums over processes of which each may have waited all the time.
        share_pct = min(100.0 * read_ms / (took_ms * processes.get(plan, 1.0)), 100.0)
        if share_pct <= context.limit("warn"):
            continue
        each_ms = read_ms / blocks[plan] if blocks.get(plan, 0.0) > 0 else float("nan")
        if each_ms >= context.limit("slow_read_ms"):
            meaning = "the disk is slow or busy"
        elif each_ms <= context.limit("quick_read_ms"):
            meaning = "quick, there are too many of them"
        else:
            meaning = "what a disk takes that is not slow"
        limit = context.stated_limit("warn")
        evidence = [
            Evidence(
                f"{plan.name} waited {show(read_ms, 'ms')} for reads, {share_pct:.0f} % of its time",
                metric=_READ,
                entity=plan,
                statistic="sum",
                value=share_pct,
                threshold=limit,
                unit="pct",
            )
        ]
        each = ""
        if each_ms == each_ms:  # noqa: PLR0124 - not NaN
            each = f", {show(each_ms, 'ms')} each"
            evidence.append(Evidence(f"{blocks[plan]:,.0f} blocks{each}: {meaning}", metric=_BLOCKS, entity=plan))
        summary = f"{plan.name} spent {share_pct:.0f} % of its time on reads{each}"
        severity = Severity.HIGH if share_pct > context.limit("crit") else Severity.MEDIUM
        yield context.finding(plan, summary, evidence, severity=severity, score=share_pct / limit)
