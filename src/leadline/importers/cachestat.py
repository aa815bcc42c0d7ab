"""cachestat: how much of what programs read was in the page cache.

Reads:
    What ``cachestat`` of bcc (0.5 and later, also with ``-T``) and of libbpf-tools prints.

Sample:
    .. code-block:: text

        TIME         HITS   MISSES  DIRTIES HITRATIO   BUFFERS_MB  CACHED_MB
        19:25:01    53401     2755    20953   95.09%           14      90223

Lost:
    Pages made dirty, and the counts: how long an interval was is not printed. The hit ratio of a second without any hit
    or miss. The older form with ratios of reads and writes.

Units:
    MB are 2**20 bytes. Pages written for the first time count as neither hit nor miss.

Sources:
    bcc: tools/cachestat.py and its examples; libbpf-tools/cachestat.c.
"""

from __future__ import annotations

import re
from datetime import datetime, time

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, rolled_over, synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.tables import spread

META = ImporterMeta(
    tool="cachestat",
    marks=("buffers_mb",),
    layers=(Layer.GUEST,),
    fields={
        "HITRATIO": Field("guest_cache_hit_pct", "pct"),
        "BUFFERS_MB": Field("guest_memory_buffers_mib", "mib"),
        "CACHED_MB": Field("guest_memory_cached_mib", "mib"),
    },
    record="cachestat-bpfcc -T 1 > cachestat.txt",
)

_HEADING = re.compile(
    r"(?:TIME\s+)?(?:TOTAL\s+)?(?:HITS\s+MISSES|MISSES\s+HITS)\s+DIRTIES\s+HITRATIO\s+BUFFERS_MB\s+CACHED_MB"
)
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,6})?", re.ASCII)
_DAY_NS = 86_400 * 10**9


def sniff(source: Source) -> int:
    """Sure by its heading."""
    return 94 if any(_HEADING.fullmatch(line.strip()) for line in source.head_text.splitlines()[:20]) else 0


def read(source: Source, request: Request) -> Capture:
    """The machine's hit ratio and the sizes of its caches.

    Raises:
        InputError: no row of numbers below the heading.
    """
    builder = CaptureBuilder(source.name, "cachestat", META.tool)
    lines = source.lines()
    if lines and not source.text().endswith(("\n", "\r")):
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    columns: list[str] = []
    rows: list[dict[str, str]] = []
    for line in lines:
        words = line.split()
        if _HEADING.fullmatch(line.strip()):
            columns = words
        elif columns and len(words) == len(columns) and _is_row(dict(zip(columns, words, strict=True))):
            rows.append(dict(zip(columns, words, strict=True)))
        elif words and words != ["^C"]:
            builder.warn("left-out", "lines that are no row of numbers were left out")
    if not rows:
        raise InputError(
            source.name,
            found="no row of numbers below a heading",
            expected="HITS MISSES DIRTIES HITRATIO BUFFERS_MB CACHED_MB and a row for each interval",
            advice=f"Record it with: {META.record}",
        )
    times = _times([row.get("TIME", "") for row in rows], source, request, builder)
    hits = np.array([float(row["HITS"]) + float(row["MISSES"]) for row in rows])
    ratio = np.array([float(row["HITRATIO"].rstrip("%")) for row in rows])
    values = {"guest_cache_hit_pct": np.where(hits > 0, np.clip(ratio, 0.0, 100.0), np.nan)}
    values["guest_memory_buffers_mib"] = np.array([float(row["BUFFERS_MB"]) for row in rows])
    values["guest_memory_cached_mib"] = np.array([float(row["CACHED_MB"]) for row in rows])
    for metric, column in values.items():
        if request.wants(metric) and np.isfinite(column).any():
            builder.add_series(metric, UNNAMED_GUEST, times, column)
    return builder.build(clock_known=False)


def _is_row(cells: dict[str, str]) -> bool:
    """Whether every cell but the time is a number, and only the ratio may be one with a percent sign."""
    return all(
        _NUMBER.fullmatch(word.removesuffix("%") if name == "HITRATIO" else word)
        for name, word in cells.items()
        if name != "TIME"
    )


def _times(printed: list[str], source: Source, request: Request, builder: CaptureBuilder) -> NDArray[np.int64]:
    """The times of rows, UTC nanoseconds: times of day, the last of the file's day; else one second apart."""
    clocks = [match.groups() for text in printed if (match := _CLOCK.fullmatch(text)) is not None]
    if len(clocks) < len(printed):
        builder.warn("no-times", "rows without times (-T) were taken as 1 s apart, the last at the file's last change")
        return synthetic_times(len(printed), 1.0, source.mtime_ns)
    builder.warn("no-date", "times have no date and no zone: that of the file's last change, and UTC")
    midnight = to_ns(datetime.combine(assumed_date(source, request), time()), request)
    seconds = [(int(hour) * 60 + int(minute)) * 60 + int(second) for hour, minute, second in clocks]
    times = rolled_over(midnight + second * 10**9 for second in seconds)
    return spread(np.sort(times - (times[-1] - midnight) // _DAY_NS * _DAY_NS))
