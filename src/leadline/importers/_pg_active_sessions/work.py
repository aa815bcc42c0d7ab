"""Who is at work in samples of sessions: statements, background workers, and the heads of queues for a lock.

Only those with the most samples become series, the rest is one more: an hour with a new process id for each
transaction must not make a series for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.formats.statements import UNKNOWN, is_name, normalised, shown_name, statement_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

Texts = tuple["NDArray[np.integer[Any]]", list[str]]
KEPT_MAX = 50  # Judgement: the statements and blockers people look at are fewer
_HOPS_MAX = 100
# The name that an application gives itself is a column of the server's view, and called otherwise in our recordings.
_BLOCKER_FACTS = (
    *(("user", "usename"), ("application", "application_name"), ("application", "application")),
    ("client", "client_addr"),
)


@dataclass
class SessionColumns:
    """Rows of sessions as columns [n]; ``sample`` [n] indexes the moments, ``pid`` is -1 where nobody was active.

    ``texts`` are the other columns by name: indices [n] into a list, -1 for null. Ages are seconds, NaN where unknown.
    """

    sample: NDArray[np.int64]
    pid: NDArray[np.int64]
    state: NDArray[np.object_]
    ages: dict[str, NDArray[np.float64]]
    texts: dict[str, Texts]

    @cached_property
    def clients(self) -> NDArray[np.int64]:
        """The row [n] that says the user, application and address of the session of each row."""
        return self.written("usename")

    def text(self, name: str, row: int) -> str:
        """A cell, empty where null or not recorded."""
        codes, values = self.texts.get(name, (np.array([-1]), []))
        return values[codes[row]] if name in self.texts and codes[row] >= 0 else ""

    def written(self, name: str) -> NDArray[np.int64]:
        """The row [n] where the cell of a column was last written for each row's pid, else the first of the pid."""
        count = len(self.pid)
        rows = np.arange(count)
        if not count:
            return rows
        codes = self.texts[name][0] if name in self.texts else np.full(count, -1)
        order = np.lexsort((self.sample, self.pid))
        sorted_pid = self.pid[order]
        begins = np.concatenate(([True], sorted_pid[1:] != sorted_pid[:-1]))
        rows[order] = order[np.maximum.accumulate(np.where(begins | (codes[order] >= 0), np.arange(count), 0))]
        return rows


@dataclass(frozen=True, slots=True)
class SessionWork:
    """A series: who, sessions summed per interval [m], and what is known beside."""

    name: str
    counts: NDArray[np.float64]
    facts: dict[str, Any]


def statements(columns: SessionColumns, *, is_ours: bool) -> tuple[NDArray[np.int64], list[tuple[str, str, str]]]:
    """The statement of each row [n] as index into (name, query id, text) triples.

    ``is_ours``: an empty cell stands for the cell of the same pid before, and the cells are names already.
    """
    count = len(columns.pid)
    query, queries = columns.texts.get("query", (np.full(count, -1), []))
    ids, id_texts = columns.texts.get("query_id", (np.full(count, -1), []))
    rows = np.arange(count)
    if is_ours:
        rows = columns.written("query")
    text, texts = columns.texts.get("statement_text", (np.full(count, -1), []))
    names = [q if is_ours and is_name(q) else statement_name(q) for q in queries]
    plain = [normalised(t) for t in texts]
    triples = np.stack([query[rows], ids[rows], text[rows]], axis=1)
    unique, codes = np.unique(triples, axis=0, return_inverse=True)
    keys = [
        (names[q] if q >= 0 else UNKNOWN, id_texts[i] if i >= 0 else "", plain[t] if t >= 0 else "")
        for q, i, t in unique.tolist()
    ]
    known: dict[tuple[str, str, str], int] = {}
    merged = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
    return merged[codes.reshape(-1)], list(known)


