"""vdbench's response time histograms, of a whole run or of a host, storage or workload definition.

Reads:
    ``histogram.html``, ``*.histogram.html`` of vdbench 5.03 and later; counts with any thousands separator, decimal
    commas.

Sample:
    .. code-block:: text

        Only writes done for this workload:
          min(ms) <     max(ms)         count       %%    cum%%  '+': Individual%; '+-': Cumulative%
            0.100 <       0.200        21,032   2.2600   2.2600  +
         2000.000 <         max             0   0.0000 100.0000  ----------

Lost:
    Percentages, which follow from the counts.

Units:
    Bounds in milliseconds.

Sources:
    Vdbench User Guide 5.04.07, "histogram.html".
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import Layer
from leadline.formats.loadtool import bad_line

META = ImporterMeta(
    tool="vdbench",
    marks=("response time histogram",),
    layers=(Layer.STORAGE_PATH,),
    record="vdbench -f workload.parm -o output",
)

_TITLE = re.compile(r"^(Total|\S+) response time histogram\.", re.MULTILINE)
_HEADER = re.compile(r"^[^\S\n]*+min\(ms\) <\s+max\(ms\)", re.MULTILINE)
_STARTING = re.compile(r"Starting RD=([^;<]+?)\s*(?:;|</b>|$)")
_SECTION = re.compile(r"(Reads and writes|Reads|Writes|Only reads done.*|Only writes done.*|[A-Z][\w ]*):\s*")
_BUCKET = re.compile(
    r"\s*(\d+[.,]\d+) <\s+(\d+[.,]\d+|max)\s+(\d[\d.,'’\xa0\u202f]{0,24})\s+\d+[.,]\d+\s+\d+[.,]\d+(?:\s.*)?"
)
_OPERATIONS = {"reads": "read", "writes": "write", "only reads done": "read", "only writes done": "write"}


def sniff(source: Source) -> int:
    """Sure by title and header."""
    return 96 if _TITLE.search(source.head_text) and _HEADER.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """Results only: one per run definition, an operation with a histogram per section (io, read, write).

    Raises:
        InputError: there is no bucket, or a bucket before the last line is damaged.
    """
    del request
    builder = CaptureBuilder(source.name, "vdbench-histogram", META.tool)
    lines = source.lines()
    title = _TITLE.search(source.head_text)
    part = "" if title is None or title[1] == "Total" else title[1].replace("=", " ")
    runs: dict[str, dict[str, list[tuple[float, float, int]]]] = {}
    run, operation = "run", "io"
    for index, line in enumerate(lines):
        starting, section = _STARTING.search(line), _SECTION.fullmatch(line)
        if starting:
            run, operation = starting[1], "io"
        elif section:
            words = section[1].casefold()
            operation = next((name for key, name in _OPERATIONS.items() if words == key or key in words[:17]), "io")
            operation = "io" if words == "reads and writes" else operation
        elif " <  " in line and not _HEADER.match(line):
            bucket = _BUCKET.fullmatch(line)
            if bucket is None and index < len(lines) - 1:
                raise bad_line(source.name, index, line, "MIN < MAX COUNT % %")
            if bucket is None:
                builder.warn("cut", "the last line is cut and was dropped")
                continue
            runs.setdefault(run, {}).setdefault(operation, []).append(_bounds(bucket))
    if not runs:
        raise bad_line(source.name, 0, "no bucket", "a histogram of vdbench")
    for name, sections in runs.items():
        operations = tuple(_operation(kind, rows) for kind, rows in sections.items())
        job = f"{name} {part}".strip()
        builder.results.append(Result(META.tool, job, operations, source=source.name))
    return builder.build()


def _bounds(bucket: re.Match[str]) -> tuple[float, float, int]:
    """Lower and upper bound in milliseconds and the count."""
    upper = float("inf") if bucket[2] == "max" else float(bucket[2].replace(",", "."))
    return float(bucket[1].replace(",", ".")), upper, int(re.sub(r"\D", "", bucket[3])[:18])


def _operation(kind: str, rows: list[tuple[float, float, int]]) -> Operation:
    histogram = Histogram.of([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows], "ms")
    return Operation(kind, count=float(histogram.total), histogram=histogram)
