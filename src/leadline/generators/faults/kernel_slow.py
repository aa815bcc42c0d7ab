"""The VMkernel adds time to the I/O of one LUN without queueing it.

Injects:
    5 ms in the VMkernel, none of it in the queue.

Seen as:
    KAVG and GAVG; QAVG stays at zero.

Parameters:
    KERNEL_MS.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, lun_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("disk-kavg-high",), layer=Layer.STORAGE_PATH, target=FaultTarget.LUN)

KERNEL_MS = 5.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Add kernel time to one LUN."""
    model.kavg[target, window] = KERNEL_MS
    return lun_entity(model, target)
