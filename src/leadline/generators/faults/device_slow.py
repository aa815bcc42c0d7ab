"""One LUN answers slowly.

Injects:
    45 ms below the hypervisor; every VM on the LUN sees it, and does less I/O.

Seen as:
    DAVG, and GAVG with it; latency of the virtual disks on the LUN.

Parameters:
    DEVICE_MS, SLOWDOWN.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

import numpy as np

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, lun_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(
    rules=(
        "disk-davg-generic",
        "disk-davg-data",
        "disk-davg-wal",
    ),
    layer=Layer.STORAGE_PATH,
    target=FaultTarget.LUN,
)

DEVICE_MS = 45.0
MOST_OUTSTANDING = 12.0  # well below the queue depth


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Slow one LUN down."""
    noise = model.rng.uniform(0.85, 1.15, model.davg[target, window].shape).astype(np.float32)
    model.davg[target, window] = DEVICE_MS * noise
    # A closed set of clients does as much I/O as the latency lets it; the LUN's queue never fills.
    slowed = np.flatnonzero(model.disk_lun == target)
    limit = MOST_OUTSTANDING / (DEVICE_MS / 1000.0)
    share = np.minimum(limit / model.lun_rate(model.disk_iops())[target, window], 1.0)
    model.disk_reads[slowed, window] *= share
    model.disk_writes[slowed, window] *= share
    return lun_entity(model, target)
