"""Latency of a device as the hypervisor sees it, judged by what the device holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.estate.derived.disks import Busy, Use, role_said, uses
from leadline.estate.derived.latencies import nearest_latencies
from leadline.estate.language.templates import Over, over_groups
from leadline.rules._families.directions import directions_told
from leadline.rules._families.limits import FEW_COMMANDS, THREE_SAMPLES
from leadline.rules._families.queue_depths import READS, depth_cut

SLIDES = "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)"
LIMITS = {"load_min": FEW_COMMANDS, "duration": THREE_SAMPLES}
USES = ("disk_iops", "disk_reads_per_s", "disk_writes_per_s", *READS)  # beside the latency, in all its forms
_BUSY = Busy()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """Devices that are judged by the same limits.

    Attributes:
        noun: how the summary calls their latency.
        judged: whether a device of this use belongs to the class.
        warn: name of the warning limit.
        crit: name of the critical limit.
        value: the latency where enough I/O was done for an average to count.
    """

    noun: str
    judged: Callable[[Use], bool]
    warn: str = "warn"
    crit: str = "crit"
    value: Busy = _BUSY


def slow_devices(context: RuleContext, *classes: DeviceClass) -> Iterator[Finding]:
    """Findings per device of one of the classes; a guessed role is named as a guess."""
    known = uses(context)
    for each in classes:
        spec = latency_of_devices(each.noun, each.value, keep=_judged(each, known), warn=each.warn, crit=each.crit)
        slow = directions_told(context, over_latency(context, spec), spec.metric, context.stated_limit(each.warn))
        for finding in role_said(slow, known):
            cut = depth_cut(context, finding.entity, finding.windows)
            yield finding if cut is None else replace(finding, evidence=(*finding.evidence, cut.evidence()))


def latency_of_devices(
    noun: str,
    value: Busy = _BUSY,
    keep: Callable[[RuleContext, Entity], bool] | None = None,
    warn: str = "warn",
    crit: str = "crit",
    metric: str = "disk_device_latency_ms",
) -> Over:
    """A latency of devices that stays high while enough I/O is done for an average to count."""
    return Over(metric, noun, value=value, keep=keep, mostly=True, warn=warn, crit=crit)


def over_latency(context: RuleContext, spec: Over) -> Iterator[Finding]:
    """`over_threshold` of a latency in whichever form it was recorded, of devices, else of paths or adapters."""
    yield from over_groups(context, nearest_latencies(context, spec.metric), spec)


def _judged(devices: DeviceClass, known: Mapping[Entity, Use]) -> Callable[[RuleContext, Entity], bool]:
    return lambda _, entity: devices.judged(known.get(entity, Use()))
