"""What the loads of a lab say: a row per guest and variant, and every guest beside the first one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from typing import Any

import numpy as np

from leadline.app.measure.benching import diagnosis_of
from leadline.app.measure.guests import LabResult
from leadline.core.model.run import PERCENTILES, Pooled, Run, pool
from leadline.core.model.vocabulary import Severity
from leadline.core.statistics.between_runs import Shift, shift
from leadline.core.statistics.student import quantile_two_sided
from leadline.lab.counters import Moved
from leadline.lab.specification import GUESTS, PHASE
from leadline.stores.runs import RunStore

NAN = float("nan")
SHOWN = ("p50", "p99")
FINDING_COUNT_MAX = 4  # Judgement: of each row; the run itself shows all


@dataclass(frozen=True, slots=True)
class LabRow:
    """A guest under a variant: operations per second with the interval over repeats, latency of all its requests.

    ``low`` and ``high`` are NaN with fewer than two repeats.
    """

    guest: str
    variant: dict[str, Any]
    runs: tuple[str, ...]
    per_s: float
    low: float
    high: float
    mean_ms: float
    percentiles_ms: dict[str, float]

    @property
    def label(self) -> str:
        """What varied, for people."""
        return ", ".join(f"{key} {value}" for key, value in self.variant.items())


@dataclass(frozen=True, slots=True)
class Ratio:
    """A guest beside the first one under the same variant: operations per second, as a multiple."""

    guest: str
    first: str
    variant: dict[str, Any]
    times: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """Whether these data show a difference."""
        if self.low != self.low:
            return "too few repeats"
        return "faster" if self.low > 1.0 else "slower" if self.high < 1.0 else "no difference shown"

    @property
    def sentence(self) -> str:
        """For people."""
        under = ", ".join(f"{key} {value}" for key, value in self.variant.items())
        span = "" if self.low != self.low else f" (95 % between {self.low:.3g} and {self.high:.3g})"
        comparison = f"{self.guest} does {self.times:.3g} times the operations of {self.first}"
        return f"{comparison}{f' at {under}' if under else ''}{span}: {self.word}."


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A phase beside an earlier one of the same guest and variant: operations per second and mean latency.

    ``operations`` and ``latency`` are multiples of the earlier one's: (multiple, low, high); low and high are NaN with
    fewer than two repeats.
    """

    guest: str
    variant: dict[str, Any]
    earlier: str
    operations: tuple[float, float, float]
    latency: tuple[float, float, float]

    @property
    def sentence(self) -> str:
        """For people."""
        under = ", ".join(f"{key} {value}" for key, value in self.variant.items() if key != PHASE)
        who = f"{self.guest}, {self.variant[PHASE]}{f', {under}' if under else ''}"
        rate = f"{_times(self.operations)} the operations ({_shown(self.operations, 'more', 'fewer')})"
        time = f"{_times(self.latency)} the mean latency ({_shown(self.latency, 'longer', 'shorter')})"
        return f"{who}, as against {self.earlier}: {rate} and {time}."


@dataclass(frozen=True, slots=True)
class Crowd:
    """So many guests at once: the slowest of them, and the one that does least.

    ``times`` is the slowest's mean latency as a multiple of that with the fewest guests.
    """

    variant: dict[str, Any]
    least_per_s: float
    all_per_s: float
    mean_ms: float
    p99_ms: float
    times: float

    @property
    def sentence(self) -> str:
        """For people."""
        count = self.variant[GUESTS]
        under = "".join(f", {key} {value}" for key, value in self.variant.items() if key != GUESTS)
        grown = "" if self.times == 1.0 else f", {self.times:.3g} times as long as with the fewest"
        waits = f"the slowest waits {self.mean_ms:.3g} ms on average (p99 {self.p99_ms:.3g} ms){grown}"
        rates = f"the least does {self.least_per_s:,.0f}/s, all together {self.all_per_s:,.0f}/s"
        return f"{count} guest{'s' * (count != 1)} at once{under}: {waits}; {rates}."


def crowds(rows: Sequence[LabRow]) -> list[Crowd]:
    """What became of the guests with more and more of them, in the order of the variants; none of other labs."""
    crowd_list: list[Crowd] = []
    for variant in {str(row.variant): row.variant for row in rows if GUESTS in row.variant}.values():
        variant_rows = [row for row in rows if row.variant == variant]
        slowest = max(variant_rows, key=lambda row: row.mean_ms)
        alike = [other for other in crowd_list if _others(other.variant) == _others(variant)]
        times = slowest.mean_ms / alike[0].mean_ms if alike else 1.0
        rates = [row.per_s for row in variant_rows]
        p99_ms = slowest.percentiles_ms.get("p99", NAN)
        crowd_list.append(Crowd(variant, min(rates), sum(rates), slowest.mean_ms, p99_ms, times))
    return crowd_list


def _others(variant: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in variant.items() if key != GUESTS}


def _times(given: tuple[float, float, float]) -> str:
    middle, low, high = given
    span = "" if isnan(low) else f" [{low:.3g}, {high:.3g}]"
    return f"{middle:.3g} times{span}"


def _shown(given: tuple[float, float, float], above: str, below: str) -> str:
    _, low, high = given
    if isnan(low):
        return "too few repeats"
    return above if low > 1.0 else below if high < 1.0 else "no difference shown"


