"""Counters of CloudWatch: AWS/RDS, AWS/EBS and AWS/EC2, and the names and statistics in labels of its exports.

Source: Amazon RDS User Guide, "Amazon CloudWatch metrics for Amazon RDS"; Amazon Aurora User Guide, "Amazon CloudWatch
metrics for Amazon Aurora"; Amazon EBS User Guide, "Amazon CloudWatch metrics for Amazon EBS"; Amazon EC2 User Guide,
"CloudWatch metrics that are available for your instances".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from leadline.formats.clouds.counters import CloudCounter, CloudOwner, CloudPlace, Way, levels
from leadline.formats.clouds.periods import HIGHEST, LOWEST, MEAN, SUM, TimeShare

RDS_DISK, LOG_DISK, EBS_DISKS = "rds-storage", "rds-log-volume", "ebs-volumes"
_READ, _WRITE = "guest_disk_await_ms_read", "guest_disk_await_ms_write"


def _rds(ending: str, disk: str) -> dict[str, CloudCounter]:
    """The counters of a server's storage; those of a log volume have an ending."""
    counters = {
        "ReadLatency": (_READ, "s"),
        "WriteLatency": (_WRITE, "s"),
        "ReadIOPS": ("disk_reads_per_s", "per_s"),
        "WriteIOPS": ("disk_writes_per_s", "per_s"),
        "ReadThroughput": ("disk_read_mib_per_s", "bytes_per_s"),
        "WriteThroughput": ("disk_write_mib_per_s", "bytes_per_s"),
        "DiskQueueDepth": ("guest_disk_queue_count", "count"),
    }
    return levels(CloudPlace.DISK, {f"{name}{ending}": meant for name, meant in counters.items()}, disk)


def _sums(prefix: str, disk: str = "") -> dict[str, CloudCounter]:
    """Operations and bytes of a period."""
    amounts = {
        "ReadOps": ("disk_reads_per_s", "per_s"),
        "WriteOps": ("disk_writes_per_s", "per_s"),
        "ReadBytes": ("disk_read_mib_per_s", "bytes_per_s"),
        "WriteBytes": ("disk_write_mib_per_s", "bytes_per_s"),
    }
    return {
        f"{prefix}{name}": CloudCounter(metric, unit, CloudPlace.DISK, Way.AMOUNT, disk)
        for name, (metric, unit) in amounts.items()
    }


def _limits(metric: str, unit: str, way: Way, names: dict[str, CloudPlace], disk: str = "") -> dict[str, CloudCounter]:
    return {name: CloudCounter(metric, unit, place, way, disk, peak=True) for name, place in names.items()}


