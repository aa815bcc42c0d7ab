"""Disk and CPU reports of a Linux guest, as sysstat's iostat prints them.

Reads:
    Text of versions 9 to 12 in any locale, with any of ``-x -d -c -k -m -p -t -z -N -s -h -y -g --human --pretty``;
    JSON (``-o JSON``); recordings appended to each other; logs in which every line begins with an ISO time (``ts``,
    pgbench-tools); terminal sessions with a prompt above or below.

Sample:
    .. code-block:: text

        Linux 6.18.44 (db01) 	11/20/26 	_x86_64_	(2 CPU)

        11/20/26 22:57:04
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle
                   4.7%    0.0%    6.7%    2.7%    0.0%   85.9%

             r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device
         1408.66      9.3M    59.68   4.1%    0.06     6.7k vda

Lost:
    Sums of device groups (``-g``): they repeat their devices, and version 12.6 prints them wrong. Digits that
    ``--human`` rounds away. Writes of ``-s`` without ``-x``, which iostat adds to discards, stay raw counters.
    With ``-y`` the first report is not an average since boot; versions before 12 do not show that ``-y`` was given,
    and their first report is then left out of judgements like any first report.

Units:
    ``kB`` is KiB and ``MB`` is MiB; ``Blk``, ``sec`` and ``avgrq-sz`` count sectors of 512 bytes; awaits are
    milliseconds. An await or size of 0.00 where there was no request is "not measured". Values are kept in 32 bits
    where these tell every printed number apart, else in 64.

Sources:
    iostat(1), sysstat 9.0.4 to 12.7; print_gal_header, write_ext_stat and cprintf_unit in sysstat's source.
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.vocabulary import Layer
from leadline.formats.sysstat.iostat import Emitter, read_json
from leadline.formats.sysstat.iostat_columns import (
    FIELDS,
    TEXT_HEADING,
    add_busy,
    forget_idle,
    read_text_reports,
    report_interval_s,
    wanted_columns,
)

META = ImporterMeta(
    tool="iostat",
    marks=("%user", "device", '"disk_device"', '"avg-cpu"'),
    layers=(Layer.GUEST,),
    fields=FIELDS,
    record="S_TIME_FORMAT=ISO iostat -x -t 5 > iostat.txt",
)

_JSON = re.compile(r'^\s*\{\s*"sysstat"\s*:')
_JSON_REPORT = re.compile(r'"disk_device"\s*:|"avg-cpu"\s*:')


def sniff(source: Source) -> int:
    """Sure by a table heading no other tool prints, or by the keys of its JSON."""
    text = source.head_text
    if _JSON.match(text):
        return 95 if _JSON_REPORT.search(text) else 0
    return 95 if TEXT_HEADING.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of a recording."""
    builder = CaptureBuilder(source.name, "iostat", META.tool)
    wanted = None if request.metrics is None else wanted_columns(request)
    if _JSON.match(source.head_text):
        reports = read_json(source, builder, wanted)
    else:
        reports = read_text_reports(source, builder, wanted)
    emitter = Emitter(META, source, request, builder)
    emitter.note_guests(reports)
    times = emitter.times(reports, report_interval_s(reports))
    forget_idle(reports)
    add_busy(reports, request)
    emitter.emit(reports, times)
    host = next((run.banner.host for run in reports.runs if run.banner is not None and run.banner.host), None)
    return builder.build(host=host, clock_known=emitter.clock_known)
