"""How long the VMs of each host waited for a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING

from leadline.core.model.derived import Recorded, derived
from leadline.core.model.vocabulary import EntityKind
from leadline.core.statistics.rows import row_quantile
from leadline.estate.language.templates import Minus

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity

_QUANTILE = 0.95


@derived("cpu_ready_pct", "cpu_max_limited_pct")
def ready_p95_of_host(reader: Recorded) -> Mapping[Entity, float]:
    """The 95th percentile of ready time of the worst vCPU or VM of each host, percent.

    Time in which a limit held a VM back does not count. A host is left out where no ready time of its VMs was recorded.
    """
    highest: dict[Entity, float] = {}
    without_limit = Minus(("cpu_max_limited_pct",))
    for group in reader.of("cpu_ready_pct", EntityKind.VM, EntityKind.VCPU):
        for part in group.slices():
            quantiles = row_quantile(without_limit(reader, part), _QUANTILE)
            for entity, waited in zip(part.entities, quantiles.tolist(), strict=True):
                host = entity.ancestor(EntityKind.HOST)
                if host is not None and not isnan(waited):
                    highest[host] = max(highest.get(host, waited), waited)
    return highest
