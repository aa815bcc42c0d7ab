"""Which layer adds the latency that the guest waits.

Finds:
    Where a device, or a guest's block device whose device on the host is known, is slower than 10 ms for at least 15 s:
    the time spent in each segment over those windows and the segment with the largest share. Await less virtual disk
    latency is the guest; virtual disk latency less guest latency (GAVG) is what holds the virtual disk back; GAVG less
    device latency (DAVG) is the hypervisor; DAVG is adapter, fabric and array. Always of severity info: it says where,
    other rules say what.

Why:
    Every layer sees the layers below it as one number. Only differences of the same minutes say where time is spent,
    and whom to ask: the one who runs the guest, the hypervisor or the array.

Do:
    Start at the segment with the largest share. Device: array, fabric, path. Hypervisor: queue depth, limits, Storage
    I/O Control. Virtual disk: limits and the virtual controller. Guest: scheduler, queue depth, stacked devices, CPU.

When it is wrong:
    Recordings with different clocks compare different minutes: set the clock offset. The device behind a guest's disk
    is taken from the inventory, else it is the only one of the host with the same IOPS within 20 %, which the finding
    says is a guess. A device that serves several VMs averages over all of them.

Sources:
    Cloud4Y, disk subsystem diagnosis with iostat, fio and ioping, and vmgu.ru articles on vSphere performance: measure
    each segment of the path.
    datacenterdan.com, esxtop disk adapter best practice: GAVG = DAVG + KAVG.
    Judgement: 20 % for two recordings of one load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.derived import Recorded, derived
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import Busy, behind, io_rate, virtual_disk_of
from leadline.estate.derived.latencies import AWAIT_METRICS, RATE_METRICS, awaits_by_disk, block_awaits, latencies
from leadline.estate.derived.series import Places, mean_at, mean_of, means_of_parts, placed
from leadline.estate.language.templates import Over, over_groups
from leadline.rules._families.limits import FEW_COMMANDS, THREE_SAMPLES

META = RuleMeta(
    code="STO110",
    layer=Layer.STORAGE_PATH,
    severity=Severity.INFO,
    causes=("disk-slow",),
    needs=("disk_device_latency_ms", "disk_kernel_latency_ms"),
    uses=(
        "guest_disk_await_ms",
        "guest_disk_await_ms_read",
        "guest_disk_await_ms_write",
        "virtual_disk_latency_ms",
        "virtual_disk_latency_ms_read",
        "virtual_disk_latency_ms_write",
        "disk_iops",
        "disk_reads_per_s",
        "disk_writes_per_s",
    ),
    thresholds={
        "warn": Threshold(
            10.0, "ms", "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): data"
        ),
        "load_min": FEW_COMMANDS,
        "same_rate": Threshold(20.0, "pct", "Judgement: two recordings of one load differ by less"),
        "duration": THREE_SAMPLES,
    },
    clears=False,
)

_DEVICE, _HYPERVISOR = "the device (adapter, fabric, array)", "the hypervisor's kernel"
_VIRTUAL_DISK, _GUEST = "front of the virtual disk (limits, controller)", "the guest"


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest disk whose device is known, then per slow device none of those lies on."""
    covered = set()
    spec = Over("guest_disk_await_ms", "await", value=Busy(), mostly=True)
    for slow in over_groups(context, block_awaits(context), spec):
        device, guessed = _device_of(context, slow)
        parts = [] if device is None else _parts_of_device(context, device, slow)
        if device is None or not parts:
            continue
        covered.add(device)
        guess = (f"{device.name} is the device behind {slow.entity.label()}",) if guessed else ()
        yield _attributed(slow, [*parts, *_parts_above(context, slow, sum(ms for _, ms in parts))], guess)
    for slow in _slow_devices(context):
        parts = _parts_of_device(context, slow.entity, slow)  # none where pauses leave nothing to average
        if slow.entity not in covered and parts:
            yield _attributed(slow, parts, ())


