"""The bus of one LUN is reset again and again.

Injects:
    0.4 resets per second.

Seen as:
    Resets/sec.

Parameters:
    RESETS_PER_S.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, lun_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("disk-resets",), layer=Layer.STORAGE_PATH, target=FaultTarget.LUN)

RESETS_PER_S = 0.4


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Reset one LUN."""
    model.resets[target, window] = RESETS_PER_S
    return lun_entity(model, target)
