"""I/O takes too long as the guest sees it, measured on the host.

Finds:
    Guest latency (GAVG, device plus kernel) of a device, a path, an adapter or a datastore above 15 ms (warning; 10 ms
    where it holds data, 5 ms where it holds a log) or 25 ms (critical) for at least 15 s, in samples with 50 or more
    commands per second, or with a command under way at any time. Virtual disks are looked at where nothing on their
    host was found slow at the time.

Why:
    This is what every read and write of the guest takes at least. It says that storage is slow, not where.

Do:
    Split it: device latency (DAVG) belongs to adapter, fabric and array; kernel latency (KAVG) to queues and limits of
    the hypervisor. A virtual disk that is slow on quick devices is held back by a limit.

    Where it is an NFS volume: the hypervisor does not split its latency. See the path, the network and the filer:
    dropped packets and retransmissions of the VMkernel port, an uplink that is full or shared, the MTU of every switch
    between; then load, cache and disks of the filer, and who else uses the export.

    Where only writes are slow: see the write cache of the storage (its battery, a full cache, write-through mode),
    writes that must be on the medium before they are answered (NFS without a log device), and replication to another
    site.

    Where only reads are slow: a write cache hides the disks from writes; reads wait for them. See the disks' load, a
    rebuild, a tier that is too slow, and reads of backups.

When it is wrong:
    Large commands take longer by their size. Where the guest itself waits longer than GAVG, the rest is spent in its
    own queue and driver.

Sources:
    Yellow-Bricks esxtop thresholds: 25 ms. EsxtopDrill c_map.csv: 15 ms.
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): limits of data and log.
    Broadcom KB 309140, storage device latency averages: why an average of few commands says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.derived.disks import Busy, Use, role_said, uses
from leadline.estate.derived.latencies import forms, latencies, nearest_latencies
from leadline.estate.language.templates import Over, over_groups
from leadline.rules._families.directions import directions_told
from leadline.rules._families.limits import FEW_COMMANDS, THREE_SAMPLES
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity

_SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"

_LATENCIES = (
    "disk_guest_latency_ms",
    "datastore_guest_latency_ms",
    "datastore_latency_ms",
    "virtual_disk_latency_ms",
)

META = RuleMeta(
    code="STO106",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=("|".join(map(forms, _LATENCIES)),),
    uses=("disk_iops", "datastore_iops", "disk_reads_per_s", "disk_writes_per_s"),
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
_LATENCY = Busy(rates=(("disk_iops",), ("disk_reads_per_s", "disk_writes_per_s"), ("datastore_iops",)))
_BY_WAY = {"datastore_guest_latency_ms": "disk_guest_latency_ms"}  # where that of reads and of writes is kept
_WARN = {Role.WAL: "wal_warn", Role.DATA: "data_warn"}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device and datastore, then per virtual disk on hosts where none of those was slow."""
    known = uses(context)
    stores = (
        latencies(context, metric, EntityKind.DATASTORE)
        for metric in ("datastore_guest_latency_ms", "datastore_latency_ms")
    )
    below = [
        *_slow(context, nearest_latencies(context, "disk_guest_latency_ms"), known),
        *(_of_store(context, finding) for groups in stores for finding in _slow(context, groups, known)),
    ]
    yield from below
    for finding in _slow(context, latencies(context, "virtual_disk_latency_ms", EntityKind.VIRTUAL_DISK), known):
        host = finding.entity.ancestor(EntityKind.HOST)
        if not any(other.entity.parent == host and _same_time(finding, other) for other in below):
            yield finding


def _slow(context: RuleContext, groups: list[SeriesGroup], known: Mapping[Entity, Use]) -> Iterator[Finding]:
    if not groups:
        return
    roles = {use.role for use in known.values()}
    for warn in ("warn", *(limit for role, limit in _WARN.items() if role in roles)):
        spec = Over(
            metric=groups[0].metric,
            noun="latency as the guest sees it",
            value=_LATENCY,
            keep=_judged_by(warn, known),
            mostly=True,
            warn=warn,
        )
        by_way = _BY_WAY.get(spec.metric, spec.metric)
        slow = directions_told(context, over_groups(context, groups, spec), by_way, context.stated_limit(warn))
        yield from role_said(slow, known)


def _of_store(context: RuleContext, finding: Finding) -> Finding:
    """A finding of a datastore: of NFS where only that has such a latency, or the inventory names its type."""
    kind = str(context.inventory.get(finding.entity, "type") or "").lower()
    if finding.evidence[0].metric != "datastore_guest_latency_ms" and not kind.startswith("nfs"):
        return finding
    advice = context.advice("Where it is an NFS volume")
    one_way = finding.remedy != context.remedy
    return replace(finding, remedy=f"{advice} {finding.remedy}" if one_way else advice)


def _judged_by(warn: str, known: Mapping[Entity, Use]) -> Callable[[RuleContext, Entity], bool]:
    def keep(_: RuleContext, entity: Entity) -> bool:
        role = known.get(entity, Use()).role
        return ("warn" if role is None else _WARN.get(role, "warn")) == warn

    return keep


def _same_time(one: Finding, other: Finding) -> bool:
    return any(a.overlaps(b) for a in one.windows for b in other.windows)
