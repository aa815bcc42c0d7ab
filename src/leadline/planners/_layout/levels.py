"""RAID levels: what a small write costs, and how many devices a load needs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from leadline.planners._layout.inputs import LayoutInputs


@dataclass(frozen=True, slots=True)
class RaidLevel:
    """A RAID level: operations of a small write, fewest devices, and devices that hold no data."""

    name: str
    penalty: int
    devices_min: int
    spare: int
    is_mirrored: bool = False

    def devices(self, inputs: LayoutInputs) -> int:
        """Return how many devices the operations and the capacity of the data need."""
        usable = inputs.device_iops * inputs.device_use_pct / 100.0
        for_operations = ceil((inputs.reads_per_s + self.penalty * inputs.writes_per_s) / usable)
        data_devices = ceil(inputs.data_gib / inputs.device_gib)
        for_capacity = 2 * data_devices if self.is_mirrored else data_devices + self.spare
        count = max(for_operations, for_capacity, self.devices_min)
        return count + count % 2 if self.is_mirrored else count


LEVELS = (
    RaidLevel("raid-10", 2, 4, 0, is_mirrored=True),
    RaidLevel("raid-5", 4, 3, 1),
    RaidLevel("raid-6", 6, 4, 2),
)
