"""Versions as products print them, made comparable."""

from __future__ import annotations

import re

_DOTTED = re.compile(r"\d+(?:\.\d+)+|\d+")
_DIGITS_MAX = 9  # a build number is no release, and no product counts further


def release(text: object) -> tuple[int, ...]:
    """The first version number in a text, to be compared with a tuple; empty when there is none.

    >>> release("VMware ESXi 7.0.3 build-21930508"), release("6.7U3"), release("unknown")
    ((7, 0, 3), (6, 7), ())
    """
    found = _DOTTED.search("" if text is None else str(text))
    parts = [] if found is None else found[0].split(".")
    return tuple(int(part) for part in parts) if all(len(part) <= _DIGITS_MAX for part in parts) else ()
