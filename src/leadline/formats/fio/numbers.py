"""Numbers of fio's job files: sizes and times with suffixes, ranges, per-direction lists, arithmetic.

Source: fio HOWTO, Parameter types; compared with fio 3.33 itself, which the tests do again. Where both differ, fio
counts: ``4ki`` is 4096 whatever the HOWTO says of ``kb_base=1024``. A fraction, of which fio silently reads the digits
before the point, is refused.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterator

from leadline.core.system.portable import usable_cpus

_NUMBER = re.compile(r"([+-]?(?:0x[0-9a-f]+|\d+))\s*+([a-z]*)\s*+(%?)", re.IGNORECASE)
_KEYWORD = re.compile(r"\$(ncpus|pagesize|mb_memory)\b")
_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?[a-z]*|[-+*/%^()])", re.IGNORECASE)
_POWERS = "kmgtp"
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "sec": 1.0}
_SECONDS |= {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6}
_LARGEST = 2.0**62
_DEPTH_MAX = 20
_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 3}


class NotANumberError(ValueError):
    """The text is no number as fio reads them."""


def plain_number(text: str, kb_base: int = 1024) -> int:
    """An integer, a size in bytes: ``8k``, ``0x10``, ``(2*4k)``, ``2*$ncpus``.

    Raises:
        NotANumberError: it is none.

    >>> plain_number("4k"), plain_number("4KiB"), plain_number("4k", 1000), plain_number("(3*4k)")
    (4096, 4000, 4000, 12288)
    """
    substituted = _substituted(text.strip())
    if substituted.startswith("(") or substituted != text.strip():
        return _whole(_evaluate(substituted, lambda part: _size(part, kb_base)))
    return _whole(_size(substituted, kb_base))


def seconds(text: str, unit_s: float = 1.0) -> float:
    """A time; ``unit_s`` is what a number without a suffix counts.

    Raises:
        NotANumberError: it is none.

    >>> seconds("90"), seconds("500", 1e-6), seconds("2m"), seconds("10ms")
    (90.0, 0.0005, 120.0, 0.01)
    """
    stripped = text.strip()
    if stripped.startswith("("):
        return _checked(_evaluate(stripped, lambda part: _time(part, 1e-6)))
    return _checked(_time(stripped, unit_s))


def percent_of(text: str) -> float | None:
    """The number of ``20%`` or None."""
    match = _NUMBER.fullmatch(text.strip())
    return float(int(match[1], 0)) if match and match[3] and not match[2] else None


def per_direction(text: str) -> tuple[str, str]:
    """What a comma-separated list says of reads and of writes; one value is of both; nothing is ``""``.

    >>> per_direction("8k"), per_direction("8k,32k"), per_direction(",8k"), per_direction("1m,,")
    (('8k', '8k'), ('8k', '32k'), ('', '8k'), ('1m', ''))
    """
    parts = [part.strip() for part in text.split(",")]
    return parts[0], parts[1] if len(parts) > 1 else parts[0]


def span(text: str, kb_base: int) -> tuple[int, int]:
    """The ends of ``4k-64k`` or ``4k:64k``, the smaller first.

    Raises:
        NotANumberError: it is no range.
    """
    parts = re.split(r"[-:]", text.strip())
    if len(parts) != 2:
        raise NotANumberError(text)
    ends = sorted(plain_number(part, kb_base) for part in parts)
    return ends[0], ends[1]


def _size(text: str, kb_base: int) -> float:
    match = _NUMBER.fullmatch(text)
    if match is None or match[3]:
        raise NotANumberError(text)
    suffix = match[2].lower()
    power = _POWERS.find(suffix[:1]) + 1 if suffix else 0
    if power == 0 and suffix not in ("", "b"):
        raise NotANumberError(text)
    other = 1000 if kb_base == 1024 else 1024
    return float(
        int(match[1], 0 if "x" in match[1].lower() else 10) * (other if suffix[1:3] == "ib" else kb_base) ** power
    )


def _time(text: str, unit_s: float) -> float:
    match = _NUMBER.fullmatch(text)
    if match is None or match[3] or (match[2] and match[2].lower() not in _SECONDS):
        raise NotANumberError(text)
    return int(match[1], 0 if "x" in match[1].lower() else 10) * _SECONDS.get(match[2].lower(), unit_s)


def _substituted(text: str) -> str:
    """Keywords replaced by what holds on this machine, as fio does."""
    known: dict[str, Callable[[], int]] = {
        "ncpus": usable_cpus,
        "pagesize": lambda: os.sysconf("SC_PAGE_SIZE"),
        "mb_memory": lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
    }
    return _KEYWORD.sub(lambda match: str(known[match[1]]()), text)


def _evaluate(text: str, number: Callable[[str], float]) -> float:
    """The value of an arithmetic expression; ``number`` reads its numbers."""
    tokens = list(_tokens(text))
    try:
        value = _expression(tokens, 0, number, _DEPTH_MAX)
    except (IndexError, ZeroDivisionError, OverflowError) as error:
        raise NotANumberError(text) from error
    if tokens:
        raise NotANumberError(text)
    return value


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotANumberError(text)
        yield match[1]
        position = match.end()


def _expression(tokens: list[str], rank: int, number: Callable[[str], float], depth: int) -> float:
    left = _term(tokens, number, depth)
    while tokens and _RANK.get(tokens[0], 0) > rank:
        sign = tokens.pop(0)
        right = _expression(tokens, _RANK[sign], number, depth)
        left = _power(left, right) if sign == "^" else _OPERATORS[sign](left, right)
    return left


def _power(base: float, exponent: float) -> float:
    power = base**exponent if base >= 0 or exponent == int(exponent) else float("nan")
    return float(power)


def _term(tokens: list[str], number: Callable[[str], float], depth: int) -> float:
    if depth == 0:
        raise NotANumberError("nested too deeply")
    token = tokens.pop(0)
    if token == "-":
        return -_term(tokens, number, depth - 1)
    if token != "(":
        return number(token)
    value = _expression(tokens, 0, number, depth - 1)
    if tokens.pop(0) != ")":
        raise NotANumberError("a parenthesis is not closed")
    return value


def _whole(value: float) -> int:
    return int(_checked(value))


def _checked(value: float) -> float:
    if not abs(value) <= _LARGEST:  # NaN too
        raise NotANumberError("beyond any size")
    return value
