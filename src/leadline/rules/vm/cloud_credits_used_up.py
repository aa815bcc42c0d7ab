"""The credits of a cloud disk, or of its machine, are used up: it is capped at what it is guaranteed.

Finds:
    Credits for IOPS or throughput of a disk, or of a machine for all of its disks, at 5 % or less (high severity: 1 %
    or less) for at least 60 s, while a disk of it takes 5 ms or more per request. One severity lower where no latency
    was recorded.

Why:
    Small disks and small machines of clouds are guaranteed little, and may do more for a while: each I/O above the
    guarantee takes a credit. Without credits the cloud throttles at the guarantee (100 IOPS for a gp2 volume of 33 GiB,
    300 for 100 GiB), and requests wait in a queue. The disk is not broken: after a rest
    it has earned credits and is quick again. The disk is what is waited for, because of a limit.

Do:
    Ask for less until more is guaranteed: find what reads and writes so much, and move jobs to other hours. Expect
    latency to fall to the level it had with credits.

    Where the disk's credits are used up: buy the rate instead. AWS: change gp2 to gp3 with as many IOPS as it needs,
    `aws ec2 modify-volume --volume-id VOLUME --volume-type gp3 --iops N`, or `aws rds modify-db-instance --storage-type
    gp3`; a larger gp2 volume is guaranteed more. Azure: a larger disk, Premium SSD v2, or on-demand bursting.

    Where the machine's credits are used up: no disk helps (EBSIOBalance%, EBSByteBalance%, VM Uncached Used Burst
    Credits); take a larger size of the machine.

When it is wrong:
    A balance is kept every 5 min: it lags. A volume that was just created, or that never bursts (gp3, io1), reports
    100 % or nothing. Disks that are slow for another reason at the same time look alike.

Sources:
    AWS re:Post Knowledge Center, "Why is the burst balance for my Amazon EBS volume low?" and "How do I troubleshoot a
    low burst balance in my RDS DB instance?": at zero the volume is throttled at its baseline.
    Amazon EBS User Guide, "Amazon EBS General Purpose SSD volumes": 3 IOPS per GiB, at least 100; I/O credits.
    Microsoft Learn, "Managed disk bursting" and "Disk performance metrics".
    Judgement: 5 %, because the balance is a mean that lags; 5 ms.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, Threshold
from leadline.core.model.finding import Finding
from leadline.rules._families.cloud_limits import capped, cloud_meta, of_machines_and_disks

_SAYS = "{where} is capped by the cloud: {noun} {value}"

_METRICS = ("limit_iops_credits_pct", "limit_bandwidth_credits_pct")

META = cloud_meta(
    "VMC193",
    _METRICS,
    Threshold(5.0, "pct", "Judgement: the balance is a mean of minutes, and lags"),
    Threshold(1.0, "pct", "AWS re:Post Knowledge Center: at zero the volume is throttled at its baseline"),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk and per machine."""
    yield from capped(
        context,
        (
            of_machines_and_disks(_METRICS[0], "credits for IOPS left", _SAYS, below=True),
            of_machines_and_disks(_METRICS[1], "credits for throughput left", _SAYS, below=True),
        ),
    )
