"""Where the time of active sessions goes: shares per wait event, and the resource each event belongs to.

PostgreSQL's wait events are written ``class:event`` (``IO:DataFileRead``), those of Oracle and SQL Server as they are;
``CPU`` is a session that waits for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

EVENTS = "db_wait_event_sessions_count"
CPU = "CPU"

# Resource of a wait event, the first prefix that fits. Source: PostgreSQL 13 to 17 documentation, "Wait Event Types";
# Oracle Database Reference, "Oracle Wait Events"; Microsoft SQL Server documentation, sys.dm_os_wait_stats.
_RESOURCES = (
    (CPU, "cpu"),
    ("IO:DataFileRead", "data-read"),
    ("IO:DataFilePrefetch", "data-read"),
    ("IO:DataFile", "data-write"),
    ("IO:RelationMap", "data-write"),
    ("IO:SLRURead", "data-read"),
    ("IO:SLRU", "data-write"),
    ("IO:WAL", "wal"),
    ("IO:Wal", "wal"),
    ("LWLock:WAL", "wal"),
    ("LWLock:Wal", "wal"),
    ("IO:BufFile", "temp-files"),
    ("IO:BuffileR", "temp-files"),
    ("IO:BuffileW", "temp-files"),
    ("IPC:SyncRep", "replication"),
    ("IPC:Recovery", "replication"),
    ("IPC:WalReceiver", "replication"),
    ("IPC:Replication", "replication"),
    ("IPC:Logical", "replication"),
    ("IO:Replication", "replication"),
    ("Client:WALSender", "replication"),
    ("Client:WalSender", "replication"),
    ("Client:WalReceiver", "replication"),
    ("Client:LibPQWalReceiver", "replication"),
    ("Client:", "client"),
    ("LWLock:", "lightweight-lock"),
    ("BufferPin:", "lightweight-lock"),
    ("Lock:", "lock"),
    ("IPC:", "ipc"),
    ("db file parallel write", "data-write"),
    ("db file async I/O", "data-write"),
    ("db file ", "data-read"),
    ("direct path read temp", "temp-files"),
    ("direct path write temp", "temp-files"),
    ("direct path read", "data-read"),
    ("direct path write", "data-write"),
    ("read by other session", "data-read"),
    ("cell ", "data-read"),
    ("free buffer waits", "data-write"),
    ("log file ", "wal"),
    ("log buffer space", "wal"),
    ("resmgr:cpu", "cpu"),
    ("enq: ", "lock"),
    ("lock:", "lock"),  # states of MySQL's process list, by our importer
    ("commit:", "wal"),
    ("temp:", "temp-files"),
    ("client:", "client"),
    ("replication:", "replication"),
    ("latch", "lightweight-lock"),
    ("buffer busy", "lightweight-lock"),
    ("library cache", "lightweight-lock"),
    ("cursor: ", "lightweight-lock"),
    ("gc ", "ipc"),
    ("SQL*Net", "client"),
    ("PAGEIOLATCH_", "data-read"),
    ("WRITELOG", "wal"),
    ("LOGBUFFER", "wal"),
    ("LCK_", "lock"),
    ("LATCH_", "lightweight-lock"),
    ("PAGELATCH_", "lightweight-lock"),
    ("SOS_SCHEDULER_YIELD", "cpu"),
    ("HADR_SYNC_COMMIT", "replication"),
    ("ASYNC_NETWORK_IO", "client"),
)


def resource_of(event: str) -> str:
    """The resource a wait event belongs to; ``other`` where the table names none.

    >>> resource_of("LWLock:WALWrite"), resource_of("Lock:tuple"), resource_of("Timeout:PgSleep")
    ('wal', 'lock', 'other')
    >>> resource_of("db file sequential read"), resource_of("WRITELOG")
    ('data-read', 'wal')
    """
    return next((resource for prefix, resource in _RESOURCES if event.startswith(prefix)), "other")


def wait_shares(capture: Capture, start_ns: int, end_ns: int) -> dict[str, float]:
    """Share of the time of active client sessions per wait event in [start, end); empty when none was active.

    Each value stands for the interval that ends at its time; it counts when that time is in (start, end].
    """
    seconds: dict[str, float] = {}
    for group in capture.of(EVENTS):
        inside = (group.times_ns > start_ns) & (group.times_ns <= end_ns)
        sums = np.nansum(group.values[:, inside], axis=1) * (group.interval_s if group.interval_s > 0 else 1.0)
        for entity, spent in zip(group.entities, sums.tolist(), strict=True):
            if spent > 0:
                seconds[entity.name] = seconds.get(entity.name, 0.0) + spent
    whole = sum(seconds.values())
    return {event: spent / whole for event, spent in sorted(seconds.items(), key=lambda item: -item[1])}
