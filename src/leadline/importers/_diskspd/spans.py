"""One time span of diskspd: what was asked for, what each target did, the processors, the percentiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

NAN = float("nan")
WAYS = ("read", "write")


@dataclass
class TargetTotals:
    """What all threads did on one target in one way."""

    size_bytes: float = 0.0
    count: float = 0.0
    per_s: float = 0.0
    weighted_ms: float = 0.0  # mean latency x count, summed
    spread_ms: float = NAN  # standard deviation; of one thread only

    @property
    def mean_ms(self) -> float:
        """The mean latency of all threads; NaN: not measured."""
        return self.weighted_ms / self.count if self.count > 0 else NAN

    def add(self, size_bytes: float, count: float, per_s: float, latency: tuple[float, float]) -> None:
        """Add a thread, with the mean and the standard deviation of its latency in ms."""
        self.spread_ms = latency[1] if not self.count else NAN
        self.size_bytes += size_bytes
        self.count += count
        self.per_s += per_s
        if count > 0:
            self.weighted_ms += latency[0] * count


@dataclass
class SpdSpan:
    """A time span as it is read.

    Attributes:
        duration_s: how long it was measured.
        targets: what was done, by target and way.
        percentiles: ms by target (empty: all of them), way and statistic.
        cpu_pct: user, system, idle and busy share of all processors.
        ticks: by way, samples of [elapsed s, per second, mean ms].
        has_latency: it was measured (``-L``).
    """

    duration_s: float = NAN
    targets: dict[tuple[str, str], TargetTotals] = field(default_factory=dict)
    percentiles: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    cpu_pct: dict[str, float] = field(default_factory=dict)
    ticks: dict[str, list[tuple[float, float, float]]] = field(default_factory=dict)
    has_latency: bool = False

    @property
    def places(self) -> list[str]:
        """The targets in order."""
        return list(dict.fromkeys(place for place, _ in self.targets))

    def totals(self, place: str, way: str) -> TargetTotals:
        """What was done on a target."""
        return self.targets.setdefault((place, way), TargetTotals())


@dataclass
class SpdRun:
    """One run: its parameters by target, its time spans, the machine and when it began."""

    workload: dict[str, dict[str, str]] = field(default_factory=dict)
    spans: list[SpdSpan] = field(default_factory=list)
    command: str = ""
    host: str = ""
    version: str = ""
    start: datetime | None = None
    warmup_s: float = 0.0


def percentile_name(text: str) -> str:
    """The statistic of a percentile as diskspd names it, or empty.

    >>> percentile_name("99th"), percentile_name("3-nines"), percentile_name("100"), percentile_name("99.9")
    ('p99', 'p99.9', 'max', 'p99.9')
    """
    if text in ("min", "max"):
        return text
    if text.endswith("-nines") and text[0].isdigit():
        nines = int(text[0])
        return f"p99.{'9' * (nines - 2)}" if nines > 2 else "p99"
    number = text.removesuffix("th").removesuffix("st").removesuffix("nd").removesuffix("rd")
    if not number.replace(".", "", 1).isdigit() or not 0 <= float(number) <= 100:
        return ""
    return {"0": "min", "100": "max"}.get(number, f"p{number}")


def moment_printed(text: str) -> datetime | None:
    """``2019/07/25 21:46:27 UTC``; None for another text."""
    try:
        return datetime.strptime(text.strip(), "%Y/%m/%d %H:%M:%S UTC").replace(tzinfo=UTC)
    except ValueError:
        return None
