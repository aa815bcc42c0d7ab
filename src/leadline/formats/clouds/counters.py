"""What a counter of a cloud's monitoring is of, and what its values become."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from leadline.core.contracts.importer import UNNAMED_GUEST, Field
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind


class CloudPlace(StrEnum):
    """Whose a counter is."""

    MACHINE = "machine"
    DISK = "disk"
    DATABASE = "database"


class Way(StrEnum):
    """How a period's value becomes the metric's."""

    LEVEL = "level"  # a mean is the value
    AMOUNT = "amount"  # a sum is divided by the seconds of the period
    IDLE = "idle"  # a sum of seconds without work: the rest of the period was busy
    REST = "rest"  # per cent used up: the rest is left
    FLAG = "flag"  # 1 where it was so, 0 where not: the mean is a share of the time


SUMMED = frozenset({Way.AMOUNT, Way.IDLE})


@dataclass(frozen=True, slots=True)
class CloudCounter:
    """What one counter becomes.

    Attributes:
        metric: canonical name.
        unit: of its values; of what an amount becomes per second.
        place: whose it is.
        way: how its values become the metric's.
        disk: the disk's name where the export names none.
        peak: the highest or lowest value of a period says as much as its mean.
    """

    metric: str
    unit: str
    place: CloudPlace = CloudPlace.DISK
    way: Way = Way.LEVEL
    disk: str = ""
    peak: bool = False

    @property
    def field(self) -> Field:
        """What it is in an importer's META."""
        return Field(self.metric, self.unit)


@dataclass(frozen=True, slots=True)
class CloudOwner:
    """Whose values are: the machine or server, and its disk; empty where an export does not say."""

    machine: str = ""
    disk: str = ""

    def entity(self, place: CloudPlace, disk: str = "") -> Entity:
        """The entity of a place; ``disk`` names a disk that the export did not name."""
        guest = Entity(EntityKind.GUEST, self.machine) if self.machine else UNNAMED_GUEST
        if place is CloudPlace.DISK:
            return Entity(EntityKind.BLOCK_DEVICE, self.disk or disk or "disk", guest)
        if place is CloudPlace.DATABASE:
            return Entity(EntityKind.DATABASE, "database", guest)
        return guest


def levels(place: CloudPlace, metrics: dict[str, tuple[str, str]], disk: str = "") -> dict[str, CloudCounter]:
    """Counters that are means, by name: what each becomes and in which unit its values are."""
    return {name: CloudCounter(metric, unit, place, disk=disk) for name, (metric, unit) in metrics.items()}
