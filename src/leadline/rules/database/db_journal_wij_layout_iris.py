"""IRIS keeps on one filesystem what must be apart.

Finds:
    Two of installation, databases, primary journal and alternate journal of an IRIS instance on one filesystem, so that
    fewer than four are used; or the write image journal (WIJ) on the filesystem of the installation.

Why:
    The journal is what a lost database is rebuilt from, and the alternate journal is where the instance goes on when
    the first is full or broken: on one filesystem both are lost, or full, at once. Every write goes to WIJ, journal
    and database in turn; on one disk they wait for each other.

Do:
    Give installation, databases (with the WIJ), primary journal and alternate journal a filesystem each, on disks of
    their own: journals on the quickest writes. Move journals on the page Journal Settings, the WIJ by wijdir.

When it is wrong:
    Filesystems in one pool (ZFS, one volume group on one disk) are separate by name only, and are not recognised as
    one. An instance that only serves code or a cache has nothing to lose.

Sources:
    InterSystems File System and Storage Configuration Recommendations: at least four separate file systems.
    yaspe documentation (IRIS KPI reference, sp_check).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DBS140",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("database.mounts",),
    thresholds={
        "warn": Threshold(4.0, "count", "InterSystems File System and Storage Configuration Recommendations"),
    },
    clears=False,
)

_APART = ("install", "databases", "journal", "alternate-journal")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per IRIS instance."""

    def judge(database: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if str(context.inventory.get(database, "engine") or database.name).casefold() != "iris":
            return None
        mounts = {str(role): str(where).rstrip("/\\") or "/" for role, where in fact.value.items()}
        shared = list(_shared(mounts))
        parts = [role for role in _APART if role in mounts]
        missing = len(_APART) - len(parts)  # what is not known may well be apart
        if len({mounts[role] for role in parts}) + missing >= context.limit("warn"):
            shared = [pair for pair in shared if "wij" in pair]
        if not shared:
            return None
        pairs = "; ".join(f"{one} and {other} on {mounts[one]}" for one, other in shared)
        return f"{database.label()} keeps together what must be apart: {pairs}", META.severity

    yield from by_setting(context, EntityKind.DATABASE, "mounts", judge)


def _shared(mounts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs that lie on one filesystem and should not."""
    for one, other in (*combinations(_APART, 2), ("wij", "install")):
        if one in mounts and other in mounts and mounts[one] == mounts[other]:
            yield one, other
