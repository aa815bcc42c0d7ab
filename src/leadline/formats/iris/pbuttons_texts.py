"""Sections of a SystemPerformance report that another tool printed, read as that tool's own recordings are."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.formats.iris.pbuttons_facts import ReportMachine, SamplingSpan
from leadline.formats.iris.report_sections import Folded, Sections, section_source
from leadline.formats.linux.listings import partition_names
from leadline.formats.sysstat.iostat import Emitter, Reports
from leadline.formats.sysstat.iostat_columns import (
    FIELDS,
    TEXT_HEADING,
    add_busy,
    forget_idle,
    read_text_reports,
    wanted_columns,
)
from leadline.formats.sysstat.sar_columns import emit_tables, layout_of
from leadline.formats.sysstat.text import clock_known, parse_banner, read_text
from leadline.formats.windows.perfmon_counters import read_log

TEXTS = ("iostat", "sar-u", "sar-d", "perfmon")  # in this order: what one shows the next does not repeat
_IOSTAT = ImporterMeta(tool="iostat", layers=(), fields=FIELDS)
_PDH = re.compile(r'^"?\(PDH-[CT]SV')
_PADDING = "junk-before-header"  # how the reader of perfmon's logs calls the blank lines a section is padded with
_DISK_RATES = ("disk_iops", "disk_reads_per_s")


@dataclass(frozen=True, slots=True)
class TextReader:
    """Reads the sections of one report into a capture.

    Attributes:
        source: the report.
        sections: of it.
        request: what is wanted; its date is the day of the run.
        machine: whose report it is.
        run: when its samples were taken.
        folder: for files of sections; it must outlive the reading.
    """

    source: Source
    sections: Sections
    request: Request
    machine: ReportMachine
    run: SamplingSpan
    folder: Path

    def read(self, folded: Folded) -> bool:
        """Read every section that can be read; False when a time zone or date had to be assumed.

        Raises:
            InputError: a section is damaged.
        """
        known = True
        for name in TEXTS:
            lines = [text for _, text in self.sections.of(name)]
            why = _not_read(name, lines, folded) if lines else None
            if why is not None:
                folded.builder.warn("section", f"the section {name} was left out: {why}")
            elif lines:
                with folded.part(_PADDING) as builder:
                    known = self._of(name, builder) and known
        return known

    def _of(self, name: str, builder: CaptureBuilder) -> bool:
        source = section_source(self.source, self.sections.of(name), self.folder, f"{name}.txt")
        if name == "iostat":
            return self._iostat(source, builder)
        if name == "perfmon":
            return read_log(source, self.request, builder, self.machine.guest).file.utc_offset_min is not None
        return self._sar(source, builder)

    def _iostat(self, source: Source, builder: CaptureBuilder) -> bool:
        wanted = None if self.request.metrics is None else wanted_columns(self.request)
        reports = read_text_reports(source, builder, wanted)
        reports.runs = [
            run if run.banner is None else replace(run, banner=replace(run.banner, host=self.machine.guest.name))
            for run in reports.runs
        ]
        emitter = Emitter(_IOSTAT, source, self.request, builder)
        emitter.note_guests(reports)
        times = emitter.times(reports, None) if any(reports.stamps) else self._times_of_run(reports, builder)
        if times is None:
            return True
        forget_idle(reports)
        add_busy(reports, self.request)
        emitter.emit(reports, times)
        return emitter.clock_known and any(reports.stamps)

    def _times_of_run(self, reports: Reports, builder: CaptureBuilder) -> np.typing.NDArray[np.int64] | None:
        """Times of reports that print none, by start and interval of the run; None, and said, where these are not."""
        if self.run.day is None or self.run.clock is None or not self.run.interval_s:
            message = "iostat prints no times, and the report does not say how often it was asked: it was left out"
            builder.warn("no-times", message)
            return None
        builder.warn("no-times", f"iostat prints no times: reports are {self.run.interval_s:g} s apart from the start")
        start = to_ns(datetime.combine(self.run.day, self.run.clock), self.request)
        return start + np.arange(len(reports.stamps), dtype=np.int64) * round(self.run.interval_s * 1e9)

    def _sar(self, source: Source, builder: CaptureBuilder) -> bool:
        recording = read_text(source, layout_of, builder)
        recording.banners[:] = [replace(banner, host=self.machine.guest.name) for banner in recording.banners]
        names = partition_names(self.sections.texts("linuxinfo"))
        emit_tables(recording, self.machine.guest, builder, self.request, names)
        return clock_known(recording, self.request, builder)


def _not_read(name: str, lines: list[str], folded: Folded) -> str | None:
    """Why a section cannot be read; None when it can."""
    if name == "perfmon":
        raw = any(_PDH.match(line.lstrip()) for line in lines[:3])
        return None if raw else "it was processed; record with $$setperfmonpostproc^SystemPerformance(0)"
    banners = [banner for banner in map(parse_banner, lines[:20]) if banner is not None]
    if not any(banner.system == "Linux" for banner in banners):
        return "it is not what Linux prints"
    if name == "iostat":
        return None if TEXT_HEADING.search("\n".join(lines)) else "it holds no report"
    if name == "sar-d" and any(metric in _DISK_RATES for metric, _ in folded.seen):
        return "iostat shows the same disks"
    return None if any("%" in line or "/s" in line for line in lines) else "it holds no sample"
