"""Disks under an IRIS journal write too slowly.

Finds:
    Await of writes on a disk that holds the journal (role WAL) of an IRIS instance, in most samples for at least 15 s:
    above 1 ms (warning) or 2 ms (critical) on flash or where the medium is not known; above 2 ms or 5 ms on rotating
    disks behind a write cache. Only samples with 50 or more writes per second count, or with a write under way at any
    time.

Why:
    Every update is in the journal before it counts as done, and the write daemon waits for the journal before it writes
    the database. With journals that synchronise at commit, users wait for this write.

Do:
    Put the journal on storage that answers from a protected write cache or on NVMe, on a disk and a controller of its
    own; look for a rebuild, mirroring over distance, or a cache switched off for lack of a battery.

When it is wrong:
    The journal is written in large pieces when much is updated: await grows with their size. Where the journal shares a
    disk, other writes are in the average.

Sources:
    InterSystems Data Platforms and performance, part 6 (storage I/O profile).
    Judgement: all four limits are taken over unchecked; 15 s stands for "sustained".
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.derived.disks import Busy
from leadline.estate.language.database_disks import DiskClass, slow_disks
from leadline.rules._families.limits import FEW_COMMANDS

_PART6 = "InterSystems Data Platforms and performance, part 6 (storage I/O profile)"

META = RuleMeta(
    code="DBS151",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    needs=("database.engine", "guest_disk_await_ms|guest_disk_await_ms_read"),
    uses=("guest_disk_await_ms_write", "disk_iops", "disk_reads_per_s", "disk_writes_per_s"),
    thresholds={
        "flash_warn": Threshold(1.0, "ms", _PART6),
        "flash_crit": Threshold(2.0, "ms", _PART6),
        "hdd_warn": Threshold(2.0, "ms", _PART6),
        "hdd_crit": Threshold(5.0, "ms", _PART6),
        "load_min": FEW_COMMANDS,
        "duration": Threshold(15.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("db-iris-write-daemon-cycle", "db-component-response-time"),
    clears=False,
    judgement=True,
    is_wait=True,
)

_WRITES = Busy("guest_disk_await_ms_write", (("disk_writes_per_s",), ("disk_iops",)))
_CLASSES = (
    DiskClass("flash", "write await of the journal's disk", lambda medium: medium != "hdd"),
    DiskClass("hdd", "write await of the journal's disk", lambda medium: medium == "hdd"),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per IRIS instance, of its worst journal disk."""
    yield from slow_disks(context, "iris", Role.WAL, _WRITES, _CLASSES)
