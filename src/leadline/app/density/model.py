"""How many instances fit: the service level, whether every instance had it, and how sure that is.

The service level is per instance: a percentile of the pooled requests hides the one instance that starves. So every
instance is judged by its own seconds, and a count holds only when all of them surely have what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.errors import UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.run import BEHIND_MIN, PERCENTILES, percentiles
from leadline.core.statistics.resampling import RESAMPLE_COUNT, SAMPLE_COUNT_MIN, Interval, block_index, mean_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

RATE = "per_s"
ROUND_COUNT_MIN = 3  # Judgement: values a t interval needs where the seconds of a round are not known
LEVEL = 0.95
_CLAUSE = re.compile(
    r"\s*([a-z_]\w*(?:\.\d+)?)\s*(<=|>=)\s*([\d.]+)\s*(us|ms|s|%|/s)?\s*(of offered)?\s*", re.IGNORECASE
)
_TO_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_NAN = float("nan")


class CountState(StrEnum):
    """What is known of a count of instances."""

    HELD = "held"
    BROKE = "broke"
    UNSURE = "cannot be told"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a service level, of each instance.

    Attributes:
        metric: a percentile of the latency (``p95``, at most ``bound`` ms) or ``per_s`` (at least ``bound``).
        bound: ms, operations per second, or with ``of_offered`` a share of the rate an instance asks for.
    """

    metric: str
    bound: float
    of_offered: bool = False

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.metric == RATE

    @property
    def unit(self) -> str:
        """Of the values that are compared."""
        return "/s" if self.is_rate else "ms"

    def bound_for(self, offered_per_s: float) -> float:
        """The bound in ms or operations per second for instances that ask for so many."""
        return self.bound * offered_per_s if self.of_offered else self.bound

    def __str__(self) -> str:
        end = " of offered" if self.of_offered else "/s" if self.is_rate else " ms"
        return f"{self.metric} {'>=' if self.is_rate else '<='} {self.bound:.12g}{end}"


def parse_service_level(text: str) -> tuple[Clause, ...]:
    """The clauses of ``p95<=20ms``, ``per_s >= 0.9 of offered`` or several by commas.

    Raises:
        UsageError: it is no service level.

    >>> [str(clause) for clause in parse_service_level("p95<=20ms, per_s >= 90% of offered")]
    ['p95 <= 20 ms', 'per_s >= 0.9 of offered']
    """
    clauses = tuple(_clause(part) for part in text.split(","))
    if len({clause.metric for clause in clauses}) != len(clauses):
        raise _wrong(text)
    return clauses


def _clause(text: str) -> Clause:
    match = _CLAUSE.fullmatch(text)
    if match is None:
        raise _wrong(text)
    metric, sign, unit = match[1].lower(), match[2], (match[4] or "").lower()
    try:
        bound = float(match[3])
    except ValueError:
        raise _wrong(text) from None
    is_rate, of_offered = metric == RATE, match[5] is not None
    if bound <= 0 or (not is_rate and metric not in PERCENTILES) or (sign == ">=") != is_rate:
        raise _wrong(text)
    if not is_rate:
        if unit not in _TO_MS or of_offered:
            raise _wrong(text)
        return Clause(metric, bound * _TO_MS[unit])
    share = bound / 100.0 if unit == "%" else bound
    if (
        unit in _TO_MS
        or (unit == "%" and not of_offered)
        or (unit == "/s" and of_offered)
        or (of_offered and share > 1)
    ):
        raise _wrong(text)
    return Clause(metric, share, of_offered)


def _wrong(text: str) -> UsageError:
    return UsageError(
        "--service-level",
        found=repr(text.strip()),
        expected=f"clauses by commas: {', '.join(PERCENTILES)} <= TIME; per_s >= RATE, or a share 'of offered'",
        advice="For example 'p95<=20ms, per_s>=0.95 of offered'.",
    )


@dataclass(frozen=True, slots=True)
class Second:
    """What one instance completed in about a second (or, where that is all there is, in a round)."""

    per_s: float
    histogram: Histogram | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """What one instance did, by rounds; its number counts from 1."""

    number: int
    rounds: tuple[tuple[Second, ...], ...]
    error: str | None = None

    @property
    def per_s(self) -> float:
        """Its mean rate; NaN when nothing was measured."""
        values = [second.per_s for part in self.rounds for second in part]
        return float(np.mean(values)) if values else _NAN

    @property
    def histogram(self) -> Histogram | None:
        """All its requests."""
        parts = [s.histogram for part in self.rounds for s in part if s.histogram is not None and s.histogram.total]
        return Histogram.merged(parts) if parts else None


