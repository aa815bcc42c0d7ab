"""Lines of an ESXi host's log that tell of trouble with storage without a latency or a lost access.

Each is an event of an entity: failed commands, refused reservations, commands that a driver gave up on, heartbeats of a
file system that were not written in time, and vSAN's congestion. ESX 3.5 to ESXi 8 word them alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.core.model.vocabulary import EntityKind

FAILURES = "disk_logged_failures_per_s"
CONFLICTS = "disk_logged_conflicts_per_s"
GIVEN_UP = "disk_logged_aborts_per_s"
HEARTBEATS = "datastore_heartbeat_timeouts_per_s"
CONGESTION = "vsan_logged_congestion_count"
CONGESTION_MOST = 255.0  # vSAN's congestion goes from 0 to 255

_REPEATED = re.compile(r"last error status from device (\S{1,200}) repeated (\d{1,6}) times")
_SYNC_CR = re.compile(r"\bSync CR\b.{0,40}? at \d|too many reservation conflicts|reservation conflict", re.IGNORECASE)
_DEVICE = re.compile(r"\b(?:naa|eui|t10|mpx|vml)\.[\w.:-]{1,200}")
_HANDLE = re.compile(r"\bSCSI: vm \d{1,10}: (\d{1,10})")
_DRIVER = re.compile(
    r"\b((?:vmw_|nvme_|brcm)?(?:qla\d{1,5}x{0,4}|qlnativefc|lpfc\d{0,3}|nvme\d{0,3}|ahci|megaraid_\w{3}"
    r"|lsi_mr\d|lsi_msgpt\d{1,2}|mptsas|mpt\dsas|hpsa|aacraid|iscsi_vmk|nfnic|fnic))"
    r"(?:_[a-z]\w{0,40})?(?:[\[(]([\w.-]{1,24})[\])])?"
)
_ABORT = re.compile(r"\b[Aa]bort|[a-z_][Aa]bort|VIRT_RESET|\b(?:LUN|BUS|DEVICE|TARGET) RESET\b")
_HEARTBEAT = re.compile(
    r"HBX: \d+: '([^']{1,100})'.{0,80}[Ww]aiting for timed out|[Rr]eclaimed timed out|Waiting for timed out \[HB"
)
_UUID = re.compile(r"\buuid ([\da-f-]{16,40})")
_LSOM = re.compile(
    r"SSD ([\da-f-]{16,40}) congestion reached"
    r"|Congestion State: (\w{1,20})\..{0,80}?Current Congestion: (\d{1,3})"
)
_GROUP = "disk group"


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """What a line tells: of which metric, kind and name, and how often, or the value where it names one."""

    metric: str
    kind: EntityKind
    name: str
    value: float = 1.0


def logged_events(text: str) -> Iterator[LoggedEvent]:
    """What a line tells beyond latency and access.

    >>> [(one.metric, one.name) for one in logged_events("SCSI: vm 1039: 109: Sync CR at 64")]
    [('disk_logged_conflicts_per_s', 'handle 109')]
    """
    if (repeated := _REPEATED.search(text)) is not None:
        yield LoggedEvent(FAILURES, EntityKind.DEVICE, repeated[1].strip('"'), float(repeated[2]))
    elif (lsom := _LSOM.search(text)) is not None:
        value = CONGESTION_MOST if lsom[1] else float(lsom[3])
        yield LoggedEvent(CONGESTION, EntityKind.DISK_GROUP, lsom[1] or _GROUP, value)
    elif (beat := _HEARTBEAT.search(text)) is not None:
        uuid = _UUID.search(text)
        yield LoggedEvent(HEARTBEATS, EntityKind.DATASTORE, beat[1] or (uuid[1] if uuid else "datastore"))
    elif _SYNC_CR.search(text) is not None:
        device, handle = _DEVICE.search(text), _HANDLE.search(text)
        name = device[0].rstrip(".:-") if device else f"handle {handle[1]}" if handle else "a LUN"
        yield LoggedEvent(CONFLICTS, EntityKind.DEVICE, name)
    elif (driver := _DRIVER.search(text[:120])) is not None and _ABORT.search(text) is not None:
        yield LoggedEvent(GIVEN_UP, EntityKind.ADAPTER, f"{driver[1]} {driver[2] or ''}".strip())
