"""A disk uses all of the IOPS or throughput that the cloud allows it or its machine.

Finds:
    The share in use of a limit for IOPS or throughput, of a disk or of a machine for all of its disks, at 95 % or more
    (high severity: 99 % or more) for at least 60 s, while a disk of it takes 5 ms or more per request. One severity
    lower where no latency was recorded.

Why:
    A cloud allows each disk so many operations and bytes per second, and each machine so many for all its disks
    together; the lower of both counts. What is asked for above it waits. The latency is that queue: the disk is what is
    waited for, because of a limit. Which limit decides what to buy.

Do:
    Ask for less until the limit is raised: find what reads and writes so much. Expect latency to fall at once with
    either.

    Where the disk's limit is reached: raise its tier or size, or the IOPS and MB/s provisioned for it. Azure Premium
    SSD v2: `az disk update --disk-iops-read-write N`; flexible server: `--iops N`; the log of Azure SQL: a higher
    service objective, or fewer and larger transactions.

    Where the machine's limit is reached: no disk helps; take a larger size of the machine, or use the host's cache for
    disks that are mostly read.

When it is wrong:
    A load that uses exactly what it has and does not wait for it (a backup, a copy) is at the limit without harm to
    others, unless they share it. Means of several minutes hide moments at the limit: ask for a grain of one minute.

Sources:
    Microsoft Learn, "Disk performance metrics": at 100 % the application is capped by the limit of the disk, or of the
    VM; "Virtual machine and disk performance". "Analyze I/O performance, SQL Server on Azure VMs": throttling without
    latency is no problem.
    Microsoft Learn, "Resource governance in Azure SQL Database": log rate governance.
    Judgement: 95 % and 99 %, because a mean seldom reaches 100 %; 5 ms.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, Threshold
from leadline.core.model.finding import Finding
from leadline.rules._families.cloud_limits import capped, cloud_meta, of_machines_and_disks

_SAYS = "{where} is capped by the cloud: it uses {value} of its allowed "

_METRICS = ("limit_iops_used_pct", "limit_bandwidth_used_pct")

META = cloud_meta(
    "VMC194",
    _METRICS,
    Threshold(95.0, "pct", "Judgement: the mean of a minute at the limit is seldom 100 %"),
    Threshold(99.0, "pct", "Microsoft Learn, Disk performance metrics: capped at 100 %"),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk and per machine."""
    yield from capped(
        context,
        (
            of_machines_and_disks(_METRICS[0], "use of the allowed IOPS", f"{_SAYS}IOPS"),
            of_machines_and_disks(_METRICS[1], "use of the allowed throughput", f"{_SAYS}throughput"),
        ),
    )
