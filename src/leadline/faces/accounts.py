"""The account of time in words: where a transaction's time went, for every face the same lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.model.account import Term
from leadline.core.model.units import show

if TYPE_CHECKING:
    from leadline.core.model.account import Account, Share

SHARE_MIN = 0.01  # what is less is in the document of --json
_ON_DISK = frozenset({Term.DISK, Term.LOG})


@dataclass(frozen=True, slots=True)
class AccountLine:
    """One term of an account: what it is called, how much of the time it takes, and how that was computed."""

    name: str
    share: float
    percent: str
    per_transaction: str
    arithmetic: str


def account_title(account: Account) -> str:
    """What the lines are shares of."""
    during = _time(account.total_during_ms)
    if account.total_normal_ms > 0:
        return (
            f"What a transaction takes longer: {_time(account.total_normal_ms)} normally, {during} in the incident,"
            f" by {account.basis.value}"
        )
    return f"What a transaction takes: {during}, by {account.basis.value}"


def account_lines(account: Account) -> list[AccountLine]:
    """The terms of weight, the largest first."""
    return [_line(share) for share in account.shares if share.share >= SHARE_MIN]


def _line(share: Share) -> AccountLine:
    name = share.term.value
    if share.term in _ON_DISK and share.entity is not None:
        name = f"{name} {'from' if share.term is Term.DISK else 'on'} {share.entity.name}"
    percent = f"{100 * share.share:.0f}% ({100 * share.low:.0f} to {100 * share.high:.0f})"
    return AccountLine(name, share.share, percent, _time(share.ms_during), share.arithmetic)


def _time(ms: float) -> str:
    return show(ms / 1e3, "s") if ms >= 1e3 else show(ms, "ms")
