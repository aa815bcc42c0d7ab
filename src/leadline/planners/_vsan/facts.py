"""What an inventory knows of the cluster, where the inputs do not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.core.capture import Capture
from leadline.core.vocabulary import EntityKind
from leadline.core.vsan import vsphere_version
from leadline.planners._vsan.inputs import Vsan

GIB_GB = 2**30 / 1e9
# Setting of a cluster, the input it fills, and how it is read.
FACTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("vsan_version", "version", lambda value: str(value) if vsphere_version(str(value)) else None),
    ("vsan_esa", "architecture", lambda value: "esa" if value else "osa"),
    ("vsan_working_set_gib", "working_set_gb", lambda value: float(value) * GIB_GB if value > 0 else None),
)


def filled(own: Vsan, capture: Capture | None) -> tuple[Vsan, tuple[str, ...]]:
    """The inputs with what the inventory's only vSAN cluster says for those not given, and what was taken."""
    clusters = [] if capture is None else capture.inventory.of_kind(EntityKind.CLUSTER)
    found = [cluster for cluster in clusters if capture and capture.inventory.get(cluster, "vsan_enabled") is not False]
    if capture is None or len(found) != 1:
        return own, ()
    taken: dict[str, Any] = {}
    told = []
    for setting, key, read in FACTS:
        fact = capture.inventory.fact(found[0], setting)
        value = None if fact is None or key in own.model_fields_set else read(fact.value)
        if fact is not None and value is not None:
            taken[key] = value
            shown = f"{value:,.4g}" if isinstance(value, float) else value
            told.append(f"{key} {shown}: cluster {found[0].name}, {fact.source}")
    return own.model_copy(update=taken), tuple(told)
