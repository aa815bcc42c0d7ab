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

# What to do first for a status; the page's own advice follows where the status is another one.
_FIRST_STEPS = {
    "D:0x8": "Look at the array: what loads it, its limits of service (QoS) for this volume, and its own latency.",
    "D:0x18": "Find the host that holds the reservation of this device, and free it.",
    "D:0x28": "Look at the array: its queue for this volume is full. See what loads it, its limits of service (QoS) "
    "for this volume, and how many hosts send to one port; a lower queue depth of the hosts spares it.",
    "D:0x2 sense 0x3": "Replace the disk: it could not read or write some of its sectors. Save its data first.",
    "D:0x2 sense 0x4": "Replace what failed: the device reports a fault of its hardware.",
}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    says = "Commands to {where} failed {times}, by the host's log"
    for finding in logged(context, "disk_logged_failures_per_s", EntityKind.DEVICE, says):
        code = str(context.inventory.get(finding.entity, "failure_code") or "")
        mostly = f"; mostly {code}, {_MEANINGS[code]}" if code in _MEANINGS else f"; mostly {code}" if code else ""
        remedy = f"{_FIRST_STEPS[code]} {finding.remedy}" if code in _FIRST_STEPS else finding.remedy
        yield replace(finding, summary=f"{finding.summary}{mostly}", remedy=remedy)
