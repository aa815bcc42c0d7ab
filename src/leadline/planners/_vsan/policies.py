"""Storage policies of each virtual disk, as text."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.core.contracts.planner import Snippet
from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.protection import ObjectLayout, efficiency, layouts, reservation_pct

MIRROR, CODE = "RAID-1 (Mirroring) - Performance", "RAID-5/6 (Erasure Coding) - Capacity"
# What a machine's disks are called: data, log, temporary space.
NAMES = {
    "sqlserver": ("data", "log", "tempdb"),
    "oracle": ("data", "redo", "temp"),
    "postgresql": ("pgdata", "pg_wal", "temp"),
}


@dataclass(frozen=True, slots=True)
class PolicyDisk:
    """A virtual disk of a machine."""

    name: str
    size_gb: float
    controller: str
    layout: ObjectLayout
    is_log: bool
    is_limited: bool

    def policy(self, own: Vsan) -> str:
        """The name of its policy."""
        limited = "-limited" if self.is_limited else ""
        return f"{own.engine}-{own.tier}-{'log' if self.is_log else 'data'}{limited}"


def disks(own: Vsan, hosts: int) -> list[PolicyDisk]:
    """Disks of one machine: log, data and temporary space on controllers of their own."""
    data, log = layouts(own, hosts)
    data_name, log_name, temp_name = NAMES[own.engine]
    is_limited = own.iops_limit is not None
    parts = [
        PolicyDisk(
            f"{data_name}-{number}", own.data_gb / own.data_disks, "pvscsi 1", data, is_log=False, is_limited=is_limited
        )
        for number in range(1, own.data_disks + 1)
    ]
    return [
        PolicyDisk("system", own.system_gb, "pvscsi 0", data, is_log=False, is_limited=False),
        *parts,
        PolicyDisk(log_name, own.log_gb, "pvscsi 2", log, is_log=True, is_limited=False),
        PolicyDisk(temp_name, own.temp_gb, "pvscsi 3", data, is_log=False, is_limited=False),
    ]


def rules(own: Vsan, disk: PolicyDisk) -> dict[str, str]:
    """Capabilities of a policy and their values."""
    found: dict[str, str] = {}
    if own.is_stretched:
        found["VSAN.hostFailuresToTolerate"] = "1"
        found["VSAN.subFailuresToTolerate"] = str(disk.layout.ftt)
        found["VSAN.locality"] = '"None"'
    else:
        found["VSAN.hostFailuresToTolerate"] = str(disk.layout.ftt)
    found["VSAN.replicaPreference"] = f'"{MIRROR if disk.layout.is_mirror else CODE}"'
    found["VSAN.stripeWidth"] = str(own.stripes)
    found["VSAN.proportionalCapacity"] = f"{reservation_pct(own):.0f}"
    found["VSAN.forceProvisioning"] = "$false"
    found["VSAN.checksumDisabled"] = "$false"
    if disk.is_limited and own.iops_limit is not None:
        found["VSAN.iopsLimit"] = str(own.iops_limit)
    return found


def snippets(own: Vsan, hosts: int) -> tuple[Snippet, ...]:
    """Policies, which disk has which, and the services of the cluster."""
    own_disks = disks(own, hosts)
    policies = {disk.policy(own): disk for disk in own_disks}
    made = []
    for name, disk in policies.items():
        lines = ",\n".join(
            f'  (New-SpbmRule -Capability (Get-SpbmCapability "{key}") -Value {value})'
            for key, value in rules(own, disk).items()
        )
        made.append(f"New-SpbmStoragePolicy -Name {name} -AnyOfRuleSets (New-SpbmRuleSet -AllOfRules @(\n{lines}\n))")
    given = "\n".join(
        f'Set-SpbmEntityConfiguration (Get-HardDisk -VM $vm -Name "Hard disk {number}") '
        f"-StoragePolicy {disk.policy(own)}  # {disk.name}"
        for number, disk in enumerate(own_disks, 1)
    )
    saves = efficiency(own)
    services = "-PerformanceServiceEnabled $true"
    if not own.is_esa:
        services += f" -SpaceEfficiencyEnabled ${str(saves == 'dedup').lower()}"
        services += f" -SpaceCompressionEnabled ${str(saves == 'compression').lower()}"
    return (
        Snippet("Storage policies", "powercli", "\n".join(made)),
        Snippet("Policy of each virtual disk", "powercli", given),
        Snippet("Cluster", "powercli", f"Set-VsanClusterConfiguration -Configuration $cluster {services}"),
    )
