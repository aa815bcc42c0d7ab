"""The account of time of one recording, beside the truth: what its sessions really waited for, sampled every 100 ms.

The truth is counted from the sampled sessions of the load alone (its connections are the first of the recording). A
session that waits for a lock waits for what the session does that it waits for: a flush, its client; of a session that
is not of the load, it is the lock. What the load's transactions take beyond their active sessions is the client's and
the network's.

Two things wait events do not show, and the declaration of the fault does. Where the fault is one of the processors, a
flush, a read or a client on the same machine that takes longer waits for a CPU. And a page that is swapped in is waited
for without any wait event: CPU and swap are one group.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from benches.incidents.recordings import Recording, Truth, ns_of, read_recording
from benches.incidents.views import combined
from leadline.app.diagnose.account import SHARE_ERROR_MIN, account_of
from leadline.app.diagnose.seconds import seconds_of
from leadline.core.model.account import Account, Term
from leadline.core.model.capture import Capture
from leadline.core.model.finding import Window
from leadline.core.model.incident import Basis, Incident
from leadline.faces.words.accounts import account_sentence
from leadline.formats.active_sessions import resource_of

GROUPS = ("cpu", "reads", "log", "inside", "client", "unexplained")
_OF_TERM = {
    Term.CPU: "cpu",
    Term.CPU_WAIT: "cpu",
    Term.SWAP: "cpu",
    Term.DISK: "reads",
    Term.LOG: "log",
    Term.LOCK: "inside",
    Term.CLIENT: "client",
    Term.UNEXPLAINED: "unexplained",
}
_OF_RESOURCE = {"cpu": "cpu", "data-read": "reads", "data-write": "reads", "temp-files": "reads", "wal": "log"}
_OF_MYSQL = (("io:file/innodb/innodb_log", "log"), ("io:file/sql/binlog", "log"), ("io:file/", "reads"))
SAMPLED = "active_sessions.csv"
CPU_CAUSES = frozenset({"cpu-taken", "cpu-busy", "cpu-capped"})
OUTSIDE = ("healthy", "after")
HOPS_MAX = 20
SAMPLE_COUNT_MIN = 20  # session samples of the fault; fewer are no truth


@dataclass(frozen=True, slots=True)
class Accounted:
    """One recording: the shares of the account and the true ones, by group; ``raw`` without the declaration's help.

    ``bounds`` are the interval of each group. ``problem`` where there is no account or no truth.
    """

    kind: str
    variant: int
    is_set_aside: bool
    shares: dict[str, float]
    bounds: dict[str, tuple[float, float]]
    true: dict[str, float]
    raw: dict[str, float]
    sample_count: int = 0  # sampled sessions of the load in the incident
    text: str = ""
    problem: str = ""

    @property
    def counted(self) -> list[str]:
        """Groups that take something, of the account or in truth; the others are right by being nothing."""
        return [group for group in GROUPS if max(self.shares[group], self.true[group]) >= 0.01]

    @property
    def error_points(self) -> float:
        """Mean absolute error of the counted groups, in points."""
        return 100.0 * float(np.mean([abs(self.shares[g] - self.true[g]) for g in self.counted]))

    @property
    def raw_error_points(self) -> float:
        """The same against the sampled wait events alone."""
        groups = [g for g in GROUPS if max(self.shares[g], self.raw[g]) >= 0.01]
        return 100.0 * float(np.mean([abs(self.shares[g] - self.raw[g]) for g in groups]))

    @property
    def misplaced_points(self) -> float:
        """How much of the time is with the wrong group, in points."""
        return 50.0 * sum(abs(self.shares[g] - self.true[g]) for g in GROUPS)

    @property
    def covered(self) -> tuple[int, int]:
        """How many intervals hold the true share, and of how many."""
        inside = [self.bounds[g][0] - 1e-9 <= self.true[g] <= self.bounds[g][1] + 1e-9 for g in self.counted]
        return sum(inside), len(inside)

    @property
    def nearly_covered(self) -> int:
        """How many intervals hold the true share give or take its sampling error: two standard errors of a binomial."""
        count = max(self.sample_count, 1)
        errors = {g: 2.0 * float(np.sqrt(self.true[g] * (1.0 - self.true[g]) / count)) for g in self.counted}
        ends = {g: (self.bounds[g][0] - errors[g], self.bounds[g][1] + errors[g]) for g in self.counted}
        return sum(low - 1e-9 <= self.true[g] <= high + 1e-9 for g, (low, high) in ends.items())

    @property
    def is_largest_right(self) -> bool:
        """Whether the account's largest group is the true one."""
        return max(GROUPS, key=lambda g: self.shares[g]) == max(GROUPS, key=lambda g: self.true[g])


