"""Which counters a live vCenter is asked for, and what each becomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from leadline.core.model.entities import Entity
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import UNITS as UNIT_DIMENSIONS
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.vcenter.counters import UNITS, Counter, counters_of

# Clusters have no metrics of their own in the catalogue; these tell how full one is and how busy DRS is.
_OF_CLUSTERS = frozenset(
    {
        *("cpu.usage.average", "cpu.usagemhz.average", "mem.usage.average", "mem.consumed.average"),
        *("mem.vmmemctl.average", "vmop.numvmotion.latest", "clusterservices.failover.latest"),
    }
)
_FINER = {
    "virtualdisk.totalreadlatency.average": "virtualdisk.readlatencyus.latest",
    "virtualdisk.totalwritelatency.average": "virtualdisk.writelatencyus.latest",
}
# What the instances of a group of counters are, where a counter has no metric.
_RAW_PARTS = {"virtualdisk": EntityKind.VIRTUAL_DISK, "disk": EntityKind.DEVICE, "net": EntityKind.NIC}
_RAW_PARTS |= {"datastore": EntityKind.DATASTORE, "storagepath": EntityKind.PATH}


@dataclass(frozen=True, slots=True)
class LiveCounter:
    """A counter that is asked for.

    Attributes:
        key: vCenter's number of it.
        name: ``group.name.rollup`` in lower case.
        metric: what it becomes.
        part: what its instances are part of the entity as; None where it has none.
        scale: what its values are multiplied by.
        shares_vcpus: of a whole VM it is a sum over vCPUs, and the metric a mean.
        coarser: the key of a counter of the same that counts only where this one is missing.
    """

    key: int
    name: str
    metric: str
    part: EntityKind | None
    scale: float
    shares_vcpus: bool = False
    coarser: int | None = None


def live_counters(
    kind: EntityKind, reported: Iterable[tuple[int, str, str]], interval_s: float, extra: frozenset[int]
) -> list[LiveCounter]:
    """The counters of a kind of entity, those of one metric one after the other.

    Args:
        kind: of the entities.
        reported: key, ``group.name.rollup`` and unit of every counter of the vCenter.
        interval_s: what a sample stands for, seconds.
        extra: keys of counters that are asked for even without a metric.
    """
    by_name = {name.casefold(): (key, name, unit) for key, name, unit in reported}
    known = counters_of(kind)
    chosen = []
    for folded, (key, name, unit) in by_name.items():
        counter = known.get(folded)
        scale = None if counter is None else _scale(counter, unit, interval_s)
        if counter is not None and scale is not None:
            coarser = next((by_name[coarse][0] for coarse, fine in _FINER.items() if fine == folded), None)
            shares = counter.unit == "interval"
            chosen.append(LiveCounter(key, folded, counter.metric, counter.part, scale, shares, coarser))
        elif key in extra or (kind is EntityKind.CLUSTER and folded in _OF_CLUSTERS):
            chosen.append(LiveCounter(key, folded, f"raw.vcenter.{name}", _raw_part(kind, folded), 1.0))
    return sorted(chosen, key=lambda counter: counter.metric)


def _scale(counter: Counter, unit: str, interval_s: float) -> float | None:
    """What a value is multiplied by to be in the metric's unit; None where its unit is none of that quantity.

    Source: formats/vcenter/counters (VMware KB 2002181).
    """
    if counter.unit == "interval":
        return 100.0 / (interval_s * 1000.0)
    if counter.unit == "each":
        return 1.0 / interval_s
    name, scale = UNITS.get(unit.strip().casefold(), (counter.unit, 1.0))
    target = metric_of(counter.metric).unit
    if UNIT_DIMENSIONS[name].dimension != UNIT_DIMENSIONS[target].dimension:
        return None
    return scale * factor(name, target)


def _raw_part(kind: EntityKind, name: str) -> EntityKind:
    group = name.partition(".")[0]
    if group == "cpu":
        return EntityKind.VCPU if kind is EntityKind.VM else EntityKind.PCPU
    return _RAW_PARTS.get(group, EntityKind.ADAPTER)


def in_chunks(counters: list[LiveCounter], limit: int) -> Iterator[list[LiveCounter]]:
    """The counters in lists of at most ``limit``; those that make one metric stay together where they fit."""
    chunk: list[LiveCounter] = []
    waiting: list[LiveCounter] = []
    for counter in [*counters, None]:
        if waiting and (counter is None or counter.metric != waiting[0].metric):
            if len(chunk) + len(waiting) > limit and chunk:
                yield chunk
                chunk = []
            chunk += waiting
            waiting = []
            while len(chunk) > limit:
                yield chunk[:limit]
                chunk = chunk[limit:]
        if counter is not None:
            waiting.append(counter)
    if chunk:
        yield chunk


def metric_and_scale(counter: LiveCounter, owner: Entity, vcpu_count: int | None) -> tuple[str, float] | None:
    """Metric and factor of a counter of a whole entity; None where the catalogue has no such metric of it."""
    is_raw = counter.metric.startswith("raw.")
    if not is_raw and owner.kind not in metric_of(counter.metric).kinds:
        return None
    if counter.shares_vcpus:
        if vcpu_count:
            return counter.metric, counter.scale / vcpu_count
        return ("cpu_ready_pct_sum", counter.scale) if counter.metric == "cpu_ready_pct" else None
    return counter.metric, counter.scale
