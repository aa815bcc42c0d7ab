"""The bus or a device was reset.

Finds:
    SCSI resets of a device: any in a sample is a warning, more than one per second is critical. Adapters are looked at
    where no device was recorded.

Why:
    A reset throws away every command in flight, of all VMs on that device. It comes after aborts did not help, and it
    stalls I/O until the commands have been sent again.

Do:
    As for aborts: array controllers, fabric, paths, firmware and driver of the adapter. Find the initiator in the
    kernel logs of every host that sees the LUN: one host's reset hits all of them.

When it is wrong:
    Cluster software that uses SCSI reservations resets LUNs on purpose at failover. Booting hosts reset their adapters.

Sources:
    Yellow-Bricks esxtop thresholds: RESETS/s, 1. EsxtopDrill c_map.csv: any is a warning.
    Judgement: a single sample counts, because an average rate hides how rare and how bad a reset is.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.finding import Finding
from leadline.rules._families.lost_commands import given_up_meta, lost_commands

META = given_up_meta("STO108", "disk_resets_per_s", "resets")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device and NFS volume."""
    yield from lost_commands(context, "disk_resets_per_s", "bus resets")
