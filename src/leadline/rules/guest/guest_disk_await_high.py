"""A disk answers too slowly as the guest sees it.

Finds:
    Await of a block device for at least 15 s, in most samples, above: 2 ms or 5 ms (warning, critical) of writes where
    it holds a log; 10 ms or 20 ms where it holds data, 2 ms or 5 ms of reads on flash; 10 ms or 25 ms where its use is
    not known. Only samples with 50 or more requests per second count, or with a request under way at any time. Low
    severity for a disk that threads of the same machine serve (loop, nbd, rbd, drbd) while it has more than 2 runnable
    tasks per CPU.

Why:
    Await is what a read or a commit really waits, from the request's entry into the guest's queue to its completion.
    All layers below are in it: the guest's own queue, the virtual controller, the hypervisor, fabric and array.

Do:
    Find the layer before buying disks: record esxtop on the host for the same minutes and compare await with guest
    latency (GAVG) and device latency (DAVG). Await far above GAVG is the guest's own queue: see its depth, its
    scheduler and the virtual controller. IOPS that stay flat while await grows are a limit (vm-iops-limit-hit).

When it is wrong:
    A deep queue of asynchronous writes (a checkpoint, a bulk load) makes await long without anyone waiting for single
    requests. Stacked devices (LVM, md) repeat the await of the disk below. Utilisation near 100 % says nothing on
    devices that serve many requests at once.
    Linux counts an empty flush (fdatasync of a log that is overwritten) as a write of its own: the await of writes is
    then the mean of writes and flushes, half of what a write takes where flushes cost nothing. How many flushes were
    empty no counter tells, so nothing is taken off (decision 0008).

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): log 2 to 5 ms, data 10 ms.
    Cloud4Y, disk subsystem diagnosis with iostat, fio and ioping: 0.55 ms on average on a healthy 1000-IOPS disk.
    EsxtopDrill c_map.csv: 20 ms. Yellow-Bricks esxtop thresholds: 25 ms.
    InterSystems PerfTools RanRead guide: 2 ms average of random reads on flash.
    iostat(1): await, r_await, w_await. Linux block/blk-flush.c, blk_flush_restore_request: accounting of flushes.
    Judgement: 5 ms critical on flash, ten times what a healthy device takes; 15 s stands for "sustained".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.derived.disks import Busy, Use, role_said, uses
from leadline.estate.derived.latencies import block_awaits
from leadline.estate.language.guests import starved_by_cpu
from leadline.estate.language.templates import Over, over_groups
from leadline.rules._families.limits import FEW_COMMANDS
from leadline.rules._families.symptoms import DATABASE_WAITS_FOR_DISK

_SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"

META = RuleMeta(
    code="GST107",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    causes=("disk-slow", "disk-capped"),  # from inside a guest both look alike
    needs=("guest_disk_await_ms|guest_disk_await_ms_read|guest_disk_await_ms_write",),
    uses=(
        "guest_disk_await_ms_write",
        "disk_iops",
        "disk_reads_per_s",
        "disk_writes_per_s",
        "guest_run_queue_count",
    ),
    thresholds={
        "wal_warn": Threshold(2.0, "ms", _SLIDES),
        "wal_crit": Threshold(5.0, "ms", _SLIDES),
        "data_warn": Threshold(10.0, "ms", _SLIDES),
        "data_crit": Threshold(20.0, "ms", "EsxtopDrill c_map.csv"),
        "flash_warn": Threshold(2.0, "ms", "InterSystems PerfTools RanRead guide"),
        "flash_crit": Threshold(5.0, "ms", "Judgement: ten times what a healthy flash device takes"),
        "other_warn": Threshold(10.0, "ms", "EsxtopDrill c_map.csv"),
        "other_crit": Threshold(25.0, "ms", "Yellow-Bricks esxtop thresholds"),
        "load_min": FEW_COMMANDS,
        "starved": Threshold(2.0, "ratio", "yaspe documentation: run queue per CPU"),
        "duration": Threshold(15.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=(
        "guest-iowait-high",
        "guest-blocked-processes",
        "guest-load-average-per-core",
        "guest-disk-load-test-slow",
        *DATABASE_WAITS_FOR_DISK,
    ),
    examines="disks",
)


@dataclass(frozen=True, slots=True)
class _Class:
    """Disks judged by the same limits, and which of their requests count."""

    limits: str
    noun: str
    value: Busy


_WRITES = Busy("guest_disk_await_ms_write", (("disk_writes_per_s",), ("disk_iops",)))
_READS = Busy("guest_disk_await_ms_read", (("disk_reads_per_s",), ("disk_iops",)))
_CLASSES = (
    _Class("wal", "await of the log's disk", _WRITES),
    _Class("data", "await of the data's disk", Busy()),
    _Class("flash", "await of the data's flash disk", _READS),
    _Class("other", "await", Busy()),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per whole block device."""
    known = uses(context)
    groups = block_awaits(context)
    for judged in _CLASSES:
        spec = Over(
            metric="guest_disk_await_ms",
            noun=judged.noun,
            value=judged.value,
            keep=_of_class(judged.limits, known),
            mostly=True,
            warn=f"{judged.limits}_warn",
            crit=f"{judged.limits}_crit",
        )
        for finding in role_said(over_groups(context, groups, spec), known):
            yield starved_by_cpu(context, finding)


def _of_class(limits: str, known: Mapping[Entity, Use]) -> Callable[[RuleContext, Entity], bool]:
    def keep(_: RuleContext, entity: Entity) -> bool:
        use = known.get(entity, Use())
        if use.role is Role.WAL:
            return limits == "wal"
        if use.role is Role.DATA:
            return limits == ("flash" if use.medium == "flash" else "data")
        return limits == "other"

    return keep
