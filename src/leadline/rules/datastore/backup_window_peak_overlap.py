"""An image backup of a VM runs in its busy hours.

Finds:
    Backups (events of the VM) with more load right before and after them than the VM has three quarters of the time.
    The recording must hold six hours without backups.

Why:
    The backup reads the whole disk beside the database, and the snapshot it works on makes each write more expensive;
    its removal at the end stuns the VM. Every layer below looks slow meanwhile.

Do:
    Move the job to the quietest hours, or let the backup product limit itself by the datastore's latency (storage
    latency control). Look at anything slow at night with the backup window at hand first.

When it is wrong:
    A VM that is equally busy at all hours has no better time; then limit the job's rate.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): plan backups for the hours
    of least load.
    Judgement: the load beside the job stands for the load it meets; six hours are the least for a load profile.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.jobs import LOAD_METRICS
from leadline.rules._families.jobs_in_busy_hours import job_in_busy_hours
from leadline.rules._families.limits import LOAD_PROFILE

META = RuleMeta(
    code="DST180",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    needs=("vm.events", "|".join(LOAD_METRICS)),
    thresholds={"recorded_min": LOAD_PROFILE},
    explains=(
        "disk-davg-generic",
        "disk-davg-data",
        "disk-davg-wal",
        "disk-gavg-high",
        "guest-disk-await-high",
        "guest-iowait-high",
        "guest-blocked-processes",
        "vsan-client-latency-high",
        "vsan-oio-high",
    ),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per VM."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        yield from job_in_busy_hours(context, vm, "backup", f"{vm.label()} is backed up in its busy hours")
