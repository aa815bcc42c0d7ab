"""Another program uses the disk that the database needs.

Finds:
    Programs that are no database read, or write, at least a third of all that programs read or write, at least 1 MiB/s
    more than in the normal time, while a disk of the machine makes requests wait: 5 ms or more, and twice as long as in
    the normal time; a disk that the database is known to lie on before others. The three busiest are named.
    A program is left out where that disk moved less than half of what the program did, and another disk as much.
    Without processes in the recording: a disk that writes or reads at least 1.5 times as much as in the normal time,
    while the database itself wrote and read no more, and fewer transactions end; where it is known which disks the
    database lies on, only these count. Where what others move is little
    beside the database: a disk that serves at least 1.5 times as many writes, each of which waits 1.5 times as long,
    while the database asks for no more, and a program that came with them and writes no more than the disk's rise.

Why:
    A disk serves whoever asks. A copy, a backup agent, a log shipper or an unpacking archive takes its requests, and
    the database's wait behind them. Many small writes, each of them flushed, keep it as busy as few large ones.

Do:
    Look at the programs that are named, or record `pidstat -d 1`. Move them to another disk or hour, or limit them:
    io.max of their control group, ionice where the scheduler knows it, --bwlimit.

When it is wrong:
    The database's own helpers (archive_command, pg_basebackup) are other programs too; they are named.

Sources:
    pidstat(1), kB_rd/s and kB_wr/s; Linux Documentation/admin-guide/iostats.rst.
    Judgement: a third of the traffic is enough to fill a disk that was two thirds busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.database_disks import database_disks
from leadline.rules._families.changes import changed, evidence, ratio, shown, throughput
from leadline.rules._families.levels import looked_at
from leadline.rules._families.programs import SHOWN_COUNT, Consumer, programs
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity
    from leadline.core.model.incident import Change

_WAITS = ("guest_disk_await_ms", "guest_disk_await_ms_read", "guest_disk_await_ms_write")
_MOVED = {
    "read": ("process_read_kib_per_s", "disk_read_mib_per_s"),
    "write": ("process_write_kib_per_s", "disk_write_mib_per_s"),
}
_OWN = {"read": ("db_page_reads_per_s",), "write": ("db_page_writes_per_s", "db_log_bytes_per_s")}

META = RuleMeta(
    code="GST155",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("process_read_kib_per_s|process_write_kib_per_s|disk_read_mib_per_s|disk_write_mib_per_s",),
    uses=(
        *_WAITS,
        *("db_tps", "db_qps", "db_page_reads_per_s", "db_page_writes_per_s", "db_log_bytes_per_s"),
        *("disk_writes_per_s", "db_log_flushes_per_s"),
    ),
    thresholds={
        "share": Threshold(0.33, "ratio", "Judgement: enough to fill a disk that was two thirds busy"),
        "named": Threshold(0.1, "ratio", "Judgement: of what they move together"),
        "reached": Threshold(0.3, "ratio", "Judgement: programs may use two disks, and the page cache absorbs a part"),
        "fits": Threshold(0.5, "ratio", "Judgement: half of what a program moves may come from the page cache"),
        "least": Threshold(1024.0, "kib_per_s", "Judgement: less is noise on any disk"),
        "await": Threshold(5.0, "ms", "Judgement: a disk that answers sooner has room for both"),
        "slower": Threshold(2.0, "ratio", "Judgement: beyond the noise of a busy disk"),
        "more": Threshold(1.5, "ratio", "Judgement: beyond the noise of a busy disk"),
        "own": Threshold(1.2, "ratio", "Judgement: a fifth more is the noise of page writes, which come in bursts"),
        "done": Threshold(0.9, "ratio", "Judgement: a tenth fewer transactions is noise"),
        "requests": Threshold(50.0, "per_s", "Judgement: fewer are noise on any disk"),
        "longer": Threshold(1.5, "ratio", "Judgement: beyond the noise of a busy disk"),
        "log_await": Threshold(2.0, "ms", "Judgement: what guest-disk-await-high allows the log's disk"),
        "came": Threshold(0.2, "ratio", "Judgement: of what it writes now; an incident's ends are never sharp"),
        "small": Threshold(256.0, "kib_per_s", "Judgement: 64 pieces of 4 KiB, each of them flushed"),
        "part": Threshold(0.1, "ratio", "Judgement: the file system's journal may write several times as much"),
        "whole": Threshold(1.2, "ratio", "Judgement: two tools do not begin their samples at the same moment"),
    },
    explains=(*GUEST_AND_DATABASE_WAIT_FOR_DISK, "vm-iops-limit-hit", "db-lock-waits", "guest-cache-cold"),
    clears=False,
    examines="disks",
    causes=("disk-busy-with-others",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the disk that makes requests wait longest."""
    seen = False
    for way, (by_process, _) in _MOVED.items():
        used = programs(context, by_process, looked_at(context))
        seen = seen or bool(used)
        others = [program for program in used if not program.is_database]
        total = sum(program.during for program in used)
        if not used or sum(program.during for program in others) < context.limit("share") * total:
            continue
        rates = _rates(context, way)
        disk = _slow_disk(context, rates, sum(program.during for program in others))
        if disk is None:
            continue
        there = [program for program in others if not _is_elsewhere(context, program, disk[0], rates)]
        is_much = sum(program.during for program in there) >= context.limit("share") * total
        if is_much and sum(program.more for program in there) >= context.limit("least"):
            yield _by_programs(context, disk, there, way)
            return
    yield from _by_requests(context) if seen else _by_change(context)


