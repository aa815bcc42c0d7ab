"""Kinds of causes, and where the time goes that each makes a transaction wait: the words of `RuleMeta.causes`."""

from __future__ import annotations

from leadline.core.model.account import Term

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
    "disk-full": _DISK,
    "cpu-taken": _CPU,
    "cpu-busy": _CPU,
    "cpu-capped": _CPU,
    "memory-short": frozenset({Term.SWAP, *_DISK}),
    "swapping": frozenset({Term.SWAP, *_DISK}),
    "lock-waits": frozenset({Term.LOCK}),
    "checkpoints": _DISK,
    "flush": _DISK,
    "write-amplification": _DISK,
    "wal-volume": _DISK,
    "bulk-load": frozenset({*_DISK, *_CPU}),
    "export": frozenset({*_DISK, *_CPU, Term.CLIENT}),
    "temp-files": frozenset({*_DISK, *_CPU}),
    "cold-cache": _DISK,
    "connections": _ANY,
    "network-latency": frozenset({Term.CLIENT}),
    "network-loss": frozenset({Term.CLIENT}),
    "network-narrow": frozenset({Term.CLIENT}),
    "client-slow": frozenset({Term.CLIENT}),
    "partner-capped": frozenset({Term.CLIENT}),
    "time-step": frozenset(),  # no time is lost, it is counted wrongly
    "more-work": _ANY,
    "statement": _ANY,
}