@dataclass(frozen=True, slots=True)
class InstanceEstimate:
    """A value with its 95 % interval, and the wider one that holds for all instances of a count together."""

    value: float
    low: float
    high: float
    low_all: float
    high_all: float


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """One clause at one count: its worst instance, and what the pooled requests would have said.

    ``broke_count`` instances surely broke it, of ``unsure_count`` it cannot be told.
    """

    clause: str
    state: CountState
    bound: float
    unit: str
    instance: int
    value: float
    low: float
    high: float
    median: float
    pooled: float
    broke_count: int
    unsure_count: int

    @property
    def hidden_by_pooling(self) -> bool:
        """Whether an instance broke the clause though the pooled requests keep it."""
        kept = self.pooled >= self.bound if self.unit == "/s" else self.pooled <= self.bound
        return self.state is CountState.BROKE and kept

    def sentence(self) -> str:
        """For people: the worst instance against the bound."""
        between = f", 95 % between {self.low:.4g} and {self.high:.4g}" if self.low == self.low else ""
        value = "nothing" if np.isnan(self.value) else f"{self.value:.4g}{_spaced(self.unit)}"
        sign = "at least" if self.unit == "/s" else "at most"
        name = self.clause.split(" ", maxsplit=1)[0]
        return f"instance {self.instance}: {name} {value}{between}; {sign} {self.bound:.4g} is asked"


@dataclass(frozen=True, slots=True)
class CountLevel:
    """One count of instances as measured.

    Attributes:
        per_s: of all instances together, with its interval.
        instance_per_s: each instance's mean rate, in order.
        percentiles_ms: of the pooled requests, from the merged histograms; those with too few samples are absent.
        latency_name: the percentile of ``pooled_ms``, ``worst_ms`` and ``median_ms`` (of the instances').
        fairness: Jain's index of the rates, 1 when all are alike; NaN for nothing.
    """

    count: int
    state: CountState
    per_s: Interval
    instance_per_s: tuple[float, ...]
    latency_name: str
    percentiles_ms: dict[str, float]
    pooled_ms: float
    median_ms: float
    worst_ms: float
    worst_ms_interval: tuple[float, float]
    fairness: float
    clauses: tuple[ClauseResult, ...]
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    run: str = ""

    @property
    def worst_per_s(self) -> float:
        """The slowest instance's rate."""
        known = [rate for rate in self.instance_per_s if rate == rate]  # noqa: PLR0124
        return min(known, default=_NAN)

    @property
    def median_per_s(self) -> float:
        """The median instance's rate."""
        known = [rate for rate in self.instance_per_s if rate == rate]  # noqa: PLR0124
        return float(np.median(known)) if known else _NAN

    @property
    def reasons(self) -> list[str]:
        """Why it did not hold, or why it cannot be told."""
        if self.failures:
            return list(self.failures)
        return [part.sentence() for part in self.clauses if part.state is self.state is not CountState.HELD]


def judge(
    instances: Sequence[Instance], clauses: Sequence[Clause], *, offered_per_s: float = _NAN, seed: int = 1
) -> CountLevel:
    """Whether every instance had the service level, from what each did.

    A count *held* when the interval of every instance keeps every clause; it *broke* when that of at least one breaks
    one, with intervals widened so that chance breaks one among all no more often than one among one (Bonferroni).

    Source: Berger, Multiparameter Hypothesis Testing and Acceptance Sampling (1982), intersection-union test.
    """
    failures = tuple(
        f"instance {instance.number}: {instance.error}" for instance in instances if instance.error is not None
    )
    name = next((clause.metric for clause in clauses if not clause.is_rate), "p95")
    latencies = [estimate(instance, name, len(instances), seed) for instance in instances]
    results = tuple(_judged(clause, instances, offered_per_s, seed) for clause in clauses)
    states = {part.state for part in results}
    state = (
        CountState.BROKE
        if CountState.BROKE in states
        else CountState.UNSURE
        if CountState.UNSURE in states
        else CountState.HELD
    )
    pooled = pooled_histogram(instances)
    known = [part for part in latencies if part.value == part.value]
    worst = max(known, key=lambda part: part.value, default=InstanceEstimate(_NAN, _NAN, _NAN, _NAN, _NAN))
    rates = tuple(instance.per_s for instance in instances)
    return CountLevel(
        count=len(instances),
        state=CountState.FAILED if failures else state,
        per_s=mean_interval(total_seconds(instances), seed),
        instance_per_s=rates,
        latency_name=name,
        percentiles_ms={} if pooled is None else {key: ms for key, (ms, _) in percentiles(pooled).items()},
        pooled_ms=_NAN if pooled is None else pooled.quantile(PERCENTILES[name]),
        median_ms=float(np.median([part.value for part in known])) if known else _NAN,
        worst_ms=worst.value,
        worst_ms_interval=(worst.low, worst.high),
        fairness=jain(rates),
        clauses=results,
        failures=failures,
    )


