"""What iostat's columns mean, and its text read whole: shared by recordings of iostat and reports that hold one.

A report is read in Rust; here its columns become metrics, values that say nothing become "not measured".
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from leadline._core import CoreError, IostatRecording
from leadline.core.contracts.importer import Field, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.formats.sysstat.iostat import IostatRun, Reports
from leadline.formats.sysstat.text import parse_banner

FIELDS: dict[str, Field] = {
    "tps": Field("disk_iops", "per_s"),
    "r/s": Field("disk_reads_per_s", "per_s"),
    "w/s": Field("disk_writes_per_s", "per_s"),
    "d/s": Field("guest_disk_discards_per_s", "per_s"),
    "f/s": Field("guest_disk_flushes_per_s", "per_s"),
    "rkB/s": Field("disk_read_mib_per_s", "kib_per_s"),
    "wkB/s": Field("disk_write_mib_per_s", "kib_per_s"),
    "dkB/s": Field("guest_disk_discard_mib_per_s", "kib_per_s"),
    "kB/s": Field("guest_disk_busy_mib_per_s", "kib_per_s"),
    "rMB/s": Field("disk_read_mib_per_s", "mib_per_s"),
    "wMB/s": Field("disk_write_mib_per_s", "mib_per_s"),
    "dMB/s": Field("guest_disk_discard_mib_per_s", "mib_per_s"),
    "MB/s": Field("guest_disk_busy_mib_per_s", "mib_per_s"),
    "rsec/s": Field("disk_read_mib_per_s", "sectors_per_s"),
    "wsec/s": Field("disk_write_mib_per_s", "sectors_per_s"),
    "dsec/s": Field("guest_disk_discard_mib_per_s", "sectors_per_s"),
    "kB_read/s": Field("disk_read_mib_per_s", "kib_per_s"),
    "kB_wrtn/s": Field("disk_write_mib_per_s", "kib_per_s"),
    "kB_dscd/s": Field("guest_disk_discard_mib_per_s", "kib_per_s"),
    "MB_read/s": Field("disk_read_mib_per_s", "mib_per_s"),
    "MB_wrtn/s": Field("disk_write_mib_per_s", "mib_per_s"),
    "MB_dscd/s": Field("guest_disk_discard_mib_per_s", "mib_per_s"),
    "Blk_read/s": Field("disk_read_mib_per_s", "sectors_per_s"),
    "Blk_wrtn/s": Field("disk_write_mib_per_s", "sectors_per_s"),
    "Blk_dscd/s": Field("guest_disk_discard_mib_per_s", "sectors_per_s"),
    "%rrqm": Field("guest_disk_read_merged_pct", "pct"),
    "%wrqm": Field("guest_disk_write_merged_pct", "pct"),
    "await": Field("guest_disk_await_ms", "ms"),
    "r_await": Field("guest_disk_await_ms_read", "ms"),
    "w_await": Field("guest_disk_await_ms_write", "ms"),
    "d_await": Field("guest_disk_await_ms_discard", "ms"),
    "f_await": Field("guest_disk_flush_latency_ms", "ms"),
    "svctm": Field("guest_disk_service_ms", "ms"),
    "aqu-sz": Field("guest_disk_queue_count", "count"),
    "avgqu-sz": Field("guest_disk_queue_count", "count"),
    "areq-sz": Field("guest_disk_io_size_kib", "kib"),
    "rareq-sz": Field("guest_disk_io_size_kib_read", "kib"),
    "wareq-sz": Field("guest_disk_io_size_kib_write", "kib"),
    "avgrq-sz": Field("guest_disk_io_size_kib", "sectors"),
    "%util": Field("guest_disk_util_pct", "pct"),
    "%user": Field("guest_cpu_user_pct", "pct"),
    "%nice": Field("guest_cpu_nice_pct", "pct"),
    "%system": Field("guest_cpu_system_pct", "pct"),
    "%iowait": Field("guest_cpu_iowait_pct", "pct"),
    "%steal": Field("guest_cpu_steal_pct", "pct"),
    "%idle": Field("guest_cpu_idle_pct", "pct"),
}

# Columns without which another cannot be judged: whether there was any request to have an await or a size.
_COMPANIONS: dict[str, tuple[str, ...]] = {
    "await": ("r/s", "w/s", "tps"),
    "svctm": ("r/s", "w/s"),
    "r_await": ("r/s",),
    "w_await": ("w/s",),
    "d_await": ("d/s",),
    "f_await": ("f/s",),
    "areq-sz": ("tps",),
    "avgrq-sz": ("r/s", "w/s"),
    "rareq-sz": ("r/s",),
    "wareq-sz": ("w/s",),
    "dareq-sz": ("d/s",),
}
# A report's length is its total over its rate, where both are printed.
_TOTALS: dict[str, str] = {
    f"{unit}_{verb}": f"{unit}_{verb}/s" for unit in ("kB", "Blk", "MB") for verb in ("read", "wrtn")
}
_BUSY = ("guest_cpu_busy_pct", ("%idle", "%iowait"))

_TIME = r"(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*[ \t])?"
_FIELD = r"(?:tps|r/s|w/s|d/s|f/s|rrqm/s|kB_read/s|Blk_read/s|rkB/s)"
TEXT_HEADING = re.compile(
    rf"^{_TIME}(?:avg-cpu:\s+%user\s|Device:?\s+{_FIELD}(?:\s|$)|[^\S\n]++{_FIELD}\s.*\sDevice\s*$)", re.MULTILINE
)


def wanted_columns(request: Request) -> set[str]:
    """The columns to read for the metrics asked for, with those that explain them."""
    names = {name for name, field in FIELDS.items() if request.wants(field.metric)}
    for name in list(names):
        names.update(_COMPANIONS.get(name, ()))
    if request.wants(_BUSY[0]):
        names.update(_BUSY[1])
    return names | set(_TOTALS) | set(_TOTALS.values())


def read_text_reports(source: Source, builder: CaptureBuilder, wanted: set[str] | None) -> Reports:
    """The reports of a text, with the columns that are wanted (None: all).

    Raises:
        InputError: it is damaged, or holds no report.
    """
    names = None if wanted is None else sorted(wanted)
    try:
        if source.head.startswith((b"\xff\xfe", b"\xfe\xff")):
            text = source.text().encode()
            recording = IostatRecording.from_bytes(text, source.name, names)
        else:
            recording = IostatRecording.open(source.path, source.name, names)
    except CoreError as error:
        raise InputError(error.where, found=error.found, expected=error.expected, advice=error.advice) from error
    for code, message, count in recording.notes:
        builder.warn(code, message, count)
    runs = [IostatRun(first, parse_banner(line), day_text(line), boot) for first, line, boot in recording.runs]
    return Reports(recording.stamps, runs, recording.devices, dict(recording.cpu), dict(recording.disks))


def day_text(banner: str) -> str:
    """The date in a banner, as printed.

    >>> day_text("Linux 6.1.0 (db01)  20.11.2026  _x86_64_ (2 CPU)")
    '20.11.2026'
    """
    rest = banner.partition(")")[2].split("_")[0].split("\t(")[0]
    return rest.strip()


def report_interval_s(reports: Reports) -> float | None:
    """Seconds between reports that print no time, from totals and rates; None when these are not printed."""
    lengths: list[Any] = []
    for total_name, rate_name in _TOTALS.items():
        total, rate = reports.disks.get(total_name), reports.disks.get(rate_name)
        if total is not None and rate is not None and total.shape[1] > 1:
            totals, rates = total[:, 1:].astype(np.float64), rate[:, 1:].astype(np.float64)
            telling = (totals >= 100) & (rates >= 1)  # totals are whole numbers: smaller ones are too coarse
            lengths.extend(totals[telling] / rates[telling])
    if not lengths:
        return None
    length = float(np.median(lengths))
    return float(round(length)) if length >= 1 and abs(length - round(length)) < 0.05 * length else length


def forget_idle(reports: Reports) -> None:
    """Turn the 0.00 that iostat prints for the await or size of no request into NaN, in place."""
    for name, rate_names in _COMPANIONS.items():
        values = reports.disks.get(name)
        rates = [reports.disks[rate] for rate in rate_names if rate in reports.disks]
        if values is None or not rates:
            continue
        idle = values == 0
        for rate in rates:
            idle &= ~(rate > 0)
        values[idle] = np.nan


def add_busy(reports: Reports, request: Request) -> None:
    """Add the share of time that was neither idle nor waiting for I/O."""
    metric, names = _BUSY
    idle, waiting = (reports.cpu.get(name) for name in names)
    if idle is not None and waiting is not None and request.wants(metric):
        reports.derived_cpu[metric] = np.clip(100.0 - idle - waiting, 0.0, 100.0)
