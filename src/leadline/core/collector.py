"""The contract of collectors: a file in ``collectors/`` with ``META`` and ``collect``.

A collector's docstring carries the headings *Collects, Cost, Late or missing data, Sources*. It only reads; it never
keeps a secret; what it cannot see for lack of a privilege it leaves out and says with a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from leadline.core.capture import Capture
from leadline.core.vocabulary import Layer


@dataclass(frozen=True, slots=True)
class CollectorMeta:
    """What is known about a collector: what it is called, which layers it tells of, the least privilege it needs."""

    tool: str
    layers: tuple[Layer, ...]
    privilege: str


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a source; the password is not shown by ``repr`` and must not be written anywhere."""

    host: str
    user: str
    password: str = field(repr=False)
    port: int = 443
    verify: bool = True
    timeout_s: float = 60.0


class Collector(Protocol):
    """The type of a collector module."""

    META: CollectorMeta

    def collect(self, access: Access, progress: Callable[[int, int], None] | None = None) -> Capture:
        """What is there now."""
