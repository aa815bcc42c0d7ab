"""diskspd's text output, read line by line."""

from __future__ import annotations

import re
from math import isfinite

from leadline.formats.loadtool import bad_line
from leadline.formats.printed import number_of
from leadline.importers._diskspd.spans import NAN, SpdRun, SpdSpan, moment_printed, percentile_name

HEADS = re.compile(r"^[^\S\n]*+thread \|\s+bytes\s+\|\s+I/Os\s+\|\s+Mi?B/s\s+\|\s+I/O per s\b", re.MULTILINE)
CHART = re.compile(r"^[^\S\n]*+\S+ \|\s+Read \(ms\) \| Write \(ms\) \| Total \(ms\)", re.MULTILINE)
_COMMAND = re.compile(r"\s*Command Line: (.*)")
_RESULTS = re.compile(r"\s*Results for timespan \d+:\s*")
_SECTION = re.compile(r"\s*(Total|Read|Write) IO\s*")
_TIME = re.compile(r"\s*actual test time:\s*(\d+(?:\.\d+)?)s\s*")
_COUNTS = re.compile(r"\s*(?:thread|proc|request|cpu|core|group|node|socket) count:\s*\d+.*")
_CPU_HEADS = re.compile(r"\s*(?:\w+ \| )*CPU \|\s+Usage \|\s+User\s+\|\s+Kernel \|\s+Idle\s*")
_CPU = re.compile(r"\s*(?:(?:\d+\s*\|\s*)+|avg\.\|\s*)(?:\d+(?:\.\d+)?%[\s|]*){4}")
_RULE = re.compile(r"\s*[-*]{3,}\s*")
_ROW = re.compile(
    r"\s*(?P<head>\d+ \||total:)(?P<cells>(?:\s*(?:\d+(?:\.\d+)?|N/A|-?nan\S*)\s*(?:\||$))+)(?P<place>.*)"
)
_PLACE = re.compile(r"\s*(?P<place>\S.*?) \(\d+(?:\.\d+)?[KMGT]?i?B\)\s*")
_LATENCY = re.compile(
    r"\s*(?P<name>min|max|\d+(?:th|st|nd|rd)|\d-nines) \|(?P<cells>(?:\s*(?:\d+(?:\.\d+)?|N/A)\s*(?:\||$)){3})"
)
_PROMPT = re.compile(r"\s*(?:PS )?[A-Za-z]:\\[^>]{0,200}>.*")
_END = re.compile(r"\s*(?:ETW:|Totals:)\s*")
_SETTING = re.compile(r"\s*(?P<name>[a-z][\w /]{1,60}): ?(?P<text>.*)")
_NOTES = {
    "software cache disabled": ("cache", "off"),
    "using software cache": ("cache", "software"),
    "local software cache disabled, remote cache enabled": ("cache", "remote"),
    "writethrough on": ("writethrough", "on"),
    "using random i/o": ("access", "random"),
    "using sequential i/o": ("access", "sequential"),
    "performing read test": ("rw", "read"),
    "performing write test": ("rw", "write"),
    "performing mix test": ("rw", "mixed"),
}
_KEPT = {
    "block size": "bs",
    "think time": "thinktime",
    "threads per file": "numjobs",
    "number of outstanding i/o operations": "iodepth",
    "number of outstanding i/o operations per thread": "iodepth",
}


def printed_runs(text: str, name: str) -> list[SpdRun]:
    """The runs of a text: one per command line, and one per table without a command line.

    Raises:
        InputError: a line among the results is none of diskspd's.
    """
    reader = _Reader(name)
    for index, line in enumerate(text.splitlines()):
        reader.take(index, line)
    return reader.runs


