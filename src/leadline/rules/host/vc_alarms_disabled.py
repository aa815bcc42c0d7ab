"""Alarms of a host or cluster are recorded, but trigger nothing.

Finds:
    Hosts and clusters whose alarm actions are disabled; hosts in maintenance are left out.

Why:
    Alarm actions are switched off for maintenance and stay off. The next lost path, full datastore or failed disk is
    then noticed by the database's users.

Do:
    Enable alarm actions on the object in the vSphere client, and check who gets the messages.

When it is wrong:
    It makes nothing slow. Where another system watches, vCenter's own alarms may be off on purpose.

Sources:
    vCheck for vSphere (alarm actions disabled).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="HST175",
    layer=Layer.HOST,
    severity=Severity.LOW,
    needs=("host.alarm_actions_enabled|cluster.alarm_actions_enabled",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host and cluster."""

    def in_service(entity: Entity) -> bool:
        return context.inventory.get(entity, "maintenance_mode") is not True

    for kind in (EntityKind.CLUSTER, EntityKind.HOST):
        says = f"Alarm actions of {kind.value} {{name}} are disabled"
        yield from flag_is(context, (kind, "alarm_actions_enabled"), False, says, keep=in_service)
