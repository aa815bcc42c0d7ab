"""Time a vCPU spends in a state it should not be in: found per vCPU, told of the VM."""

from __future__ import annotations

from leadline.core.model.vocabulary import EntityKind
from leadline.estate.language.templates import Over


def vcpu_time(metric: str, noun: str) -> Over:
    """A share of time per vCPU (or of the whole VM where that is all that was recorded), one finding per VM."""
    return Over(metric, f"{noun} per vCPU", (EntityKind.VCPU, EntityKind.VM), roll_up=EntityKind.VM)