class _Reader:
    """Goes through the lines once; before the results anything may stand, among them only what diskspd prints."""

    def __init__(self, name: str) -> None:
        self.runs: list[SpdRun] = []
        self._name = name
        self._place = ""
        self._way = ""
        self._columns: list[str] = []
        self._chart = ""
        self._is_among_results = False

    def take(self, index: int, line: str) -> None:
        if command := _COMMAND.fullmatch(line):
            self.runs.append(SpdRun(command=command[1].strip()))
            self._is_among_results, self._place = False, ""
        elif _RESULTS.fullmatch(line):
            self._run.spans.append(SpdSpan())
            self._begin_results()
        elif (section := _SECTION.fullmatch(line)) or HEADS.match(line) or CHART.match(line):
            if not self._is_among_results:
                self._run.spans.append(SpdSpan())
                self._begin_results()
            if section:
                self._way = section[1].lower()
            else:
                self._columns = [column.strip().lower() for column in line.split("|")]
        elif _END.fullmatch(line):
            self._is_among_results = False
        elif self._is_among_results:
            self._take_result(index, line)
        elif self.runs and not self._run.spans:
            self._take_setting(line)

    @property
    def _run(self) -> SpdRun:
        if not self.runs:
            self.runs.append(SpdRun())
        return self.runs[-1]

    def _begin_results(self) -> None:
        self._is_among_results, self._way, self._columns, self._chart = True, "", [], ""

    def _take_result(self, index: int, line: str) -> None:
        span = self._run.spans[-1]
        if (row := _ROW.fullmatch(line)) and self._way and self._columns:
            self._take_row(span, row)
        elif latency := _LATENCY.fullmatch(line):
            statistic = percentile_name(latency["name"])
            for way, cell in zip(("read", "write"), latency["cells"].split("|"), strict=False):
                value = number_of(cell.strip())
                if isfinite(value):  # N/A: there were none
                    span.percentiles.setdefault((self._chart, way), {})[statistic] = value
        elif time := _TIME.fullmatch(line):
            span.duration_s = number_of(time[1])
        elif _CPU.fullmatch(line):
            if line.strip().startswith("avg."):
                shares = [number_of(share) for share in re.findall(r"(\d+(?:\.\d+)?)%", line)]
                span.cpu_pct = dict(zip(("busy", "user", "system", "idle"), shares, strict=True))
        elif line.strip().casefold() in ("total:", "total latency distribution:"):
            self._chart = ""
        elif line.strip() in span.places:
            self._chart = line.strip()
        elif line.strip() and not any(known.fullmatch(line) for known in (_RULE, _COUNTS, _CPU_HEADS, _PROMPT)):
            if "interrupted before the measurements" not in line:
                raise bad_line(self._name, index, line, "a line of diskspd's results")

    def _take_row(self, span: SpdSpan, row: re.Match[str]) -> None:
        """A row of a thread; the row of totals counts where there is none of a thread."""
        place = _PLACE.fullmatch(row["place"])
        is_total = row["head"] == "total:"
        if self._way == "total" or (is_total and any(way == self._way for _, way in span.targets)):
            return
        names = self._columns[1:]
        cells = [number_of(cell.strip()) for cell in row["cells"].rstrip().rstrip("|").split("|")]
        values = dict(zip(names, cells, strict=False))
        latency = values.get("avglat", NAN), values.get("latstddev", NAN)
        span.has_latency = span.has_latency or "avglat" in values
        span.totals(place["place"] if place else "", self._way).add(
            values.get("bytes", NAN), values.get("i/os", NAN), values.get("i/o per s", NAN), latency
        )

    def _take_setting(self, line: str) -> None:
        run = self.runs[-1]
        match = _SETTING.fullmatch(line)
        name, text = (match["name"].strip().lower(), match["text"].strip()) if match else ("", "")
        if name == "path":
            self._place = text.strip("'")
            run.workload.setdefault(self._place, {})
        elif name == "computer name":
            run.host = text
        elif name == "start time":
            run.start = moment_printed(text)
        elif name in ("warm up time", "duration"):
            if name == "warm up time":
                run.warmup_s = max(number_of(text.removesuffix("s").strip()), 0.0)
        elif self._place:
            workload = run.workload[self._place]
            if name in _KEPT:
                workload[_KEPT[name]] = text.rstrip(")")
            lowered = line.lower()
            workload.update(pair for note, pair in _NOTES.items() if note in lowered)
