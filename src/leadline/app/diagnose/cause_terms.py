"""Kinds of causes, and where the time goes that each makes a transaction wait: the words of `RuleMeta.causes`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from leadline.app.diagnose.who import named_by
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.account import Term
from leadline.core.model.who import Who, WhoKind

if TYPE_CHECKING:
    from leadline.core.model.account import Account, Share
    from leadline.core.model.finding import Finding

# Kind -> who may have done it; of a program what it uses.
_WHO: dict[str, tuple[tuple[WhoKind, str], ...]] = {
    "statement": ((WhoKind.STATEMENT, ""),),
    "temp-files": ((WhoKind.STATEMENT, ""),),
    "bulk-load": ((WhoKind.STATEMENT, ""),),
    "export": ((WhoKind.STATEMENT, ""),),
    "wal-volume": ((WhoKind.STATEMENT, ""),),
    "lock-waits": ((WhoKind.SESSION, ""),),
    "checkpoints": ((WhoKind.WORKER, ""),),
    "cpu-taken": ((WhoKind.PROGRAM, "CPU"), (WhoKind.VM, "CPU")),
    "cpu-busy": ((WhoKind.STATEMENT, ""),),
    "disk-busy-with-others": (
        (WhoKind.PROGRAM, "disk reads"),
        (WhoKind.PROGRAM, "disk writes"),
        (WhoKind.VM, "IOPS"),
    ),
}
# The usual statements pile up in every incident. A statement made CPUs busy only where its share rose; it did the other
# kinds only where it was seldom there before.
_RISEN = frozenset({"cpu-busy"})
_SELDOM = frozenset({"temp-files", "bulk-load", "export", "wal-volume"})
# What a statement of such a cause begins with: it may be a small part of the sessions that it makes wait.
_VERBS = {
    "temp-files": ("SELECT", "WITH", "CREATE", "INSERT", "REFRESH"),
    "bulk-load": ("INSERT", "COPY", "MERGE"),
    "export": ("SELECT", "COPY"),
}
RISE_MIN, SELDOM_RATIO = 0.1, 0.5  # Judgement: a tenth more of all, and twice the share, are no chance
WHO_SHARE_MIN = 0.3  # Judgement: of what is counted; with less of it one is among many
MOST_SHARE = 0.5  # where nothing else was recorded: more than all the others together
CAME_SHARE_MIN = 0.1  # of one that came with the incident and does what its kind of cause needs
SURE_SHARE = 0.5  # Judgement: half of the added time, at the lower end of the interval, is what made it slow
_DISK = frozenset({Term.DISK, Term.LOG})
_CPU = frozenset({Term.CPU, Term.CPU_WAIT})
_ANY = frozenset(Term)  # it may make a transaction wait for anything

# Kind -> the terms of the account in which its time is spent.
# Judgement: what each makes sessions wait for, by the wait events of PostgreSQL and the statistics of Linux.
CAUSE_TERMS: dict[str, frozenset[Term]] = {
    "disk-capped": _DISK,
    "disk-slow": _DISK,
    "disk-stalled": _DISK,
    "disk-busy-with-others": _DISK,
    "flush-slow": _DISK,
    "read-ahead": frozenset({Term.DISK}),
    "disk-full": _ANY,  # what cannot be written fails, waits, or is tried again
    "cpu-taken": _CPU,
    "cpu-busy": _CPU,
    "cpu-capped": _ANY,  # who is stopped again and again takes longer for all it does
    # Pages are found and moved by the CPU, read again from disk, and waited for.
    "memory-short": frozenset({Term.SWAP, *_DISK, *_CPU}),
    "swapping": frozenset({Term.SWAP, *_DISK, *_CPU}),
    "lock-waits": frozenset({Term.LOCK}),
    "standby-late": frozenset({Term.LOG, Term.LOCK, Term.CLIENT}),  # who waits for a standby keeps its locks
    "commit-delayed": frozenset({Term.LOG}),
    "checkpoints": _DISK,
    "flush": _DISK,
    "write-amplification": _DISK,
    "wal-volume": _DISK,
    "bulk-load": frozenset({*_DISK, *_CPU}),
    "export": frozenset({*_DISK, *_CPU, Term.CLIENT}),
    "temp-files": frozenset({*_DISK, *_CPU}),
    "cold-cache": _DISK,
    "connections": _ANY,
    # A transaction that waits for its client keeps its locks meanwhile.
    "network-latency": frozenset({Term.CLIENT, Term.LOCK}),
    "network-loss": frozenset({Term.CLIENT}),
    "network-narrow": frozenset({Term.CLIENT}),
    "client-slow": frozenset({Term.CLIENT, Term.LOCK}),
    "partner-capped": frozenset({Term.CLIENT}),
    "time-step": frozenset(),  # no time is lost, it is counted wrongly
    "more-work": _ANY,
    "statement": _ANY,
}


def terms_of(finding: Finding) -> frozenset[Term]:
    """Where the time goes that a finding's causes take; empty where its rule names none."""
    kinds = rule_metas()[finding.rule].causes
    return frozenset[Term]().union(*(CAUSE_TERMS[kind] for kind in kinds))


