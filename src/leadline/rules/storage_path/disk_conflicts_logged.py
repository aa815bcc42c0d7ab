"""The host logged that a device refused commands because another host had reserved it.

Finds:
    Lines of reservation conflicts ("Sync CR at", "too many reservation conflicts", D:0x18): high severity where three
    or more came within ten minutes, medium for fewer.

Why:
    While one host holds a SCSI reservation of a LUN, commands of all others are refused and sent again later. An
    adapter that hung or a host that died while it held one blocks the others until the reservation is broken.

Do:
    Find the host that holds it: `esxcli storage core device list` and the array's list of reservations; look at the
    logs of the other hosts and backup servers for the same minutes. Break a reservation that is stuck
    (`vmkfstools --lock lunreset`, with the array's vendor). See that the array takes ATS (VAAI), so that VMFS locks
    without reservations, and keep snapshots and power-ons on one LUN few.

When it is wrong:
    Cluster disks of Windows guests and devices marked perennially reserved are refused on purpose.

Sources:
    VMware KB 1005009: analyzing SCSI reservation conflicts.
    Judgement: three lines within ten minutes are no single event.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind
from leadline.rules._families.logged_events import logged, logged_meta

META = logged_meta("STO202", "disk_logged_conflicts_per_s")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    says = "Reservation conflicts on {where}: logged {times}"
    yield from logged(context, "disk_logged_conflicts_per_s", EntityKind.DEVICE, says)
