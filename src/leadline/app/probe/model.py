"""Is it the disk? What pulses of known load say of a disk, and what the real workload asked of it.

A closed load of N requests on a disk that lets X per second pass has a latency of N / X, however fast each request is
served (Little's law). The same disk below its limit shows the latency of the medium. So one pulse is offered at a share
of the limit, one at the limit, one as hard as the outstanding requests allow.

Source: Little, A Proof for the Queuing Formula L = λW (1961).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from typing import Any

from leadline.core.model.units import show
from leadline.estate.language.iops_limits import round_ceiling

TRUE_LOAD_SHARE = 0.7  # Judgement: of the limit; low enough that requests do not queue at it, high enough to be load
DELIVERED_SHARE = 0.97  # of the provisioned limit that must come out of the pulse at the limit
STEADY_CV_PCT = 5.0  # Judgement: a limiter lets the same number pass each second, a busy device varies
INFLATED = 3.0  # Judgement: latency above the true one by so much is queueing, not service
AT_LIMIT_SHARE = 0.9  # Judgement: averages of a second hide bursts, so this near is at it
ABOVE_SHARE = 1.1  # Judgement: a second more or less at the ceiling; above, the ceiling is of something else
SIZE_RATIO = 1.25  # Judgement: requests so much larger or smaller make another ceiling
READ_POINTS = 15.0  # Judgement: a read share so far off makes another ceiling
_PULSE_IT = (
    "pulse the disk that the workload uses: name its folder with --on, and a --set-size above every cache with --oio "
    "as high as the workload's"
)
SLOW_MS = 10.0  # data files; the rules' limit for reads of a database
WATCHED_S_MIN = 15.0  # Judgement: what a rule on disks asks for; shorter is a moment of the workload


class Ruling(StrEnum):
    """What is said of the disk."""

    CLEARED = "cleared"
    CONVICTED = "convicted"
    SUSPECTED = "suspected"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Pulse:
    """What one pulse measured; ``offered_per_s`` is None for as hard as ``outstanding`` requests allow.

    ``size_bytes`` is of a request on average, ``read_pct`` the share of reads; NaN is not known.
    """

    offered_per_s: float | None
    per_s: float
    mean_ms: float
    p99_ms: float
    cv_pct: float
    outstanding: int
    size_bytes: float = float("nan")
    read_pct: float = float("nan")

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
    size_bytes: float = float("nan")
    read_pct: float = float("nan")
    watched_s: float = float("nan")


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """What is said, and the sentences that carry it.

    Attributes:
        ceiling_per_s: operations per second at which the disk stops; NaN when not reached.
        is_limit: whether a limit sets the ceiling, rather than the medium.
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
    observed: Observed | None,
    gentle: Pulse | None,
    at_limit: Pulse | None,
    hard: Pulse,
    limit: float | None,
    unlike: tuple[str, ...] = (),
) -> ProbeVerdict:
    """What pulses and the observation together say.

    Args:
        observed: round 1; None when there was none.
        gentle: the pulse below the ceiling, which shows the true latency; None when there was none.
        at_limit: the pulse at the provisioned limit; None when none was named.
        hard: the pulse as hard as possible.
        limit: the provisioned limit, operations per second.
        unlike: why the two rounds cannot be of one disk at two times, in words; then neither clears nor convicts it.
    """
    if observed is not None and _contradicts(observed, hard):
        return _contradiction(observed, hard, unlike)
    if unlike:
        return undecided(f"the two rounds measured different things: {unlike[0]}", (*unlike[1:], _PULSE_IT), hard.per_s)
    reasons: list[str] = []
    is_limit = gentle is not None and _is_limit(gentle, hard, limit, reasons)
    delivers = None
    if at_limit is not None and limit is not None:
        delivers = at_limit.per_s >= DELIVERED_SHARE * limit
        verb = "delivers" if delivers else "does not deliver"
        reasons.append(
            f"it {verb} its provisioned {limit:,.0f} IOPS: {at_limit.per_s:,.0f} came out of {limit:,.0f} offered"
        )
    if gentle is not None:
        p99 = "" if isnan(gentle.p99_ms) else f" (p99 {show(gentle.p99_ms, 'ms')})"
        reasons.append(f"at {gentle.per_s:,.0f} IOPS a request takes {show(gentle.mean_ms, 'ms')}{p99}")
    ruling, sentence = _ruling(observed, gentle, hard, is_limit=is_limit, delivers=delivers)
    true_ms = float("nan") if gentle is None else gentle.mean_ms
    return ProbeVerdict(ruling, sentence, tuple(reasons), hard.per_s, is_limit, true_ms, delivers)


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
    observed: Observed | None, gentle: Pulse | None, hard: Pulse, *, is_limit: bool, delivers: bool | None
) -> tuple[Ruling, str]:
    name = "limit" if is_limit else "ceiling"
    if gentle is not None and gentle.mean_ms > SLOW_MS:
        return Ruling.CONVICTED, (
            f"Yes, the disk: even at {gentle.per_s:,.0f} IOPS, below its {name} of {hard.per_s:,.0f}, a request takes "
            f"{show(gentle.mean_ms, 'ms')}."
        )
    if observed is None or not observed.iops_max > 0:
        return _unobserved(observed, gentle, hard, delivers=delivers)
    used = _used(observed, hard)
    if observed.iops_p95 >= AT_LIMIT_SHARE * hard.per_s:
        cause = "its IOPS limit, not a slow medium" if is_limit else "at the end of what it can do"
        return Ruling.CONVICTED, f"Yes, the disk is the bottleneck: {cause}; {used}."
    if isnan(observed.await_ms_p95):
        return Ruling.UNDECIDED, (
            f"This cannot be told from these recordings: {used}, and its latency was not recorded. Record it with "
            "iostat -x -t 1, or watch it with leadline probe."
        )
    if observed.await_ms_p95 > SLOW_MS and observed.iops_max >= AT_LIMIT_SHARE * hard.per_s:
        return Ruling.SUSPECTED, (
            f"Partly: {used}, but bursts reach the {name} ({observed.iops_max:,.0f} IOPS) and wait "
            f"{show(observed.await_ms_p95, 'ms')} (p95)."
        )
    if observed.await_ms_p95 > SLOW_MS:
        then = "" if gentle is None else f", but with the workload off it answers in {show(gentle.mean_ms, 'ms')}"
        return Ruling.SUSPECTED, (
            f"Not the disk as probed: {used} with {show(observed.await_ms_p95, 'ms')} (p95){then}; look for what "
            "shared it then: neighbours, backups, snapshots."
        )
    if observed.watched_s < WATCHED_S_MIN:
        return Ruling.UNDECIDED, (
            f"Not decided: {used}, but it was watched for {observed.watched_s:.3g} s only. Watch it for "
            f"{WATCHED_S_MIN:.0f} s or more, while it is slow."
        )
    return Ruling.CLEARED, f"No, the disk is cleared: {used}; it could do more, and faster is not needed."


