"""Passwords as values that cannot be printed, stored or compared by time, and texts with known passwords blotted out.

A password becomes a `Secret` where it enters (an address, the environment, a file, a prompt) and only
`Secret.reveal` gives it again. Every value that was ever a secret is remembered, so that no error can repeat it.

Source: libpq documentation, "The Password File" (PGPASSFILE); memfd_create(2); proc(5), /proc/pid/stat 48 to 51.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

HIDDEN = "***"
# Variables that hold a password. No child gets one: the environment of a process can be read by others of its user.
VARIABLES = ("LEADLINE_PASSWORD", "PGPASSWORD", "MYSQL_PWD")
_KNOWN_LENGTH_MIN = 4  # Judgement: shorter ones are in ordinary words, and only hidden where they stand as a password
_PART_LENGTH_MIN = 6  # Judgement: the same, of what stands between slashes of one
_IN_ADDRESS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@'\"]*):[^\s'\"]*@(?=[^\s@]*)")
_IN_PAIR = re.compile(r"(?i)\b((?:ssl)?passw(?:or)?d|passphrase|pwd)(\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s&'\"]+)")
BARE = re.compile(r"(?!lab:)[^\s/:@]+:(.+)@[^@/\s]*")  # user:password@host, as some tools have it
_known: set[str] = set()
_taken: dict[str, Secret] = {}


class Secret:
    """A password. It has no text, no bytes and no file form; it is true when it is not empty."""

    __slots__ = ("__value",)

    def __init__(self, value: str = "") -> None:
        self.__value = value
        remember(value)

    def reveal(self) -> str:
        """The password itself, for the call that needs it."""
        return self.__value

    def __bool__(self) -> bool:
        return bool(self.__value)

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, form: str) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        left, right = (one.reveal().encode(errors="surrogatepass") for one in (self, other))
        import hmac  # noqa: PLC0415 - 10 ms that only comparing needs

        return hmac.compare_digest(left, right)

    __hash__ = None  # type: ignore[assignment]  # a hash of it is a way to guess it

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        message = "a secret cannot be stored"
        raise TypeError(message)

    def __fspath__(self) -> NoReturn:
        message = "a secret is no path and no word of a command"
        raise TypeError(message)


def remember(value: str) -> None:
    """Take note of a text that no error may repeat, in every form in which it may come back."""
    if len(value) < _KNOWN_LENGTH_MIN:
        return
    from urllib.parse import quote, quote_plus, unquote  # noqa: PLC0415 - every start imports this module

    forms = {value, unquote(value), repr(value)[1:-1], json.dumps(value)[1:-1]}
    for form in tuple(forms):
        forms |= {quote(form, safe="", errors="surrogatepass"), quote_plus(form, safe="")}
    forms |= {form.replace("'", "'\"'\"'") for form in tuple(forms)}  # as a word for a shell
    # An error about the folder of a path repeats a part.
    forms |= {part for form in forms for part in form.split("/") if "/" in form and len(part) >= _PART_LENGTH_MIN}
    _known.update(form for form in forms if len(form) >= _KNOWN_LENGTH_MIN)


def scrubbed(text: str) -> str:
    """A text without any known secret, and without what stands as a password in an address or a pair of words.

    >>> scrubbed("no such file: https://me:hunter2@vc/sdk, password=hunter2")
    'no such file: https://me:***@vc/sdk, password=***'
    """
    for value in sorted(_known, key=len, reverse=True):
        if value in text:
            left = r"(?<!\w)" if value[0].isalnum() else ""
            right = r"(?!\w)" if value[-1].isalnum() else ""
            text = re.sub(f"{left}{re.escape(value)}{right}", HIDDEN, text)
    if "://" in text:
        text = _IN_ADDRESS.sub(rf"\1:{HIDDEN}@", text)
    if "=" in text:
        text = _IN_PAIR.sub(rf"\1\2{HIDDEN}", text)
    return text


def of_environment(name: str) -> Secret:
    """The password a variable holds, or held when the program began; an empty one when it holds none."""
    return _taken.get(name) or Secret(os.environ.get(name, ""))


def child_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a tool: ours without passwords, and what is added."""
    return {name: value for name, value in os.environ.items() if name not in VARIABLES} | dict(more or {})


@contextmanager
def in_memory(content: str) -> Iterator[tuple[int, str]]:
    """A file in memory that only this user may open: its descriptor, for ``pass_fds``, and its path for a child.

    It has no name on any disk, so nothing is left of it, however the program ends.
    """
    descriptor = os.memfd_create("leadline")
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, content.encode())
        yield descriptor, f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def take_environment() -> None:
    """Take passwords out of our environment, so that neither a child nor ``/proc/self/environ`` has them."""
    for name in VARIABLES:
        take_variable(name)


def take_variable(name: str) -> Secret:
    """Take one password out of our environment; an empty one when the variable holds none and never did."""
    value = os.environ.pop(name, None)
    if value:
        _taken[name] = Secret(value)
        _blot(50, value)
    return _taken.get(name) or Secret()


def take_words(words: list[str]) -> None:
    """Take note of passwords in the words of the command line, and blot them out in the list of processes."""
    for secret in (secret for word in words for secret in possible(word)):
        remember(secret)
        _blot(48, secret)


def possible(text: str) -> list[str]:
    """What may be a password in a text that is or should have been an address, longest first."""
    guesses = []
    scheme, mark, rest = text.partition("://")
    if mark and re.fullmatch(r"(?:.*[=,\s])?[A-Za-z][\w+.-]*", scheme):
        user, colon, secret = rest.partition(":")
        if colon and "@" in secret and not set(user) & set("/?#@"):
            guesses += [secret.rpartition("@")[0], secret.partition("@")[0]]
    bare = BARE.fullmatch(text)
    guesses += [bare[1]] if bare and not mark else []
    guesses += [match[3].strip("'") for match in _IN_PAIR.finditer(text)]
    return sorted({secret for secret in guesses if secret}, key=len, reverse=True)


def _blot(field: int, value: str) -> None:
    """Overwrite a value in the words (48) or environment (50) the kernel shows of this process; nothing elsewhere."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - seldom needed, and every start imports this module

    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = (int(number) for number in fields[field - 3 : field - 1])
        if not 0 < start < end:
            return
        memory = ctypes.string_at(start, end - start)
        wanted = os.fsencode(value)
        at = memory.find(wanted)
        while at >= 0:
            ctypes.memset(start + at, ord("*"), len(wanted))
            at = memory.find(wanted, at + len(wanted))
