"""perftest: latency and bandwidth of RDMA, between hosts that carry storage or replication.

Reads:
    Text of ``ib_send_lat``, ``ib_write_lat``, ``ib_read_lat``, ``ib_send_bw``, ``ib_write_bw``, ``ib_read_bw`` and
    their relatives, of one size or of all (``-a``), by iterations or by time (``-D``); several tests in one file.

Sample:
    .. code-block:: text

                            Send Latency Test
         Number of qps   : 1            Transport type : IB
         #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]
         Conflicting CPU frequency values detected: 1500.000000 != 3100.000000. CPU Frequency is not max.
         2       1000          2.85           75.69        2.95               3.19            1.52

Lost:
    Histograms and single samples (``-H``, ``-U``). Times in processor cycles. Addresses, keys and GIDs, on purpose.

Units:
    usec; MB/sec is MiB, Gb/sec 10^9 bits, Mpps 10^6 messages. ``t_typical`` is the median. Send and write latency are
    half a round trip, read and atomic latency a whole one. A peak of 0.00 was not measured.

Sources:
    linux-rdma/perftest: README, "Notes"; perftest_parameters.h (result formats), perftest_resources.c (units).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="perftest (ib_send_lat, ib_write_bw, ...)",
    marks=("#bytes",),
    layers=(Layer.NETWORK,),
    record="ib_send_lat -d DEVICE -F SERVER > lat.txt",
)

_TITLE = re.compile(
    r"\s{3,}((?:RDMA_Write|RDMA_Read|Send|Atomic|Raw Ethernet)[\w ]{0,40}?)\s+(Latency|BW)\s+(?:-\s*\w+\s+)?Test\b.*"
)
_HEADING = re.compile(r"\s*#bytes\s+#iterations\s")
_COLUMN = re.compile(r"#?[\w.%]+(?: (?:percentile|average|peak))?(?:\[[^\]]*\])?")
_SETTING = re.compile(r"([A-Z][\w* ./]{1,18}?)\s*+:\s*+(\S++)")
_ROW = re.compile(r"\s*[0-9]+\s+[0-9]+(?:\s+[0-9.eE+-]+)*\s*")
_LATENCY = {
    "t_min[usec]": "min",
    "t_max[usec]": "max",
    "t_typical[usec]": "p50",
    "t_avg[usec]": "mean",
    "t_stdev[usec]": "stddev",
    "99% percentile[usec]": "p99",
    "99.9% percentile[usec]": "p99.9",
}
_BANDWIDTH = {"[MB/sec]": 2.0**20, "[Gb/sec]": 1e9 / 8}
_KEPT = ("Number of qps", "Transport type", "Connection type", "Mtu", "Link type", "TX depth", "Device")
US_PER_MS = 1000.0


@dataclass(slots=True)
class _Test:
    name: str
    settings: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)


def sniff(source: Source) -> int:
    """Sure by the heading of its table."""
    text = source.head_text
    if not any(_HEADING.match(line) for line in text.splitlines()):
        return 0
    return 93 if re.search(r"t_avg\[|BW average\[|t_typical\[", text) else 0


def read(source: Source, request: Request) -> Capture:
    """A result per test and message size.

    Raises:
        InputError: a row has another number of values than the table's heading, or there is no row at all.
    """
    builder = CaptureBuilder(source.name, "perftest", META.tool)
    text = source.text()
    lines = text.splitlines()
    test = _Test("perftest")
    for number, line in enumerate(lines, start=1):
        title = _TITLE.fullmatch(line)
        if title is not None:
            test = _Test(f"{title[1].strip()} {title[2]}".lower().replace("_", " "))
        elif _HEADING.match(line):
            test.columns = _COLUMN.findall(line)
        elif "Conflicting CPU frequency" in line:
            builder.warn("frequency", "the processor changed its frequency; times of the test may be wrong")
        elif test.columns and _ROW.fullmatch(line):
            values = [_number(part) for part in line.split()]
            # Without an end of line, the last number may have been cut as well.
            cut = number == len(lines) and (request.truncate_last or not text.endswith(("\n", "\r")))
            if cut:
                builder.warn("cut", "the last row was cut off and left out")
            elif len(values) != len(test.columns) or any(math.isnan(value) for value in values):
                raise InputError(
                    f"{source.name}:{number}",
                    found=repr(line.strip()[:60]),
                    expected=f"{len(test.columns)} numbers, as the heading has columns",
                    advice="Record the test again; do not edit the file.",
                )
            else:
                builder.results.append(_result(test, values, source.name))
        else:
            for name, value in _SETTING.findall(line):
                if name.strip() in _KEPT:
                    test.settings[name.strip().casefold()] = value
    if not builder.results:
        raise InputError(
            source.name,
            found="no row of results",
            expected="numbers below the line that begins with #bytes",
            advice="Let the test end, and record the output of the client.",
        )
    return builder.build()


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0 <= value < 1e18 else math.nan


def _result(test: _Test, values: list[float], source: str) -> Result:
    row = dict(zip(test.columns, values, strict=True))
    latency = {ours: row[name] / US_PER_MS for name, ours in _LATENCY.items() if name in row}
    bytes_per_s = math.nan
    for unit, scale in _BANDWIDTH.items():
        bytes_per_s = row[f"BW average{unit}"] * scale if f"BW average{unit}" in row else bytes_per_s
    per_s = row["MsgRate[Mpps]"] * 1e6 if "MsgRate[Mpps]" in row else row.get("tps average", math.nan)
    size = int(row["#bytes"])
    operation = Operation("message", per_s, bytes_per_s, row["#iterations"], latency)
    workload = {"block_size_bytes": size, **test.settings}
    return Result("perftest", f"{test.name} {size} B", (operation,), workload=workload, source=source)
