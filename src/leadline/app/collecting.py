"""Use case: what a live source holds now, saved like any capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from leadline.app.read.resolve import resolve
from leadline.core.contracts.collector import Access, Collector
from leadline.core.contracts.discovery import load_unit

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture


def collect(name: str, access: Access, progress: Callable[[int, int], None] | None = None) -> Capture:
    """The capture of a collector.

    Raises:
        UsageError: there is no such collector.
        ToolError: the source cannot be reached or refuses.
    """
    collector = cast("Collector", load_unit("collector", name))
    return resolve(collector.collect(access, progress))