def _judged(clause: Clause, instances: Sequence[Instance], offered_per_s: float, seed: int) -> ClauseResult:
    bound = clause.bound_for(offered_per_s)
    estimates = [estimate(instance, clause.metric, len(instances), seed + instance.number) for instance in instances]
    states = [
        _state(part, bound, instance, is_rate=clause.is_rate)
        for part, instance in zip(estimates, instances, strict=True)
    ]
    state = next((s for s in (CountState.BROKE, CountState.UNSURE) if s in states), CountState.HELD)
    sign = -1.0 if clause.is_rate else 1.0
    # The worst of those that decide; one that did nothing at all is worse than any number.
    worst = max(
        (index for index, reached in enumerate(states) if reached is state),
        key=lambda i: np.inf if np.isnan(estimates[i].value) else sign * estimates[i].value,
    )
    values = [part.value for part in estimates if part.value == part.value]
    pooled = pooled_histogram(instances)
    whole = float(np.mean(values)) if clause.is_rate and values else _NAN
    if not clause.is_rate and pooled is not None:
        whole = pooled.quantile(PERCENTILES[clause.metric])
    return ClauseResult(
        clause=str(clause),
        state=state,
        bound=bound,
        unit=clause.unit,
        instance=instances[worst].number,
        value=estimates[worst].value,
        low=estimates[worst].low,
        high=estimates[worst].high,
        median=float(np.median(values)) if values else _NAN,
        pooled=whole,
        broke_count=states.count(CountState.BROKE),
        unsure_count=states.count(CountState.UNSURE),
    )


def _state(estimated: InstanceEstimate, bound: float, instance: Instance, *, is_rate: bool) -> CountState:
    if instance.rounds and all(second.per_s == 0.0 for part in instance.rounds for second in part):
        return CountState.BROKE  # it waited all the time and got nothing
    low, high, low_all, high_all = estimated.low, estimated.high, estimated.low_all, estimated.high_all
    if is_rate:  # turned round, so that small is good
        low, high, low_all, high_all, bound = -high, -low, -high_all, -low_all, -bound
    if high <= bound:
        return CountState.HELD
    return CountState.BROKE if low_all > bound else CountState.UNSURE


def estimate(instance: Instance, metric: str, instance_count: int, seed: int) -> InstanceEstimate:
    """A rate or percentile of one instance with its intervals; NaN bounds where there are too few samples."""
    seconds = [second for part in instance.rounds for second in part]
    share = PERCENTILES.get(metric)
    value = instance.per_s
    if share is not None:
        whole = instance.histogram
        if whole is None or whole.total * (1.0 - share) < BEHIND_MIN - 1e-9:
            return InstanceEstimate(_NAN if whole is None else whole.quantile(share), _NAN, _NAN, _NAN, _NAN)
        value = whole.quantile(share)
    tail = (1.0 - LEVEL) / 2.0
    tails = [tail, 1.0 - tail, tail / instance_count, 1.0 - tail / instance_count]
    if len(seconds) >= SAMPLE_COUNT_MIN:
        values = _resampled(instance, share, seed)
        return InstanceEstimate(value, *(float(bound) for bound in np.quantile(values, tails)))
    if all(len(part) == 1 for part in instance.rounds) and len(seconds) >= ROUND_COUNT_MIN:
        return _by_rounds(seconds, share, value, tails)
    return InstanceEstimate(value, _NAN, _NAN, _NAN, _NAN)


def _by_rounds(
    seconds: Sequence[Second], share: float | None, value: float, tails: Sequence[float]
) -> InstanceEstimate:
    """Student's t over rounds, where nothing finer is known."""
    each = [
        s.per_s if share is None else s.histogram.quantile(share) if s.histogram is not None else _NAN for s in seconds
    ]
    spread = float(np.std(each, ddof=1)) / np.sqrt(len(each))
    return InstanceEstimate(value, *(value + student_t(tail, len(each) - 1) * spread for tail in tails))


def student_t(share: float, freedom: int) -> float:
    """The quantile of Student's t distribution with so many degrees of freedom.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4, solved by bisection.

    >>> round(student_t(0.975, 2), 3), round(student_t(0.025, 9), 3)
    (4.303, -2.262)
    """
    if share < 0.5:
        return -student_t(1.0 - share, freedom)
    low, high = 0.0, np.pi / 2.0  # of the angle, whose tangent is t / sqrt(freedom)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _inside_t(middle, freedom) < 2.0 * share - 1.0 else (low, middle)
    return float(np.tan(low) * np.sqrt(freedom))