COUNTERS: dict[str, CloudCounter] = {
    **_rds("", RDS_DISK),
    **_rds("LogVolume", LOG_DISK),
    **_sums("Volume"),
    **_sums("EBS", EBS_DISKS),
    **levels(
        CloudPlace.DISK,
        {
            "VolumeAvgReadLatency": (_READ, "ms"),
            "VolumeAvgWriteLatency": (_WRITE, "ms"),
            "VolumeQueueLength": ("guest_disk_queue_count", "count"),
        },
    ),
    "VolumeIdleTime": CloudCounter("guest_disk_util_pct", "pct", CloudPlace.DISK, Way.IDLE),
    **levels(
        CloudPlace.MACHINE,
        {
            "CPUUtilization": ("guest_cpu_busy_pct", "pct"),
            "FreeableMemory": ("guest_memory_available_mib", "bytes"),
            "SwapUsage": ("guest_swap_used_mib", "bytes"),
        },
    ),
    **_limits("guest_cpu_credits_count", "count", Way.LEVEL, {"CPUCreditBalance": CloudPlace.MACHINE}),
    **_limits("guest_cpu_credits_owed_count", "count", Way.LEVEL, {"CPUSurplusCreditsCharged": CloudPlace.MACHINE}),
    **_limits("limit_iops_credits_pct", "pct", Way.LEVEL, {"BurstBalance": CloudPlace.DISK}, RDS_DISK),
    **_limits("limit_iops_credits_pct", "pct", Way.LEVEL, {"EBSIOBalance%": CloudPlace.MACHINE}),
    **_limits("limit_bandwidth_credits_pct", "pct", Way.LEVEL, {"EBSByteBalance%": CloudPlace.MACHINE}),
    **_limits(
        "limit_iops_exceeded_pct",
        "pct",
        Way.FLAG,
        {"VolumeIOPSExceededCheck": CloudPlace.DISK, "InstanceEBSIOPSExceededCheck": CloudPlace.MACHINE},
    ),
    **_limits(
        "limit_bandwidth_exceeded_pct",
        "pct",
        Way.FLAG,
        {"VolumeThroughputExceededCheck": CloudPlace.DISK, "InstanceEBSThroughputExceededCheck": CloudPlace.MACHINE},
    ),
    **levels(
        CloudPlace.DATABASE,
        {
            "DatabaseConnections": ("db_sessions_count", "count"),
            "CommitLatency": ("db_commit_wait_ms", "ms"),
            "CommitThroughput": ("db_tps", "per_s"),
            "Queries": ("db_qps", "per_s"),
            "DBLoad": ("db_active_sessions_count", "count"),
            "BufferCacheHitRatio": ("db_buffer_hit_pct", "pct"),
        },
    ),
}
SHARES = (
    TimeShare(_READ, "VolumeTotalReadTime", "VolumeReadOps", "s"),
    TimeShare(_WRITE, "VolumeTotalWriteTime", "VolumeWriteOps", "s"),
)
NAMES = frozenset({*COUNTERS, *(share.time for share in SHARES)})
SURE_NAMES = NAMES - {"Queries"}  # that other tools may have, too

STATISTICS = {
    "average": MEAN,
    "avg": MEAN,
    "sum": SUM,
    "maximum": HIGHEST,
    "max": HIGHEST,
    "minimum": LOWEST,
    "min": LOWEST,
    "samplecount": "samplecount",
}
_TOKEN = re.compile(r"[^\s,:;()\[\]{}\"'=|]+")
_VOLUME = re.compile(r"vol-[0-9a-f]{8,17}")
_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
_PERCENTILE = re.compile(r"(?:p|tm|wm|tc|ts|pr)[0-9]{1,2}(?:\.[0-9]+)?", re.IGNORECASE)
_PERIOD = re.compile(r"[0-9]{1,6}")
_REGION = re.compile(r"(?:us|eu|ap|sa|ca|me|af|il|mx|cn)-(?:gov-)?[a-z]+-[0-9]|AWS/\w+")
_DIMENSIONS = frozenset(
    {"DBInstanceIdentifier", "DBClusterIdentifier", "VolumeId", "InstanceId", "AWS", "EngineName", "Role", "by"}
)


@dataclass(frozen=True, slots=True)
class AwsLabel:
    """A label of an export taken apart; statistic and period are empty and 0 where it does not name them."""

    name: str
    owner: CloudOwner
    statistic: str = ""
    period_s: int = 0


def parse_label(label: str) -> AwsLabel:
    """The counter, its owner, statistic and period in a label such as ``db01 ReadLatency`` or ``vol-0ab BurstBalance``.

    >>> parse_label("us-east-1:AWS/EBS VolumeId:vol-0123456789abcdef0 VolumeReadOps Sum 300").period_s
    300
    """
    volume = instance = statistic = ""
    known: list[str] = []
    rest: list[str] = []
    period_s = 0
    for token in _TOKEN.findall(label[:500]):
        if token in NAMES:
            known.append(token)
        elif _VOLUME.fullmatch(token):
            volume = token
        elif _INSTANCE.fullmatch(token):
            instance = token
        elif token.casefold() in STATISTICS or _PERCENTILE.fullmatch(token):
            statistic = STATISTICS.get(token.casefold(), token.casefold())
        elif _PERIOD.fullmatch(token):
            period_s = int(token)
        elif not _REGION.fullmatch(token) and token not in _DIMENSIONS:
            rest.append(token)
    if len(known) != 1:
        return AwsLabel(label.strip()[:100], CloudOwner())
    machine = instance or (rest[0] if len(rest) == 1 and not volume else "")
    return AwsLabel(known[0], CloudOwner(machine, volume), statistic, period_s)
