"""Reads of a disk became small: far more of them move no more, each as fast as before.

Finds:
    A disk whose mean read (rareq-sz) is at most 16 KiB and at most a third of what it was in the normal time, of which
    it serves at least 1.5 times as many, while it moves no more than in the normal time (1.2) and a read takes no
    longer (1.5).

Why:
    The kernel joins what a scan reads into requests as large as the read-ahead of the disk. With little or none, the
    scan asks for each page by itself and waits for each, so that it takes as many times longer as there are more
    requests. The disk is not slower; what is asked of it is cut too small.

Do:
    Look at the read-ahead of the disk: blockdev --getra /dev/DISK (in sectors of 512 bytes), or
    /sys/block/DISK/queue/read_ahead_kb, and at who set it (udev rules, tuned, a multipath that was built anew). Set it
    back: blockdev --setra 256 for 128 KiB, the kernel's default. Look at max_sectors_kb too.

When it is wrong:
    A scan that ended while work with single pages grew looks alike for as long as both last; then nobody waits for the
    scan. Fragmented files and encrypted or compressed volumes may cut requests as well.

Sources:
    iostat(1), rareq-sz; blockdev(8); Linux Documentation/ABI/stable/sysfs-block, read_ahead_kb (128 by default).
    Judgement: a third of the size is beyond what the mix of a load varies; 16 KiB is four pages.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.incident import Change
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.rules._families.changes import changed, ratio, shown
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

_SIZES = ("guest_disk_io_size_kib_read", "guest_disk_io_size_kib")
_RATES = ("disk_reads_per_s", "disk_iops")
_TIMES = ("guest_disk_await_ms_read", "guest_disk_await_ms")

META = RuleMeta(
    code="GST161",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("|".join(_SIZES), "|".join(_RATES), "disk_read_mib_per_s"),
    uses=_TIMES,
    thresholds={
        "size": Threshold(16.0, "kib", "Judgement: four pages; read-ahead makes more of a scan"),
        "smaller": Threshold(0.33, "ratio", "Judgement: beyond what the mix of a load varies"),
        "reads": Threshold(1.5, "ratio", "Judgement: as many requests or fewer are less work, not smaller pieces"),
        "least": Threshold(20.0, "per_s", "Judgement: fewer are noise on any disk"),
        "moved": Threshold(1.2, "ratio", "Judgement: what moves more reads more, in whatever pieces"),
        "slower": Threshold(1.5, "ratio", "Judgement: a disk that answers later is another cause"),
    },
    explains=(
        *GUEST_AND_DATABASE_WAIT_FOR_DISK,
        # Sessions pile up behind their scans, and each of the many requests takes some of a CPU.
        *("guest-cache-cold", "db-more-work", "guest-run-queue-high", "guest-cpu-usage-high", "guest-cpu-system-share"),
        *("guest-load-average-per-core", "guest-scan-by-pages"),
    ),
    clears=False,
    causes=("read-ahead",),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per block device."""
    sizes = _by_disk(context, _SIZES)
    rates, times = _by_disk(context, _RATES), _by_disk(context, _TIMES)
    moved = _by_disk(context, ("disk_read_mib_per_s",))
    for disk, size in sizes.items():
        rate, much, time = rates.get(disk), moved.get(disk), times.get(disk)
        if rate is None or much is None or not _is_small(context, size):
            continue
        is_many = ratio(rate) >= context.limit("reads") and rate.during - rate.normal >= context.limit("least")
        is_as_fast = ratio(time) <= context.limit("slower")
        if is_many and is_as_fast and ratio(much) <= context.limit("moved"):
            summary = f"Reads of {disk.label()} became small: {shown(size)} each, {shown(rate)} of them"
            yield changed(context, disk, summary, (size, rate, much, time))


def _is_small(context: RuleContext, size: Change) -> bool:
    return size.during <= context.limit("size") and ratio(size) <= context.limit("smaller")


def _by_disk(context: RuleContext, metrics: tuple[str, ...]) -> dict[Entity, Change]:
    """The change of each disk by the first of some metrics that it has."""
    known: dict[Entity, Change] = {}
    for metric in metrics:
        for change in context.changes(metric, EntityKind.BLOCK_DEVICE):
            known.setdefault(change.entity, change)
    return known