def _inside_t(angle: float, freedom: int) -> float:
    """The probability of a smaller magnitude of t."""
    cosine, odd = float(np.cos(angle)), freedom % 2 == 1
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine**2 * (power - 1) / power
        total += term
    within = float(np.sin(angle)) * total
    return 2.0 / np.pi * (angle + within) if odd else within


def _resampled(instance: Instance, share: float | None, seed: int) -> NDArray[np.float64]:
    """The metric in resampled seconds: float64 [r]."""
    weights = _weights([len(part) for part in instance.rounds if part], seed)
    seconds = [second for part in instance.rounds for second in part]
    if share is None:
        rates = np.array([second.per_s for second in seconds])
        means: NDArray[np.float64] = weights @ rates / weights.sum(axis=1)
        return means
    counts, middles = _buckets(seconds)
    above = np.cumsum(weights @ counts, axis=1)
    ranks = np.maximum(np.ceil(share * above[:, -1]), 1.0)
    values: NDArray[np.float64] = middles[np.argmax(above >= ranks[:, None], axis=1)]
    return values


def _buckets(seconds: Sequence[Second]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts [second, bucket], and the middle of each bucket in ms."""
    histograms = [second.histogram for second in seconds]
    whole = Histogram.merged([part for part in histograms if part is not None])
    column = {bounds: k for k, bounds in enumerate(zip(whole.lower, whole.upper, strict=True))}
    counts = np.zeros((len(histograms), len(column)))
    for row, part in enumerate(histograms):
        if part is not None:
            counts[row, [column[b] for b in zip(part.lower, part.upper, strict=True)]] = part.counts
    middles = np.where(np.isinf(whole.upper), whole.lower, (whole.lower + whole.upper) / 2.0)
    return counts, middles


def _weights(lengths: Sequence[int], seed: int) -> NDArray[np.float64]:
    """How often each second is drawn in each resampling: float64 [r, n]; circular blocks within rounds."""
    generator = np.random.default_rng(seed)
    parts = []
    for count in lengths:
        flat = block_index(count, generator) + np.arange(RESAMPLE_COUNT)[:, None] * count
        drawn = np.bincount(flat.ravel(), minlength=RESAMPLE_COUNT * count)
        parts.append(drawn.reshape(RESAMPLE_COUNT, count).astype(np.float64))
    return np.concatenate(parts, axis=1)


def total_seconds(instances: Sequence[Instance]) -> list[list[float]]:
    """Operations per second of all instances together, by rounds; seconds some instance lacks are left out."""
    rounds = zip_longest(*(instance.rounds for instance in instances), fillvalue=())
    return [[sum(s.per_s for s in row) for row in zip(*part, strict=False)] for part in rounds]


def pooled_histogram(instances: Sequence[Instance]) -> Histogram | None:
    """The requests of all instances."""
    parts = [instance.histogram for instance in instances]
    known = [part for part in parts if part is not None]
    return Histogram.merged(known) if known else None


def jain(rates: Sequence[float]) -> float:
    """Jain's fairness index: 1 when all are alike, 1/n when one has everything; NaN for nothing.

    Source: Jain, Chiu and Hawe, A Quantitative Measure of Fairness (DEC TR-301, 1984).

    >>> jain([50.0, 50.0]), jain([100.0, 0.0])
    (1.0, 0.5)
    """
    values = np.asarray(rates, dtype=np.float64)
    squares = float((values**2).sum())
    return float(values.sum() ** 2 / (len(values) * squares)) if squares > 0.0 else _NAN


def _spaced(unit: str) -> str:
    return unit if unit.startswith("/") else f" {unit}"


def level_of(plain: dict[str, Any]) -> CountLevel:
    """A level from the plain data `dataclasses.asdict` makes of it (NaN kept as null)."""
    fields = {**_known(plain), "state": CountState(plain["state"]), "per_s": Interval(**_known(plain["per_s"]))}
    for name in ("instance_per_s", "worst_ms_interval"):
        fields[name] = tuple(_NAN if item is None else item for item in plain[name])
    fields["failures"], fields["notes"] = tuple(plain["failures"]), tuple(plain["notes"])
    fields["clauses"] = tuple(
        ClauseResult(**{**_known(part), "state": CountState(part["state"])}) for part in plain["clauses"]
    )
    return CountLevel(**fields)


def _known(plain: dict[str, Any]) -> dict[str, Any]:
    return {key: _NAN if item is None else item for key, item in plain.items()}
