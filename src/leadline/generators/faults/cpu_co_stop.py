"""One wide VM is stopped to let its sibling vCPUs catch up.

Injects:
    Co-stop of about 9 % per vCPU with ready time just above its usual.

Seen as:
    % CoStop of the vCPUs and of the group.

Parameters:
    COSTOP_PCT.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, vm_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("cpu-costop-high",), layer=Layer.HYPERVISOR_CPU, target=FaultTarget.VM)

COSTOP_PCT = 9.0
READY_PCT = 1.5  # contention that skews the vCPUs, too little to be a finding of its own


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Raise co-stop of one VM."""
    rows = model.vcpus_of(target)
    model.costop[rows, window] += COSTOP_PCT
    model.ready[rows, window] += READY_PCT
    return vm_entity(model, target)
