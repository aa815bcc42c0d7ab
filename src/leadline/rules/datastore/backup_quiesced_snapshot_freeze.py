"""A quiesced snapshot was taken of a database VM under load.

Finds:
    Quiesced snapshots (events of the VM) of VMs that are not known to run Windows, taken while the VM did more than
    half of its peak of I/O operations, and at least 50 per second.

Why:
    To quiesce, the guest flushes and freezes its filesystems. Under load the flush takes long and every write waits for
    it; the VM looks hung until the snapshot is there, and clients time out.

Do:
    Back up the database by its own means, or freeze it by scripts in the guest (pre-freeze, post-thaw) that checkpoint
    first; take snapshots without quiescing, and off the busy hours.

When it is wrong:
    On Windows VSS freezes for seconds at most; it is left out. With most of the load being reads little is flushed.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): under heavy I/O a Linux
    VM may appear hung while snapshots run. VMware KB 5962168: VMs freeze under load with quiesced snapshots. VMware
    KB 1025279.
    Judgement: half of the peak (95th percentile) over the minute before stands for "load"; effects are looked for in
    the minute after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.derived import Recorded, derived
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.events import events_of
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.timeline import whole_of_parts, window_mean
from leadline.estate.derived.disks import io_rate, is_whole
from leadline.estate.derived.series import Places, SeriesPlace, placed
from leadline.estate.knowledge.guest_settings import is_windows

META = RuleMeta(
    code="DST184",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("vm.events", "disk_iops|disk_reads_per_s|disk_writes_per_s"),
    uses=("disk_iops", "disk_reads_per_s", "disk_writes_per_s"),
    thresholds={
        "share": Threshold(0.5, "ratio", "Judgement: more than half of the peak is load"),
        "load_min": Threshold(50.0, "per_s", "Judgement: below it little waits to be flushed"),
        "window": Threshold(60.0, "s", "Judgement: flush and freeze take up to a minute"),
    },
    explains=("guest-blocked-processes", "guest-disk-await-high", "guest-iowait-high", "db-log-write-latency"),
    clears=False,
)
_PEAK = 0.95


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per VM; every such snapshot is evidence."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        taken = [moment.time_ns for moment in events_of(context.inventory, vm, {"snapshot-quiesced"})]
        if not taken or _runs_windows(context.inventory, vm):
            continue
        loaded = _under_load(context, vm, taken)
        if loaded:
            length = round(context.limit("window") * 1e9)
            summary = f"A quiesced snapshot of {vm.label()} was taken under load"
            windows = [Window(time, time + length) for time in loaded]
            yield context.finding(vm, summary, list(loaded.values()), windows=windows)


def _under_load(context: RuleContext, vm: Entity, taken: list[int]) -> dict[int, Evidence]:
    """The snapshots taken under load, by their time, with the numbers."""
    evidence_by_time: dict[int, Evidence] = {}
    for place in context.table(_rates_by_vm).get(vm, ()):
        group = place.alone()
        measured = group.values[0][np.isfinite(group.values[0])]
        peak = float(np.quantile(measured, _PEAK)) if measured.size else float("nan")
        ends = np.array(taken, dtype=np.int64)
        before = window_mean(group, ends - round(context.limit("window") * 1e9), ends)[0]
        limit = max(peak * context.limit("share"), context.limit("load_min"))
        for time, rate in zip(taken, before.tolist(), strict=True):
            if rate > limit:
                statement = f"{rate:,.0f} I/O operations per second before the snapshot; the peak is {peak:,.0f}"
                evidence_by_time.setdefault(time, Evidence(statement, "disk_iops", vm, "mean", rate, limit, "per_s"))
    return evidence_by_time


@derived("disk_iops", "disk_reads_per_s", "disk_writes_per_s")
def _rates_by_vm(reader: Recorded) -> Places:
    """Operations per second of each VM's disks together: of its virtual disks, else of its guest's block devices."""
    rates: dict[Entity, list[SeriesPlace]] = {}
    for kind in (EntityKind.VIRTUAL_DISK, EntityKind.BLOCK_DEVICE):
        of_kind: dict[Entity, list[SeriesPlace]] = {}
        for metric in ("disk_iops", "disk_writes_per_s"):
            of_metric = [whole for group in reader.of(metric, kind) for whole in _rates_of(reader, group)]
            for vm, places in placed(of_metric).items():
                of_kind.setdefault(vm, places)
        for vm, places in of_kind.items():
            rates.setdefault(vm, places)
    return rates


def _rates_of(reader: Recorded, group: SeriesGroup) -> Iterator[SeriesGroup]:
    """The rates of the VMs whose whole disks are in a group."""
    rate = io_rate(reader, group)
    owners = {row: vm for row, disk in enumerate(group.entities) if (vm := _vm_of(reader.inventory, disk)) is not None}
    rows = [row for row in owners if is_whole(reader, group.entities[row])]
    if rate is not None and rows:
        part = replace(group, values=rate).take(rows)
        disks = [Entity(disk.kind, disk.name, owners[row]) for row, disk in zip(rows, part.entities, strict=True)]
        yield whole_of_parts(replace(part, entities=disks), EntityKind.VM, "sum")


def _vm_of(inventory: Inventory, disk: Entity) -> Entity | None:
    guest = disk.ancestor(EntityKind.GUEST)
    return disk.ancestor(EntityKind.VM) if guest is None else inventory.vm_of(guest)


def _runs_windows(inventory: Inventory, vm: Entity) -> bool:
    named_windows = "windows" in str(inventory.get(vm, "guest_os") or "").casefold()
    return named_windows or any(is_windows(inventory, guest) for guest in inventory.guests_of(vm))
