"""What Ceph's commands print for people."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.formats.date_lines import DateLines
from leadline.importers._ceph.reports import CLUSTER, MIB, CephReport, image, osd

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request

HEADINGS = {
    "ceph osd perf": r"\s{0,8}osd\s+(?:fs_)?commit_latency\(ms\)\s+(?:fs_)?apply_latency\(ms\)\s*",
    "ceph osd df": r"\s{0,8}ID\s+(?:CLASS\s+)?WEIGHT\s+REWEIGHT\s+SIZE\s[^\n]{0,80}%USE\s[^\n]{0,60}",
    "rbd perf image iostat": r"\s{0,8}NAME\s+WR\s+RD\s+WR_BYTES\s+RD_BYTES\s+WR_LAT\s+RD_LAT\s*",
    "ceph -s": r"\s{0,8}cluster(?::\s*| [0-9a-f-]{36}\s*)",
    "ceph health": r"HEALTH_(?:OK|WARN|ERR)\b[^\n]{0,4000}",
}
_HEADINGS = {command: re.compile(pattern) for command, pattern in HEADINGS.items()}
_STATE_MARK = r"\s{0,8}cluster(?::[ \t]*\r?\n\s{1,8}id:\s+[0-9a-f-]{8,40}| [0-9a-f-]{36})[ \t]*"
MARK = re.compile(
    "^(?:" + "|".join([_STATE_MARK, *(p for name, p in HEADINGS.items() if name != "ceph -s")]) + ")$", re.MULTILINE
)
_RULES = re.compile(r"\s*-{3,}(?:\s+-{3,})*\s*")
_PERF = re.compile(r"\s*(\d{1,6})\s+(\d{1,9})\s+(\d{1,9})\s*")
_USED = re.compile(
    r"\s(\d{1,3}(?:\.\d{1,4})?)\s+(?:\d{1,4}(?:\.\d{1,4})?|-)(?:\s+(?:\d{1,6}|-))?"
    r"(?:\s+(?:up|down|destroyed))?(?:\s+(?:osd\.\d{1,6}|\w{1,12} \S{1,60}))?\s*$"
)
_DF_ROW = re.compile(r"\s*(-?\d{1,6})\s+\S")
_DF_END = re.compile(r"\s*(?:TOTAL\s|MIN/MAX VAR:)")
_IMAGE = re.compile(
    r"\s*(\S{1,200})\s+([\d.]{1,12}) ?([kMGTPE]?)/s\s+([\d.]{1,12}) ?([kMGTPE]?)/s"
    r"\s+([\d.]{1,12}) ?([KMGTPE]?)i?B/s\s+([\d.]{1,12}) ?([KMGTPE]?)i?B/s"
    r"\s+([\d.]{1,15}) (ns|us|ms|s)\s+([\d.]{1,15}) (ns|us|ms|s)\s*"
)
_TO_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
_SI = {letter: 1000.0**power for power, letter in enumerate(("", "k", "M", "G", "T", "P", "E"))} | {"K": 1e3}
_BINARY = {letter: 1024.0**power for power, letter in enumerate(("", "K", "M", "G", "T", "P", "E"))} | {"k": 1024.0}
_SLOW = re.compile(r"(\d{1,9}) slow ops, oldest one blocked for ~?(\d{1,9}) sec")
_BLOCKED = re.compile(r"(\d{1,9}) (?:ops|(?:slow |stuck )?requests) are blocked > ([\d.]{1,12}) sec")
_SHARE = re.compile(r"objects (degraded|misplaced) \(([\d.]{1,9})%\)")
_FULL = re.compile(r"(\d{1,6}) (?:near|backfill)? ?full osd\(s\)")
_FULL_OSD = re.compile(r"osd\.(\d{1,6}) is (?:near|backfill)? ?full(?: at ([\d.]{1,6})%)?")
_BYTES = re.compile(r"([\d.]{1,12}) ?([kKMGTPE]?)i?B/s(?: (?:rd|wr))?")
_OPS = re.compile(r"([\d.]{1,12}) ?([kM]?) ?op/s")
_CLIENT = re.compile(r"\s*client(?::| io)\s+(\S.{0,200})")
_RECOVERY = re.compile(r"\s*recovery(?::| io)\s+(\S.{0,200})")
_HEALTH_LINE = re.compile(
    r"(?:\s|\[(?:WRN|ERR)\] |[A-Z][A-Z_]{3,40}\b|(?:pg|osd|mds|mon|mgr|pool|host|rgw|recovery)\b"
    r"|(?:services|data|io|progress|task status):|\d+ ).*"
)
_PROMPT = re.compile(r"\S[^#$>\n]{0,100}[#$>] ?(?:sudo )?(?:ceph|rbd)\b.*")


@dataclass(slots=True)
class Printed:
    """Reads what the commands print, one after the other in one file."""

    source: Source
    request: Request
    builder: CaptureBuilder
    reports: list[CephReport] = field(default_factory=list)
    is_zoned: bool = True
    _now: int | None = None

    def read(self) -> None:
        """Read the whole file.

        Raises:
            InputError: a line is none of the commands'.
        """
        dates = DateLines(self.request, self.builder)
        text = self.source.text()
        lines = text.splitlines()
        if lines and not text.endswith(("\n", "\r")) and not self._is_sound_end(lines):
            self.builder.warn("cut", "the last line has no end and was left out")
            lines.pop()
        for number, line in enumerate(lines, 1):
            if not line.strip() or _RULES.fullmatch(line) or _PROMPT.fullmatch(line):
                continue
            moment = dates.time_ns(line)
            command = next((name for name, pattern in _HEADINGS.items() if pattern.fullmatch(line)), None)
            if moment is not None:
                self._now = moment
            elif command is not None:
                self._begin(command)
            if moment is None and not self._is_row(line, is_heading=command is not None):
                raise InputError(
                    f"{self.source.name}:{number}",
                    found=repr(line.strip()[:60]),
                    expected="what `ceph -s`, `ceph health detail`, `ceph osd perf`, `ceph osd df` or `rbd perf image "
                    "iostat` prints",
                    advice="Record it again: for i in 1 2 3 4 5; do date; ceph -s; ceph osd perf; sleep 10; done",
                )
        self.is_zoned = dates.is_zoned

    @staticmethod
    def _is_sound_end(lines: list[str]) -> bool:
        return any(pattern.fullmatch(lines[-1]) for pattern in (_IMAGE, _DF_END)) or len(lines) == 1

    def _begin(self, command: str) -> None:
        report = CephReport(command, self._now)
        self.reports.append(report)
        if command in {"ceph -s", "ceph health"}:
            report.put("storage_slow_requests_count", CLUSTER, 0.0)
            report.put("osd_near_full_count", CLUSTER, 0.0)
        if command == "ceph -s":
            for metric in ("storage_recovery_mib_per_s", "storage_client_mib_per_s", "storage_client_iops"):
                report.put(metric, CLUSTER, 0.0)

    def _is_row(self, line: str, *, is_heading: bool) -> bool:
        """Take what a line says; False where it is none of its command's."""
        if not self.reports:
            return False
        report = self.reports[-1]
        if report.command.startswith(("ceph -s", "ceph health")):
            _take_state(line, report)
            return is_heading or _HEALTH_LINE.fullmatch(line) is not None
        if is_heading:
            return True
        take = {"ceph osd perf": _take_perf, "ceph osd df": _take_used}.get(report.command, _take_image)
        return take(line, report)


