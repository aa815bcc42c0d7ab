"""Latency, slow requests, recovery and fill of a Ceph cluster, as its commands print them.

Reads:
    ``ceph osd perf``, ``ceph -s``, ``ceph health detail``, ``ceph osd df`` (also ``df tree``) and ``rbd perf image
    iostat``, one or many runs in one file, as text or with ``--format json``, of releases from Jewel on. A line of
    ``date`` before a run is its time.

Sample:
    .. code-block:: text

        osd  commit_latency(ms)  apply_latency(ms)
          0                  20                 20
          1                  65                 65

Lost:
    Monitors, managers, placement groups, classes and hosts of OSDs. Details of other health checks. Without lines of
    ``date`` runs are taken as 5 s apart.

Units:
    Milliseconds of an OSD's last commits and applies; since BlueStore both are the same. Letters of bytes are powers
    of 1024, those of operations of 1000. What ``ceph -s`` does not print (recovery, clients, slow requests) is 0.

Sources:
    Ceph documentation: monitoring a cluster, health checks, rbd(8) perf image iostat. Ceph's source:
    src/tools/rbd/action/Perf.cc; PGMap::print_osd_perf_stats; print_osd_utilization.
"""

from __future__ import annotations

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.importers._ceph import documents, printed
from leadline.importers._ceph.reports import add_reports

META = ImporterMeta(
    tool="Ceph (ceph, rbd)",
    marks=("commit_latency", "health_", "wr_bytes", "reweight", "cluster", "pgmap", "write_latency", "kb_avail"),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "commit_latency(ms)": Field("osd_commit_latency_ms", "ms"),
        "apply_latency(ms)": Field("osd_apply_latency_ms", "ms"),
        "%USE": Field("osd_used_pct", "pct"),
        "nearfull osd(s)": Field("osd_near_full_count", "count"),
        "slow ops": Field("storage_slow_requests_count", "count"),
        "oldest one blocked for": Field("storage_slow_request_age_s", "s"),
        "recovery": Field("storage_recovery_mib_per_s", "bytes_per_s"),
        "client": Field("storage_client_mib_per_s", "bytes_per_s"),
        "op/s": Field("storage_client_iops", "per_s"),
        "objects degraded": Field("storage_degraded_pct", "pct"),
        "objects misplaced": Field("storage_misplaced_pct", "pct"),
        "WR": Field("disk_writes_per_s", "per_s"),
        "RD": Field("disk_reads_per_s", "per_s"),
        "WR_BYTES": Field("disk_write_mib_per_s", "bytes_per_s"),
        "RD_BYTES": Field("disk_read_mib_per_s", "bytes_per_s"),
        "WR_LAT": Field("virtual_disk_latency_ms_write", "ms"),
        "RD_LAT": Field("virtual_disk_latency_ms_read", "ms"),
    },
    record="for i in 1 2 3 4 5; do date; ceph -s; ceph osd perf; sleep 10; done > ceph.txt",
)


def sniff(source: Source) -> int:
    """Sure by a heading of one of the commands, or by the names in its document."""
    text = source.head_text
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return 92 if documents.MARK.search(text) and _is_of_ceph(text) else 0
    return 92 if printed.MARK.search(text) and _is_of_ceph(text) else 0


def _is_of_ceph(text: str) -> bool:
    """Whether a text has words that only Ceph uses: other clusters have a state and a health, too."""
    words = ("osd", "HEALTH_", "WR_LAT", "pool_namespace", "REWEIGHT")
    return any(word in text for word in words)


def read(source: Source, request: Request) -> Capture:
    """Series of the cluster, its OSDs and images.

    Raises:
        InputError: a line or document is of no known command.
    """
    builder = CaptureBuilder(source.name, "ceph", META.tool)
    if source.head_text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        reports, is_zoned = documents.read_documents(source, request, builder)
    else:
        reader = printed.Printed(source, request, builder)
        reader.read()
        reports, is_zoned = reader.reports, reader.is_zoned
    if not any(report.values for report in reports):
        raise InputError(
            source.name,
            found="no sample of Ceph",
            expected="rows below a heading of `ceph osd perf`, `ceph -s` or `rbd perf image iostat`",
            advice=f"Record it: {META.record}",
        )
    is_timed = add_reports(reports, builder, request.metrics, source.mtime_ns)
    return builder.build(clock_known=is_timed and is_zoned)
