"""A VM's oldest snapshot is older than a day.

Finds:
    VMs whose oldest snapshot is older than 24 h (medium) or 72 h (high).

Why:
    A delta file grows with every block that changes and is read through on every access. After days it is large, reads
    of the database are spread over two files, and its deletion moves all of that under load.

Do:
    Delete the snapshot in a quiet hour and watch latency and free space meanwhile; large ones take hours. Find out who
    made it (its name, the VM's events): a backup job that leaves snapshots behind does it again.

When it is wrong:
    A snapshot before an upgrade may have to stay for a weekend. The age says nothing about its size.

Sources:
    VMware KB 1025279, snapshot best practices: 24 to 72 h. vCheck-vSphere allows 14 days, which is too much for a
    database.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import duration
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="VMC133",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("vm.snapshot_age_days|vm.snapshot_ages_days",),
    thresholds={
        "warn": Threshold(24.0 * 3600.0, "s", "VMware KB 1025279: 24 to 72 h"),
        "crit": Threshold(72.0 * 3600.0, "s", "VMware KB 1025279: 24 to 72 h"),
    },
    explains=("vm-snapshot-present",),
    clears=False,  # a VM without an old snapshot may still be badly configured
)
_S_PER_DAY = 86_400.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        oldest = _oldest(context, vm)
        if oldest is not None and oldest[0] > context.limit("warn"):
            yield _finding(context, vm, *oldest)


def _oldest(context: RuleContext, vm: Entity) -> tuple[float, str] | None:
    """Age in seconds and name of the oldest snapshot; the name is empty where only an age is known."""
    named = context.inventory.get(vm, "snapshot_ages_days") or {}
    ages = [(float(age) * _S_PER_DAY, name) for name, age in named.items() if isinstance(age, int | float)]
    single = context.inventory.get(vm, "snapshot_age_days")
    if single is not None:
        ages.append((float(single) * _S_PER_DAY, ""))
    return max(ages, default=None)


def _finding(context: RuleContext, vm: Entity, age_s: float, name: str) -> Finding:
    setting = "snapshot_ages_days" if name else "snapshot_age_days"
    evidence = Evidence(
        f"oldest snapshot{f' ({name})' if name else ''}: {duration(age_s)}",
        entity=vm,
        statistic="max",
        value=age_s,
        threshold=context.limit("warn"),
        unit="s",
        source=context.inventory.settings(vm)[setting].source,
    )
    return context.finding(
        vm,
        f"The oldest snapshot of {vm.label()} is {age_s / _S_PER_DAY:.3g} days old",
        [evidence],
        severity=META.severity if age_s > context.limit("crit") else META.severity.lowered(),
        score=age_s / context.limit("warn"),
    )
