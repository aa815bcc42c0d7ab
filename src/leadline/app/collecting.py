"""Use case: what a live source holds now, saved like any capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from leadline.core.collector import Access, Collector
from leadline.core.discovery import load_unit
from leadline.core.resolve import resolve

if TYPE_CHECKING:
    from leadline.core.capture import Capture


def collect(name: str, access: Access, progress: Callable[[int, int], None] | None = None) -> Capture:
    """The capture of a collector.

    Raises:
        UsageError: there is no such collector.
        ToolError: the source cannot be reached or refuses.
    """
    collector = cast("Collector", load_unit("collector", name))
    return resolve(collector.collect(access, progress))
