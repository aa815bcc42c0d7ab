"""More IOPS or throughput is asked for than the cloud allows a disk or its machine.

Finds:
    Minutes in which the cloud itself says that more was asked for than a volume, or a machine for all its volumes, is
    allowed: in at least a tenth of the time (high severity: half of it) for at least 60 s, while a disk of it takes
    5 ms or more per request. One severity lower where no latency was recorded.

Why:
    The cloud sees the demand in front of its limit, which no guest does. What is above the limit waits. The disk is
    what is waited for, because of a limit, and the disk behind it may be quick.

Do:
    Ask for less until the limit is raised: find what reads and writes so much. Expect the check to go to 0 and latency
    to fall with either.

    Where the disk's limit is exceeded: raise what is provisioned for it, `aws ec2 modify-volume --volume-id VOLUME
    --iops N --throughput MIB`.

    Where the machine's limit is exceeded: no volume helps; take an instance type with more EBS bandwidth.

When it is wrong:
    The check is of whole minutes, and of volumes on Nitro instances alone; no value does not mean 0. Highest values of
    long periods say that one of their minutes was above the limit, not all of them.

Sources:
    Amazon EBS User Guide, "Amazon CloudWatch metrics for Amazon EBS": VolumeIOPSExceededCheck and
    VolumeThroughputExceededCheck, 1 where an application consistently attempted more than provisioned within the last
    minute. Amazon EC2 User Guide: InstanceEBSIOPSExceededCheck and InstanceEBSThroughputExceededCheck.
    Judgement: a tenth and half of the time; 5 ms.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, Threshold
from leadline.core.model.finding import Finding
from leadline.rules._families.cloud_limits import capped, cloud_meta, of_machines_and_disks

_SAYS = "{{where}} is capped by the cloud: more {} than allowed is asked for in {{value}} of the time"

_METRICS = ("limit_iops_exceeded_pct", "limit_bandwidth_exceeded_pct")

META = cloud_meta(
    "VMC195",
    _METRICS,
    Threshold(10.0, "pct", "Judgement: a tenth of the minutes is felt"),
    Threshold(50.0, "pct", "Judgement: half of the minutes"),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk and per machine."""
    yield from capped(
        context,
        (
            of_machines_and_disks(_METRICS[0], "time with more demand than the allowed IOPS", _SAYS.format("IOPS")),
            of_machines_and_disks(
                _METRICS[1],
                "time with more demand than the allowed throughput",
                _SAYS.format("throughput"),
            ),
        ),
    )
