"""What sessions spend their time on in a span of a recording, and which busy resource gets what queues behind it.

All amounts are mean sessions or milliseconds per transaction. Statistics overlap: a session that flushes also uses a
CPU. What is measured most directly is taken first, and nothing is given more than what is left of the transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.seconds import SAMPLED
from leadline.core.model.account import Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.app.diagnose.seconds import Seconds

    Indices = NDArray[np.int64]

OTHERS_RATIO = 1.15  # Judgement: statistics are late by a second; more active sessions than this serve other work
OTHERS_COUNT = 0.3
OTHER_WORK_MIN = 0.1  # Judgement: of the sessions in measured transactions
COMMIT_FREE_MIN = 0.05  # a log that is busy all the time serves any number of commits with each flush
# Judgement: busy shares of time from which a resource is the bottleneck, not at all to wholly.
LOG_BUSY = (0.75, 0.92)
DATA_BUSY = (0.85, 0.97)
CPU_BUSY = (0.88, 0.97)
STARVED = (0.10, 0.30)
CONVOY_RATIO = 0.5  # Judgement: of what lock holders wait for, others wait behind them half as long again
_RESTS = (Term.LOCK, Term.CLIENT, Term.UNEXPLAINED)
_DIRECT = (Term.CPU, Term.CPU_WAIT, Term.DISK, Term.LOG, Term.CLIENT, Term.SWAP)


@dataclass(frozen=True, slots=True)
class Doubt:
    """How far each formula may be off, as factors; 1 for the account itself, drawn anew for each resampling."""

    cpu: float = 1.0
    reads: float = 1.0
    log: float = 1.0
    active: float = 1.0
    convoy: float = 1.0
    busy: float = 0.0  # added to what is busy before it is compared with a limit
    measured: float = 1.0  # of what one process does for all sessions, for the measured ones
    idle_only: bool = True  # beside other work only sessions idle in a transaction wait for the client
    cpu_first: bool = False  # of terms that overlap, the CPU has all of its time
    rest: Term | None = None  # what the rest is where active sessions were not counted

    @classmethod
    def drawn(cls, generator: np.random.Generator) -> Doubt:
        """One draw. Judgement: the factors are what the recorded incidents scatter by."""
        return cls(
            cpu=generator.uniform(0.3, 1.15),
            reads=generator.uniform(0.75, 1.1),
            log=generator.uniform(0.7, 1.2),
            active=generator.uniform(0.8, 1.05),
            convoy=generator.uniform(0.0, 2.0),
            busy=generator.uniform(-0.05, 0.05),
            measured=generator.uniform(0.5, 1.0),
            idle_only=bool(generator.integers(2)),
            cpu_first=bool(generator.integers(2)),
            rest=_RESTS[generator.integers(len(_RESTS))],
        )


@dataclass(slots=True)
class Spent:
    """One span: milliseconds per transaction by term, and the numbers they are made of."""

    ms: dict[Term, float]
    rest_ms: float
    served_ms: float
    queued_ms: float
    notes: dict[Term, str] = field(default_factory=dict)


def spent_in(seconds: Seconds, at: Indices, doubt: Doubt) -> Spent | None:
    """What a transaction takes in some intervals, by term, before anything is moved; None where none ended."""
    means = seconds.means(at)
    tps, served = means["tps"], means["served"]
    if tps <= 0:
        return None
    sampled = sampled_in(means)
    notes: dict[Term, str] = {}
    cpu, wait = _processor(means, tps, doubt, notes)
    if sampled:
        idle = sampled.get("cpu", 0.0)
        # Memory that is swapped in is waited for without a wait event.
        swap = max(idle - cpu - wait, 0.0) if means.get("swap", 0.0) > 0 else 0.0
        waits = {Term.DISK: sampled.get("read", 0.0), Term.LOG: sampled.get("log", 0.0), Term.SWAP: swap}
        idle -= swap
        cpu, wait = (idle * part / (cpu + wait) for part in (cpu, wait)) if cpu + wait > 0 else (idle, 0.0)
        active = sum(sampled.values()) - sampled.get("client", 0.0)
        for term in (Term.DISK, Term.LOG, Term.CPU):
            notes[term] = f"{waits.get(term, cpu):.3g} sessions sampled / {tps:.4g} transactions/s"
    else:
        active = means.get("active", 0.0)
        reads_doubt = doubt.reads * (doubt.measured if seconds.is_threaded else 1.0)
        others = serves_others(active, served)
        waits = {
            Term.DISK: _reading(means, tps, reads_doubt, notes, others=others),
            Term.LOG: _flushing(means, tps, doubt, notes),
            Term.SWAP: means.get("swap", 0.0),
        }
        if waits[Term.SWAP] > 0:
            notes[Term.SWAP] = f"{waits[Term.SWAP]:.3g} requests wait at the swap disk / {tps:.4g} transactions/s"
        active = max(active - means.get("other_work", 0.0), 0.0) * doubt.active
    # Statistics of a session appear when its statement ends; it was active at least while it read and computed.
    active = max(active, waits[Term.DISK] + cpu)
    is_known = bool(sampled) or seconds.has("active")
    client = max(served - active, 0.0) if is_known else 0.0
    if means.get("other_work", 0.0) > OTHER_WORK_MIN * served and not sampled and doubt.idle_only:
        # Long statements of other sessions are in no statistics before they end: the difference shows nothing.
        client = min(client, means.get("idle_in_transaction", 0.0))
    if client > 0:
        notes[Term.CLIENT] = f"({served:.3g} sessions in transactions - {active:.3g} active) / {tps:.4g} transactions/s"
    fitted = _fitted({**waits, Term.CLIENT: client, Term.CPU: cpu, Term.CPU_WAIT: wait}, served, doubt)
    rest = max(served - sum(fitted.values()), 0.0)
    ms = {term: fitted[term] / tps * 1e3 for term in _DIRECT}
    return Spent(ms, rest / tps * 1e3, served / tps * 1e3, means.get("queued", 0.0) / tps * 1e3, notes)


def sampled_in(means: dict[str, float]) -> dict[str, float]:
    """Mean sampled sessions by what they wait for; empty where none were sampled."""
    return {name.removeprefix(SAMPLED): mean for name, mean in means.items() if name.startswith(SAMPLED)}


def serves_others(active: float, served: float) -> bool:
    """Whether more sessions are active than are in measured transactions: some do other work."""
    return active > OTHERS_RATIO * served + OTHERS_COUNT


def _fitted(sessions: dict[Term, float], served: float, doubt: Doubt) -> dict[Term, float]:
    """Terms that are not more than the sessions there are.

    What is waited for comes first, then the CPU, which overlaps it; last swapping, where other programs wait, too.
    """
    left = served
    fitted: dict[Term, float] = {}
    waiting, computing = (Term.DISK, Term.LOG), (Term.CPU, Term.CPU_WAIT)
    between = (computing, waiting) if doubt.cpu_first else (waiting, computing)
    for terms in ((Term.CLIENT,), *between, (Term.SWAP,)):
        wanted = sum(sessions[term] for term in terms)
        scale = min(1.0, left / wanted) if wanted > 0 else 0.0
        fitted |= {term: sessions[term] * scale for term in terms}
        left = max(left - scale * wanted, 0.0)
    return fitted


def _processor(means: dict[str, float], tps: float, doubt: Doubt, notes: dict[Term, str]) -> tuple[float, float]:
    cpu, wait = means.get("cpu", 0.0), means.get("cpu_wait", 0.0)
    starved = min(means.get("starved", 0.0), 0.95)
    kept = cpu * starved / (1.0 - starved)  # the guest's clock runs on while the hypervisor runs something else
    notes[Term.CPU] = f"{100 * cpu:.3g} % CPU of the sessions' processes / {tps:.4g} transactions/s"
    stolen = f" + {100 * kept:.3g} % stolen by the hypervisor" if kept > 0 else ""
    notes[Term.CPU_WAIT] = f"({100 * wait:.3g} % wait of the sessions' processes{stolen}) / {tps:.4g} transactions/s"
    return cpu * doubt.cpu, (wait + kept) * doubt.cpu


def _reading(means: dict[str, float], tps: float, doubt: float, notes: dict[Term, str], *, others: bool) -> float:
    """Sessions that read from the data disk."""
    counted = means.get("block_reads", 0.0)
    all_reads = means.get("reads_per_s", 0.0)
    latency = 1e3 * means.get("reading", 0.0) / all_reads if all_reads > 0 else 0.0
    pages = means.get("page_reads", np.inf)
    reads = min(all_reads, pages)
    computed = reads * latency / 1e3
    if "block_reads" in means and not (others and np.isfinite(pages) and computed < counted):
        notes[Term.DISK] = f"{counted:.3g} s of block reads per second / {tps:.4g} transactions/s"
        return counted * doubt
    notes[Term.DISK] = f"{reads:.4g} reads/s x {latency:.3g} ms / {tps:.4g} transactions/s"
    return computed * doubt


def _flushing(means: dict[str, float], tps: float, doubt: Doubt, notes: dict[Term, str]) -> float:
    """Sessions that wait for the log: each commit waits for a flush, and for the one under way when it arrives.

    A commit that arrives at random finds a flush under way for the busy share of time, half of it done; what arrives
    meanwhile shares the next flush, so that commits per second are flushes / (1 - busy).
    """
    busy, syncs = means.get("log_busy", 0.0), means.get("log_syncs", 0.0)
    cycle = 1e3 * busy / syncs if syncs > 0 else means.get("cycle_ms", 0.0)
    if "log_syncs" not in means:
        busy = min(means.get("log_util", 0.0), 1.0)
        syncs = 1e3 * busy / cycle if cycle > 0 else 0.0
    if syncs <= 0 or cycle <= 0:
        return 0.0
    busy = min(busy, 1.0)
    commits = min(tps, syncs / max(1.0 - busy, COMMIT_FREE_MIN))
    notes[Term.LOG] = (
        f"{commits:.4g} commits/s x {cycle:.3g} ms x (1 + 0.5 x {100 * busy:.0f} % busy) / {tps:.4g} transactions/s"
    )
    return commits * cycle * (1.0 + 0.5 * busy) / 1e3 * doubt.log


@dataclass(frozen=True, slots=True)
class Bottlenecks:
    """How far each serial resource was busy all the time, 0 to 1."""

    log: float
    data: float
    cpu: float

    @classmethod
    def of(cls, seconds: Seconds, at: Indices, doubt: Doubt) -> Bottlenecks:
        """Those of some intervals."""
        means = seconds.means(at)
        log = max(means.get("log_util", 0.0), means.get("log_busy", 0.0))
        cpu = _ramp(means.get("cpu_busy", 0.0) + doubt.busy, CPU_BUSY)
        starved = _ramp(means.get("starved", 0.0) + doubt.busy, STARVED)
        data = _ramp(means.get("data_util", 0.0) + doubt.busy, DATA_BUSY)
        return cls(_ramp(log + doubt.busy, LOG_BUSY), data, max(cpu, starved))


def _ramp(value: float, limits: tuple[float, float]) -> float:
    return float(np.clip((value - limits[0]) / (limits[1] - limits[0]), 0.0, 1.0))


def added_by_term(
    during: Spent, normal: Spent | None, busy: Bottlenecks, doubt: Doubt, rest_term: Term
) -> dict[Term, float]:
    """Milliseconds that each term adds to a transaction, what queues behind a busy resource counted to it.

    Without a normal part these are all the milliseconds. ``rest_term`` takes what is spent without any busy resource.
    """
    before = {term: 0.0 if normal is None else normal.ms[term] for term in _DIRECT}
    added = {term: max(during.ms[term] - before[term], 0.0) for term in _DIRECT}
    rest = max(during.rest_ms - (0.0 if normal is None else normal.rest_ms), 0.0)
    during_wait = added[Term.CPU_WAIT]
    # A disk, and a client on the same machine, that wait for a CPU belong to the CPU.
    # Without a normal part it is as much of them as the sessions' processes wait of the time that they could run.
    computing = added[Term.CPU] + during_wait
    waiting = 1.0 if normal is not None else during_wait / computing if computing > 0 else 0.0
    if busy.cpu > 0:
        for term, saturated in ((Term.LOG, busy.log), (Term.DISK, busy.data), (Term.CLIENT, 0.0)):
            moved = added[term] * busy.cpu * waiting * (1.0 - saturated)
            added[term] -= moved
            added[Term.CPU_WAIT] += moved
    # A session that waits for a CPU would otherwise wait for the log that bounds the throughput.
    moved = during_wait * busy.log
    added[Term.CPU_WAIT] -= moved
    added[Term.LOG] += moved
    weights = {Term.LOG: busy.log, Term.DISK: busy.data, Term.CPU_WAIT: busy.cpu * (1.0 - busy.log)}
    pulls = {term: weight * (added[term] + 1e-9) for term, weight in weights.items()}
    queued = rest * max(weights.values())
    if queued > 0:
        for term, pull in pulls.items():
            added[term] += queued * pull / sum(pulls.values())
    rest -= queued
    # Locks are held while their holders wait for something else.
    direct = sum(added.values())
    behind = min(rest, CONVOY_RATIO * doubt.convoy * direct) if rest_term is Term.LOCK else 0.0
    if behind > 0:
        added = {term: value * (1.0 + behind / direct) for term, value in added.items()}
    return {**added, rest_term: added.get(rest_term, 0.0) + rest - behind}