def by_leader(columns: SessionColumns, codes: NDArray[np.int64], workers: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The statements of rows [n], parallel workers with that of their leader where it was sampled."""
    if "leader_pid" not in columns.texts or not workers.any():
        return codes
    counted = codes.copy()
    of = {(int(columns.sample[r]), int(columns.pid[r])): int(codes[r]) for r in np.flatnonzero(~workers).tolist()}
    for row in np.flatnonzero(workers).tolist():
        leader = columns.text("leader_pid", row)
        counted[row] = of.get((int(columns.sample[row]), int(leader) if leader.isdigit() else -1), codes[row])
    return counted


def statement_work(
    codes: NDArray[np.int64], keys: list[tuple[str, str, str]], chosen: NDArray[np.bool_], bins: NDArray[np.int64]
) -> Iterator[SessionWork]:
    """Sessions that run each statement, summed in ``bins`` [n] of rows; nothing where no statement is known."""
    length = int(bins.max(initial=-1)) + 1
    seen = np.bincount(codes[chosen], minlength=len(keys))
    if all(keys[code][0] == UNKNOWN for code in np.flatnonzero(seen).tolist()):
        return
    order = [code for code in np.argsort(-seen, kind="stable").tolist() if seen[code]]
    kept, rest = order[:KEPT_MAX], order[KEPT_MAX:]
    same = Counter(keys[code][0] for code in kept)
    for code in kept:
        name, query_id, text = keys[code]
        label = shown_name(name)
        if same[name] > 1:
            label = f"{label} ({query_id or text or 'no query id'})"
        facts = {"statement": shown_name(name), "query_id": query_id or None, "statement_text": text or None}
        yield SessionWork(label, _summed(bins, chosen & (codes == code), length), dict(facts))
    if rest:
        yield SessionWork("other statements", _summed(bins, chosen & np.isin(codes, rest), length), {})


def worker_work(
    columns: SessionColumns, chosen: NDArray[np.bool_], bins: NDArray[np.int64], names: list[str]
) -> Iterator[SessionWork]:
    """Background processes at work by kind and, of autovacuum, by table; ``names`` [n] are their statements."""
    length = int(bins.max(initial=-1)) + 1
    at: dict[tuple[str, str], list[int]] = {}
    for row in np.flatnonzero(chosen).tolist():
        kind = columns.text("backend_type", row)
        named = names[row].rpartition(" ")[2] if names[row].startswith("AUTOVACUUM") else ""
        table = columns.text("relation", row) or named
        at.setdefault((kind, table), []).append(row)
    most = sorted(at, key=lambda key: -len(at[key]))
    for kind, table in most[:KEPT_MAX]:
        label = f"{kind} on {table}" if table else kind
        sums = np.bincount(bins[at[kind, table]], minlength=length).astype(np.float64)
        yield SessionWork(label, sums, {"worker": kind, "table": table or None})


def _summed(bins: NDArray[np.int64], chosen: NDArray[np.bool_], length: int) -> NDArray[np.float64]:
    return np.bincount(bins[chosen], minlength=length).astype(np.float64)


def blocker_work(columns: SessionColumns, names: list[str], at: NDArray[np.int64], count: int) -> Iterator[SessionWork]:
    """Sessions that wait for each head blocker, summed per interval; the name is its pid and state."""
    waiters: dict[tuple[int, int], list[int]] = {}
    for row, head in _heads(columns):
        waiters.setdefault(head, []).append(row)
    rows_of = {(int(s), int(p)): row for row, (s, p) in enumerate(zip(columns.sample, columns.pid, strict=True))}
    queued: dict[str, Counter[int]] = {}
    heads: dict[str, list[int]] = {}
    for (moment, pid), rows in waiters.items():
        head_row = rows_of.get((moment, pid))
        state = "not sampled" if head_row is None else columns.state[head_row] or "not sampled"
        name = f"pid {pid} ({state})"
        queued.setdefault(name, Counter()).update(at[rows].tolist())
        heads.setdefault(name, []).extend([] if head_row is None else [head_row])
    order = sorted(queued, key=lambda name: -queued[name].total())
    for name in order[:KEPT_MAX]:
        yield SessionWork(name, _counted(queued[name], count), _blocker_facts(columns, names, heads[name], name))
    if order[KEPT_MAX:]:
        rest = sum((queued[name] for name in order[KEPT_MAX:]), Counter[int]())
        yield SessionWork("other blockers", _counted(rest, count), {})


def _counted(counter: Counter[int], count: int) -> NDArray[np.float64]:
    sums = np.zeros(count)
    sums[list(counter)] = list(counter.values())
    return sums


def _heads(columns: SessionColumns) -> Iterator[tuple[int, tuple[int, int]]]:
    """Each row that waits for a lock, with the sample and pid at the head of its queue."""
    codes, lists = columns.texts.get("blocked_by", (np.full(len(columns.pid), -1), []))
    waiting = np.flatnonzero((codes >= 0) & (columns.pid >= 0))
    parents = {text: int(text.split()[0]) for text in lists if text.split()}
    blocker = {
        (int(columns.sample[row]), int(columns.pid[row])): (row, parents[lists[codes[row]]])
        for row in waiting.tolist()
        if lists[codes[row]] in parents
    }
    for (moment, pid), (row, parent) in blocker.items():
        head, hops = parent, 0
        while (moment, head) in blocker and head != pid and hops < _HOPS_MAX:
            head, hops = blocker[moment, head][1], hops + 1
        yield row, (moment, head)


def _blocker_facts(columns: SessionColumns, names: list[str], rows: list[int], name: str) -> dict[str, Any]:
    """What is known of the session that blocks, from its own rows."""
    facts: dict[str, Any] = {"pid": name.split()[1], "state": name.partition("(")[2].rstrip(")")}
    if not rows:
        return facts
    facts["statement"] = shown_name(Counter(names[row] for row in rows).most_common(1)[0][0])
    for fact, column in (("transaction_s_max", "xact_age_s"), ("since_statement_s_max", "query_age_s")):
        ages = columns.ages.get(column, np.array([]))
        known = [ages[row] for row in rows if len(ages) and np.isfinite(ages[row])]
        facts[fact] = round(float(max(known)), 3) if known else None
    state_ages = columns.ages.get("state_age_s", np.array([]))
    idle = [state_ages[row] for row in rows if len(state_ages) and np.isfinite(state_ages[row])]
    facts["state_s_max"] = round(float(max(idle)), 3) if idle else None
    for fact, column in _BLOCKER_FACTS:
        facts[fact] = columns.text(column, int(columns.clients[rows[0]])) or facts.get(fact)
    return facts
