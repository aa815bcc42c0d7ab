"""The host logged that commands to a device failed.

Finds:
    Lines with a failed command of a device (H:, D:, P: codes), without those of commands that a device does not know
    and of its notices: high severity where three or more came within ten minutes, medium for fewer.

Why:
    The host sends a failed command again, after some time and often on another path; the guest waits meanwhile. ESXi
    logs such lines sparsely: there were at least as many.

Do:
    Read the codes. H:0x1, H:0x3, H:0x5, H:0x8: the fabric, the adapter or an array that does not answer. H:0x2: the
    adapter was busy. D:0x8, D:0x28: the array is overloaded or its queue is full. D:0x2 with sense 0x3: the disk could
    not read or write (medium error): replace it. D:0x2 with sense 0x4: a fault of its hardware. D:0x18: another host
    holds a reservation.

When it is wrong:
    A planned failover, a firmware upgrade of the array or a rescan makes a few such lines.

Sources:
    VMware KB 1029039, 1030381 (H:, D:, P: codes); T10 SPC-4: sense keys.
    Judgement: three lines within ten minutes are no single event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind
from leadline.rules._families.logged_events import logged, logged_meta

META = logged_meta("STO201", "disk_logged_failures_per_s")
# Source: VMware KB 1029039, 1030381; T10 SPC-4.
_MEANINGS = {
    "H:0x1": "no connection",
    "H:0x2": "the adapter was busy",
    "H:0x3": "no answer in time",
    "H:0x5": "aborted",
    "H:0x7": "an error inside the host",
    "H:0x8": "flushed by a reset",
    "D:0x8": "the array was busy",
    "D:0x18": "another host holds a reservation",
    "D:0x28": "task set full: the array's queue is full",
    "D:0x2 sense 0x3": "medium error: the disk could not read or write",
    "D:0x2 sense 0x4": "a fault of the hardware",
    "D:0x2 sense 0xb": "the array aborted it",
}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    says = "Commands to {where} failed {times}, by the host's log"
    for finding in logged(context, "disk_logged_failures_per_s", EntityKind.DEVICE, says):
        code = str(context.inventory.get(finding.entity, "failure_code") or "")
        mostly = f"; mostly {code}, {_MEANINGS[code]}" if code in _MEANINGS else f"; mostly {code}" if code else ""
        yield replace(finding, summary=f"{finding.summary}{mostly}")
