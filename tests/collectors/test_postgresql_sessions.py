"""What the sampler of active sessions keeps of statements, and its schedule, without a server."""

from __future__ import annotations

import csv
import io

import pytest

from leadline.collectors._sessions.sampler import COLUMNS, Schedule, SessionRows
from leadline.formats.statements import statement_name

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("UPDATE pgbench_branches SET bbalance = 5 WHERE bid = 1", "UPDATE pgbench_branches"),
        ("insert  into shop.orders values (1)", "INSERT INTO shop.orders"),
        ("SELECT abalance FROM pgbench_accounts WHERE aid = 7", "SELECT pgbench_accounts"),
        ("autovacuum: VACUUM ANALYZE public.stock", "autovacuum: VACUUM ANALYZE public.stock".upper()),
        (f"ALTER ROLE x PASSWORD '{SECRET}'", "ALTER"),
        (f"SELECT '{SECRET}' FROM t", "SELECT"),
        (f"SELECT E'\\'{SECRET} FROM {SECRET}", "SELECT"),
        (f"SELECT $$ from {SECRET}", "SELECT"),
        (f"SELECT $x$ FROM {SECRET}$x$", "SELECT"),
        (f"/* {SECRET} */ SELECT 1", "?"),
        (f"-- {SECRET}\nSELECT 1", "?"),
        (f"SELECT 1 -- from {SECRET}", "SELECT"),
        (f"SELECT 1 /* from {SECRET} */", "SELECT"),
        (f'UPDATE "{SECRET}" SET a = 1', "UPDATE"),
        (f"COPY t FROM PROGRAM '{SECRET}'", "COPY t"),
        (f"{SECRET}", "?"),
        ("", "?"),
    ],
)
def test_only_verb_and_table_are_kept(query: str, expected: str) -> None:
    assert statement_name(query).casefold() == expected.casefold()
    assert SECRET not in statement_name(query)


def test_a_late_sample_is_skipped_and_never_doubled() -> None:
    now = 100.0
    schedule = Schedule(0.1, lambda: now)
    beats = []
    for cost in (0.01, 0.02, 0.35, 0.01, 0.0):
        now += cost
        now += schedule.wait_s()
        beats.append(round((now - 100.0) / 0.1, 6))
    assert beats == [1.0, 2.0, 6.0, 7.0, 8.0]
    assert schedule.skipped_count == 3


MORE = (None, 12.345, None, "shop_user", "192.168.100.101", "shop application 1.2")
WAITERS = 80
SAMPLES = 50
SAMPLES_PER_HOUR = 36_000  # ten a second


def waiting(sample: int, waiters: int) -> list[tuple[object, ...]]:
    """Sessions behind one another, each blocked by all before it, as pg_stat_activity shows them."""
    now = f"2026-11-21 00:{sample // 600:02d}:{sample // 10 % 60:02d}.{sample % 10}00000+00"
    same = ("shop", "client backend", "active", "Lock", "transactionid", 6_234_567_890_123_456_789)
    return [
        (
            *(now, pid),
            *same,
            *(12.345, 12.345),
            " ".join(map(str, range(1_234_000, pid))),
            f"UPDATE stock SET x = {sample}",
            *MORE,
        )
        for pid in range(1_234_001, 1_234_001 + waiters)
    ]


def size_bytes(waiters: int) -> float:
    """Bytes per sample."""
    rows = SessionRows()
    for sample in range(SAMPLES):
        rows.add(waiting(sample, waiters))
    return len(rows.take()) / SAMPLES


def whole_size_bytes(waiters: int) -> float:
    """Bytes per sample when every blocker and every statement is written."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    for sample in range(SAMPLES):
        rows = waiting(sample, waiters)
        out.writerows((*row[:11], statement_name(str(row[11])), *row[12:], "") for row in rows)
    return len(text.getvalue()) / SAMPLES


def test_a_queue_of_sessions_takes_as_much_space_as_its_rows() -> None:
    assert whole_size_bytes(WAITERS) * SAMPLES_PER_HOUR > 1.2e9
    assert size_bytes(WAITERS) < 11_500
    assert size_bytes(WAITERS) * SAMPLES_PER_HOUR < 0.42e9
    assert size_bytes(4 * WAITERS) <= 4.1 * size_bytes(WAITERS)


def test_repeated_statements_are_left_empty_and_changes_are_written() -> None:
    rows = SessionRows()
    rows.begin(after_cut_row=True)

    def sample(now: str, *sessions: tuple[int, int | None, str, str]) -> None:
        rows.add((now, pid, "shop", "x", "active", None, None, i, 0, 0, b, q, *MORE) for pid, i, b, q in sessions)

    sample("a", (1, 7, "5 6 7", "select 1"), (2, None, "5 6 7 8 9", "update t set x=1"))
    sample("b", (1, 7, "", "select 2"), (2, None, "5", "update t set x=2"))
    sample("c", (1, 8, "", "select 2"))
    sample("d", (1, 8, "", "commit"), (2, None, "", "update t set x=3"))
    rows.add([("e", *[None] * 17)])
    text = rows.take().decode()
    assert text.startswith("\n" + ",".join(COLUMNS) + "\n")
    found = [(r["now"], r["query_id"], r["blocked_by"], r["query"]) for r in csv.DictReader(io.StringIO(text[1:]))]
    assert found == [
        ("a", "7", "5 6 7", "SELECT"),
        ("a", "", "5 6 7 +2", "UPDATE t"),
        ("b", "", "", ""),
        ("b", "", "5", ""),
        ("c", "8", "", "SELECT"),
        ("d", "8", "", "COMMIT"),
        ("d", "", "", "UPDATE t"),  # it was not in the sample before
        ("e", "", "", ""),
    ]
    assert rows.take() == b""


def test_a_user_is_written_when_a_session_is_first_seen_and_when_it_changes() -> None:
    rows = SessionRows()
    rows.begin(after_cut_row=False)
    row = (7, "shop", "client backend", "idle in transaction", None, None, None, 9, 9, None, "update t set x = 1")
    for now, user, state_age_s in (("a", "ann", 1), ("b", "ann", 2), ("c", "bob", 0)):
        rows.add([(now, *row, None, state_age_s, None, user, "10.0.0.1", "app")])
    written = list(csv.DictReader(io.StringIO(rows.take().decode())))
    columns = ("usename", "client_addr", "state_age_s", "application")
    assert [tuple(r[c] for c in columns) for r in written] == [
        ("ann", "10.0.0.1", "1", ""),
        ("", "", "2", ""),
        ("bob", "10.0.0.1", "0", ""),
    ]


@pytest.mark.parametrize(("texts", "expected"), [(False, ""), (True, "alter role x password ?")])
def test_a_text_is_kept_without_literals_and_only_on_request(texts: bool, expected: str) -> None:
    rows = SessionRows(texts=texts)
    rows.begin(after_cut_row=False)
    query = f"alter role x password '{SECRET}'"
    rows.add([("a", 7, "shop", "x", "active", None, None, 5, 0, 0, None, query, *MORE)])
    (written,) = csv.DictReader(io.StringIO(rows.take().decode()))
    assert written["statement_text"] == expected
    assert written["application"] == ("shop application 1.2" if texts else "")
    assert written["query"] == "ALTER"
