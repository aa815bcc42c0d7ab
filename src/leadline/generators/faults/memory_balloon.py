"""The balloon driver takes memory from one VM.

Injects:
    A balloon of 4 GiB.

Seen as:
    Memctl MBytes of the VM.

Parameters:
    BALLOON_MIB.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, vm_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("mem-balloon-nonzero",), layer=Layer.HYPERVISOR_MEMORY, target=FaultTarget.VM)

BALLOON_MIB = 4096.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Inflate the balloon of one VM."""
    model.memory["balloon"][target, window] = BALLOON_MIB
    return vm_entity(model, target)
