"""I/O takes too long as the guest sees it, measured on the host.

Finds:
    Guest latency (GAVG, device plus kernel) of a device or an NFS volume above 15 ms (warning; 10 ms where it holds
    data, 5 ms where it holds a log) or 25 ms (critical) for at least 15 s, in samples with 50 or more commands per
    second, or with a command under way at any time. Virtual disks are looked at where nothing on their host was found
    slow at the time.

Why:
    This is what every read and write of the guest takes at least. It says that storage is slow, not where.

Do:
    Split it: device latency (DAVG) belongs to adapter, fabric and array; kernel latency (KAVG) to queues and limits of
    the hypervisor. A virtual disk that is slow on quick devices is held back by a limit.

When it is wrong:
    Large commands take longer by their size. Where the guest itself waits longer than GAVG, the rest is spent in its
    own queue and driver.

Sources:
    Yellow-Bricks esxtop thresholds: 25 ms. EsxtopDrill c_map.csv: 15 ms.
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): limits of data and log.
    Broadcom KB 309140, storage device latency averages: why an average of few commands says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.disks import Busy, Use, read_write_mean, role_said, uses
from leadline.estate.templates import Over, over_threshold
from leadline.rules._families.limits import FEW_COMMANDS, THREE_SAMPLES
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity

_SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"

META = RuleMeta(
    code="STO106",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    needs=("disk_guest_latency_ms|datastore_guest_latency_ms|virtual_disk_latency_ms_read",),
    uses=("virtual_disk_latency_ms_write", "disk_iops", "disk_reads_per_s", "disk_writes_per_s"),
    thresholds={
        "warn": Threshold(15.0, "ms", "EsxtopDrill c_map.csv"),
        "data_warn": Threshold(10.0, "ms", _SLIDES),
        "wal_warn": Threshold(5.0, "ms", _SLIDES),
        "crit": Threshold(25.0, "ms", "Yellow-Bricks esxtop thresholds"),
        "load_min": FEW_COMMANDS,
        "duration": THREE_SAMPLES,
    },
    explains=GUEST_AND_DATABASE_WAIT_FOR_DISK,
    examines="disks",
)
_WARN = {Role.WAL: "wal_warn", Role.DATA: "data_warn"}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device and NFS volume, then per virtual disk on hosts where none of those was slow."""
    known = uses(context)
    below = [
        *_slow(context, "disk_guest_latency_ms", EntityKind.DEVICE, known),
        *_slow(context, "datastore_guest_latency_ms", EntityKind.DATASTORE, known),
    ]
    yield from below
    for finding in _slow(context, "virtual_disk_latency_ms_read", EntityKind.VIRTUAL_DISK, known):
        host = finding.entity.ancestor(EntityKind.HOST)
        if not any(other.entity.parent == host and _same_time(finding, other) for other in below):
            yield finding


def _slow(context: RuleContext, metric: str, kind: EntityKind, known: dict[Entity, Use]) -> Iterator[Finding]:
    for warn in ("warn", *_WARN.values()):
        spec = Over(
            metric=metric,
            noun="latency as the guest sees it",
            kinds=(kind,),
            value=_virtual_disk_latency if kind is EntityKind.VIRTUAL_DISK else Busy(),
            keep=_judged_by(warn, known),
            mostly=True,
            warn=warn,
        )
        yield from role_said(over_threshold(context, spec), known)


def _judged_by(warn: str, known: dict[Entity, Use]) -> Callable[[RuleContext, Entity], bool]:
    def keep(_: RuleContext, entity: Entity) -> bool:
        role = known.get(entity, Use()).role
        return ("warn" if role is None else _WARN.get(role, "warn")) == warn

    return keep


def _virtual_disk_latency(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    mean = read_write_mean(context, group, "virtual_disk_latency_ms_write")
    return Busy()(context, replace(group, values=mean))


def _same_time(one: Finding, other: Finding) -> bool:
    return any(a.overlaps(b) for a in one.windows for b in other.windows)
