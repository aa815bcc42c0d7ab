"""Connection strings: what is none, and that nothing is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.system import dsn

_NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/@"), min_size=1)
_MYSQL = st.fixed_dictionaries(
    {
        "host": st.sampled_from(["db1", "10.0.0.1", "fe80::1"]),
        "dbname": _NAMES,
        "password": _NAMES | st.just("a/b@c:%"),
    },
    optional={"user": _NAMES, "port": st.integers(1, 65535).map(str), "socket": st.just("/run/my sql/s.sock")},
)


@given(_MYSQL)
def test_mysql_parameters_come_back_and_the_password_stays_apart(found: dict[str, str]) -> None:
    whole = {"scheme": dsn.MYSQL, **found}
    target = dsn.together(whole)
    assert dsn.engine_of(target) == dsn.MYSQL
    assert dsn.parts(target) == whole
    plain, secret = dsn.apart(target)
    assert secret == found["password"]
    assert dsn.parts(plain) == {key: value for key, value in whole.items() if key != "password"}


@pytest.mark.parametrize(
    "target",
    [
        "mysql://",
        "mysql:///shop",
        "mysql://me@db1/a/b",
        "mysql://me:sec/ret@db1/shop",
        "mysql://me:sec#ret@db1/shop",
        "mysql://me:12/3@db1",
        "mysql://me@db1:no/shop",
        "mysql://me@db1/shop?ssl=on",
        "mysql://[db1/shop",
        "mysql://me:sec?ret@db1/shop",
    ],
)
def test_what_is_no_mysql_dsn_shows_nothing(target: str) -> None:
    assert dsn.parts(target) == {}
    assert dsn.masked(target) == "MySQL"


def test_a_socket_needs_no_host() -> None:
    assert dsn.parts("mysql:///shop?socket=/run/s.sock")["host"] == "localhost"
