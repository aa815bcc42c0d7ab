"""Commands to one LUN are given up.

Injects:
    0.8 aborts per second while the latency climbs to the edge.

Seen as:
    Aborts/sec.

Parameters:
    ABORTS_PER_S.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, lun_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("disk-aborts",), layer=Layer.STORAGE_PATH, target=FaultTarget.LUN)

ABORTS_PER_S = 0.8


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Abort commands of one LUN."""
    model.aborts[target, window] = ABORTS_PER_S
    return lun_entity(model, target)
