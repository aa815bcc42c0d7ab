"""NFS mounts as their client counts them: one table for nfsiostat and for the kernel's own counters."""

from __future__ import annotations

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.tables import Columns, TableScheme

WAYS = ("read", "write")
VALUES = ("ops/s", "kB/s", "retrans %", "avg RTT (ms)", "avg exe (ms)", "avg queue (ms)")  # of each way
COLUMNS = tuple(f"{way}.{value}" for way in WAYS for value in VALUES)
FIELDS = {
    "read.ops/s": Field("disk_reads_per_s", "per_s"),
    "read.kB/s": Field("disk_read_mib_per_s", "kib_per_s"),
    "read.avg RTT (ms)": Field("file_server_rtt_ms_read", "ms"),
    "read.avg exe (ms)": Field("guest_disk_await_ms_read", "ms"),
    "write.ops/s": Field("disk_writes_per_s", "per_s"),
    "write.kB/s": Field("disk_write_mib_per_s", "kib_per_s"),
    "write.avg RTT (ms)": Field("file_server_rtt_ms_write", "ms"),
    "write.avg exe (ms)": Field("guest_disk_await_ms_write", "ms"),
    "read.avg exe (ms) - avg RTT (ms)": Field("file_server_client_wait_ms_read", "ms"),
    "write.avg exe (ms) - avg RTT (ms)": Field("file_server_client_wait_ms_write", "ms"),
    "read.retrans %": Field("file_server_retransmits_pct", "pct"),
}


def scheme_of(tool: str) -> TableScheme:
    """How the table becomes series, for a tool of that name."""
    return TableScheme(tool, FIELDS, _entity_of, derive=_derive)


def _entity_of(group: str, item: str) -> Entity:
    del group
    return Entity(EntityKind.BLOCK_DEVICE, item, UNNAMED_GUEST)


def _derive(columns: Columns) -> None:
    """Add the client's own wait: what a request took beside the answer; times without a request are not measured."""
    for way in WAYS:
        rtt, exe = columns[f"file_server_rtt_ms_{way}"], columns[f"guest_disk_await_ms_{way}"]
        rtt[~(exe > 0)] = np.nan
        exe[~(exe > 0)] = np.nan
        columns[f"file_server_client_wait_ms_{way}"] = np.maximum(exe - rtt, 0.0)
