"""The account of time in words: where a transaction's time went, for every face the same lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.model.account import Term
from leadline.core.model.units import show

if TYPE_CHECKING:
    from leadline.core.model.account import Account, Share

ALL_PCT = 99
NAMED_SHARE_MIN = 0.10  # of a second term worth a clause
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


def account_sentence(account: Account) -> str:
    """What the account says, in one sentence.

    For example: 96 % (90 to 99) of the 2.07 s that a transaction takes longer is waiting for reads from loop1.
    """
    if not account.shares:
        return "Nothing is known of where the time of a transaction went."
    verb = "takes longer" if account.total_normal_ms > 0 else "takes"
    first, *others = account.shares
    whole = f"of the {_time(account.added_ms)} that a transaction {verb} is {term_words(first)}"
    text = f"{_percent(first)} {whole}"
    clauses = [f"{_percent(share)} is {term_words(share)}" for share in others if share.share >= NAMED_SHARE_MIN]
    return "; ".join((text, *clauses))


def share_sentence(account: Account) -> str:
    """What took most of the added time: "All of the added time is spent waiting for the log on loop1."."""
    first = account.shares[0] if account.shares else None
    if first is None or first.share < NAMED_SHARE_MIN:
        return ""
    much = "All" if round(100 * first.share) >= ALL_PCT else f"{100 * first.share:.0f} %"
    whole = "the added time" if account.total_normal_ms > 0 else "a transaction's time"
    spent = "is not explained" if first.term is Term.UNEXPLAINED else f"is spent {term_words(first)}"
    return f"{much} of {whole} {spent}."


def term_words(share: Share) -> str:
    """What a share of the time is spent for: waiting for reads from loop1."""
    if share.term is Term.DISK and share.entity is not None:
        return f"waiting for reads from {share.entity.name}"
    if share.term is Term.LOG and share.entity is not None:
        return f"waiting for the log on {share.entity.name}"
    return share.term.value


def _percent(share: Share) -> str:
    return f"{100 * share.share:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f})"


def _line(share: Share) -> AccountLine:
    name = share.term.value
    if share.term in _ON_DISK and share.entity is not None:
        name = f"{name} {'from' if share.term is Term.DISK else 'on'} {share.entity.name}"
    percent = f"{100 * share.share:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f})"
    return AccountLine(name, share.share, percent, _time(share.ms_during), share.arithmetic)


def _time(ms: float) -> str:
    return show(ms / 1e3, "s") if ms >= 1e3 else show(ms, "ms")
