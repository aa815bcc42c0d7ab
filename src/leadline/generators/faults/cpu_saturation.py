"""The host has more work than physical CPUs.

Injects:
    Every physical CPU near 100 %, load above 1, and ready time on every VM.

Seen as:
    % Util Time, Cpu Load, % Ready of all VMs.

Parameters:
    UTIL_PCT, LOAD, READY_PCT.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

import numpy as np

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, host_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("host-cpu-saturated",), layer=Layer.HYPERVISOR_CPU, target=FaultTarget.HOST)

UTIL_PCT = 98.0
LOAD = 1.6
READY_PCT = 14.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Saturate the host."""
    del target  # there is one host
    count = model.pcpu_util[:, window].shape
    model.pcpu_util[:, window] = UTIL_PCT + model.rng.uniform(-1.5, 1.5, count).astype(np.float32)
    model.load_1m[:, window] = LOAD
    model.ready[:, window] += READY_PCT
    return host_entity(model)
