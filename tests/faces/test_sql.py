"""SQL without names: every form of identifier, literal and comment."""

from __future__ import annotations

import pytest

from leadline.faces.report.sql import sql_start, without_names

SECRET = "geheim"


def masked(statement: str) -> str:
    names: dict[str, str] = {}
    return without_names(statement, lambda name: names.setdefault(name.casefold(), f"n{len(names) + 1}"))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT a, b FROM s.t WHERE a >= 5 AND b <> 'geheim'", "SELECT n1, n2 FROM n3.n4 WHERE n1 >= ? AND n2 <> ?"),
        ("update orders set geheim = geheim + 1.5e3", "update n1 set n2 = n2 + ?"),
        ("INSERT INTO t VALUES ($1, :2, 'it''s geheim', NULL)", "INSERT INTO n1 VALUES ($1, :2, ?, NULL)"),
        (r"SELECT E'\'geheim' , 1", "SELECT ? , ?"),
        ("SELECT U&'geheim', U&\"geheim\"", "SELECT ?, n1"),
        ("SELECT $$geheim$$, $x$ge'heim$x$, $x$ $$ geheim", "SELECT ?, ?, ?"),
        ("SELECT 1 -- geheim\nFROM t /* geheim */", "SELECT ? FROM n1 "),
        ("SELECT 1 /* geheim", "SELECT ? "),
        ("SELECT 'geheim", "SELECT ?"),
        ('SELECT "geheim', "SELECT n1"),
        ("SELECT `geheim`.`x``y` FROM [geheim T]", "SELECT n1.n2 FROM n3"),
        ("SELECT count(*), 0x1F, x'1F' FROM t1", "SELECT count(*), ?, ? FROM n1"),
        ("SELECT geheim_4711($1), ä FROM t", "SELECT n1($1), n2 FROM n3"),
    ],
)
def test_names_and_literals_go_and_keywords_stay(statement: str, expected: str) -> None:
    assert masked(statement) == expected
    assert SECRET not in masked(statement)


@pytest.mark.parametrize(
    "statement",
    [
        *("select x from t", "SELECT 'a'", "insert into a.b values (1)", "update t set x = 1", "delete from t"),
        *("with a as (select 1) select 2", "create unique index i on t (x)", "ALTER ROLE x PASSWORD 'y'"),
        *("COPY t (a) FROM STDIN", "call p(1)", "grant select on t to u", "UPDATE orders", "SELECT accounts"),
        *('update "T" x set y = 1', "truncate table t", "explain analyze select 1", "execute p(1)"),
    ],
)
def test_statements_are_found_in_a_text(statement: str) -> None:
    assert sql_start(statement) == 0
    if " " in statement.partition(" ")[2]:
        assert sql_start(f"line 3: {statement}") == 8


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Update the firmware of the host and set the policy.",
            "Delete the snapshot in a quiet hour.",
            "Select a disk from the list.",
        ),
        *(
            "ALTER SYSTEM SET random_page_cost = 1.1",
            "lock table at 16777216 bytes, a former default",
            "Create a table of the largest disks",
            "LOCK",
        ),
        *("Copy the file to another disk", "With a write cache as the vendor says", "Grant pg_monitor to see all."),
    ],
)
def test_sentences_are_no_statements(text: str) -> None:
    assert sql_start(text) == len(text)
