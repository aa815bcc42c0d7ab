"""The queue of one LUN is full: commands wait in the VMkernel.

Injects:
    6 ms of queueing at a device that answers as usual, with all 32 slots taken.

Seen as:
    Active Commands at Device Q Depth, Queued Commands, QAVG and KAVG.

Parameters:
    QUEUE_MS.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

import numpy as np

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, lun_entity
from leadline.generators.host_model import QUEUE_DEPTH, HostModel

META = FaultMeta(
    rules=(
        "disk-queue-full",
        "disk-qavg-high",
    ),
    layer=Layer.STORAGE_PATH,
    target=FaultTarget.LUN,
)

DEVICE_MS = 2.0
QUEUE_MS = 6.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Fill the queue of one LUN."""
    model.davg[target, window] = DEVICE_MS
    model.qavg[target, window] = QUEUE_MS
    # Little's law: this rate keeps the queue's slots busy at that latency.
    rate = 1.3 * QUEUE_DEPTH / ((DEVICE_MS + QUEUE_MS) / 1000.0)
    disks = np.flatnonzero(model.disk_lun == target)
    present = model.lun_rate(model.disk_iops())[target, window]
    model.disk_reads[disks, window] *= rate / present
    model.disk_writes[disks, window] *= rate / present
    return lun_entity(model, target)