def _used(observed: Observed, hard: Pulse) -> str:
    """What the workload used of the ceiling; its latency where that was recorded."""
    at = "" if isnan(observed.await_ms) else f" at {show(observed.await_ms, 'ms')}"
    return f"the workload used {observed.iops_p95:,.0f} (p95) of {hard.per_s:,.0f} IOPS{at}"


def _unobserved(
    observed: Observed | None, gentle: Pulse | None, hard: Pulse, *, delivers: bool | None
) -> tuple[Ruling, str]:
    why = "the workload was not observed" if observed is None else "the workload did no I/O while it was watched"
    if delivers is False:
        return Ruling.SUSPECTED, f"The disk does not deliver what it is provisioned for; {why}."
    if gentle is None:
        return Ruling.UNDECIDED, f"The disk can do {hard.per_s:,.0f} IOPS; {why}, and no pulse was below that."
    return Ruling.UNDECIDED, (
        f"The disk can do {hard.per_s:,.0f} IOPS and answers in {show(gentle.mean_ms, 'ms')} below that; {why}, so "
        "whether it waits for the disk is not known. Watch the disk while it is slow."
    )


def _contradicts(observed: Observed | None, hard: Pulse) -> bool:
    """Whether the workload did more than the disk is measured to do at most."""
    if observed is None:
        return False
    above = ABOVE_SHARE * hard.per_s
    return observed.iops_p95 > above or (observed.iops_max > above and observed.await_ms_p95 > SLOW_MS)


def differences(observed: Observed, hard: Pulse) -> tuple[str, ...]:
    """What of the requests themselves differs between the workload and the pulses."""
    sentences = []
    if not isnan(observed.size_bytes + hard.size_bytes):
        ratio = max(observed.size_bytes, hard.size_bytes) / max(min(observed.size_bytes, hard.size_bytes), 1.0)
        if ratio > SIZE_RATIO:
            sizes = (f"{size / 1024:.3g} KiB" for size in (observed.size_bytes, hard.size_bytes))
            sentences.append("the workload's requests are {} on average, the pulses' {}".format(*sizes))
    if not isnan(observed.read_pct + hard.read_pct) and abs(observed.read_pct - hard.read_pct) > READ_POINTS:
        sentences.append(f"the workload is {observed.read_pct:.0f} % reads, the pulses {hard.read_pct:.0f} %")
    return tuple(sentences)


def _contradiction(observed: Observed, hard: Pulse, unlike: tuple[str, ...]) -> ProbeVerdict:
    """Two rounds that cannot both be of one disk and one kind of load: what differs, and no verdict."""
    is_often = observed.iops_p95 > ABOVE_SHARE * hard.per_s
    did = f"{observed.iops_p95:,.0f} IOPS (p95)" if is_often else f"{observed.iops_max:,.0f} IOPS at most"
    known = (*unlike, *differences(observed, hard))
    guess = "a cache answered one of them, or they went to different disks; no recording tells which"
    return undecided(
        f"the workload did {did}, and the pulses only {hard.per_s:,.0f}. The two rounds measured different things: "
        f"{known[0] if known else guess}",
        (*known[1:], _PULSE_IT),
        hard.per_s,
    )


def undecided(why: str, reasons: tuple[str, ...] = (), ceiling_per_s: float = float("nan")) -> ProbeVerdict:
    """That two recordings do not tell whether it is the disk, and why."""
    sentence = f"This cannot be told: {why}."
    return ProbeVerdict(Ruling.UNDECIDED, sentence, reasons, ceiling_per_s, False, float("nan"), None)
