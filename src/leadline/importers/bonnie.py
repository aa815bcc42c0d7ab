"""bonnie++: rates of a file system, seeks per second, the longest single operations.

Reads:
    The CSV line of bonnie++ 1.03 to 2.0, alone or below its table; several runs in one file. Of the table alone,
    without its CSV line, nothing is read: its empty columns cannot be told apart once blanks are lost.

Sample:
    .. code-block:: text

        1.98,2.00a,vm,1,1795630622,16G,,8192,5,,,184320,21,81920,11,,,202752,14,412.3,9,...,12053us,10814us,,4072us,18726us

Lost:
    Characters written and read one at a time, which measure the CPU; creating and deleting files; shares of CPU. A test
    that was too short to measure (``+++++``). Files smaller than twice the memory measure the page cache. Means of
    latencies: bonnie++ prints the longest only.

Units:
    kB per second are 1024 bytes; latencies carry their unit.

Sources:
    bon_csv2html(1), FORMAT; bonnie++.cpp, bon_io.cpp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns, bad_line
from leadline.formats.printed import number_of

META = ImporterMeta(
    tool="bonnie++",
    marks=("+++++", "us,", "1.9", "2.0", "per chr"),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "put_block": Field("job_mib_per_s_write", "kib_per_s"),
        "get_block": Field("job_mib_per_s_read", "kib_per_s"),
        "seeks": Field("job_iops", "per_s"),
        "latency": Field("job_latency_ms_max", "ms"),
    },
    record="bonnie++ -d FOLDER_ON_THE_DISK -s 32g:8k -n 0 -f -u root > bonnie.txt",
)
_NEW = re.compile(
    r"\s*(?:1\.9[6-9]|2\.\d{1,2}),(?P<version>[12]\.\d{1,2}\w{0,4}),(?P<rest>[^,]{0,64}(?:,[^,]{0,24}){40,50})\s*"
)
_OLD = re.compile(
    r"\s*(?P<rest>[^,\s]{1,64},\d{1,9}[MGK]?(?::\d{1,9}k?)?(?:,[\d.+]{0,12}){12}(?:,[\d.+/]{0,24}){1,14})\s*"
)
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_LATENCY = re.compile(r"(\d{1,12})(us|ms|s)")
# Of each version: size, then what is kept: the operation, its rate, its longest time. Counted from the name on.
_NEW_FIELDS = {"size": 3, "block": 5, "write": 9, "rewrite": 11, "read": 15, "seek": 17}
_NEW_LATENCIES = {"write": 37, "rewrite": 38, "read": 40, "seek": 41}
_OLD_FIELDS = {"size": 1, "write": 4, "rewrite": 6, "read": 10, "seek": 12}
_TABLE = re.compile(
    r"\s*+|\s*+Version\s.*|\s*+-Per Chr-.*|\s*+Name:Size etc.*|.*/sec\s+%CP.*|\s*+Latency\s.*"
    r"|.*-Create--.*|.*\s-Create.*"
    r"|\s*+(?:\S{1,64}+\s++)?\d*+[MGK]?(?::\S++)?(?:\s++(?:\d++(?:\.\d++)?[kmg]?|\++)){2,40}+\s*+"
    r"|(?:Writing|Reading|Rewriting|start|Create|Stat|Delete|Using|Bonnie|done).*"
    r"|\s*#.*|.{0,120}[#$] ?\S*\s?bonnie\+\+.*"
)


@dataclass(frozen=True)
class _Line:
    """A CSV line: its fields from the name of the machine on, and where they stand."""

    fields: list[str]
    places: dict[str, int]
    latencies: dict[str, int]
    version: str | None

    def text(self, place: int | None) -> str:
        """A field; empty where there is none."""
        return self.fields[place] if place is not None and place < len(self.fields) else ""


def sniff(source: Source) -> int:
    """Sure by a CSV line whose fields are its own."""
    return 92 if any(_line(line) is not None for line in source.head_text.splitlines()) else 0


def read(source: Source, request: Request) -> Capture:
    """A result per run with its operations, and a sample of each.

    Raises:
        InputError: no CSV line, or a line that is none of bonnie++'s.
    """
    builder = CaptureBuilder(source.name, "bonnie", META.tool)
    runs: list[_Line] = []
    for index, line in enumerate(source.lines()):
        run = _line(line)
        if run is not None:
            runs.append(run)
        elif not _TABLE.fullmatch(line):
            raise bad_line(source.name, index, line, "a line of bonnie++")
    for number, run in enumerate(runs, 1):
        _add(builder, request, run, f" {number}" if len(runs) > 1 else "", source.mtime_ns)
    if not builder.results:
        raise bad_line(source.name, 0, "no measured test", "the CSV line of bonnie++ with a rate")
    builder.warn("no-times", "runs have no time: they are taken to end when the file was last written")
    builder.warn("no-latency", "bonnie++ tells no mean latency: record ioping or fio for the time of a request")
    return builder.build(clock_known=False, tool_version=next((run.version for run in runs if run.version), None))


def _line(text: str) -> _Line | None:
    """A CSV line; None for another line. Rates must be numbers, or ``+++`` or nothing."""
    new = _NEW.fullmatch(text)
    old = None if new else _OLD.fullmatch(text)
    match = new or old
    if match is None:
        return None
    places = _NEW_FIELDS if new else _OLD_FIELDS
    line = _Line(match["rest"].split(","), places, _NEW_LATENCIES if new else {}, new["version"] if new else None)
    rates = [line.text(place) for name, place in places.items() if name not in ("size", "block")]
    is_sound = all(re.fullmatch(r"(?:\d{1,12}(?:\.\d{1,3})?|\+*)", rate) for rate in rates)
    is_size = re.fullmatch(r"\d{1,9}[MGKT](?::\w{1,9})?", line.text(places["size"])) is not None
    return line if is_sound and any(rates) and is_size else None


def _add(builder: CaptureBuilder, request: Request, run: _Line, label: str, end_ns: int) -> None:
    """The result of a run and its samples; what was too short to measure has neither."""
    operations: list[Operation] = []
    for name in ("write", "rewrite", "read", "seek"):
        rate, latency = run.text(run.places[name]), _LATENCY.fullmatch(run.text(run.latencies.get(name)))
        value = number_of(rate) if rate and "+" not in rate else NAN
        longest_ms = float(latency[1]) * _MS[latency[2]] if latency else NAN
        if not value > 0:
            continue
        is_seek = name == "seek"
        latency_ms = {"max": longest_ms} if latency else {}
        operations.append(
            Operation(name, value if is_seek else NAN, NAN if is_seek else value * 1024, latency_ms=latency_ms)
        )
        rates = {"job_iops": [value]} if is_seek else {f"job_mib_per_s_{name}": [value / 1024]}
        columns = {"job_latency_ms_max": [longest_ms]} | (rates if name != "rewrite" else {})
        entity = Entity(EntityKind.JOB, f"{name}{label}", UNNAMED_GUEST)
        add_columns(builder, request, entity, np.array([end_ns]), columns, interval_s=NAN)
    if operations:
        workload = {"size": run.text(run.places["size"]), "bs": run.text(run.places.get("block"))}
        builder.results.append(
            Result(
                META.tool,
                f"file system{label}",
                tuple(operations),
                tool_version=run.version,
                host=run.text(0) or None,
                workload={name: text for name, text in workload.items() if text},
                source=builder.info.name,
            )
        )
