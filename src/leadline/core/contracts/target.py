"""The contract of targets: systems that are changed, by a plan that is printed first and a journal that leads back.

A target's docstring carries the headings *Changes, Undo, Unsafe ranges, Sources*.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ItemState(StrEnum):
    """How an item of a template stands."""

    APPLIED = "applied"
    WRITTEN = "written, not active"  # the drop-in is there, the kernel has another value until it is activated
    DIFFERS = "differs"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file to be written, or symbolic link to be made; ``path`` is absolute within the root."""

    path: str
    content: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One optimisation: the files that make it, how to see whether it holds, and what to know before taking it."""

    id: str
    title: str
    files: tuple[FileChange, ...]
    check: dict[str, Any]
    activate: str
    reason: str
    source: str
    risk: str
    rule: str | None = None
    applies_if: str | None = None
    default: bool = True
    asks: str | None = None  # a value that was not given with --set, without which it cannot be applied


@dataclass(frozen=True, slots=True)
class ItemStatus:
    """An item as found: its state, and what the system has now."""

    item: Item
    state: ItemState
    current: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        item = self.item
        return {
            "id": item.id,
            "title": item.title,
            "state": self.state.value,
            "current": self.current,
            "wanted": item.check.get("wanted"),
            "default": item.default,
            "files": [change.path for change in item.files],
            "activate": item.activate,
            "reason": item.reason,
            "source": item.source,
            "risk": item.risk,
            "rule": item.rule,
            "asks": item.asks,
        }