def _by_requests(context: RuleContext) -> Iterator[Finding]:
    """A disk that serves more writes while the database asks for no more, and the program that came with them."""
    asked = (throughput(context), context.change("db_log_flushes_per_s"))
    own_work = [change for change in asked if change is not None]
    if not own_work or max(ratio(change) for change in own_work) >= context.limit("own"):
        return
    used = programs(context, _MOVED["write"][0], looked_at(context))
    moved = {change.entity: change for change in context.changes(_MOVED["write"][1], EntityKind.BLOCK_DEVICE)}
    waits = {change.entity: change for name in _WAITS for change in context.changes(name, EntityKind.BLOCK_DEVICE)}
    for requests in _of_database(context, context.changes("disk_writes_per_s", EntityKind.BLOCK_DEVICE)):
        disk, wait = moved.get(requests.entity), waits.get(requests.entity)
        is_more = ratio(requests) >= context.limit("more")
        if not is_more or requests.during - requests.normal < context.limit("requests") or disk is None or wait is None:
            continue
        if wait.during < context.limit("log_await") or ratio(wait) < context.limit("longer"):
            continue
        came = [one for one in used if _came_with(context, one, (disk.during - disk.normal) * 1024.0)]
        if came:
            yield _of_small_writes(context, came[0], (requests, wait, *own_work))
            return


def _came_with(context: RuleContext, program: Consumer, rise_kib_per_s: float) -> bool:
    """Whether a program that is no database began to write when a disk's writes rose, and wrote a part of that rise."""
    if program.is_database or program.during < context.limit("small"):
        return False
    least, most = context.limit("part") * rise_kib_per_s, context.limit("whole") * rise_kib_per_s
    return program.normal <= context.limit("came") * program.during and least <= program.more <= most


def _of_small_writes(context: RuleContext, program: Consumer, changes: tuple[Change, ...]) -> Finding:
    requests, wait, *_ = changes
    name = requests.entity.label()
    summary = f"{program.name} came with the writes of {name}: {shown(requests)}, which wait {shown(wait)}"
    return context.finding(
        requests.entity,
        summary,
        [program.evidence, *map(evidence, changes)],
        windows=looked_at(context),
        score=ratio(wait),
    )


def _by_programs(context: RuleContext, disk: tuple[Entity, float], others: list[Consumer], way: str) -> Finding:
    entity, await_ms = disk
    moved = sum(program.during for program in others)
    others = [program for program in others if program.during >= context.limit("named") * moved]
    names = " and ".join(program.name for program in others[:SHOWN_COUNT])
    verb = way if len(others) > 1 else f"{way}s"
    rate = show(moved / 1024.0, "mib_per_s")
    return context.finding(
        entity,
        f"{names} {verb} {rate} beside the database; requests to {entity.label()} wait {show(await_ms, 'ms')}",
        [program.evidence for program in others[:SHOWN_COUNT]],
        windows=looked_at(context),
        score=await_ms / context.limit("await"),
    )


