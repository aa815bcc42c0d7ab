"""The host compresses memory of one VM.

Injects:
    1 GiB in the compression cache and 4 MiB/s going in and out.

Seen as:
    Compressed Memory MBytes, Compression MBytes/sec.

Parameters:
    COMPRESSED_MIB, ZIP_MIB_PER_S.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, vm_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("mem-compression-active",), layer=Layer.HYPERVISOR_MEMORY, target=FaultTarget.VM)

COMPRESSED_MIB = 1024.0
ZIP_MIB_PER_S = 4.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Compress memory of one VM."""
    model.memory["compressed"][target, window] = COMPRESSED_MIB
    model.memory["zip"][target, window] = ZIP_MIB_PER_S
    return vm_entity(model, target)
