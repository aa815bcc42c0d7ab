"""What an inventory knows of the cluster, where the inputs do not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.core.model.capture import Capture
from leadline.core.model.versions import vsphere_version
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.recorded_loads import RecordedInput, filled
from leadline.planners._vsan.inputs import Vsan

GIB_GB = 2**30 / 1e9
# Setting of a cluster, the input it fills, and how it is read.
FACTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("vsan_version", "version", lambda value: str(value) if vsphere_version(str(value)) else None),
    ("vsan_esa", "architecture", lambda value: "esa" if value else "osa"),
    ("vsan_working_set_gib", "working_set_gb", lambda value: float(value) * GIB_GB if value > 0 else None),
)


def completed(inputs: Vsan, capture: Capture | None) -> tuple[Vsan, tuple[str, ...]]:
    """Return the inputs, those not given from the inventory's cluster, and a sentence for each taken from there."""
    return filled(inputs, _known(capture))


def _known(capture: Capture | None) -> list[RecordedInput]:
    """Return the settings of the inventory's vSAN cluster as inputs; none where there are several clusters or none."""
    clusters = [] if capture is None else capture.inventory.of_kind(EntityKind.CLUSTER)
    clusters_with_vsan = [
        cluster for cluster in clusters if capture and capture.inventory.get(cluster, "vsan_enabled") is not False
    ]
    if capture is None or len(clusters_with_vsan) != 1:
        return []
    known_values = []
    for setting, key, read in FACTS:
        fact = capture.inventory.fact(clusters_with_vsan[0], setting)
        if fact is not None:
            known_values.append(
                RecordedInput(key, read(fact.value), f"cluster {clusters_with_vsan[0].name}, {fact.source}")
            )
    return known_values