def _slow_disk(context: RuleContext, rates: dict[Entity, float], moved_kib_per_s: float) -> tuple[Entity, float] | None:
    """The disk with most time waited in a second, and how long a request waited; None where none is slow.

    Only a disk that moved a good part of what the programs moved can be theirs.
    """
    enough = context.limit("reached") * moved_kib_per_s
    slow: dict[Entity, float] = {}
    (window,) = looked_at(context) or (None,)
    for metric in _WAITS:
        for group in context.of(metric, EntityKind.BLOCK_DEVICE):
            inside = np.ones(len(group.times_ns), dtype=bool)
            if window is not None:
                inside = (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
            for row, entity in enumerate(group.entities):
                values = group.values[row][inside]
                values = values[np.isfinite(values)]
                is_theirs = not rates or rates.get(entity, 0.0) >= enough
                if is_theirs and len(values) and float(np.mean(values)) >= context.limit("await"):
                    slow[entity] = max(slow.get(entity, 0.0), float(np.mean(values)))
    if context.incident is not None:
        changes = [change for metric in _WAITS for change in context.changes(metric, EntityKind.BLOCK_DEVICE)]
        same = {change.entity for change in changes} - {
            change.entity for change in changes if ratio(change) >= context.limit("slower")
        }
        slow = {entity: value for entity, value in slow.items() if entity not in same}
    its_disks = database_disks(context)
    return max(slow.items(), key=lambda one: (one[0] in its_disks, one[1]), default=None)


def _of_database(context: RuleContext, changes: list[Change]) -> list[Change]:
    """The changes of disks that the database lies on; all where that is not known."""
    its_disks = database_disks(context)
    return [change for change in changes if not its_disks or change.entity in its_disks]


def _rates(context: RuleContext, way: str) -> dict[Entity, float]:
    """What each disk moved in the time looked at, in KiB/s; empty where no rate of a disk was recorded."""
    rates: dict[Entity, float] = {}
    windows = looked_at(context)
    for group in context.of(_MOVED[way][1], EntityKind.BLOCK_DEVICE):
        inside = np.zeros(len(group.times_ns), dtype=bool)
        for window in windows:
            inside |= (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
        if not inside.any():
            continue
        means = np.nan_to_num(group.values[:, inside].astype(np.float64)).mean(axis=1) * 1024.0
        for entity, mean in zip(group.entities, means.tolist(), strict=True):
            rates[entity] = max(rates.get(entity, 0.0), mean)
    return rates


def _is_elsewhere(context: RuleContext, program: Consumer, disk: Entity, rates: dict[Entity, float]) -> bool:
    """Whether a disk moved too little to be a program's, and another one as much as the program did."""
    least = context.limit("fits") * program.during
    return rates.get(disk, least) < least and any(rate >= least for entity, rate in rates.items() if entity != disk)


def _by_change(context: RuleContext) -> Iterator[Finding]:
    """A disk that moves more while the database moves no more."""
    done = throughput(context)
    if done is None or ratio(done) >= context.limit("done"):
        return
    for way, (_, by_disk) in _MOVED.items():
        own_work = [change for change in map(context.change, _OWN[way]) if change is not None]
        disks = _of_database(context, context.changes(by_disk, EntityKind.BLOCK_DEVICE))
        disk = max(disks, key=lambda change: max(change.normal, change.during), default=None)
        if disk is None or not own_work or max(ratio(change) for change in own_work) >= context.limit("own"):
            continue
        most = max(context.limit("more"), context.limit("more") * max(ratio(change) for change in own_work))
        if ratio(disk) >= most and disk.during - disk.normal >= context.limit("least") / 1024.0:
            yield _another(context, disk, own_work, done)
            return


def _another(context: RuleContext, disk: Change, own_work: list[Change], done: Change) -> Finding:
    summary = f"Another program uses {disk.entity.label()}: {shown(disk)}, of which the database's own is no more"
    finding = changed(context, disk.entity, summary, (disk, *own_work))
    return context.finding(
        finding.entity, summary, [*finding.evidence, evidence(done)], windows=finding.windows, score=finding.score
    )
