"""What Ceph's commands print with ``--format json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.formats.date_lines import DateLines
from leadline.importers._ceph.printed import take_message
from leadline.importers._ceph.reports import CLUSTER, MIB, CephReport, image, osd

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request

MARK = re.compile(r'"osd_perf_infos"\s*:|"pgmap"\s*:\s*\{|"write_latency"\s*:|"kb_used_data"\s*:|"kb_avail"\s*:')
_OPENING = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
_IMAGE = ("write_ops", "read_ops", "write_bytes", "read_bytes", "write_latency", "read_latency")
Values = dict[str, Any]


def read_documents(source: Source, request: Request, builder: CaptureBuilder) -> tuple[list[CephReport], bool]:
    """The reports of a file of documents, and whether their times have a zone.

    Raises:
        InputError: text between the documents, or none of them is of a known command.
    """
    dates = DateLines(request, builder)
    text = source.text()
    decoder = json.JSONDecoder()
    reports: list[CephReport] = []
    now: int | None = None
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        now = _time(text[position : opening.start()], dates, now)
        begin = opening.end() - 1
        try:
            value, position = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            raise _bad(source, text.count("\n", 0, begin) + 1, "a document that is damaged") from error
        report = _report(value, now)
        if report is None:
            raise _bad(source, text.count("\n", 0, begin) + 1, "a document of another command")
        reports.append(report)
    return reports, dates.is_zoned


def _time(between: str, dates: DateLines, now: int | None) -> int | None:
    for line in between.splitlines():
        moment = dates.time_ns(line)
        now = now if moment is None else moment
    return now


def _bad(source: Source, line: int, problem: str) -> InputError:
    return InputError(
        f"{source.name}:{line}",
        found=problem,
        expected="a document of `ceph osd perf`, `ceph -s`, `ceph osd df` or `rbd perf image iostat`",
        advice="Record it again with --format json.",
    )


def _report(value: object, now: int | None) -> CephReport | None:
    if isinstance(value, list):
        rows = [row for row in value if isinstance(row, dict) and "write_latency" in row]
        return _images(rows, CephReport("rbd perf image iostat", now)) if rows else None
    if not isinstance(value, dict):
        return None
    inner = value.get("osdstats")
    perf = _rows(inner if isinstance(inner, dict) else value, "osd_perf_infos")
    if perf:
        return _perf(perf, CephReport("ceph osd perf", now))
    if isinstance(value.get("pgmap"), dict):
        return _state(value, CephReport("ceph -s", now))
    used = [row for row in _rows(value, "nodes") if "utilization" in row]
    if used:
        report = CephReport("ceph osd df", now)
        for row in used:
            if isinstance(row.get("id"), int) and row["id"] >= 0:
                report.put("osd_used_pct", osd(row["id"]), _number(row.get("utilization")))
        return report
    return None


def _rows(value: Values, name: str) -> list[Values]:
    rows = value.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _perf(rows: list[Values], report: CephReport) -> CephReport:
    for row in rows:
        stats = row.get("perf_stats")
        if isinstance(stats, dict) and isinstance(row.get("id"), int):
            for name in ("commit", "apply"):
                nanoseconds = stats.get(f"{name}_latency_ns")
                known = isinstance(nanoseconds, int)
                value = _number(nanoseconds) / 1e6 if known else _number(stats.get(f"{name}_latency_ms"))
                report.put(f"osd_{name}_latency_ms", osd(row["id"]), value)
    return report


def _images(rows: list[Values], report: CephReport) -> CephReport:
    for row in rows:
        names = [row.get(name) for name in ("pool", "pool_namespace", "image")]
        disk = image("/".join(str(name) for name in names if name))
        writes, reads, written, read, write_ns, read_ns = (_number(row.get(name)) for name in _IMAGE)
        report.put("disk_writes_per_s", disk, writes)
        report.put("disk_reads_per_s", disk, reads)
        report.put("disk_write_mib_per_s", disk, written / MIB)
        report.put("disk_read_mib_per_s", disk, read / MIB)
        if writes:
            report.put("virtual_disk_latency_ms_write", disk, write_ns / 1e6)
        if reads:
            report.put("virtual_disk_latency_ms_read", disk, read_ns / 1e6)
    return report


def _state(value: Values, report: CephReport) -> CephReport:
    pgmap = value["pgmap"]
    moved = _number(pgmap.get("read_bytes_sec")) + _number(pgmap.get("write_bytes_sec"))
    operations = _number(pgmap.get("read_op_per_sec")) + _number(pgmap.get("write_op_per_sec"))
    report.put("storage_client_mib_per_s", CLUSTER, moved / MIB)
    report.put("storage_client_iops", CLUSTER, operations)
    report.put("storage_recovery_mib_per_s", CLUSTER, _number(pgmap.get("recovering_bytes_per_sec")) / MIB)
    for name in ("degraded", "misplaced"):
        if f"{name}_ratio" in pgmap:
            report.put(f"storage_{name}_pct", CLUSTER, 100.0 * _number(pgmap.get(f"{name}_ratio")))
    report.put("storage_slow_requests_count", CLUSTER, 0.0)
    report.put("osd_near_full_count", CLUSTER, 0.0)
    health = value.get("health")
    for text in _texts(health if isinstance(health, dict) else {}):
        take_message(text, report)
    return report


def _texts(health: Values) -> Iterator[str]:
    """The messages of health checks, new and old."""
    checks = health.get("checks")
    for check in checks.values() if isinstance(checks, dict) else ():
        summary = check.get("summary") if isinstance(check, dict) else None
        if isinstance(summary, dict):
            yield str(summary.get("message", ""))[:400]
    for row in _rows(health, "summary"):
        yield str(row.get("summary", ""))[:400]


def _number(value: object) -> float:
    """A number; 0 where there is none, as the commands leave out what is 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e18 else 0.0  # type: ignore[arg-type]
