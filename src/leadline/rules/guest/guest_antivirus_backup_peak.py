"""A virus scan or backup inside the guest runs in its busy hours.

Finds:
    Scans and backups (events of the guest) with more load right before and after them than the guest has three quarters
    of the time. The recording must hold six hours without such jobs.

Why:
    Both read all files through the page cache and the disks, at the speed the storage gives, and a filter driver of the
    scanner slows each opening of a file. In busy hours the database pays for it.

Do:
    Move the job to the quietest hours of the load profile, limit its rate, and exclude the database's files and
    processes from on-access scans.

When it is wrong:
    A server that is equally busy at all hours has no better time; then limit the job's rate.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): backup and virus scans in
    the hours of least load. Architecting Microsoft SQL Server on VMware vSphere.
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
    code="GST154",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    needs=("guest.events", "|".join(LOAD_METRICS)),
    thresholds={"recorded_min": LOAD_PROFILE},
    explains=("guest-disk-await-high", "guest-iowait-high", "guest-blocked-processes"),
    clears=False,
    judgement=True,
)
_JOBS = {"backup": "A backup", "antivirus": "A virus scan"}


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per guest and kind of job."""
    for guest in context.inventory.of_kind(EntityKind.GUEST):
        for job, noun in _JOBS.items():
            yield from job_in_busy_hours(context, guest, job, f"{noun} runs in the busy hours of {guest.label()}")
