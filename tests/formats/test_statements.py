"""The text of statements without literals."""

from __future__ import annotations

import pytest

from leadline.formats.statements import normalised

SECRET = "hunter2"


@pytest.mark.parametrize(
    "query",
    [
        f"select '{SECRET}'",
        f"select '{SECRET}",
        f"select 'it''s {SECRET}'",
        f"select $$ {SECRET} $$",
        f"select $x$ {SECRET} $x$",
        f"select $x$ {SECRET}",
        f"select 1 -- {SECRET}",
        f"select /* {SECRET} */ 1",
        f"select /* {SECRET}",
        f"select 'a\\' , ' {SECRET} '",
    ],
)
def test_no_literal_and_no_comment_is_left(query: str) -> None:
    assert SECRET not in normalised(query)


def test_names_and_parameters_stay() -> None:
    assert normalised('select t1."a 1" from t1 where b=$1 and c in (1, 2)') == (
        'select t1."a 1" from t1 where b=$1 and c in (?)'
    )
