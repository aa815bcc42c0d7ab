"""Statistics that stores rank entities by."""

from __future__ import annotations

from leadline.core.model.errors import UsageError


def share_of(statistic: str) -> float | None:
    """The share of a percentile; None of another statistic.

    >>> share_of("p95"), share_of("max")
    (0.95, None)

    Raises:
        UsageError: there is no such statistic.
    """
    if statistic in ("min", "max", "mean"):
        return None
    number = statistic[1:]
    if statistic.startswith("p") and number.replace(".", "", 1).isdigit() and float(number) <= 100:
        return float(number) / 100
    raise UsageError(
        f"statistic {statistic}",
        found="no such statistic",
        expected="min, max, mean or a percentile such as p95",
        advice="Name one of these.",
    )
