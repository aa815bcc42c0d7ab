"""The answer of one incident as a value: is it the disk, how sure, because of what. Sentences come last."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leadline.core.model.account import Account, Term
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding, Window
from leadline.core.model.incident import Change, Incident
from leadline.core.model.power import Power
from leadline.core.model.who import Who


class Disk(StrEnum):
    """Is it the disk?"""

    YES = "yes"
    YES_A_LIMIT = "yes-a-limit"  # a limit or a queue before the device
    YES_AS_SEEN_BY_GUEST = "yes-as-seen-by-guest"  # nothing below the guest was recorded
    NOT_FIRST = "not-first"  # a disk too, but another cause comes first
    NO = "no"
    UNKNOWN = "unknown"

    @property
    def accuses(self) -> bool:
        """Whether a disk is blamed."""
        return self not in (Disk.NO, Disk.UNKNOWN)


class Reason(StrEnum):
    """Because of what the answer is as it is; each is decided by a row of the table."""

    DEVICE_SLOW = "device-slow"
    LIMIT_REACHED = "limit-reached"
    LIMIT_OR_DEVICE = "limit-or-device"  # from inside a guest both look alike
    GUEST_WAITS = "guest-waits"
    ANOTHER_FIRST = "another-first"
    DATABASE_WAITS = "database-waits"  # for a disk or a busy CPU, which was not recorded
    IO_WAIT = "io-wait"  # something waits for some disk
    BELOW_IS_QUICK = "below-is-quick"  # the guest waits, what is below it does not
    UNFELT = "unfelt"  # a disk passed a limit and users felt nothing
    FAINT = "faint"  # its own rule gives the finding little weight
    WAITED_LONGER = "waited-longer"
    ACCOUNT = "account"  # a good part of the added time is spent at a disk
    NEAR_LIMIT = "near-limit"
    BRIEFLY_SLOW = "briefly-slow"
    BUSY = "busy"
    QUICK = "quick"
    ELSEWHERE = "elsewhere"  # another cause covers the incident, and the account gives disks next to nothing
    LOAD_TOOL = "load-tool"
    LOADED = "loaded"
    DAMAGED = "damaged"
    NOT_DURING = "not-during"  # disks were recorded, but not while it was bad
    TOO_SHORT = "too-short"
    NOT_RECORDED = "not-recorded"


class Felt(StrEnum):
    """What users felt through all of a recording."""

    FINE = "fine"
    SUFFERED = "suffered"
    UNKNOWN = "unknown"


class Sign(StrEnum):
    """What shows what users felt."""

    LATE_START = "late-start"  # transactions started late, in milliseconds
    STANDSTILL = "standstill"  # no transaction ended, for seconds in all
    LATENCY = "latency"  # a transaction took milliseconds


@dataclass(frozen=True, slots=True)
class Feeling:
    """What users felt, and the number that shows it; NaN where nothing does."""

    felt: Felt
    sign: Sign | None = None
    value: float = float("nan")


class Certainty(StrEnum):
    """How sure something is, in the four ways in which Leadline says it."""

    IS = "is"
    PROBABLY = "is probably"
    MAY_BE = "may be"
    CANNOT_BE_TOLD = "cannot be told"


@dataclass(frozen=True, slots=True)
class Cause:
    """What explains an incident, or what explains slowness where no incident was seen.

    Attributes:
        kind: what it is, as `RuleMeta.causes` says; empty where the rule names no kind.
        findings: the finding that names it first, then what it explains.
        covers_time: the share of the incident in which it was there, 0 to 1.
        covers_size: the share of the added time that the account gives to what it makes sessions wait for; None
            where there is no account, or the kind says nothing of where time goes.
    """

    kind: str
    entity: Entity
    findings: tuple[Finding, ...]
    covers_time: float
    covers_size: float | None
    certainty: Certainty
    who: Who | None = None

    @property
    def finding(self) -> Finding:
        """The finding that names it."""
        return self.findings[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``; findings by rule."""
        return {
            "kind": self.kind,
            "entity": str(self.entity),
            "rule": self.finding.rule,
            "explains": [finding.rule for finding in self.findings[1:]],
            "covers_time": round(self.covers_time, 3),
            "covers_size": None if self.covers_size is None else round(self.covers_size, 3),
            "certainty": self.certainty.value,
            "who": None if self.who is None else self.who.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class DiskLevel:
    """A disk near a limit, beyond it for a short time, or busy.

    Attributes:
        value: in ``unit``, of the samples that are meant.
        limit: NaN for a disk that is busy.
        share: of the time in which it was so.
        waiting_count: requests under way meanwhile; NaN where not measured.
    """

    entity: Entity
    value: float
    unit: str
    limit: float
    share: float
    waiting_count: float = float("nan")


@dataclass(frozen=True, slots=True)
class LoadMeasured:
    """What a load tool measured on a disk."""

    tool: str
    job: str
    operation: str
    latency: str
    mean_ms: float
    result_count: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Is it the disk, for one incident or for a recording without one.

    Attributes:
        incident: None where none was seen.
        because: the row of the table that decided.
        causes: what explains the incident, the one that covers most first.
        finding: what is quoted: of the disk that is blamed, or that speaks against a "no".
        change: what a disk waits longer, for `Reason.WAITED_LONGER`.
        level: of a disk near a limit, or busy.
        power: of the rule that lacks most, for `Reason.TOO_SHORT`.
        measured: for `Reason.LOAD_TOOL` and `Reason.LOADED`.
        account: where the added time of the incident went.
        span: of the recordings that the answer is from; None where nothing has a time.
        explains: a cause that was measured explains what was felt, or nothing bad was felt.
        waiting: what waited meanwhile, where nothing explains it.
    """

    incident: Incident | None
    disk: Disk
    because: Reason
    certainty: Certainty
    causes: tuple[Cause, ...] = ()
    finding: Finding | None = None
    change: Change | None = None
    level: DiskLevel | None = None
    power: Power | None = None
    measured: LoadMeasured | None = None
    account: Account | None = None
    span: Window | None = None
    explains: bool = True
    waiting: Finding | None = None

    @property
    def cause(self) -> Cause | None:
        """What covers most of the incident."""
        return self.causes[0] if self.causes else None

    @property
    def disk_share(self) -> float | None:
        """The share of the added time that is spent at disks; None where there is no account."""
        return None if self.account is None else self.account.of(Term.DISK, Term.LOG)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        share = self.disk_share
        return {
            "disk": self.disk.value,
            "because": self.because.value,
            "certainty": self.certainty.value,
            "incident": None if self.incident is None else self.incident.to_dict(),
            "causes": [cause.to_dict() for cause in self.causes],
            "finding": None if self.finding is None else self.finding.rule,
            "disk_share": None if share is None else round(share, 3),
            "account": None if self.account is None else self.account.to_dict(),
        }
