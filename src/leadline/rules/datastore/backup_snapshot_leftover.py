"""A backup left its snapshot behind.

Finds:
    Snapshots with the name of a backup product that are more than 24 hours old.

Why:
    A backup deletes its snapshot when it is done. One that is still there a day later was forgotten: the VM writes to a
    delta file that grows until the datastore is full, every read asks two files, and the next backup adds another.

Do:
    Delete the snapshot (or consolidate, where the manager shows none but delta files are in use) in a quiet hour, then
    find out why the job did not: its log names the failed step.

When it is wrong:
    Replication products keep a snapshot between runs on purpose. A first backup of many terabytes may take longer than
    a day.

Sources:
    vCheck-vSphere: snapshots of backup products. VMware KB 1025279: snapshots no longer than 72 hours. Names: what
    Veeam, Commvault, NetBackup, NAKIVO, Spectrum Protect, Avamar, NetWorker, Rubrik, Cohesity and others call them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="DST181",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("vm.snapshot_ages_days",),
    thresholds={"age": Threshold(24.0 * 3600.0, "s", "vCheck-vSphere")},
    explains=("vm-snapshot-present",),
    clears=False,
)
_S_PER_DAY = 86_400.0
_BY_BACKUP = re.compile(
    r"backup|veeam|consolidate helper|gx_|nbu_snapshot|netbackup|commvault|nakivo|tsm-vm|spectrum|avamar|networker|"
    r"rubrik|cohesity|acronis|vranger|unitrends|altaro|bacula|hycu",
    re.IGNORECASE,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per VM; every old snapshot is evidence."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        fact = context.inventory.fact(vm, "snapshot_ages_days")
        ages = {} if fact is None else {name: _days(age) for name, age in fact.value.items() if _BY_BACKUP.search(name)}
        old = {name: days for name, days in ages.items() if days * _S_PER_DAY > context.limit("age")}
        if fact is None or not old:
            continue
        evidence = [
            Evidence(f"snapshot {name} of {vm.label()} is {days:.3g} days old", entity=vm, source=fact.source)
            for name, days in sorted(old.items(), key=lambda item: -item[1])
        ]
        oldest = max(old.values())
        summary = f"{vm.label()} runs on a backup's snapshot, {oldest:.3g} days old"
        yield context.finding(vm, summary, evidence, score=oldest * _S_PER_DAY / context.limit("age"))


def _days(age: object) -> float:
    """The age in days; NaN, which is above no limit, where it is not a number."""
    try:
        return float(str(age))
    except ValueError:
        return float("nan")
