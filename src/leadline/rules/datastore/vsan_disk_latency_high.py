"""A device of vSAN answers slowly.

Finds:
    Latency of a cache, capacity or ESA device above 5 ms (low) or 20 ms (medium) for at least 60 s. Devices known to be
    flash, as caches and ESA devices always are, count from 2 ms. Where the device's rate was recorded, samples with
    fewer than 50 operations per second do not count.

Why:
    vSAN stripes and mirrors over all devices, so one slow device is part of many objects and of every write to them. A
    flash device that needs milliseconds is wearing out, throttling, or behind a controller with a short queue.

Do:
    Replace the device or update its firmware and the driver of its controller; check the controller's queue depth.
    Compare with the other devices of the same model: if all are slow, there are too few of them for the load.

When it is wrong:
    During a resync or when the cache is emptied, capacity devices are busy with large writes and slower without being
    ill. The medium of the capacity tier is taken from the inventory; unknown is judged as rotating.

Sources:
    RVC vSAN Observer graphs.js: draws device latency in these classes.
    Judgement: the limits are starting points, hence medium at most.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.vsan import capacity_medium
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

META = RuleMeta(
    code="DST104",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    needs=("vsan_cache_device_latency_us|vsan_capacity_device_latency_us|vsan_esa_device_latency_us",),
    uses=("disk_iops",),
    thresholds={
        "warn": Threshold(5_000.0, "us", "Judgement: RVC vSAN Observer graphs.js, rotating disks"),
        "warn_flash": Threshold(2_000.0, "us", "Judgement: what flash stays below"),
        "crit": Threshold(20_000.0, "us", "Judgement: RVC vSAN Observer graphs.js"),
        "load_min": Threshold(50.0, "per_s", "Judgement: an average of few operations says nothing"),
        "duration": TWO_SAMPLES,
    },
    explains=(
        "vsan-congestion-high",
        "vsan-write-buffer-low-free",
        "vsan-client-latency-high",
        "vsan-latency-stddev-high",
        "vsan-oio-high",
        *GUEST_WAITS_FOR_DISK,
    ),
    judgement=True,
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device, or per disk group where that is what was recorded."""

    def flash(_: RuleContext, entity: Entity) -> bool:
        medium = context.inventory.get(entity, "medium") or capacity_medium(context.inventory, entity)
        return str(medium).casefold() == "flash"

    def not_flash(_: RuleContext, entity: Entity) -> bool:
        return not flash(context, entity)

    load = ("disk_iops",)
    capacity = "vsan_capacity_device_latency_us"
    yield from over_any(
        context,
        (
            Over("vsan_cache_device_latency_us", "cache device latency", load=load, warn="warn_flash"),
            Over("vsan_esa_device_latency_us", "vSAN ESA device latency", load=load, warn="warn_flash"),
            Over(capacity, "capacity device latency", load=load, keep=flash, warn="warn_flash"),
            Over(capacity, "capacity device latency", load=load, keep=not_flash),
        ),
    )
