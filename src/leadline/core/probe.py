"""Is it the disk? What pulses of known load say of a disk, and what the real workload asked of it.

A closed load of N requests on a disk that lets X per second pass has a latency of N / X, however fast each request is
served (Little's law). The same disk below its limit shows the latency of the medium. So one pulse is offered at a share
of the limit, one at the limit, one as hard as the outstanding requests allow.

Source: Little, A Proof for the Queuing Formula L = λW (1961).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leadline.core.iops_limits import round_ceiling
from leadline.core.units import show

TRUE_LOAD_SHARE = 0.7  # Judgement: of the limit; low enough that requests do not queue at it, high enough to be load
DELIVERED_SHARE = 0.97  # of the provisioned limit that must come out of the pulse at the limit
STEADY_CV_PCT = 5.0  # Judgement: a limiter lets the same number pass each second, a busy device varies
INFLATED = 3.0  # Judgement: latency above the true one by so much is queueing, not service
AT_LIMIT_SHARE = 0.9  # Judgement: averages of a second hide bursts, so this near is at it
SLOW_MS = 10.0  # data files; the rules' limit for reads of a database


class Ruling(StrEnum):
    """What is said of the disk."""

    CLEARED = "cleared"
    CONVICTED = "convicted"
    SUSPECTED = "suspected"


@dataclass(frozen=True, slots=True)
class Pulse:
    """What one pulse measured; ``offered_per_s`` is None for as hard as ``outstanding`` requests allow."""

    offered_per_s: float | None
    per_s: float
    mean_ms: float
    p99_ms: float
    cv_pct: float
    outstanding: int

    @property
    def little_ms(self) -> float:
        """The latency the outstanding requests must have at this rate."""
        return 1000.0 * self.outstanding / self.per_s if self.per_s > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class Observed:
    """What the real workload did on the disk; NaN is not measured."""

    disk: str
    iops_p95: float
    iops_max: float
    await_ms: float
    await_ms_p95: float


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """What is said, and the sentences that carry it.

    Attributes:
        ceiling_per_s: operations per second at which the disk stops; NaN when not reached.
        is_limit: the ceiling is held by a limit, not by the medium.
        true_ms: latency below the ceiling; NaN when not measured.
        delivers: it delivers its provisioned limit; None when none was named.
    """

    ruling: Ruling
    sentence: str
    reasons: tuple[str, ...]
    ceiling_per_s: float
    is_limit: bool
    true_ms: float
    delivers: bool | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def judge(
    observed: Observed | None, gentle: Pulse, at_limit: Pulse | None, hard: Pulse, limit: float | None
) -> ProbeVerdict:
    """What pulses and the observation together say.

    Args:
        observed: round 1; None when there was none.
        gentle: the pulse below the ceiling, which shows the true latency.
        at_limit: the pulse at the provisioned limit; None when none was named.
        hard: the pulse as hard as possible.
        limit: the provisioned limit, operations per second.
    """
    reasons: list[str] = []
    is_limit = _is_limit(gentle, hard, limit, reasons)
    delivers = None
    if at_limit is not None and limit is not None:
        delivers = at_limit.per_s >= DELIVERED_SHARE * limit
        verb = "delivers" if delivers else "does not deliver"
        reasons.append(
            f"it {verb} its provisioned {limit:,.0f} IOPS: {at_limit.per_s:,.0f} came out of {limit:,.0f} offered"
        )
    reasons.append(
        f"at {gentle.per_s:,.0f} IOPS a request takes {show(gentle.mean_ms, 'ms')} (p99 {show(gentle.p99_ms, 'ms')})"
    )
    ruling, sentence = _ruling(observed, gentle, hard, is_limit=is_limit, delivers=delivers)
    return ProbeVerdict(ruling, sentence, tuple(reasons), hard.per_s, is_limit, gentle.mean_ms, delivers)


def _is_limit(gentle: Pulse, hard: Pulse, limit: float | None, reasons: list[str]) -> bool:
    inflated = hard.mean_ms > INFLATED * gentle.mean_ms
    steady = hard.cv_pct <= STEADY_CV_PCT
    named = limit is not None and abs(hard.per_s - limit) <= (1.0 - DELIVERED_SHARE) * limit
    near = round_ceiling(hard.per_s)
    if not inflated or not (named or (steady and near is not None)):
        return False
    how = "its provisioned limit" if named else f"{near:,.0f}, a round number"
    took, expected = show(hard.mean_ms, "ms"), show(hard.little_ms, "ms")
    reasons.append(
        f"{hard.outstanding} outstanding requests come out at {hard.per_s:,.0f} IOPS ({how}) with {took}, which is "
        f"what Little's law gives ({expected}): that latency is the limit's, not the medium's"
    )
    return True


def _ruling(
    observed: Observed | None, gentle: Pulse, hard: Pulse, *, is_limit: bool, delivers: bool | None
) -> tuple[Ruling, str]:
    name = "limit" if is_limit else "ceiling"
    if gentle.mean_ms > SLOW_MS:
        return Ruling.CONVICTED, (
            f"Yes, the disk: even at {gentle.per_s:,.0f} IOPS, below its {name} of {hard.per_s:,.0f}, a request takes "
            f"{show(gentle.mean_ms, 'ms')}."
        )
    if observed is None:
        if delivers is False:
            return (
                Ruling.SUSPECTED,
                "The disk does not deliver what it is provisioned for; the workload was not observed.",
            )
        return Ruling.CLEARED, (
            f"The disk can do {hard.per_s:,.0f} IOPS and answers in {show(gentle.mean_ms, 'ms')} below that; "
            "the workload was not observed."
        )
    used = (
        f"the workload used {observed.iops_p95:,.0f} (p95) of {hard.per_s:,.0f} IOPS at {show(observed.await_ms, 'ms')}"
    )
    if observed.iops_p95 >= AT_LIMIT_SHARE * hard.per_s:
        cause = "its IOPS limit, not a slow medium" if is_limit else "at the end of what it can do"
        return Ruling.CONVICTED, f"Yes, the disk is the bottleneck: {cause}; {used}."
    if observed.await_ms_p95 > SLOW_MS and observed.iops_max >= AT_LIMIT_SHARE * hard.per_s:
        return Ruling.SUSPECTED, (
            f"Partly: {used}, but bursts reach the {name} ({observed.iops_max:,.0f} IOPS) and wait "
            f"{show(observed.await_ms_p95, 'ms')} (p95)."
        )
    if observed.await_ms_p95 > SLOW_MS:
        return Ruling.SUSPECTED, (
            f"Not the disk as probed: {used} with {show(observed.await_ms_p95, 'ms')} (p95), but with the workload off "
            f"it answers in {show(gentle.mean_ms, 'ms')}; look for what shared it then: neighbours, backups, snapshots."
        )
    return Ruling.CLEARED, f"No, the disk is cleared: {used}; it could do more, and faster is not needed."
