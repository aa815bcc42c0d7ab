"""The settings to apply: shares and limits in vSphere, storage policies, QEMU, cgroup, disks of clouds.

A cloud counts operations, not units of 32 KiB; a disk of its has IOPS and throughput within a range.

Sources:
    VMware, PowerCLI reference, New-SpbmRule. QEMU documentation, throttle groups. Linux, admin-guide/cgroup-v2, io.max.
    AWS, EC2 API reference, ModifyVolume: gp3. Microsoft, Azure managed disk types: Premium SSD v2; Azure CLI, az disk
    update. Google, "About Hyperdisk Balanced"; gcloud reference, compute disks update.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from leadline.core.contracts.planner import Bend, Snippet
from leadline.planners._qos.inputs import UNIT_KIB, Cloud, QosDisk

POLICY = (
    "New-SpbmStoragePolicy -Name {name} -AnyOfRuleSets (New-SpbmRuleSet -AllOfRules @(New-SpbmRule -Capability "
    '(Get-SpbmCapability "VSAN.iopsLimit") -Value {limit:.0f}))'
)


@dataclass(frozen=True, slots=True)
class CloudDisk:
    """A type of disk: ranges of IOPS and throughput, IOPS for each GiB, throughput for each of its IOPS, its command.

    Throughput is in the cloud's own unit, which is named with its size in bytes.
    """

    iops: tuple[int, int]
    throughput: tuple[int, int]
    iops_per_gib: float
    command: str
    source: str
    unit: tuple[str, float] = ("MiB/s", 2.0**20)
    throughput_per_iops: float = 0.25


CLOUDS: dict[Cloud, CloudDisk] = {
    "aws-gp3": CloudDisk(
        (3_000, 80_000), (125, 2_000), 500.0,
        "aws ec2 modify-volume --volume-id VOLUME-OF-{name} --volume-type gp3 --iops {iops} --throughput {moved}",
        "EC2 API reference, ModifyVolume",
    ),
    "azure-premium-v2": CloudDisk(
        (3_000, 80_000), (125, 1_200), 500.0,
        "az disk update --resource-group GROUP --name {name} --disk-iops-read-write {iops} "
        "--disk-mbps-read-write {moved}",
        "Azure managed disk types", ("MB/s", 1e6),
    ),
    "gcp-hyperdisk-balanced": CloudDisk(
        (3_000, 160_000), (140, 2_400), 500.0,
        "gcloud compute disks update {name} --zone=ZONE --provisioned-iops={iops} --provisioned-throughput={moved}",
        "About Hyperdisk Balanced",
    ),
}  # fmt: skip


def plain(name: str) -> str:
    """A disk's name without what shells, paths and ids do not take."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)


def snippets(disks: Sequence[QosDisk], given: Sequence[float], cloud: Cloud | None) -> tuple[Snippet, ...]:
    """Settings of the disks, for each place that can have them; ``given`` are units a second when all are busy."""
    limited = [disk for disk in disks if disk.limit_iops is not None]
    snippets = [Snippet("Shares and limits", "powercli", "\n".join(_vsphere(disk) for disk in disks))]
    if limited:
        policies = "\n".join(_policy(disk) for disk in limited)
        snippets.append(Snippet("Limits on vSAN, where a policy has them; it has no shares", "spbm", policies))
        snippets.append(Snippet("Throttle groups", "qemu", "\n".join(_qemu(disk) for disk in limited)))
        lines = "\n".join(_cgroup(disk) for disk in limited)
        snippets.append(Snippet("cgroup v2: reads and writes have a limit each", "cgroup", lines))
    if cloud is not None:
        kind = CLOUDS[cloud]
        lines = "\n".join(
            kind.command.format(name=plain(disk.name), iops=iops, moved=moved)
            for disk, (iops, moved, _, _) in zip(disks, _clouded(kind, disks, given), strict=True)
        )
        snippets.append(Snippet("Disks of the cloud: operations of any size, and throughput", cloud, lines))
    return tuple(snippets)


