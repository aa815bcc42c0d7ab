"""What a real check of a scenario is: its plan, its rows, what the comparison is about."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import cast

from leadline.app.measure.guests import LabPlan
from leadline.app.simulate.checking_loads import Calibration
from leadline.app.simulate.simulating import PlannedSimulation
from leadline.core.contracts.scenario import Variant
from leadline.scenarios.storage_path import StoragePath

NAN = float("nan")


def scenario_of(variant: Variant) -> StoragePath:
    """The variant's scenario."""
    return cast("StoragePath", variant.scenario)


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One measure of one VM in one variant.

    Attributes:
        simulated: with the device as it was measured without limits.
        as_given: with the device of the scenario.
    """

    variant: str
    entity: str
    measure: str
    unit: str
    simulated: float
    measured: float
    as_given: float = NAN

    @property
    def distance_pct(self) -> float:
        """How far the simulation is from what was measured, of what was measured; NaN when either is not known."""
        if not (isfinite(self.simulated) and isfinite(self.measured)) or self.measured == 0.0:
            return NAN
        return 100.0 * (self.simulated / self.measured - 1.0)


@dataclass(frozen=True, slots=True)
class RealCheck:
    """A scenario done for real: rows, the runs they come from, and what the comparison is about."""

    by: str
    rows: tuple[CheckRow, ...]
    runs: tuple[str, ...]
    calibrations: tuple[Calibration, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What will be done, before anything is made."""

    planned: PlannedSimulation
    seconds: float
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    expected_s: float
    guests: LabPlan | None = None