def _slow_devices(context: RuleContext) -> Iterator[Finding]:
    groups = []
    for group in context.of("disk_device_latency_ms", EntityKind.DEVICE):
        kernel = context.aligned(group, "disk_kernel_latency_ms")
        if kernel is not None:
            groups.append(replace(group, values=group.values + kernel))
    spec = Over("disk_guest_latency_ms", "latency as the guest sees it", value=Busy(), mostly=True)
    yield from over_groups(context, groups, spec)


def _parts_of_device(context: RuleContext, device: Entity, slow: Finding) -> list[tuple[str, float]]:
    """Mean ms in the device and in the kernel over the windows of a finding; empty when either was not measured."""
    metrics = ((_DEVICE, "disk_device_latency_ms"), (_HYPERVISOR, "disk_kernel_latency_ms"))
    means = [(name, mean_of(context, metric, device, slow.windows)) for name, metric in metrics]
    parts = [(name, mean) for name, mean in means if mean is not None]
    return parts if len(parts) == len(metrics) else []


def _parts_above(context: RuleContext, slow: Finding, below_ms: float) -> list[tuple[str, float]]:
    """What the guest and, where it was measured, the virtual disk add to the ``below_ms`` of the device."""
    await_ms = mean_at(context.table(awaits_by_disk).get(slow.entity, ()), slow.windows) or 0.0
    virtual = virtual_disk_of(context.inventory, slow.entity)
    places = () if virtual is None else context.table(_virtual_latencies).get(virtual, ())
    virtual_ms = mean_at(places, slow.windows)
    if virtual_ms is None:
        return [(_GUEST, max(await_ms - below_ms, 0.0))]
    return [(_VIRTUAL_DISK, max(virtual_ms - below_ms, 0.0)), (_GUEST, max(await_ms - max(virtual_ms, below_ms), 0.0))]


def _device_of(context: RuleContext, slow: Finding) -> tuple[Entity | None, bool]:
    """The device behind a guest's disk, and whether it was guessed from equal rates."""
    named = [entity for entity in behind(context.inventory, slow.entity) if entity.kind is EntityKind.DEVICE]
    if named:
        return named[0], False
    guest = slow.entity.ancestor(EntityKind.GUEST)
    vm = None if guest is None else context.inventory.vm_of(guest)
    host = None if vm is None else vm.ancestor(EntityKind.HOST)
    disk_rate = mean_at(context.table(_disk_rates).get(slow.entity, ()), slow.windows)
    if host is None or disk_rate is None:
        return None, True
    tolerance = context.limit("same_rate") / 100.0
    others = means_of_parts(context, "disk_iops", host, slow.windows)
    same = [
        other
        for other, rate in others.items()
        if other.kind is EntityKind.DEVICE and abs(rate - disk_rate) <= tolerance * disk_rate
    ]
    return (same[0] if len(same) == 1 else None), True


@derived(*AWAIT_METRICS)
def _disk_rates(reader: Recorded) -> Places:
    """Requests per second of the guests' whole block devices."""
    rates = ((group, io_rate(reader, group)) for group in block_awaits(reader))
    return placed(replace(group, values=rate) for group, rate in rates if rate is not None)


@derived("virtual_disk_latency_ms", "virtual_disk_latency_ms_read", "virtual_disk_latency_ms_write", *RATE_METRICS)
def _virtual_latencies(reader: Recorded) -> Places:
    """Latency of virtual disks, of reads and writes together, ms."""
    return placed(latencies(reader, "virtual_disk_latency_ms", EntityKind.VIRTUAL_DISK))


def _attributed(slow: Finding, parts: list[tuple[str, float]], guessed: tuple[str, ...]) -> Finding:
    total = sum(ms for _, ms in parts)
    name, most = max(parts, key=lambda part: part[1])
    evidence = tuple(
        Evidence(f"{show(ms, 'ms')} ({100 * ms / total:.0f} %) in {where}", statistic="mean", value=ms, unit="ms")
        for where, ms in sorted(parts, key=lambda part: part[1], reverse=True)
    )
    summary = (
        f"Of {show(total, 'ms')} on {slow.entity.label()}, {show(most, 'ms')} ({100 * most / total:.0f} %) in {name}"
    )
    return replace(slow, summary=summary, severity=Severity.INFO, evidence=evidence, guessed=guessed)
