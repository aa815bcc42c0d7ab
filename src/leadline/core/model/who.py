"""Who: the statement, session, worker, program or VM that a cause names, with its share of what is counted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leadline.core.model.entities import Entity


class WhoKind(StrEnum):
    """What a culprit is."""

    STATEMENT = "statement"
    SESSION = "session"
    WORKER = "worker"  # of the database server: autovacuum, checkpointer, walsender
    PROGRAM = "program"
    VM = "vm"


@dataclass(frozen=True, slots=True)
class Who:
    """A culprit, and how much of what is counted was its own inside an incident and outside.

    Attributes:
        name: for people: ``SELECT ... FROM orders``, ``pid 27102``, ``pg_dump``.
        share: of ``of`` inside the incident, 0 to 1; None where nothing was counted.
        share_normal: the same outside it; None without an outside.
        of: what the share is of: active sessions, logged durations, blocked sessions, CPU, disk reads, disk writes.
        details: further names and values by what they are, for people.
        is_multiplied: there was several times as much of it inside as outside.
    """

    kind: WhoKind
    name: str
    entity: Entity | None
    share: float | None
    share_normal: float | None
    of: str
    details: tuple[tuple[str, str], ...] = ()
    is_multiplied: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "kind": self.kind.value,
            "name": self.name,
            "entity": None if self.entity is None else str(self.entity),
            "share": None if self.share is None else round(self.share, 4),
            "share_normal": None if self.share_normal is None else round(self.share_normal, 4),
            "of": self.of,
            "details": dict(self.details),
        }
