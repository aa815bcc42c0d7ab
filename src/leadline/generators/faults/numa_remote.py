"""Most memory of one VM lies on a foreign NUMA node.

Injects:
    Locality of 45 %.

Seen as:
    Numa % Local of the VM.

Parameters:
    LOCAL_PCT.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, vm_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("numa-locality-low",), layer=Layer.HYPERVISOR_CPU, target=FaultTarget.VM)

LOCAL_PCT = 45.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Move memory of one VM away."""
    model.numa_local[target, window] = LOCAL_PCT
    return vm_entity(model, target)
