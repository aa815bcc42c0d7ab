"""A running VM's disk is erasure-coded on Virtuozzo Storage.

Finds:
    Virtual disks whose Virtuozzo Storage redundancy is erasure coding, as 5+2, and that are not for backups: high for
    disks with a role in a database or none known, medium where that role is a guess.

Why:
    A small write to coded data touches all parts of the stripe. That suits backups, which are written once in large
    pieces, and ruins the latency of a database.

Do:
    Move the disk to a tier with replicas, 3:2. Keep coding for backup and cold data.

When it is wrong:
    A VM that only stores large files, as a backup proxy or an archive, is well served by coding: give its disks the
    role backup.

Sources:
    Virtuozzo Storage performance tests: coding advised for backups, which it made some 10 % faster. Virtuozzo
    installation requirements: replicas for VMs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST147",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("virtual-disk.vstorage_encoding",),
    clears=False,
)
_CODED = re.compile(r"\d+\s*\+\s*\d+")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        role = context.role(disk)
        if _CODED.search(str(fact.value)) is None or (role is not None and role[0] is Role.BACKUP):
            return None
        guessed = role is not None and role[1]
        return f"{disk.label()} is erasure-coded, {fact.value}", META.severity.lowered() if guessed else META.severity

    yield from by_setting(context, EntityKind.VIRTUAL_DISK, "vstorage_encoding", judge)