def _take_perf(line: str, report: CephReport) -> bool:
    row = _PERF.fullmatch(line)
    if row is None:
        return False
    report.put("osd_commit_latency_ms", osd(row[1]), float(row[2]))
    report.put("osd_apply_latency_ms", osd(row[1]), float(row[3]))
    return True


def _take_used(line: str, report: CephReport) -> bool:
    if _DF_END.match(line):
        return True
    row, used = _DF_ROW.match(line), _USED.search(line)
    if row is None or used is None:
        return False
    if not row[1].startswith("-"):
        report.put("osd_used_pct", osd(row[1]), float(used[1]))
    return True


def _take_image(line: str, report: CephReport) -> bool:
    row = _IMAGE.fullmatch(line)
    try:
        numbers = [] if row is None else [float(row[index]) for index in (2, 4, 6, 8, 10, 12)]
    except ValueError:
        return False
    if row is None:
        return False
    disk = image(row[1])
    report.put("disk_writes_per_s", disk, numbers[0] * _SI[row[3]])
    report.put("disk_reads_per_s", disk, numbers[1] * _SI[row[5]])
    report.put("disk_write_mib_per_s", disk, numbers[2] * _BINARY[row[7]] / MIB)
    report.put("disk_read_mib_per_s", disk, numbers[3] * _BINARY[row[9]] / MIB)
    if numbers[0]:
        report.put("virtual_disk_latency_ms_write", disk, numbers[4] * _TO_MS[row[11]])
    if numbers[1]:
        report.put("virtual_disk_latency_ms_read", disk, numbers[5] * _TO_MS[row[13]])
    return True


def _take_state(line: str, report: CephReport) -> None:
    """Take what a line of the cluster's state says of slow requests, recovery and full OSDs."""
    take_message(line, report)
    client, recovery = _CLIENT.fullmatch(line), _RECOVERY.fullmatch(line)
    if client is not None:
        report.put("storage_client_mib_per_s", CLUSTER, sum(_scaled(_BYTES, client[1], _BINARY)) / MIB)
        report.put("storage_client_iops", CLUSTER, sum(_scaled(_OPS, client[1], _SI)))
    if recovery is not None:
        report.put("storage_recovery_mib_per_s", CLUSTER, sum(_scaled(_BYTES, recovery[1], _BINARY)) / MIB)


def take_message(text: str, report: CephReport) -> None:
    """Take what a health message says."""
    for pattern in (_SLOW, _BLOCKED):
        for match in pattern.finditer(text):
            report.put("storage_slow_requests_count", CLUSTER, float(match[1]))
            report.put("storage_slow_request_age_s", CLUSTER, _number(match[2]))
    for match in _SHARE.finditer(text):
        report.put(f"storage_{match[1]}_pct", CLUSTER, _number(match[2]))
    for match in _FULL.finditer(text):
        report.put("osd_near_full_count", CLUSTER, float(match[1]))
    for match in _FULL_OSD.finditer(text):
        if match[2]:
            report.put("osd_used_pct", osd(match[1]), _number(match[2]))


def _scaled(pattern: re.Pattern[str], text: str, scales: dict[str, float]) -> list[float]:
    return [_number(match[1]) * scales[match[2]] for match in pattern.finditer(text)]


def _number(text: str) -> float:
    """A number; NaN for what only looks like one (``1.2.3`` in a damaged line)."""
    try:
        return float(text)
    except ValueError:
        return math.nan
