"""runqslower: the waits for a CPU that were longer than a limit, one line for each.

Reads:
    What ``runqslower`` of bcc and of libbpf-tools (also with ``-P``) and ``runqslower.bt`` of bpftrace print.

Sample:
    .. code-block:: text

        Tracing run queue latency higher than 10000 us
        TIME     COMM             TID           LAT(us) PREV COMM        PREV TID
        18:40:23 postgres         1974944          60934 swapper/1        0

Lost:
    Which thread waited, and which had the CPU before. Waits up to the limit: what is kept is the least that programs
    waited. All but the fifty programs that waited longest. More than two days before the last line.

Units:
    Microseconds, counted in the seconds in which a thread waited: 100 % are one thread that waits all the time. Where
    waits are few, a sample is longer than a second: no more samples than lines, but sixty. Times have no date and no
    zone.

Sources:
    bcc: tools/runqslower.py and its examples, libbpf-tools/runqslower.c. Outputs in public notes of others, also of
    runqslower.bt of bpftrace, and with names as b'postgres'.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime, time

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, rolled_over, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="runqslower",
    marks=("lat(us)",),
    layers=(Layer.GUEST,),
    fields={"LAT(us)": Field("process_cpu_wait_pct", "pct")},
    record="runqslower-bpfcc -P 1000 > runqslower.txt",
)

_HEADING = re.compile(r"TIME\s{1,12}COMM\s{1,24}[PT]ID\s{1,24}LAT\(us\)(?:\s{1,12}PREV COMM\s{1,24}PREV [PT]ID)?")
_ROW = re.compile(
    r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d) +(?P<comm>\S.{0,30}?) +\d{1,10} +(?P<us>\d{1,12})"
    r"(?: +\S.{0,30}? +\d{1,10})?",
    re.ASCII,
)
_LOST = re.compile(r"(?:Possibly lost|Lost) (\d{1,12}) (?:samples|events).{0,40}")
_CHATTER = re.compile(
    r"\^C|Attach(?:ing|ed) \d{1,5} probes?(?:\.\.\.)?|Tracing run queue latency .{0,80}|[#$] .{0,200}"
)
_BYTES = re.compile(r"b(['\"])(.*)\1")
_DAY_NS, _SECOND_NS = 86_400 * 10**9, 10**9
_SPAN_S_MAX = 2 * 86_400
_KEPT_MAX = 50
_SAMPLES_MIN = 60


def sniff(source: Source) -> int:
    """Sure by the heading."""
    return 94 if any(_HEADING.fullmatch(line.strip()) for line in source.head_text.splitlines()[:20]) else 0


def read(source: Source, request: Request) -> Capture:
    """How long each program waited for a CPU, a value for each second.

    Raises:
        InputError: there is no line of a wait.
    """
    builder = CaptureBuilder(source.name, "runqslower", META.tool)
    lines = source.lines()
    if lines and not source.text().endswith(("\n", "\r")):
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    clocks: list[int] = []
    programs: list[str] = []
    waits_us: list[int] = []
    for line in lines:
        text = line.strip()
        if (row := _ROW.fullmatch(text)) is not None:
            clocks.append((int(row["hour"]) * 60 + int(row["minute"])) * 60 + int(row["second"]))
            named = _BYTES.fullmatch(row["comm"])
            programs.append(named[2] if named is not None else row["comm"])
            waits_us.append(int(row["us"]))
        elif (lost := _LOST.fullmatch(text)) is not None:
            builder.warn("lost", "waits that the tracer lost: there were more", int(lost[1]))
        elif text and not _HEADING.fullmatch(text) and not _CHATTER.fullmatch(text):
            builder.warn("left-out", "lines that are no wait were left out")
    if not clocks:
        raise InputError(
            source.name,
            found="no line of a wait",
            expected="TIME COMM TID LAT(us), and below it a line for each wait",
            advice=f"Record it while it is slow, with a lower limit: {META.record}",
        )
    builder.warn("no-date", "times have no date and no zone: that of the file's last change, and UTC")
    builder.warn("limit", "waits below the limit of runqslower are not in it: programs waited longer than this")
    _emit(_ends_s(clocks, source, request), programs, waits_us, builder, request)
    return builder.build(clock_known=False)


def _ends_s(clocks: list[int], source: Source, request: Request) -> NDArray[np.int64]:
    """When waits ended, seconds of UTC int64 [n]: times of day, the last on the file's day."""
    midnight = to_ns(datetime.combine(assumed_date(source, request), time()), request)
    times = rolled_over(midnight + clock * _SECOND_NS for clock in clocks)
    ends: NDArray[np.int64] = (times - (times[-1] - midnight) // _DAY_NS * _DAY_NS) // _SECOND_NS
    return ends


def _emit(
    ends_s: NDArray[np.int64], programs: list[str], waits_us: list[int], builder: CaptureBuilder, request: Request
) -> None:
    """Add how long each program waited in each second, or in some seconds where waits are few, as a share of it."""
    last = int(ends_s.max())
    first = max(int(ends_s.min()), last - _SPAN_S_MAX)
    spent: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for end, program, wait_us in zip(ends_s.tolist(), programs, waits_us, strict=True):
        if end < first:
            builder.warn("left-out", "waits more than two days before the last were left out")
            continue
        rest_us, second = float(wait_us), end
        while rest_us > 0 and second >= first:
            spent[program][second] += min(rest_us, 1e6)
            rest_us, second = rest_us - 1e6, second - 1
    step_s = -(-(last + 1 - first) // max(len(programs), _SAMPLES_MIN))  # no more samples than there are waits
    count = -(-(last + 1 - first) // step_s)
    times = (last + 1 - np.arange(count - 1, -1, -1, dtype=np.int64) * step_s) * _SECOND_NS
    longest = sorted(spent, key=lambda name: -sum(spent[name].values()))
    if len(longest) > _KEPT_MAX:
        builder.warn("short", f"only the {_KEPT_MAX} programs that waited longest are kept")
    if request.wants("process_cpu_wait_pct"):
        for program in longest[:_KEPT_MAX]:
            places = count - 1 - (last - np.fromiter(spent[program], dtype=np.int64)) // step_s
            values = np.bincount(places, weights=list(spent[program].values()), minlength=count)
            entity = Entity(EntityKind.PROCESS, program, UNNAMED_GUEST)
            builder.add_series("process_cpu_wait_pct", entity, times, values / (1e4 * step_s), interval_s=float(step_s))