def accounted(
    archive: Path, folder: Path, *, with_samples: bool = False, only: frozenset[str] = frozenset()
) -> Accounted:
    """The account of an archive, unpacked into an empty folder, and its truth.

    Args:
        archive: of ``incidents/recorded``.
        folder: where it is unpacked.
        with_samples: whether the account may use the wait events, too.
        only: recorders whose files the account may use; empty: all.
    """
    recording = read_recording(archive, folder)
    truth = recording.truth
    capture = _seen(recording, with_samples=with_samples, only=only)
    incident = incident_of(truth)
    account = account_of(capture, incident)
    history = next(iter(sorted(folder.rglob(f"*{SAMPLED}"))), None)
    empty = dict.fromkeys(GROUPS, 0.0)
    bounds = dict.fromkeys(GROUPS, (0.0, 0.0))
    known = (truth.kind, truth.variant, truth.set_aside)
    if account is None or history is None:
        return Accounted(*known, empty, bounds, empty, empty, problem="no account" if account is None else "no samples")
    sampled = sampled_sessions(history, truth)
    raw = true_shares(sampled, capture, incident, truth, is_declared=False)
    true = true_shares(sampled, capture, incident, truth, is_declared=True)
    if raw is None or true is None:
        return Accounted(*known, empty, bounds, empty, empty, problem="too few samples")
    window = incident.window
    count = sum(len(groups) for at_ns, groups in sampled if window.start_ns <= at_ns < window.end_ns)
    return Accounted(*known, _grouped(account), _bounds(account), true, raw, count, account_sentence(account))


def incident_of(truth: Truth) -> Incident:
    """The fault as an incident; of a healthy recording all of it, with nothing to compare it with."""
    if truth.fault is not None:
        window = Window(ns_of(truth.fault.start), ns_of(truth.fault.end))
        normal = (Window(ns_of(p.start), ns_of(p.end)) for p in truth.phases if p.name in OUTSIDE)
        return Incident(window, tuple(normal), Basis.TOLD)
    window = Window(min(ns_of(p.start) for p in truth.phases), max(ns_of(p.end) for p in truth.phases))
    return Incident(window, (), Basis.TOLD)


def _seen(recording: Recording, *, with_samples: bool, only: frozenset[str]) -> Capture:
    files = [f for f in recording.files if with_samples or f.recorder != "active-sessions"]
    return combined([f for f in files if not only or f.recorder is None or f.recorder in only])


def _grouped(account: Account) -> dict[str, float]:
    sums = dict.fromkeys(GROUPS, 0.0)
    for share in account.shares:
        sums[_OF_TERM[share.term]] += share.share
    return sums


def _bounds(account: Account) -> dict[str, tuple[float, float]]:
    """The interval of each group; of one with several terms they are as wide as the terms' together, at most."""
    bounds = {}
    for group in GROUPS:
        shares = [share for share in account.shares if _OF_TERM[share.term] == group]
        middle = sum(share.share for share in shares)
        below = np.sqrt(sum((share.share - share.low) ** 2 for share in shares))
        below = below if any(share.low > 0 for share in shares) else middle
        above = np.sqrt(sum((share.high - share.share) ** 2 for share in shares))
        least = 0.0 if shares else SHARE_ERROR_MIN  # a term that is not listed has no share to speak of
        bounds[group] = (max(middle - float(below), 0.0), min(middle + float(above) + least, 1.0))
    return bounds


