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

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Blames, Layer, Severity
from leadline.rules._families.cloud_limits import LATENCY_MIN, WAITS, capped, of_machines_and_disks
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

_SAYS = "{{where}} is capped by the cloud: more {} than allowed is asked for in {{value}} of the time"

META = RuleMeta(
    code="VMC195",
    layer=Layer.VM,
    severity=Severity.HIGH,
    causes=("disk-capped",),
    accuses=Blames.LIMIT,
    needs=("limit_iops_exceeded_pct|limit_bandwidth_exceeded_pct",),
    uses=WAITS,
    thresholds={
        "warn": Threshold(10.0, "pct", "Judgement: a tenth of the minutes is felt"),
        "crit": Threshold(50.0, "pct", "Judgement: half of the minutes"),
        "latency_min": LATENCY_MIN,
        "duration": TWO_SAMPLES,
    },
    explains=("vm-iops-limit-hit", *GUEST_AND_DATABASE_WAIT_FOR_DISK, "guest-disk-slow-for-database"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk and per machine."""
    yield from capped(
        context,
        (
            of_machines_and_disks(
                "limit_iops_exceeded_pct", "time with more demand than the allowed IOPS", _SAYS.format("IOPS")
            ),
            of_machines_and_disks(
                "limit_bandwidth_exceeded_pct",
                "time with more demand than the allowed throughput",
                _SAYS.format("throughput"),
            ),
        ),
    )