def sure_share(account: Account | None) -> Share | None:
    """The largest share, where it is surely at least half of the added time; None elsewhere."""
    first = account.shares[0] if account is not None and account.shares else None
    return first if first is not None and first.low >= SURE_SHARE else None


def takes(finding: Finding, share: Share | None) -> bool:
    """Whether what a finding names makes sessions wait for what a share of the account is of."""
    return share is not None and share.term in terms_of(finding)


def kind_and_who(finding: Finding, culprits: Iterable[Who]) -> tuple[str, Who | None]:
    """The kind of cause that a finding names, and who did it; nobody where nobody had a good part of it.

    Of several kinds the first one that somebody did, else the most likely one; empty where the rule names none.
    """
    whos = tuple(culprits)
    known = [who for who in whos if (who.share or 0.0) >= WHO_SHARE_MIN]
    kinds, weighed = rule_metas()[finding.rule].causes, _weighed(finding, whos)
    if kinds and weighed is not None and weighed.kind is WhoKind.WORKER:
        return kinds[0], weighed
    for kind in kinds:
        for wanted, of in _WHO.get(kind, ()):
            one = next((who for who in known if who.kind is wanted and of in ("", who.of)), None)
            if one is not None and _did(one, kind):
                return kind, one
        came = next((who for who in whos if _came(who, kind)), None)
        if came is not None:
            return kind, came
    if not kinds:
        return "", None
    may = weighed is not None and (weighed.kind, weighed.of) in _WHO.get(kinds[0], ())
    return kinds[0], weighed if may else None


def _weighed(finding: Finding, whos: tuple[Who, ...]) -> Who | None:
    """Whom a rule weighed itself and names first in its evidence, with the share that is known."""
    named = named_by(finding.evidence[0]) if finding.evidence else None
    if named is None:
        return None
    return next((who for who in whos if (who.kind, who.entity) == (named.kind, named.entity)), named)


def _came(who: Who, kind: str) -> bool:
    """Whether a statement that can do what a kind of cause says came with the incident, or is all that was recorded."""
    can = who.kind is WhoKind.STATEMENT and who.name.split(" ", 1)[0] in _VERBS.get(kind, ())
    is_new = who.is_multiplied or who.share_normal is None
    return can and is_new and (who.share or 0.0) >= CAME_SHARE_MIN


def _did(who: Who, kind: str) -> bool:
    """Whether somebody's share rose as it does where they did what a kind of cause says."""
    if kind not in _RISEN | _SELDOM:
        return True
    if who.share is None:
        return False
    if who.share_normal is None:  # nothing to compare with
        return kind in _RISEN and who.share >= MOST_SHARE
    rose = who.share - who.share_normal >= RISE_MIN
    return rose and (kind in _RISEN or who.share_normal <= SELDOM_RATIO * who.share)
