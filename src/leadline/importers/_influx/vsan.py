"""Lines of Telegraf's vSAN measurements: what vSAN's performance service counted, under names of Telegraf's.

``vsphere_vsan_performance_hostdomclient`` is the type ``host-domclient``, its field ``latency_avg_read`` the label
``latencyAvgRead``; older versions of the plug-in keep the service's own names.

Source: Telegraf's vSphere input with vSAN, README-VSAN (tags, fields).
"""

from __future__ import annotations

from leadline.core.contracts.importer import Request
from leadline.core.model.entities import Entity
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.samples import Samples
from leadline.formats.vcenter.vsan_labels import SUMS, VSAN_LABELS

_PREFIX = "vsphere_vsan_performance_"
_FIELDS = {label.replace("-", "").casefold(): (label, known) for label, known in VSAN_LABELS.items()}
_GROUPS = frozenset({"diskgroup", "cachedisk"})


def vsan_samples() -> Samples:
    """Where samples of vSAN are gathered."""
    return Samples(SUMS)


def add_vsan(
    name: str, tags: dict[str, str], fields: dict[str, float], time_ns: int, request: Request, samples: Samples
) -> bool:
    """Take a line; False where it is none of vSAN's performance service or names no entity."""
    if not name.startswith(_PREFIX):
        return False
    kind = name.removeprefix(_PREFIX).replace("-", "").casefold()
    entity = _entity(kind, tags)
    if entity is None:
        return False
    part = tags.get("pnic") or tags.get("vnic") or ""
    for field, value in fields.items():
        label, known = _FIELDS.get(f"{kind}.{field.replace('_', '').casefold()}", ("", None))
        if known is not None and request.wants(known.metric):
            scale = factor(known.unit, metric_of(known.metric).unit)
            samples.put(known.metric, entity, time_ns, value * scale, f"{part} {label}")
        elif known is None and request.metrics is None:
            samples.put(f"raw.vsan.{kind}.{field}", entity, time_ns, value, part)
    return True


def _entity(kind: str, tags: dict[str, str]) -> Entity | None:
    """The cluster, host, disk group or disk that a line is of."""
    if kind.startswith("cluster"):
        name, entity_kind = tags.get("clustername"), EntityKind.CLUSTER
    elif kind in _GROUPS:
        name, entity_kind = tags.get("ssdUuid") or tags.get("deviceName"), EntityKind.DISK_GROUP
    elif kind == "capacitydisk":
        name, entity_kind = tags.get("deviceName"), EntityKind.DEVICE
    else:
        name, entity_kind = tags.get("hostname") or tags.get("source"), EntityKind.HOST
    return Entity(entity_kind, name) if name else None
