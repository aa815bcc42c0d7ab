"""A cluster manager gives up on a database node sooner than a snapshot lets it go on.

Finds:
    The token timeout of the cluster manager in a guest shorter than the longest time its VM stood still for a snapshot.

Why:
    While a snapshot is made or deleted the VM stands still. The other nodes hear nothing, declare it lost, promote the
    replica and fence the old primary, in the middle of a backup and with both at full load. Seen from the guest nothing
    was wrong but the clock.

Do:
    Raise the token timeout (corosync: totem.token) and the stonith timeouts above the longest stun with some reserve;
    leave database nodes out of quiesced snapshots; back up the replica, or by pg_basebackup and WAL archiving; and make
    the stun shorter: fewer deltas, smaller memory, snapshots in a quiet hour.

When it is wrong:
    A stun measured once under an unusual load may not come again. The token timeout of the other nodes counts: it is
    taken to be the same on all.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): failover while snapshots
    are created and deleted. VMware KB 5962168, VM freezes under load with quiesced snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DBS115",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("guest.cluster_token_timeout_s", "vm.stun_s_max"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest whose VM's stun is known."""

    def judge(guest: Entity, fact: Fact) -> tuple[str, Severity] | None:
        vm = context.inventory.vm_of(guest)
        stun = None if vm is None else context.inventory.get(vm, "stun_s_max")
        if stun is None or fact.value >= stun:
            return None
        summary = f"The cluster gives {guest.label()} {fact.value:g} s, a snapshot stopped its VM for {stun:g} s"
        return summary, META.severity

    yield from by_setting(context, EntityKind.GUEST, "cluster_token_timeout_s", judge)
