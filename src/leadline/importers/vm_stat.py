"""Output of ``vm_stat`` on macOS: memory pages, paging and swapping.

Reads:
    ``vm_stat INTERVAL``, with repeated headings, and with lines that a wrapper prefixed with an ISO time.

Sample:
    .. code-block:: text

        Mach Virtual Memory Statistics: (page size of 16384 bytes)
            free   active   specul inactive throttle    wired  prgable   faults     copy    0fill reactive   purged
          640000    90000    70000    80000        0   100000    30000  200500K  1200000    9000K     1000     2000

Lost:
    The first line counts since boot and only its page counts are kept. Without times the interval is not known, so
    there are no rates. The one-page form of ``vm_stat`` without an interval is not read.

Units:
    Pages, of the size the heading names; later lines count events of their interval. A trailing K is 1000 events.

Sources:
    vm_stat(1) of macOS.
"""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.tables import SampleTable, TableScheme, emit

META = ImporterMeta(
    tool="vm_stat (macOS)",
    marks=("mach virtual memory",),
    layers=(Layer.GUEST,),
    fields={
        "free": Field("guest_memory_free_mib", "kib"),
        "active": Field("guest_memory_active_mib", "kib"),
        "inactive": Field("guest_memory_inactive_mib", "kib"),
        "faults": Field("guest_page_faults_per_s", "per_s"),
        "pageins": Field("guest_page_in_kib_per_s", "kib_per_s"),
        "pageout": Field("guest_page_out_kib_per_s", "kib_per_s"),
        "swapins": Field("guest_swap_in_kib_per_s", "kib_per_s"),
        "swapouts": Field("guest_swap_out_kib_per_s", "kib_per_s"),
    },
    record='vm_stat 1 | while read -r line; do echo "$(date +%FT%T%z) $line"; done > vm_stat.txt',
)

_STATES = frozenset(
    "free active specul inactive throttle wired prgable file-backed anonymous cmprssed cmprssor".split()
)
_STAMP = re.compile(r"^((?:19|20)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+")
_BANNER = re.compile(r"Mach Virtual Memory Statistics: \(page size of (\d{3,6}) bytes")
_COUNT = re.compile(r"(\d+)(K?)")


def sniff(source: Source) -> int:
    """Sure by its first line and the heading of the table."""
    return 95 if _BANNER.search(source.head_text[:200]) and " free " in source.head_text[:600] else 0


def read(source: Source, request: Request) -> Capture:
    """The guest's memory and paging series.

    Raises:
        InputError: no sample, or a line in the middle that is neither heading nor sample.
    """
    builder = CaptureBuilder(source.name, "vm-stat", META.tool)
    stamps, names, rows, page_kib = _lines(source, builder)
    values = np.array(rows, dtype=np.float64)
    known = [stamp for stamp in stamps if stamp is not None]
    clock_known = len(known) == len(stamps)
    if clock_known:
        times = np.array([to_ns(stamp, request) for stamp in known], dtype=np.int64)
        elapsed_s = np.diff(times, prepend=times[0]) / 1e9
        elapsed_s[elapsed_s <= 0] = np.nan
        if any(stamp.tzinfo is None for stamp in known) and request.timezone is None:
            builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
            clock_known = False
    else:
        times = synthetic_times(len(rows), 1.0, source.mtime_ns)
        elapsed_s = np.full(len(rows), np.nan)
        builder.warn(
            "no-times", "samples have no time: no rates, and they were placed 1 s apart before the file's last change"
        )
    table = SampleTable("", tuple(names))
    for j, name in enumerate(names):
        pages = 1.0 if name == "faults" else page_kib
        values[:, j] *= pages if name in META.fields else 1.0
        if name not in _STATES:
            values[:, j] /= elapsed_s
    for index, row in enumerate(values.tolist()):
        table.add(index, "", row)
    emit(table, times, TableScheme("vm_stat", META.fields, lambda group, item: UNNAMED_GUEST), builder, request)
    return builder.build(clock_known=clock_known)


def _lines(
    source: Source, builder: CaptureBuilder
) -> tuple[list[datetime | None], list[str], list[list[float]], float]:
    """Times, column names, rows in the tool's own units (NaN for counts since boot), KiB per page."""
    stamps: list[datetime | None] = []
    rows: list[list[float]] = []
    names: list[str] = []
    page_kib = 4.0
    text = source.text()
    lines = text.splitlines()
    cut_at = len(lines) if text[-1:] not in {"\n", "\r"} else 0
    for index, line in enumerate(lines, 1):
        prefix = _STAMP.match(line)
        body = line[prefix.end() :] if prefix else line
        banner, words = _BANNER.search(body), body.split()
        if banner is not None:
            page_kib = int(banner[1]) / 1024
        elif words[:2] == ["free", "active"] and words in (names, names or words):
            names = words
        elif words:
            row = _row(words)
            if row is None or len(row) != len(names) or index == cut_at:
                if index == len(lines):
                    builder.warn("cut", "the last line is cut and was left out")
                    continue
                raise _refused(f"{source.name}:{index}", line)
            stamps.append(_moment(prefix[1], f"{source.name}:{index}") if prefix else None)
            rows.append(row)
    if not rows:
        raise _refused(source.name, "no sample")
    rows[0] = [value if name in _STATES else float("nan") for name, value in zip(names, rows[0], strict=True)]
    return stamps, names, rows, page_kib


def _row(words: list[str]) -> list[float] | None:
    matches = [_COUNT.fullmatch(word) for word in words]
    if any(match is None for match in matches):
        return None
    return [float(match[1]) * (1000.0 if match[2] else 1.0) for match in matches if match is not None]


def _moment(text: str, where: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise _refused(where, text) from error


def _refused(where: str, text: str) -> InputError:
    return InputError(
        where,
        found=f"{text.strip()[:60]!r}",
        expected="a heading of vm_stat or as many numbers as it names",
        advice=f"Record it again: {META.record}",
    )
