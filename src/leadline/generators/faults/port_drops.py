"""The port of one VM drops received packets.

Injects:
    3 % of received packets dropped while its CPUs are free.

Seen as:
    % Received Packets Dropped.

Parameters:
    DROPPED_PCT.

Sources:
    Judgement: a level at which field engineers act without doubt.
"""

from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, port_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("net-drops-vm-port",), layer=Layer.NETWORK, target=FaultTarget.VM)

DROPPED_PCT = 3.0


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """Drop packets of one VM."""
    model.rx_dropped[target, window] = DROPPED_PCT
    return port_entity(model, target)
