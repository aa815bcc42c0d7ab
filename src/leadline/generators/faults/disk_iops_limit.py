"""An IOPS limit holds one virtual disk back.

Injects:
    Operations flat at 500 per second with 32 outstanding, so latency is 64 ms; the LUN below is as fast as ever.

Seen as:
    Virtual Disk Commands/sec flat, its latency high; DAVG low.

Parameters:
    LIMIT_IOPS, OUTSTANDING.

Sources:
    Little’s law: latency is outstanding I/O over rate.
"""

from __future__ import annotations

import numpy as np

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, disk_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("vm-iops-limit-hit",), layer=Layer.VM, target=FaultTarget.DISK)

LIMIT_IOPS = 500.0
OUTSTANDING = 32.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Cap one virtual disk."""
    reads = model.disk_reads[target, window]
    share = reads / np.maximum(reads + model.disk_writes[target, window], 1.0)
    flat = LIMIT_IOPS * model.rng.normal(1.0, 0.004, reads.shape).astype(np.float32)
    model.disk_reads[target, window] = flat * share
    model.disk_writes[target, window] = flat * (1.0 - share)
    model.disk_extra_ms[target, window] = 1000.0 * OUTSTANDING / flat
    return disk_entity(model, target)
