"""What the sampler of active sessions keeps of statements, and its schedule, without a server."""

from __future__ import annotations

import pytest

from leadline.collectors._postgresql_sessions import Schedule, statement_name

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
