"""Step four of a verdict: where the time went that a transaction takes longer in an incident than in the normal part.

The account is over session seconds (throughput times latency, second by second), so seconds in which a few transactions
waited long count by what they waited. Queueing at the load generator before the database is an effect: it is counted to
the terms in proportion to what they add, and to the client only when the database is not slower.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.seconds import SAMPLED, Seconds, seconds_of
from leadline.app.diagnose.spending import (
    Bottlenecks,
    Doubt,
    Spent,
    added_by_term,
    sampled_in,
    serves_others,
    spent_in,
)
from leadline.core.model.account import Account, AccountBasis, Share, Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity
    from leadline.core.model.incident import Incident

    Indices = NDArray[np.int64]

DRAWS = 200
SEED = 1
BLOCK = 3  # intervals that are resampled together, since neighbours resemble each other
INTERVAL = (2.5, 97.5)  # percentiles
SHARE_ERROR_MIN = 0.05  # Judgement: statistics of whole ticks and whole seconds are no better
SLOWER_MIN = 1.05  # an incident in which transactions are hardly slower has no added time to share out
SERVED_SLOWER_MIN = 1.2  # a database that is hardly slower does not make transactions queue before it
DRIVER_IDLE_MAX = 0.3  # Judgement: of a CPU, running and waiting for one


def accounts_of(capture: Capture, incidents: tuple[Incident, ...]) -> tuple[Account | None, ...]:
    """The account of each incident."""
    return tuple(account_of(capture, incident) for incident in incidents)


def account_of(capture: Capture, incident: Incident) -> Account | None:
    """Where the added time of a transaction went; None where no transactions were recorded in the incident.

    The account is over the whole time where there is no normal part, and where transactions are no slower than there.
    """
    seconds = seconds_of(capture, incident)
    if seconds is None:
        return None
    during = np.flatnonzero(seconds.inside([incident.window]))
    normal = np.flatnonzero(seconds.inside(incident.normal))
    seconds = _usable(seconds, during, normal)
    after = spent_in(seconds, during, Doubt()) if len(during) else None
    before = spent_in(seconds, normal, Doubt()) if len(normal) else None
    if after is None or after.served_ms + after.queued_ms <= 0:
        return None
    if before is not None and _total(after) < SLOWER_MIN * _total(before):
        before = None
    if before is None:
        normal = normal[:0]
    middle = _shares(seconds, during, normal, Doubt())
    low, high = _intervals(seconds, during, normal, middle)
    total_before = 0.0 if before is None else _total(before)
    shares = []
    for term in sorted(Term, key=lambda term: -middle.get(term, 0.0)):
        share = middle.get(term, 0.0)
        ms_normal = 0.0 if before is None else _scaled(before, term)
        ms_during = (
            ms_normal + share * (_total(after) - total_before) if share > 0 else min(ms_normal, _scaled(after, term))
        )
        if ms_normal <= 0 and ms_during <= 0 and high[term] <= SHARE_ERROR_MIN:
            continue
        arithmetic = after.notes.get(term, "") or _rest_text(after, term)
        entity = _entity(seconds, term)
        shares.append(Share(term, entity, ms_normal, ms_during, share, low[term], high[term], arithmetic))
    return Account(total_before, _total(after), tuple(shares), _basis(seconds))


def _usable(seconds: Seconds, during: Indices, normal: Indices) -> Seconds:
    """Columns that were measured in the incident and in the normal part; without samples of sessions of other work."""
    kept = seconds.covered(during, normal)
    for span in (during, normal):
        means = kept.means(span)
        if len(span) and serves_others(sum(sampled_in(means).values()), means["served"]):
            columns = {name: column for name, column in kept.columns.items() if not name.startswith(SAMPLED)}
            kept = replace(kept, columns=columns)
    return kept


def _total(spent: Spent) -> float:
    return spent.served_ms + spent.queued_ms


def _scaled(spent: Spent, term: Term) -> float:
    """Milliseconds of a term with its part of the queueing before the database."""
    ms = spent.ms.get(term, 0.0)
    if term is Term.LOCK:
        ms = spent.rest_ms
    return ms * _total(spent) / spent.served_ms if spent.served_ms > 0 else 0.0


def _shares(seconds: Seconds, during: Indices, normal: Indices, doubt: Doubt) -> dict[Term, float]:
    """Share of the added time by term, together 1; empty where no transaction ended."""
    after = spent_in(seconds, during, doubt)
    before = spent_in(seconds, normal, doubt) if len(normal) else None
    if after is None:
        return {}
    busy = Bottlenecks.of(seconds, during, doubt)
    added = added_by_term(after, before, busy, doubt, _rest_term(seconds, during, doubt))
    late = after.queued_ms - (0.0 if before is None else before.queued_ms)
    if before is not None and after.served_ms < SERVED_SLOWER_MIN * before.served_ms and late > 0:
        added[Term.CLIENT] += late
    whole = sum(added.values())
    return {term: ms / whole for term, ms in added.items()} if whole > 0 else {}


def _rest_term(seconds: Seconds, during: Indices, doubt: Doubt) -> Term:
    """What is spent without any busy resource: a lock, where it can only be inside the database.

    So it is where active sessions were counted, and probably where the load generator runs on the same machine, without
    a network, and is idle. Otherwise it is not explained.
    """
    if _basis(seconds) is not AccountBasis.MACHINE:
        return Term.LOCK
    if doubt.rest is not None:
        return doubt.rest
    is_near = seconds.has("driver") and seconds.means(during)["driver"] < DRIVER_IDLE_MAX
    return Term.LOCK if is_near else Term.UNEXPLAINED


def _intervals(
    seconds: Seconds, during: Indices, normal: Indices, middle: dict[Term, float]
) -> tuple[dict[Term, float], dict[Term, float]]:
    """Lower and upper end of each share, from resampled seconds and from what each formula may be off by."""
    generator = np.random.default_rng(SEED)
    draws = []
    for _ in range(DRAWS):
        doubt = Doubt.drawn(generator)
        drawn = _shares(seconds, _resampled(during, generator), _resampled(normal, generator), doubt)
        if drawn:
            draws.append(drawn)
    low, high = dict.fromkeys(Term, 0.0), dict.fromkeys(Term, 0.0)
    for term in Term:
        share = middle.get(term, 0.0)
        values = [draw.get(term, 0.0) for draw in draws] or [share]
        ends = np.percentile(values, INTERVAL)
        low[term] = max(min(float(ends[0]), share - SHARE_ERROR_MIN), 0.0)
        high[term] = min(max(float(ends[1]), share + SHARE_ERROR_MIN), 1.0)
    return low, high


def _resampled(at: Indices, generator: np.random.Generator) -> Indices:
    """As many intervals drawn in blocks of neighbours, with repetition."""
    if len(at) <= BLOCK:
        return at
    firsts = generator.integers(0, len(at) - BLOCK + 1, -(-len(at) // BLOCK))
    drawn: Indices = at[(firsts[:, np.newaxis] + np.arange(BLOCK)).ravel()[: len(at)]]
    return drawn


def _entity(seconds: Seconds, term: Term) -> Entity | None:
    entities = {
        Term.CPU: seconds.guest,
        Term.CPU_WAIT: seconds.guest,
        Term.DISK: seconds.data_disk,
        Term.LOG: seconds.log_disk,
        Term.LOCK: seconds.database,
        Term.SWAP: seconds.swap_disk,
    }
    return entities.get(term)


def _rest_text(after: Spent, term: Term) -> str:
    if term not in (Term.LOCK, Term.UNEXPLAINED):
        return ""
    known = after.served_ms - after.rest_ms
    return f"{after.served_ms:.3g} ms in the database - {known:.3g} ms of the other terms"


def _basis(seconds: Seconds) -> AccountBasis:
    if any(name.startswith(SAMPLED) for name in seconds.columns):
        return AccountBasis.SAMPLES
    return AccountBasis.STATISTICS if seconds.has("active") else AccountBasis.MACHINE
