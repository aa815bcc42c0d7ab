"""Student's t distribution: how surely a mean of few values is known."""

from __future__ import annotations

from math import exp, isfinite, lgamma, log, log1p, sqrt

_TINY = 1e-300
_STEPS_MAX = 500
_CLOSE = 1e-15


def two_sided_p(t: float, freedom: float) -> float:
    """How probable a value at least as far from 0 as ``t`` is, with so many degrees of freedom (any number above 0).

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.5.27.

    >>> round(two_sided_p(2.776, 4.0), 3)
    0.05
    """
    square = t * t
    if square < freedom:  # the smaller of both shares, so that no digits are lost in 1 less the other
        return 1.0 - _incomplete_beta(square / (freedom + square), 0.5, freedom / 2.0)
    return _incomplete_beta(freedom / (freedom + square), freedom / 2.0, 0.5)


def quantile_two_sided(confidence: float, freedom: float) -> float:
    """The t within which that share of the distribution lies, as 0.95; found by halving an interval.

    >>> round(quantile_two_sided(0.95, 2.0), 3), round(quantile_two_sided(0.95, 1e9), 3)
    (4.303, 1.96)
    """
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > 1.0 - confidence and isfinite(high):
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if two_sided_p(middle, freedom) > 1.0 - confidence else (low, middle)
    return (low + high) / 2.0


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction.

    Source: Press et al., Numerical Recipes, 3rd edition (2007), section 6.4; NIST DLMF 8.17.22.
    """
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1.0 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation of the continued fraction; converges in about sqrt(max(a, b)) steps."""
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, _STEPS_MAX + int(3.0 * sqrt(max(a, b)))):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _away(1.0 + term * d)
            c = _away(1.0 + term / c)
            fraction *= d * c
        if abs(d * c - 1.0) < _CLOSE:
            break
    return fraction


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