def bends(disks: Sequence[QosDisk], given: Sequence[float], cloud: Cloud | None) -> list[Bend]:
    """Disks whose IOPS or throughput a disk of the cloud's type cannot have."""
    if cloud is None:
        return []
    kind, bends = CLOUDS[cloud], []
    for disk, (iops, moved, wanted, wanted_moved) in zip(disks, _clouded(kind, disks, given), strict=True):
        if iops < wanted or (iops > wanted and disk.limit_iops is not None):
            size = f" at {disk.size_gib:g} GiB" if disk.size_gib is not None and iops < wanted else ""
            cost = f"{disk.name} is to have {wanted:,}; {cloud} has {kind.iops[0]:,} to {_most(kind, disk):,}{size}"
            bends.append(Bend("IOPS are within the range of the cloud's disks", cost, kind.source))
        if moved < wanted_moved:
            cost = f"{disk.name} moves {wanted_moved:,} {kind.unit[0]} at that rate; {cloud} gives {moved:,}"
            bends.append(Bend("throughput is within the range of the cloud's disks", cost, kind.source))
    return bends


def _most(kind: CloudDisk, disk: QosDisk) -> int:
    by_size = kind.iops[1] if disk.size_gib is None else int(kind.iops_per_gib * disk.size_gib)
    return max(kind.iops[0], min(kind.iops[1], by_size))


def _clouded(kind: CloudDisk, disks: Sequence[QosDisk], given: Sequence[float]) -> list[tuple[int, int, int, int]]:
    """Return for each disk the IOPS and throughput its cloud type can give, and those it should have."""
    clouded = []
    for disk, units in zip(disks, given, strict=True):
        is_bound = disk.limit_iops is not None or disk.wanted_iops is not None
        wanted = ceil((disk.most_units if is_bound else units) / disk.units)
        iops = min(max(wanted, kind.iops[0]), _most(kind, disk))
        wanted_moved = ceil(wanted * disk.block_kib * 1024.0 / kind.unit[1])
        least, highest = kind.throughput
        most = min(highest, max(least, int(kind.throughput_per_iops * iops)))
        clouded.append((iops, min(max(wanted_moved, least), most), wanted, wanted_moved))
    return clouded


def _hard_disk(disk: QosDisk) -> str:
    label = disk.label or (f"<NAME OF {disk.name}>" if disk.vm else "")
    label = f' -Name "{label}"' if label else ""
    return f'Get-HardDisk -VM "{disk.vm or disk.name}"{label}'


def _vsphere(disk: QosDisk) -> str:
    limit = "" if disk.limit_iops is None else f" -DiskLimitIOPerSecond {disk.limit_iops:.0f}"
    which = f"  # {disk.name}" if disk.vm else ""
    return (
        f'Get-VM "{disk.vm or disk.name}" | Get-VMResourceConfiguration | Set-VMResourceConfiguration -Disk '
        f"({_hard_disk(disk)}) -NumDiskShares {disk.shares:.0f} -DiskSharesLevel Custom{limit}{which}"
    )


def _policy(disk: QosDisk) -> str:
    name = f"limit-{plain(disk.name)}"
    command = POLICY.format(name=name, limit=disk.limit_iops)
    return f"{command}\nSet-SpbmEntityConfiguration ({_hard_disk(disk)}) -StoragePolicy {name}"


def _qemu(disk: QosDisk) -> str:
    limits = f"x-iops-total={disk.limit_iops:.0f},x-iops-size={UNIT_KIB * 1024:.0f}"
    return f"-object throttle-group,id={plain(disk.name)},{limits}"


def _cgroup(disk: QosDisk) -> str:
    each = (disk.limit_iops or 0.0) / disk.units
    return f'echo "<MAJOR:MINOR> riops={each:.0f} wiops={each:.0f}" > /sys/fs/cgroup/{plain(disk.name)}/io.max'
