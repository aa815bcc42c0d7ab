"""A load tool found the disk slow.

Finds:
    Runs of fio, ioping, vdbench, HCIBench, sysbench fileio or pg_test_fsync in which requests of up to 64 KiB took
    10 ms or 25 ms (warning, critical) on average, flushes 5 ms or 10 ms. With more than 32 requests under way the
    time is that of 32, by Little's law: what is above that the tool's own queue adds. Jobs that ran at the same time
    on one disk count together.

Why:
    A load tool waits as a database does, without the database's cache, locks and CPU time: what it measures is the
    disk with all layers below it.

Do:
    Record iostat in the guest and esxtop on the host during another run, and compare: the layer that adds the time is
    the one where await exceeds the latency below it. Then run the same job with one request under way: a device that
    is slow then too is slow itself, one that is quick then has too few requests per second for the load.

When it is wrong:
    The run shows the disk at its own time and under its own load, not the disk of a slow hour. Requests served from a
    cache (buffered I/O, a test file smaller than the array's cache) hide a slow disk. A job with a rate limit or think
    time measures a disk at rest.

Sources:
    EsxtopDrill c_map.csv: 10 ms. Yellow-Bricks esxtop thresholds: 25 ms.
    J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.
    Judgement: 32 under way is what a busy database has; larger requests are judged by throughput.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST
from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.result import Operation, Result, Subject
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.rules._families.symptoms import DATABASE_WAITS_FOR_DISK

_FLUSHES = frozenset({"sync", "fsync", "fdatasync", "open_sync", "open_datasync", "fsync_writethrough"})

META = RuleMeta(
    code="GST159",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("job_latency_ms",),
    thresholds={
        "warn": Threshold(10.0, "ms", "EsxtopDrill c_map.csv"),
        "crit": Threshold(25.0, "ms", "Yellow-Bricks esxtop thresholds"),
        "flush_warn": Threshold(5.0, "ms", "Judgement: felt by every commit"),
        "flush_crit": Threshold(10.0, "ms", "Judgement: a spinning disk"),
        "outstanding": Threshold(32.0, "count", "Judgement: what a busy database has under way"),
        "size": Threshold(65_536.0, "bytes", "Judgement: larger requests are judged by throughput"),
    },
    explains=DATABASE_WAITS_FOR_DISK,
    clears=False,
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """A finding per run, of its slowest kind of request."""
    for result in context.results:
        operations = result.measured(Subject.DISK)
        under_way = float(np.nansum([operation.outstanding_count for operation in operations]))
        judged = (_judged(context, result, operation, under_way) for operation in operations)
        slow = [finding for finding in judged if finding is not None]
        if slow:
            yield max(slow, key=lambda finding: finding.score)


def _judged(context: RuleContext, result: Result, operation: Operation, under_way: float) -> Finding | None:
    if operation.bytes_per_s > context.limit("size") * operation.per_s:
        return None
    kind = "flush_" if operation.name in _FLUSHES else ""
    warn, crit = context.limit(f"{kind}warn"), context.limit(f"{kind}crit")
    few = context.limit("outstanding")
    took_ms = operation.mean_ms * min(1.0, few / under_way) if under_way > 0 else operation.mean_ms
    if took_ms < warn:
        return None
    job = Entity(EntityKind.JOB, f"{result.tool} {result.job}".strip(), _guest(context))
    statement = f"{operation.name}: {operation.latency_words()}"
    if took_ms < operation.mean_ms:
        statement += f"; {show(took_ms, 'ms')} with {few:.0f} under way"
    evidence = Evidence(
        statement,
        metric="job_latency_ms",
        entity=job,
        statistic="mean",
        value=operation.mean_ms,
        threshold=warn,
        unit="ms",
        source=result.source,
    )
    return context.finding(
        job,
        f"{job.name} measured a slow disk: {operation.name} {operation.latency_words()}",
        [evidence],
        severity=Severity.HIGH if took_ms >= crit else Severity.MEDIUM,
        windows=_windows(result),
        score=took_ms / warn,
    )


def _guest(context: RuleContext) -> Entity:
    """The guest that the other recordings are of, where it is one: tools do not say where they ran."""
    guests = set(context.inventory.of_kind(EntityKind.GUEST))
    for group in context.capture.groups:
        guests.update(one for entity in group.entities for one in entity.lineage() if one.kind is EntityKind.GUEST)
    named = guests - {UNNAMED_GUEST}
    return next(iter(named)) if len(named) == 1 else UNNAMED_GUEST


def _windows(result: Result) -> list[Window]:
    """When the run was; empty where the tool does not say."""
    if result.start_ns is None or result.end_ns is None:
        return []
    return [Window(result.start_ns, result.end_ns)]