@dataclass(frozen=True, slots=True)
class LabOutcome:
    """A lab's result as it is shown.

    Attributes:
        ratios: guests beside the first one.
        changes: phases beside the first one, and beside the one before.
        moved: what each guest and its hypervisor moved in each phase of the last repeat.
        findings: what the rules say of the last repeat of each load.
    """

    result: LabResult
    rows: tuple[LabRow, ...]
    ratios: tuple[Ratio, ...]
    findings: tuple[str, ...] = ()
    changes: tuple[PhaseChange, ...] = ()
    moved: tuple[Moved, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """Everything that is compared, for people: phases or crowds where there are some, else guest by guest."""
        compared = self.changes or crowds(self.rows) or self.ratios
        return [one.sentence for one in compared] + [one.sentence for one in self.moved]

    @property
    def errors(self) -> list[str]:
        """Loads that failed."""
        return [f"{load.guest}, repeat {load.repeat}: {load.error}" for load in self.result.loads if load.error]


def outcome(result: LabResult, store: RunStore) -> LabOutcome:
    """Rows and ratios of a lab, and what the rules find in the recordings of its runs."""
    loaded = {load.guest for load in result.loads}
    guests = [guest.name for guest in result.lab.machines() if guest.name in loaded]
    variants = result.lab.cases()
    rows = [row for guest in guests for variant in variants if (row := _row(result, guest, variant)) is not None]
    ratios = [
        ratio
        for variant in variants
        for guest in guests[1:]
        if (ratio := _ratio(result, guests[0], guest, variant)) is not None
    ]
    phases = result.lab.phases()
    pairs = [(phases[0], phase) for phase in phases[2:]] + list(pairwise(phases))
    changes = tuple(
        change
        for guest in guests
        for variant in result.lab.variants()
        for pair in sorted(pairs, key=lambda pair: phases.index(pair[1]))
        if (change := _change(result, guest, variant, pair)) is not None
    )
    last = {(load.guest, tuple(load.variant.items())): load.moved for load in result.loads if load.moved}
    moves = tuple(one for moved in last.values() for one in moved)
    return LabOutcome(result, tuple(rows), tuple(ratios), tuple(_findings(rows, store)), changes, moves)


def _findings(rows: Sequence[LabRow], store: RunStore) -> Iterator[str]:
    """The first findings of the last run of every row, each told once."""
    sentences: dict[str, None] = {}
    for row in rows:
        diagnosis = diagnosis_of(row.runs[-1], store)
        shown = [] if diagnosis is None else [f for f in diagnosis.findings if f.severity >= Severity.MEDIUM]
        sentences |= dict.fromkeys(f"{finding.summary} [{finding.rule}]" for finding in shown[:FINDING_COUNT_MAX])
    yield from sentences


def _row(result: LabResult, guest: str, variant: dict[str, Any]) -> LabRow | None:
    runs = result.runs(guest, variant)
    if not runs:
        return None
    rates = [run.counted_per_s() for run in runs]
    low, high = _interval(rates)
    whole = pooled(runs)
    shown = {name: whole.percentiles_ms[name][0] for name in SHOWN if name in whole.percentiles_ms}
    ids = tuple(run.id for run in runs)
    return LabRow(guest, variant, ids, float(np.mean(rates)), low, high, whole.mean_ms, shown)


def pooled(runs: Sequence[Run]) -> Pooled:
    """The requests of all jobs of several runs, merged."""
    operations = [o for run in runs for part in run.rounds for result in part.results for o in result.operations]
    return pool("all", operations)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's 95 % interval of a mean rate of repeats, which is not below 0."""
    if len(values) < 2:
        return NAN, NAN
    middle, count = float(np.mean(values)), len(values)
    away = quantile_two_sided(0.95, count - 1.0) * float(np.std(values, ddof=1)) / count**0.5
    return max(middle - away, 0.0), middle + away


def _ratio(result: LabResult, first: str, guest: str, variant: dict[str, Any]) -> Ratio | None:
    sides = [[run.counted_per_s() for run in result.runs(name, variant)] for name in (first, guest)]
    if not all(sides) or not all(value > 0.0 for side in sides for value in side):
        return None
    rate_shift: Shift = shift(sides[0], sides[1])
    return Ratio(guest, first, variant, 1.0 + rate_shift.change, 1.0 + rate_shift.low, 1.0 + rate_shift.high)


def _change(result: LabResult, guest: str, variant: dict[str, Any], pair: tuple[str, str]) -> PhaseChange | None:
    sides = [result.runs(guest, {**variant, PHASE: phase}) for phase in pair]
    rates = [[run.counted_per_s() for run in side] for side in sides]
    times = [[pooled([run]).mean_ms for run in side] for side in sides]
    if not all(sides) or not all(value > 0.0 for side in (*rates, *times) for value in side):
        return None
    operations, latency = shift(rates[0], rates[1]), shift(times[0], times[1])
    return PhaseChange(guest, {**variant, PHASE: pair[1]}, pair[0], _multiple(operations), _multiple(latency))


def _multiple(rate_shift: Shift) -> tuple[float, float, float]:
    return 1.0 + rate_shift.change, 1.0 + rate_shift.low, 1.0 + rate_shift.high


def percentile_names() -> tuple[str, ...]:
    """Percentiles a row shows."""
    return tuple(name for name in PERCENTILES if name in SHOWN)
