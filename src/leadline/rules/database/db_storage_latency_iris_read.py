"""Disks under an IRIS database read too slowly.

Finds:
    Await of reads on a disk that holds data of an IRIS instance, in most samples for at least 15 s: above 2 ms
    (warning) or 5 ms (critical) on flash; above 6 ms or 15 ms (medium at most) on rotating disks or where the medium is
    not known. Only samples with 50 or more reads per second count, or with a read under way at any time.

Why:
    A global reference that misses the cache waits for one random read, and an application does them one after the
    other: response time is their number times their latency.

Do:
    Compare with guest and device latency on the host for the same minutes to find the layer; check limits, the virtual
    controller and paths. Repeat with RanRead against the array alone, and grow global buffers so that fewer reads miss.

When it is wrong:
    Backups and integrity checks read large blocks, which takes longer without anyone waiting.

Sources:
    InterSystems PerfTools RanRead guide: 2 ms on average and 5 ms at most on all-flash arrays.
    Judgement: 6 and 15 ms on rotating disks; 15 s stands for "sustained".
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.derived.disks import Busy
from leadline.estate.language.database_disks import DiskClass, slow_disks
from leadline.rules._families.limits import FEW_COMMANDS

_RANREAD = "InterSystems PerfTools RanRead guide"

META = RuleMeta(
    code="DBS150",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=("database.engine", "guest_disk_await_ms_read"),
    uses=("guest_disk_await_ms", "guest_disk_await_ms_write", "disk_iops", "disk_reads_per_s", "disk_writes_per_s"),
    thresholds={
        "flash_warn": Threshold(2.0, "ms", _RANREAD),
        "flash_crit": Threshold(5.0, "ms", _RANREAD),
        "hdd_warn": Threshold(6.0, "ms", "Judgement: a random read of a rotating disk"),
        "hdd_crit": Threshold(15.0, "ms", "Judgement: a rotating disk with a queue"),
        "load_min": FEW_COMMANDS,
        "duration": Threshold(15.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("db-data-read-latency", "db-component-response-time"),
    clears=False,
    is_wait=True,
)

_READS = Busy("guest_disk_await_ms_read", (("disk_reads_per_s",), ("disk_iops",)))
_CLASSES = (
    DiskClass("flash", "read await of the data's flash disk", lambda medium: medium == "flash"),
    DiskClass("hdd", "read await of the data's disk", lambda medium: medium != "flash", Severity.MEDIUM),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per IRIS instance, of its worst disk."""
    yield from slow_disks(context, "iris", Role.DATA, _READS, _CLASSES)
