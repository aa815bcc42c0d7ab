"""Names that are like a name somebody typed: for the advice of errors."""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN_COUNT = 3
_LIKE = 0.6  # Judgement: of difflib's ratio; less is another word


def similar(name: str, names: Iterable[str]) -> list[str]:
    """The names most like one, best first; none where nothing is like it.

    >>> similar("iops-kap", ["iops-cap", "sioc-shares", "far-memory"])
    ['iops-cap']
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only needed on the error path

    return get_close_matches(name, list(names), n=_SHOWN_COUNT, cutoff=_LIKE)
