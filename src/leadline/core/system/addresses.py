"""Addresses and their passwords apart: DSNs, URLs and other places a user names, split where they enter the program."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from leadline.core.model.errors import UsageError
from leadline.core.system import dsn
from leadline.core.system.secret import BARE, Secret, possible, remember

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SECRET_KEYS = re.compile(r"(?i)(?:ssl)?passw(?:or)?d|passphrase|pwd|secret|token")


@dataclass(frozen=True, slots=True)
class Address:
    """A place a user named, without its password; and that."""

    text: str
    secret: Secret = field(default_factory=Secret, repr=False, compare=False)


def address_of(text: str) -> Address:
    """An address without its password, and that. Paths and names are as they were.

    >>> address_of("postgresql://me:hunter2@db1/shop").text, address_of("/srv/a:b@c").text
    ('user=me dbname=shop host=db1', '/srv/a:b@c')
    >>> address_of("https://me:hunter2@vc/sdk")
    Address(text='https://me@vc/sdk')

    Raises:
        UsageError: it holds what may be a password, but cannot be read; or a password that cannot be used.
    """
    url = _URL.fullmatch(text)
    if dsn.is_of_database(text):
        return _of_database(text, url)
    return Address(text) if url is None else _of_url(text)


def without_password(text: str) -> str:
    """An address that may hold no password: paths, exports, hosts and other places that have none.

    Raises:
        UsageError: it holds one.
    """
    address = address_of(text)
    bare = BARE.fullmatch(text)
    if bare is not None and not Path(text).exists():
        remember(bare[1])
        address = Address(text.rpartition("@")[2], Secret(bare[1]))
    if address.secret:
        raise UsageError(
            address.text or "the address",
            found="a password in an address that has no use for one",
            expected="an address without it",
            advice="Leave the password out, and change it: others may have seen it in the list of processes.",
        )
    return address.text


def host_name(text: str) -> str:
    """The name or address of a machine; neither user nor password stand in it.

    >>> host_name("db1.example"), host_name("[fe80::1]")
    ('db1.example', '[fe80::1]')

    Raises:
        UsageError: it has a user or a password.
    """
    plain = without_password(text)
    if "@" in text and "/" not in text:
        for guess in possible(text):
            remember(guess)
        raise UsageError(
            plain.rpartition("@")[2] or "the host",
            found="a user or password before its name",
            expected="the name or address alone",
            advice="Passwords come from LEADLINE_PASSWORD or a prompt.",
        )
    return plain


def split_target(text: str) -> tuple[str, Secret]:
    """Split a target into its name without a password and the password: only databases may have one.

    Raises:
        UsageError: another has one, or it cannot be told from the rest.
    """
    if dsn.is_of_database(text):
        address = address_of(text)
        return address.text, address.secret
    return without_password(text), Secret()


def _of_database(text: str, url: re.Match[str] | None) -> Address:
    guesses = possible(text)
    parameters = dsn.parts(text)
    if not parameters or (url is not None and not _is_plain(url[2], parameters)):
        if guesses or _SECRET_KEYS.search(text) or (url is not None and ":" in url[2] and "@" in url[2]):
            raise _unreadable(guesses)
        return Address(text)
    if parameters.get("sslpassword"):
        remember(str(parameters["sslpassword"]))
        raise UsageError(
            dsn.masked(text),
            found="sslpassword, which Leadline does not pass on",
            expected="a connection string without it",
            advice="Keep it in a service file of libpq (PGSERVICEFILE) and name service=NAME.",
        )
    plain, secret = dsn.apart(text)
    if not secret:
        return Address(text)
    for guess in guesses:
        remember(guess)
    if "\n" in secret or "\0" in secret:
        raise _unreadable(guesses)
    return Address(plain, Secret(secret))


def _is_plain(rest: str, parameters: dict[str, object]) -> bool:
    """Whether the parts are those the user meant: a password with a bare / or @ would be read as a host or name."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :].partition("?")[0]
    if authority.count("@") > 1 or "@" in path or "#" in rest:
        return False
    written = authority.rpartition("@")[0].partition(":")[2]
    return not written or unquote(written) == parameters.get("password")


def _of_url(text: str) -> Address:
    guesses = possible(text)
    for guess in guesses:
        remember(guess)
    try:
        parts = urlsplit(text)
        secret, port = unquote(parts.password or ""), parts.port
        given = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        if guesses:
            raise _unreadable(guesses) from None
        return Address(text)
    if guesses and not secret and not any(_SECRET_KEYS.fullmatch(name) for name, _ in given):
        raise _unreadable(guesses)
    if "@" in parts.path and not parts.username and ":" in parts.netloc and not port:
        raise _unreadable(guesses)
    kept = [(name, value) for name, value in given if not _SECRET_KEYS.fullmatch(name)]
    taken = [value for name, value in given if _SECRET_KEYS.fullmatch(name)]
    if not secret and not taken:
        return Address(text)
    host = parts.netloc.rpartition("@")[2]
    place = f"{parts.username}@{host}" if parts.username else host
    query = parts.query if len(kept) == len(given) else urlencode(kept)
    return Address(parts._replace(netloc=place, query=query).geturl(), Secret(secret or taken[0]))


def _unreadable(guesses: list[str]) -> UsageError:
    for guess in guesses:
        remember(guess)
    return UsageError(
        "the address",
        found="what may be a password, but cannot be told from the rest",
        expected="special characters of user and password written as %XX, @ as %40",
        advice="Better leave the password out: PGPASSFILE, PGPASSWORD, MYSQL_PWD or LEADLINE_PASSWORD may hold it.",
    )
