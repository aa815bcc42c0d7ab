"""Commands to a device were given up on.

Finds:
    Aborted commands of a device: any in a sample is a warning, more than one per second is critical. Adapters are
    looked at where no device was recorded.

Why:
    A guest or the hypervisor aborts a command it has waited for too long, typically 30 s or more for a Windows guest.
    The storage did not answer at all for that time; databases see hung or failed I/O.

Do:
    Treat storage as unresponsive: array controllers and their log, fabric errors and cable or transceiver faults, path
    state, firmware and driver of the adapter against the compatibility list. The kernel log of the host names the
    device and the path.

When it is wrong:
    A single abort during a planned failover or a storage firmware upgrade is expected. Some management software aborts
    inquiries to devices it must not see.

Sources:
    Yellow-Bricks esxtop thresholds: ABRTS/s, 1. EsxtopDrill c_map.csv: any is a warning.
    Judgement: a single sample counts, because an average rate hides how rare and how bad an abort is.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.finding import Finding
from leadline.rules._families.lost_commands import given_up_meta, lost_commands

META = given_up_meta("STO107", "disk_aborts_per_s", "aborts", ("disk-resets",))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device and NFS volume."""
    yield from lost_commands(context, "disk_aborts_per_s", "aborted commands")
