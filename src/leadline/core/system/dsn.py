"""Connection strings of PostgreSQL and MySQL: what may be shown of them, and their password apart from the rest.

PostgreSQL's are those of libpq. MySQL's are ``mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?socket=PATH]`` (``mariadb://``
is the same, and so is ``unix_socket``), with special characters as %XX; their parameters hold ``scheme``, which
PostgreSQL's do not.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

SHOWN = ("host", "port", "user", "dbname", "socket")
MYSQL = "mysql"
_MYSQL_STARTS = ("mysql://", "mariadb://")
_STARTS = re.compile(r"\s*[A-Za-z_]\w*\s*=|(?:postgresql|postgres|mysql|mariadb)://", re.IGNORECASE)
_SECRETS = ("password", "sslpassword")


def is_of_database(target: str) -> bool:
    """Whether a text is meant as a connection string, whether it can be read as one or not."""
    return _STARTS.match(target) is not None


def engine_of(target: str) -> str:
    """The engine a connection string is of: ``mysql``, else ``postgresql``.

    >>> engine_of("mariadb://me@db1/shop"), engine_of("host=db1")
    ('mysql', 'postgresql')
    """
    return MYSQL if target.lower().startswith(_MYSQL_STARTS) else "postgresql"


def parts(target: str) -> dict[str, Any]:
    """The parameters of a connection string; none when it is no connection string."""
    if engine_of(target) == MYSQL:
        return _mysql_parts(target)
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
    >>> masked("mysql://me:secret@db1/shop")
    'host=db1 user=me dbname=shop'
    >>> masked("not a connection string")
    'PostgreSQL'
    """
    parameters = parts(target)
    shown = " ".join(f"{key}={parameters[key]}" for key in SHOWN if key in parameters)
    return shown or ("MySQL" if engine_of(target) == MYSQL else "PostgreSQL")


def apart(target: str) -> tuple[str, str]:
    """A connection string that still connects but holds no password, and the password.

    >>> apart("postgresql://me:secret@db1/shop?sslmode=require")
    ('user=me dbname=shop host=db1 sslmode=require', 'secret')
    >>> apart("mysql://me:p%40ss@db1:3307/shop?socket=/run/s.sock")
    ('mysql://me@db1:3307/shop?socket=/run/s.sock', 'p@ss')
    """
    parameters = parts(target)
    return together({key: value for key, value in parameters.items() if key not in _SECRETS}), str(
        parameters.get("password") or ""
    )


def together(parameters: dict[str, Any]) -> str:
    """The connection string of parameters."""
    if parameters.get("scheme") == MYSQL:
        return _mysql_together(parameters)
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    return str(make_conninfo("", **parameters))


def _mysql_parts(target: str) -> dict[str, Any]:
    try:
        url = urlsplit(target)
        port = url.port
        named = parse_qsl(url.query, strict_parsing=True) if url.query else []
    except ValueError:
        return {}
    given = {"socket" if key == "unix_socket" else key: value for key, value in named}
    name = url.path.strip("/")
    reached = url.hostname or ("localhost" if given.get("socket") else None)
    if reached is None or set("/@") & set(name) or url.fragment or set(given) - {"socket"}:
        return {}
    known = {"host": reached, "port": port and str(port), "user": unquote(url.username or "")}
    known |= {"dbname": unquote(name), "socket": given.get("socket"), "password": unquote(url.password or "")}
    return {"scheme": MYSQL} | {key: value for key, value in known.items() if value}


def _mysql_together(parameters: dict[str, Any]) -> str:
    user = quote(str(parameters.get("user") or ""), safe="")
    if parameters.get("password"):
        user += f":{quote(str(parameters['password']), safe='')}"
    host = str(parameters.get("host") or "localhost")
    host = f"[{host}]" if ":" in host else host
    port = f":{parameters['port']}" if parameters.get("port") else ""
    query = urlencode({"socket": parameters["socket"]}, safe="/") if parameters.get("socket") else ""
    name = quote(str(parameters.get("dbname") or ""), safe="")
    return f"{MYSQL}://{user}{'@' if user else ''}{host}{port}/{name}{'?' if query else ''}{query}"
