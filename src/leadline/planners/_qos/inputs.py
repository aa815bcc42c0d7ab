"""What the planner of qualities of service is asked: disks on a capacity."""

from __future__ import annotations

from math import ceil, inf
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from leadline.core.contracts.planner import STRICT, PlanInput

UNIT_KIB = 32.0
Positive = Annotated[float, Field(gt=0)]
Cloud = Literal["aws-gp3", "azure-premium-v2", "gcp-hyperdisk-balanced"]


class QosDisk(BaseModel):
    """A disk: what it may, what it wants, how it asks; its VM and its name there, for the settings to apply."""

    model_config = STRICT

    name: str
    shares: Positive = 1000.0
    reservation_iops: Annotated[float, Field(ge=0)] = 0.0
    limit_iops: Positive | None = None
    wanted_iops: Positive | None = None
    block_kib: Positive = 8.0
    outstanding: Annotated[int, Field(ge=1)] = 32
    is_tier_1: bool = False
    size_gib: Positive | None = None
    vm: str = ""
    label: str = ""

    @model_validator(mode="after")
    def _fits(self) -> QosDisk:
        if self.limit_iops is not None and self.limit_iops < self.reservation_iops:
            message = f"the limit of {self.name} is below its reservation"
            raise ValueError(message)
        return self

    @property
    def units(self) -> int:
        """What an operation counts as."""
        return max(1, ceil(self.block_kib / UNIT_KIB))

    @property
    def most_units(self) -> float:
        """Units per second it may and wants at most."""
        limit = inf if self.limit_iops is None else self.limit_iops
        wanted = inf if self.wanted_iops is None else self.wanted_iops * self.units
        return max(min(limit, wanted), 1e-9)


class Qos(PlanInput):
    """Disks on a capacity; limits and reservations in operations of up to 32 KiB, as storage policies have them."""

    capacity_iops: Annotated[
        Positive, Field(description="What all disks together get from the device, units of 32 KiB per second.")
    ] = 1200.0
    latency_ms: Annotated[
        Positive, Field(description="What the device takes for an operation below its limit, ms.")
    ] = 1.0
    disks: Annotated[
        tuple[QosDisk, ...],
        Field(
            min_length=1,
            description="Disks: name, shares, reservation_iops, limit_iops, wanted_iops, block_kib, outstanding, "
            "is_tier_1, size_gib, vm and label (its name in the client); not given: the busiest of a recording.",
        ),
    ] = (QosDisk(name="a disk", vm="<VM>"),)
    most_disks: Annotated[int, Field(ge=1, le=1000, description="Disks to take from a recording, busiest first.")] = 8
    cloud: Annotated[
        Cloud | None,
        Field(description="Type of cloud disk to print settings for: aws-gp3, azure-premium-v2, "
              "gcp-hyperdisk-balanced."),
    ] = None  # fmt: skip
    is_checked: Annotated[bool, Field(description="Whether to simulate it request by request as well.")] = False
