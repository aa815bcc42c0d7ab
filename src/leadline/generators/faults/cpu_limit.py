"""A CPU limit holds one VM back.

Injects:
    Limited time of about 30 % per vCPU; esxtop counts it as ready time too.

Seen as:
    % Max Limited, and % Ready which includes it.

Parameters:
    LIMITED_PCT.

Sources:
    vSphere Resource Management: time held back by a limit is part of ready time.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, vm_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("cpu-mlmtd-nonzero",), layer=Layer.HYPERVISOR_CPU, target=FaultTarget.VM)

LIMITED_PCT = 30.0
SLOWDOWN = 0.7


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Hold one VM back by a limit."""
    rows = model.vcpus_of(target)
    model.max_limited[rows, window] += LIMITED_PCT
    model.ready[rows, window] += LIMITED_PCT
    model.used[rows, window] *= SLOWDOWN
    return vm_entity(model, target)