def sampled_sessions(history: Path, truth: Truth) -> list[tuple[int, list[str]]]:
    """Moment of each sample, UTC nanoseconds, and the group of each session of the load in it; ``idle`` when open."""
    samples: dict[str, dict[str, dict[str, str]]] = {}
    with history.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            sample = samples.setdefault(row["now"], {})
            if row["pid"] and row["backend_type"] == "client backend":
                sample[row["pid"]] = row
    pids = sorted({pid for sample in samples.values() for pid in sample}, key=int)
    load = frozenset(pids[: _clients(truth)])
    return [(ns_of(datetime.fromisoformat(now)), _groups(sample, load)) for now, sample in samples.items()]


def _clients(truth: Truth) -> int:
    commands = " ".join(recorded.command for recorded in truth.recordings.values())
    found = re.search(r"--(?:client|threads)=(\d+)", commands)
    return int(found[1]) if found else 8


def _groups(sample: dict[str, dict[str, str]], load: frozenset[str]) -> list[str]:
    groups = []
    for pid, row in sample.items():
        if pid in load:
            groups.append(_group(row, sample, load) if row["state"] == "active" else "idle")
    return groups


def _group(row: dict[str, str], sample: dict[str, dict[str, str]], load: frozenset[str]) -> str:
    """What a session waits for; of a lock what its holder does."""
    holder, hops = row, 0
    while holder["blocked_by"] and hops < HOPS_MAX:
        pid = holder["blocked_by"].split()[0]
        if pid not in sample or pid not in load:
            return "inside"
        holder, hops = sample[pid], hops + 1
    if holder["state"] != "active":
        return "client"
    if not holder["wait_event_type"]:
        return "cpu"
    event = f"{holder['wait_event_type']}:{holder['wait_event']}"
    if event.startswith(("io:", "synch:", "lock:")):
        return next((group for prefix, group in _OF_MYSQL if event.startswith(prefix)), "inside")
    return _OF_RESOURCE.get(resource_of(event), "client" if resource_of(event) == "client" else "inside")


def true_shares(
    sampled: list[tuple[int, list[str]]], capture: Capture, incident: Incident, truth: Truth, *, is_declared: bool
) -> dict[str, float] | None:
    """The true shares of the added time by group; ``is_declared`` where the declaration of the fault is heeded."""
    seconds = seconds_of(capture, incident)
    spans = [(incident.window,), incident.normal]
    if seconds is None:
        return None
    per_transaction = []
    for span in spans:
        at = seconds.inside(span)
        tps = float(seconds.columns["tps"][at].mean()) if at.any() else 0.0
        inside = [groups for at_ns, groups in sampled if any(w.start_ns <= at_ns < w.end_ns for w in span)]
        counts = Counter(group for groups in inside for group in groups)
        served = float(seconds.columns["served"][at].mean()) if at.any() else 0.0
        if span == spans[0] and max(sum(counts.values()), served * len(inside)) < SAMPLE_COUNT_MIN:
            return None
        sessions = {group: counts[group] / max(len(inside), 1) for group in GROUPS}
        sessions["client"] += max(served - sum(sessions.values()), 0.0)
        per_transaction.append({group: n / tps if tps > 0 else 0.0 for group, n in sessions.items()})
    after, before = per_transaction
    added = {group: max(after[group] - before[group], 0.0) for group in GROUPS}
    if is_declared and truth.fault is not None and not truth.fault.causes.isdisjoint(CPU_CAUSES):
        is_only = truth.fault.cause not in {"disk-capped", "disk-slow"}
        for group in ("log", "reads", "client") if is_only else ("client",):
            if truth.fault.cause != "partner-capped":
                added["cpu"] += added[group]
                added[group] = 0.0
    whole = sum(added.values())
    return {group: ms / whole for group, ms in added.items()} if whole > 0 else None
