"""The account of time: where the time of a transaction went, in the normal part of a recording and in an incident."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leadline.core.model.entities import Entity


class Term(StrEnum):
    """What a transaction does, or waits for; the value is what a person reads."""

    CPU = "running on a CPU"
    CPU_WAIT = "waiting for a CPU"
    DISK = "waiting for reads"
    LOG = "waiting for the log"
    LOCK = "waiting for a lock"
    CLIENT = "waiting for the network or the client"
    SWAP = "waiting for swapped memory"
    UNEXPLAINED = "not explained"

    @property
    def key(self) -> str:
        """The name in ``--json``: ``cpu-wait``."""
        return self.name.lower().replace("_", "-")


class AccountBasis(StrEnum):
    """What an account is made of."""

    SAMPLES = "wait events of sessions, sampled"
    STATISTICS = "statistics of the database, the processes and the disks"
    MACHINE = "statistics of the processes and the disks"


@dataclass(frozen=True, slots=True)
class Share:
    """What one term takes of a transaction.

    Attributes:
        entity: the disk, the guest or the database that the term belongs to.
        ms_normal: per transaction in the normal part; 0 where there is none.
        ms_during: per transaction in the incident.
        share: of the added time, 0 to 1; of the whole time where there is no normal part.
        low: lower end of the 95 % interval of ``share``.
        high: upper end of it.
        arithmetic: the formula with its numbers, for the incident.
    """

    term: Term
    entity: Entity | None
    ms_normal: float
    ms_during: float
    share: float
    low: float
    high: float
    arithmetic: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "term": self.term.key,
            "text": self.term.value,
            "entity": None if self.entity is None else str(self.entity),
            "ms_normal": round(self.ms_normal, 3),
            "ms_during": round(self.ms_during, 3),
            "share": round(self.share, 3),
            "low": round(self.low, 3),
            "high": round(self.high, 3),
            "arithmetic": self.arithmetic,
        }


@dataclass(frozen=True, slots=True)
class Account:
    """Where the time of a transaction went.

    Attributes:
        total_normal_ms: what a transaction takes in the normal part, queueing before the database included; 0 where
            there is no normal part.
        total_during_ms: what it takes in the incident.
        shares: the largest first; together 1.
        basis: what the shares are made of.
    """

    total_normal_ms: float
    total_during_ms: float
    shares: tuple[Share, ...]
    basis: AccountBasis

    @property
    def added_ms(self) -> float:
        """What a transaction takes longer; all it takes where there is no normal part."""
        return self.total_during_ms - self.total_normal_ms

    def of(self, *terms: Term) -> float:
        """The share of some terms together."""
        return sum(share.share for share in self.shares if share.term in terms)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "total_normal_ms": round(self.total_normal_ms, 3),
            "total_during_ms": round(self.total_during_ms, 3),
            "basis": self.basis.value,
            "shares": [share.to_dict() for share in self.shares],
        }
