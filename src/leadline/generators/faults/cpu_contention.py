"""The vCPUs of one VM wait for physical CPUs.

Injects:
    Ready time of about 22 % per vCPU; the VM gets less done, so its use and its I/O drop.

Seen as:
    % Ready of the vCPUs and of the group.

Parameters:
    READY_PCT.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, vm_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("cpu-ready-high",), layer=Layer.HYPERVISOR_CPU, target=FaultTarget.VM)

READY_PCT = 22.0
SLOWDOWN = 0.8


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Raise ready time of one VM."""
    rows = model.vcpus_of(target)
    model.ready[rows, window] += READY_PCT
    model.used[rows, window] *= SLOWDOWN
    return vm_entity(model, target)
