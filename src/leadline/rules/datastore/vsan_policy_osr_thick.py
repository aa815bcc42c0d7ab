"""Space for a database's disk is not reserved on vSAN.

Finds:
    Virtual disks with the role data or WAL whose vSAN policy reserves less than 100 % of their size.

Why:
    Without a reservation a growing database competes for the last free space of the cluster, and when there is none
    its writes stop. Space taken in advance also spares the allocation on first write.

Do:
    Set the object space reservation of data and log disks to 100 % (thick) and watch the cluster's capacity, since it
    counts at once.

When it is wrong:
    With deduplication and compression on, only 0 or 100 % is possible and a reservation gives the savings away. A
    cluster with much free space and an alarm on it can live without.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: thick data and log disks for databases of both tiers.
    vSAN Design and Sizing guide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.knowledge.vsan import roles_guessed
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST120",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("virtual-disk.vsan_space_reservation_pct", "virtual-disk.role"),
    thresholds={"warn": Threshold(100.0, "pct", "vmgu.ru articles on vSphere, vSAN and StarWind performance")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk; one milder where the role is a guess."""

    def of_database(_: RuleContext, disk: Entity) -> bool:
        role = context.role(disk)
        return role is not None and role[0] in (Role.DATA, Role.WAL)

    setting = "vsan_space_reservation_pct"
    spec = SettingLimit(EntityKind.VIRTUAL_DISK, setting, "reserved space", below=True, keep=of_database)
    for finding in setting_over(context, spec):
        guessed = roles_guessed(context.inventory, [finding.entity])
        severity = finding.severity.lowered() if guessed else finding.severity
        yield replace(finding, severity=severity, guessed=(*finding.guessed, *guessed))
