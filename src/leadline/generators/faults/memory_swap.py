"""The host swaps one VM out and back in.

Injects:
    Swap reads of 6 MiB/s and writes of 3 MiB/s, 2 GiB swapped, and vCPUs waiting for swap.

Seen as:
    Swap Read MBytes/sec of the VM, % Swap Wait of its vCPUs.

Parameters:
    READ_MIB_PER_S, WRITE_MIB_PER_S, SWAP_WAIT_PCT.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, vm_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("mem-swap-rate-nonzero",), layer=Layer.HYPERVISOR_MEMORY, target=FaultTarget.VM)

READ_MIB_PER_S = 6.0
WRITE_MIB_PER_S = 3.0
SWAPPED_MIB = 2048.0
SWAP_WAIT_PCT = 12.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Swap one VM."""
    model.memory["swap_read"][target, window] = READ_MIB_PER_S
    model.memory["swap_write"][target, window] = WRITE_MIB_PER_S
    model.memory["swapped"][target, window] = SWAPPED_MIB
    model.swap_wait[model.vcpus_of(target), window] = SWAP_WAIT_PCT
    return vm_entity(model, target)
