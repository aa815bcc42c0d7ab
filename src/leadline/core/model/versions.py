"""Versions as products print them, made comparable."""

from __future__ import annotations

import re

_DOTTED = re.compile(r"\d+(?:\.\d+)+|\d+")
_VSPHERE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:[ ._-]*(?:U|Update ?)(\d+))?", re.IGNORECASE)
_MAJOR = re.compile(r"\d{1,2}")  # all of a text: 9, not the 9 of a build
_DIGITS_MAX = 9  # a build number is no release, and no product counts further


def release(text: object) -> tuple[int, ...]:
    """The first version number in a text, to be compared with a tuple; empty when there is none.

    >>> release("VMware ESXi 7.0.3 build-21930508"), release("6.7U3"), release("unknown")
    ((7, 0, 3), (6, 7), ())
    """
    match = _DOTTED.search("" if text is None else str(text))
    parts = [] if match is None else match[0].split(".")
    return tuple(int(part) for part in parts) if all(len(part) <= _DIGITS_MAX for part in parts) else ()


def vsphere_version(text: object) -> tuple[int, int, int] | None:
    """Major, minor and update of a vSphere, ESXi or vSAN version as products and people write it; None when it is none.

    From 7.0 on the third number is the update.

    >>> [vsphere_version(t) for t in ("VMware ESXi 8.0.2 build-22380479", "6.7U3", "8.0 Update 3", "unknown")]
    [(8, 0, 2), (6, 7, 3), (8, 0, 3), None]
    """
    version = "" if text is None else str(text).strip()
    match = _VSPHERE.search(f"{version}.0" if _MAJOR.fullmatch(version) else version)
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[4] or match[3] or 0)
