"""Storage policies of each virtual disk, as text."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.core.contracts.planner import Snippet
from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.protection import (
    ObjectLayout,
    efficiency,
    layouts,
    reservation_pct,
    written_reservation_pct,
)

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
    reserved_pct: float

    def policy(self, inputs: Vsan) -> str:
        """The name of its policy."""
        limited = "-limited" if self.is_limited else ""
        is_apart = not self.is_log and self.reserved_pct != reservation_pct(inputs)
        kind = "log" if self.is_log else "temp" if is_apart else "data"
        return f"{inputs.engine}-{inputs.tier}-{kind}{limited}"


def quoted(name: str) -> str:
    """Return a name as a PowerShell string.

    >>> quoted("O'Brien")
    "'O''Brien'"
    """
    doubled = name.replace("'", "''")
    return f"'{doubled}'"


def disks(inputs: Vsan, hosts: int) -> list[PolicyDisk]:
    """Disks of one machine: log, data and temporary space on controllers of their own."""
    data, log = layouts(inputs, hosts)
    data_name, log_name, temp_name = NAMES[inputs.engine]
    is_limited = inputs.iops_limit is not None
    thin, kept = reservation_pct(inputs), written_reservation_pct(inputs)
    parts = [
        PolicyDisk(
            f"{data_name}-{number}",
            inputs.data_gb / inputs.data_disks,
            "pvscsi 1",
            data,
            is_log=False,
            is_limited=is_limited,
            reserved_pct=thin,
        )
        for number in range(1, inputs.data_disks + 1)
    ]
    named = [
        PolicyDisk("system", inputs.system_gb, "pvscsi 0", data, is_log=False, is_limited=False, reserved_pct=thin),
        *parts,
        PolicyDisk(log_name, inputs.log_gb, "pvscsi 2", log, is_log=True, is_limited=False, reserved_pct=kept),
        PolicyDisk(temp_name, inputs.temp_gb, "pvscsi 3", data, is_log=False, is_limited=False, reserved_pct=kept),
    ]
    return [disk for disk in named if disk.size_gb > 0]


def rules(inputs: Vsan, disk: PolicyDisk) -> dict[str, str]:
    """Capabilities of a policy and their values."""
    capabilities: dict[str, str] = {}
    if inputs.is_stretched:
        capabilities["VSAN.hostFailuresToTolerate"] = "1"
        capabilities["VSAN.subFailuresToTolerate"] = str(disk.layout.ftt)
        capabilities["VSAN.locality"] = '"None"'
    else:
        capabilities["VSAN.hostFailuresToTolerate"] = str(disk.layout.ftt)
    capabilities["VSAN.replicaPreference"] = f'"{MIRROR if disk.layout.is_mirror else CODE}"'
    capabilities["VSAN.stripeWidth"] = str(inputs.stripes)
    capabilities["VSAN.proportionalCapacity"] = f"{disk.reserved_pct:.0f}"
    capabilities["VSAN.forceProvisioning"] = "$false"
    capabilities["VSAN.checksumDisabled"] = "$false"
    if disk.is_limited and inputs.iops_limit is not None:
        capabilities["VSAN.iopsLimit"] = str(inputs.iops_limit)
    return capabilities


def snippets(inputs: Vsan, hosts: int, cluster_name: str | None = None) -> tuple[Snippet, ...]:
    """Return commands for the storage policies, the policy of each disk, and the services of the cluster."""
    machine_disks = disks(inputs, hosts)
    policies = {disk.policy(inputs): disk for disk in machine_disks}
    commands = []
    for name, disk in policies.items():
        lines = ",\n".join(
            f'  (New-SpbmRule -Capability (Get-SpbmCapability "{key}") -Value {value})'
            for key, value in rules(inputs, disk).items()
        )
        commands.append(
            f"New-SpbmStoragePolicy -Name {name} -AnyOfRuleSets (New-SpbmRuleSet -AllOfRules @(\n{lines}\n))"
        )
    given = "\n".join(
        f'Set-SpbmEntityConfiguration (Get-HardDisk -VM $vm -Name "Hard disk {number}") '
        f"-StoragePolicy {disk.policy(inputs)}  # {disk.name}"
        for number, disk in enumerate(machine_disks, 1)
    )
    saves = efficiency(inputs)
    cluster = quoted(cluster_name or "<CLUSTER>")
    services = "-PerformanceServiceEnabled $true"
    if not inputs.is_esa:
        services += f" -SpaceEfficiencyEnabled ${str(saves == 'dedup').lower()}"
        services += f" -SpaceCompressionEnabled ${str(saves == 'compression').lower()}"
    return (
        Snippet("Storage policies", "powercli", "\n".join(commands)),
        Snippet("Policy of each virtual disk", "powercli", f'$vm = Get-VM "<VM>"  # disks as in the table\n{given}'),
        Snippet(
            "Cluster",
            "powercli",
            f"$cluster = Get-Cluster {cluster}\nSet-VsanClusterConfiguration -Configuration $cluster {services}",
        ),
    )
