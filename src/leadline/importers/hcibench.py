"""HCIBench: the summary of a test case over all its VMs.

Reads:
    ``*-res.txt`` of HCIBench 1 and 2, of vdbench and of fio, of one or several datastores; the workload from the name
    that HCIBench gives to the file or its folder (``fio-8vmdk-100ws-4k-70rdpct-100randompct-4threads-1511829572``).

Sample:
    .. code-block:: text

        Datastore     = vsanDatastore
        =============================
        JOB_NAME	= job0
        VMs		= 8
        IOPS		= 153412.66 IO/S
        THROUGHPUT	= 599.27 MB/s
        R_LATENCY	= 1.31 ms
        95%tile_R_LAT	= 2.50 ms

Lost:
    How reads and writes share the rates, and the distribution of latencies: name the whole result folder, whose files
    of each VM hold them. HCIBench's ``95%tile`` is no percentile: for fio it averages the percentiles of the VMs, for
    vdbench it adds 1.645 standard deviations to the mean. It is kept with the settings, not with the latencies. A mean
    latency is the mean of the VMs' means, each VM counting the same.

Units:
    MB/s is MiB per second with both tools. Latencies are ms. Usage is per cent.

Sources:
    HCIBench 2: lib/parseFioResult.rb and lib/parseVdbResult.rb, which write the file; generate_param_file.sh, which
    makes the names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="HCIBench summary",
    marks=("io/s",),
    layers=(Layer.STORAGE_PATH, Layer.DATASTORE),
    record="copy /opt/output/results/TEST from the HCIBench appliance, the whole folder",
)

BYTES_PER_MIB = 2**20
_MARK = re.compile(r"^Datastore\s*=\s*\S", re.MULTILINE)
_RATE = re.compile(r"^IOPS\s*=\s*[0-9.]+\s*IO/S", re.MULTILINE)
_ENTRY = re.compile(r"([\w%][\w% ]{0,30}?)\s*[=:]\s*(.*?)\s*")
_RULE = re.compile(r"=+\s*")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?)\s*(?:IO/S|MB/s|ms|%)?", re.IGNORECASE)
_EARLY = re.compile(r"There are ([0-9]+) VMs finished testing early")
_NAME = re.compile(
    r"(?:fio|vdb)-([0-9]{1,4})vmdk-([0-9]{1,3})ws-([0-9]{1,6})([km]?)-([0-9]{1,3})rdpct-([0-9]{1,3})randompct-"
    r"([0-9]{1,5})threads",
    re.IGNORECASE,
)
_NUMBERS = ("VMs", "IOPS", "THROUGHPUT", "LATENCY", "R_LATENCY", "W_LATENCY", "95%tile_R_LAT", "95%tile_W_LAT")
_P95 = {
    "95%tile_LAT": "vm_p95_ms_estimated",
    "95%tile_R_LAT": "vm_p95_ms_read_averaged",
    "95%tile_W_LAT": "vm_p95_ms_write_averaged",
}
_USAGE = {"CPU USAGE": "host_cpu_usage", "RAM USAGE": "host_memory_usage", "vSAN PCPU USAGE": "vsan_cpu_usage"}


@dataclass(slots=True)
class _Block:
    """One job of one datastore."""

    line: int
    datastore: str
    early: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)


def sniff(source: Source) -> int:
    """Sure by the first line and the rate in the words only HCIBench writes."""
    return 94 if _MARK.search(source.head_text) and _RATE.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """A result per datastore and job.

    Raises:
        InputError: a value that should be a number is none, or there is no result at all.
    """
    builder = CaptureBuilder(source.name, "hcibench", META.tool)
    usage: dict[str, str] = {}
    blocks = [block for block in _blocks(source, request, builder, usage) if "IOPS" in block.numbers]
    if not blocks:
        raise InputError(
            source.name,
            found="no result",
            expected="a line such as IOPS = 153412.66 IO/S",
            advice="Look into the test's folder why it did not end.",
        )
    for block in blocks:
        builder.results.append(_result(block, usage, source.name))
        if block.early:
            builder.warn("early", "VMs that ended early are not part of the summary", block.early)
    return builder.build()


def _blocks(source: Source, request: Request, builder: CaptureBuilder, usage: dict[str, str]) -> Iterator[_Block]:
    text = source.text()
    lines = text.splitlines()
    block = _Block(1, "")
    for number, line in enumerate(lines, start=1):
        early, entry = _EARLY.match(line), _ENTRY.fullmatch(line)
        if number == len(lines) and (request.truncate_last or not text.endswith(("\n", "\r"))) and entry is not None:
            builder.warn("cut", "the last line was cut off and left out")
        elif early is not None:
            block.early = int(early[1][:9])
        elif _RULE.fullmatch(line):
            # The line about early VMs stands above the rule that opens the job it is about.
            early_count = 0 if "IOPS" in block.numbers else block.early
            yield block
            block = _Block(number, block.datastore, early_count)
        elif entry is not None and entry[1] == "Datastore":
            yield block
            block = _Block(number, entry[2])
        elif entry is not None and entry[1] in _USAGE:
            usage[_USAGE[entry[1]]] = entry[2]
        elif entry is not None and (entry[1] in _NUMBERS or entry[1] in _P95):
            block.numbers[entry[1]] = _value(entry[1], entry[2], source.name, number)
        elif entry is not None:
            block.texts[entry[1]] = entry[2]
    yield block


def _value(name: str, text: str, source: str, line: int) -> float:
    if text.startswith("NaN"):  # no VM ended properly
        return math.nan
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InputError(
            f"{source}:{line}",
            found=f"{name} = {text[:40]!r}",
            expected="a number with its unit",
            advice="Copy the file again from the appliance.",
        )
    value = float(match[1])
    return value if value < 1e18 else math.nan


def _result(block: _Block, usage: dict[str, str], source: str) -> Result:
    numbers = block.numbers

    def latency(name: str) -> dict[str, float]:
        # 0 is what an operation that did not occur has.
        return {"mean": numbers[name]} if numbers.get(name, 0.0) > 0 else {}

    whole = Operation(
        "io", numbers["IOPS"], numbers.get("THROUGHPUT", math.nan) * BYTES_PER_MIB, latency_ms=latency("LATENCY")
    )
    kinds = (("read", "R_LATENCY"), ("write", "W_LATENCY"))
    parts = [Operation(kind, latency_ms=latency(name)) for kind, name in kinds if latency(name)]
    workload: dict[str, Any] = {"datastore": block.datastore or None, "vm_count": numbers.get("VMs"), **usage}
    workload |= _asked_for(source)
    workload |= {ours: numbers[name] for name, ours in _P95.items() if name in numbers}
    job = block.texts.get("JOB_NAME") or block.texts.get("Run Def") or "job"
    version = block.texts.get("Version")
    kept = {name: value for name, value in workload.items() if value is not None}
    return Result("hcibench", job, (whole, *parts), tool_version=version, workload=kept, source=source)


def _asked_for(name: str) -> dict[str, Any]:
    """The workload in the name of a file or its folder, in fio's words; nothing where people gave it another name.

    >>> _asked_for("easy-run-1/fio-8vmdk-100ws-4k-70rdpct-100randompct-4threads-1511829572-res.txt")["rwmixread"]
    70
    """
    matches = list(_NAME.finditer(name))
    if not matches:
        return {}
    disks, working_set, block, unit, reads, random, threads = matches[-1].groups()
    return {
        "disks_per_vm": int(disks),
        "working_set_pct": int(working_set),
        "bs": f"{block}{unit.lower() or 'k'}",
        "rwmixread": int(reads),
        "percentage_random": int(random),
        "threads_per_disk": int(threads),
    }
