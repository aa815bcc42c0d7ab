r"""AS SSD Benchmark: the rate and latency of a few tests of a Windows disk.

Reads:
    The text that it copies (Edit, Copy), in MB/s or as IOPS, one or several in one file.

Sample:
    .. code-block:: text

        AS SSD Benchmark 2.0.7316.34247
        Name: Samsung SSD 970 EVO Plus 250GB
        Date: 2024/11/28 14:18:03
        ------------------------------
        4K-64Threads:
        ------------------------------
        Read: 790.21 MB/s
        Write: 1066.48 MB/s

Lost:
    The scores; firmware, offset and size of the disk. The tests of copying and of compression are left out and counted.

Units:
    MB of 2**20 bytes: 60.63 MB/s of 4 KiB are the 15521 iops that it shows for the same run. Sequential requests have
    16 MiB, those of the access time 512 bytes. Latency is only printed as access time: of the other tests it is taken
    from the rate, since always 1 or 64 requests are under way. The date is local time, in the order of the language of
    Windows.

Sources:
    AS SSD Benchmark 2.0: texts of it in public notes of others, in MB/s and as IOPS of one run. ssd-tester.com, how the
    performance score is determined (sizes, threads).
    J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns
from leadline.formats.printed import number_of
from leadline.formats.stamps import StampReader, parse_stamp

META = ImporterMeta(
    tool="AS SSD",
    marks=("as ssd benchmark",),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "iops": Field("job_iops", "per_s"),
        "MB/s": Field("job_mib_per_s", "mib_per_s"),
        "ms": Field("job_latency_ms", "ms"),
    },
    record="AS SSD Benchmark: Start, then Edit, Copy, and paste the text into a file",
)

_HEAD = re.compile(r"AS SSD Benchmark (\d{1,3}\.\d{1,3}[.\d]{0,24})")
_FACT = re.compile(r"(Name|Firmware|Controller|Offset|Size|Date): ?(.{0,200})")
_ROW = re.compile(r"(Read|Write): ?(\d{1,12}(?:[.,]\d{1,6})?) ?(MB/s|iops|ms)", re.IGNORECASE)
_RULE = re.compile(r"-{5,200}")
_SCORE = re.compile(r"(?:Read|Write|Total): ?\d{1,9}")
# Heading of a test -> what is done, bytes of a request, how many are under way.
_TESTS = {
    "sequential": ("SEQ", 16 * 2**20, 1),
    "16mb": ("SEQ", 16 * 2**20, 1),
    "4k": ("RND", 4096, 1),
    "4k-64threads": ("RND", 4096, 64),
    "4k-64thrd": ("RND", 4096, 64),
    "access times": ("access", 512, 1),
    "512b": ("access", 512, 1),
}
_SIZES = {16 * 2**20: "16MiB", 4096: "4KiB", 512: "512B"}


@dataclass(slots=True)
class _AsSsdText:
    """One result: the disk, and the number and unit of each test, by reads and writes."""

    version: str
    facts: dict[str, str] = field(default_factory=dict)
    rows: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)


def sniff(source: Source) -> int:
    """Sure by its name above a row of one of its tests."""
    lines = [line.strip() for line in source.head_text.splitlines()]
    is_named = any(_HEAD.fullmatch(line) for line in lines)
    return 94 if is_named and any(_ROW.fullmatch(line) or _FACT.fullmatch(line) for line in lines) else 0


def read(source: Source, request: Request) -> Capture:
    """A result and a sample for each test.

    Raises:
        InputError: no test has a number.
    """
    builder = CaptureBuilder(source.name, "as-ssd", META.tool)
    texts, left_out = _texts(source.lines())
    if left_out:
        builder.warn("left-out", "lines that are none of its tests were left out", left_out)
    texts = [text for text in texts if text.rows]
    if not texts:
        raise InputError(
            source.name,
            found="no test with a number",
            expected="a heading such as 4K: and below it Read: 49.57 MB/s",
            advice=f"Copy it again: {META.record}.",
        )
    ends, is_known = _ends_ns(texts, source, request, builder)
    for number, (text, end_ns) in enumerate(zip(texts, ends, strict=True), 1):
        label = f" {number}" if len(texts) > 1 else ""
        for (test, way), (value, unit) in text.rows.items():
            if value > 0:
                _add(builder, request, text, (test, way, value, unit, label, end_ns))
            else:
                builder.warn("no-rate", "a test that did nothing is left out")
    return builder.build(clock_known=is_known, tool_version=texts[0].version)


def _texts(lines: list[str]) -> tuple[list[_AsSsdText], int]:
    """The texts, and how many lines belong to none of their tests."""
    texts: list[_AsSsdText] = []
    test, left_out = "", 0
    for line in lines:
        bare = line.strip()
        if head := _HEAD.fullmatch(bare):
            texts.append(_AsSsdText(head[1]))
            test = ""
        elif not texts or not bare or _RULE.fullmatch(bare):
            continue
        elif (name := bare.rstrip(":").casefold()) in _TESTS or name == "score":
            test = name
        elif (row := _ROW.fullmatch(bare)) and test in _TESTS:
            value = number_of(row[2].replace(",", "."))
            texts[-1].rows[test, row[1].casefold()] = (value, row[3].casefold())
        elif not test and (fact := _FACT.fullmatch(bare)):
            texts[-1].facts[fact[1]] = fact[2].strip()
        elif not (test == "score" and _SCORE.fullmatch(bare)):
            left_out += 1
            test = test if _ROW.fullmatch(bare) or bare[-1:].isdigit() else "another"
    return texts, left_out


def _ends_ns(
    texts: list[_AsSsdText], source: Source, request: Request, builder: CaptureBuilder
) -> tuple[list[int], bool]:
    """When each text was copied, UTC nanoseconds, and whether that is known for sure."""
    stamps = [text.facts.get("Date", "").replace(".", "/") for text in texts]
    if any(parse_stamp(stamp) is None for stamp in stamps):
        builder.warn("no-times", "a text has no date: its tests are taken to end when the file was last written")
        return [source.mtime_ns] * len(texts), False
    reader = StampReader.of(stamps, [], source, request, builder)
    return reader.times_ns(stamps, None).tolist(), reader.known


def _add(
    builder: CaptureBuilder, request: Request, text: _AsSsdText, test: tuple[str, str, float, str, str, int]
) -> None:
    """The result and the sample of a test."""
    name, way, value, unit, label, end_ns = test
    kind, size_bytes, queue = _TESTS[name]
    per_s = {"iops": value, "ms": 1000.0 / value}.get(unit, value * 2**20 / size_bytes)
    bytes_per_s = value * 2**20 if unit == "mb/s" else per_s * size_bytes
    latency_ms = value if unit == "ms" else 1000.0 * queue / per_s
    job = f"{kind} {_SIZES[size_bytes]} Q{queue} {way}{label}"
    entity = Entity(EntityKind.JOB, job, UNNAMED_GUEST)
    columns = {"job_iops": [per_s], "job_mib_per_s": [bytes_per_s / 2**20], "job_latency_ms": [latency_ms]}
    add_columns(builder, request, entity, np.array([end_ns]), columns, interval_s=NAN)
    workload: dict[str, Any] = {"iodepth": queue, "bs": _SIZES[size_bytes], "disk": text.facts.get("Name", "")}
    workload["controller"] = text.facts.get("Controller", "")
    builder.results.append(
        Result(
            META.tool,
            job,
            (Operation(way, per_s, bytes_per_s, latency_ms={"mean": latency_ms}),),
            tool_version=text.version,
            workload={setting: known for setting, known in workload.items() if known},
            source=builder.info.name,
        )
    )
