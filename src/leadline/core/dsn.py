"""Connection strings of PostgreSQL: what may be shown of them, and their password apart from the rest."""

from __future__ import annotations

from typing import Any

SHOWN = ("host", "port", "user", "dbname")
_SECRETS = ("password", "sslpassword")


def parts(target: str) -> dict[str, Any]:
    """The parameters of a connection string; none when it is no connection string."""
    import psycopg  # noqa: PLC0415 - 0.2 s that only databases need
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        return dict(conninfo_to_dict(target))
    except psycopg.Error:
        return {}


def masked(target: str) -> str:
    """A connection string without its password: host, port, user and database.

    >>> masked("postgresql://me:secret@db1:5433/shop")
    'host=db1 port=5433 user=me dbname=shop'
    >>> masked("not a connection string")
    'PostgreSQL'
    """
    found = parts(target)
    return " ".join(f"{key}={found[key]}" for key in SHOWN if key in found) or "PostgreSQL"


def apart(target: str) -> tuple[str, str]:
    """A connection string that still connects but holds no password, and the password.

    >>> apart("postgresql://me:secret@db1/shop?sslmode=require")
    ('user=me dbname=shop host=db1 sslmode=require', 'secret')
    """
    found = parts(target)
    return together({key: value for key, value in found.items() if key not in _SECRETS}), str(
        found.get("password") or ""
    )


def together(found: dict[str, Any]) -> str:
    """The connection string of parameters."""
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    return str(make_conninfo("", **found))


def without_secrets(text: str, target: str) -> str:
    """What a program said, without the password of the connection string it was given."""
    found = parts(target)
    if not found and target:
        return "not a connection string"
    for key in _SECRETS:
        text = text.replace(str(found[key]), "***") if found.get(key) else text
    return text
