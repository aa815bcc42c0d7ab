"""vscsiStats: histograms of a virtual disk's I/O as the hypervisor saw it.

Reads:
    ``vscsiStats -p all -c`` (and the single kinds: ioLength, seekDistance, outstandingIOs, latency, interarrival), any
    number of virtual machines and disks in one file.

Sample:
    .. code-block:: text

        Histogram: latency of Read IOs in Microseconds (us),virtual machine worldGroupID,70114,virtual disk ha...
        min,84
        max,20911
        mean,731
        count,5120
        Frequency,Histogram Bucket Limit
        0,1

Lost:
    Names of virtual machines: vscsiStats prints the number of the world group. When counting began and ended: the file
    does not say, the numbers are of all I/O since ``-s`` or ``-r``.

Units:
    Latency and interarrival microseconds, I/O length bytes, distance blocks of 512 bytes. A bucket counts what is at
    most its limit and above the one before; the last, which repeats the limit, what is above it.

Sources:
    "Using vscsiStats for Storage Performance Analysis", VMware community document 10095; ``vscsiStats -h``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import bad_line

META = ImporterMeta(
    tool="vscsiStats",
    marks=("worldgroupid",),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "latency of Read IOs": Field("virtual_disk_latency_ms_read", "us"),
        "latency of Write IOs": Field("virtual_disk_latency_ms_write", "us"),
        "number of outstanding IOs": Field("virtual_disk_outstanding_count", "count"),
        "IO lengths of commands": Field("virtual_disk_io_size_bytes", "bytes"),
    },
    record="vscsiStats -s -w WORLDGROUP; sleep 600; vscsiStats -p all -c -w WORLDGROUP > vscsistats.csv",
)

_HEAD = re.compile(
    r"^Histogram: (?P<title>.+?)\s*,\s*virtual machine worldGroupID\s*[,:]\s*(?P<world>\d+)\s*,"
    r"\s*virtual disk handleID\s*[,:]\s*(?P<handle>\d+)\s*(?:\((?P<disk>[^)]*)\))?\s*$"
)
_SIGNATURE = re.compile(r"^Histogram: .*virtual machine worldGroupID\s*[,:]", re.MULTILINE)
_PAIR = re.compile(r"^\s*(?P<key>\w+|-?\d+)\s*,\s*(?P<value>-?\d+|Histogram Bucket Limit)\s*$")
_KINDS = {
    "IO lengths": "io_size_bytes",
    "distance (in LBNs) between each command from the closest": "seek_distance_blocks_closest",
    "distance (in LBNs) between successive": "seek_distance_blocks",
    "latency of IO interarrival": "interarrival_us",
    "latency of": "latency_us",
    "number of outstanding": "outstanding_count",
}
_SERIES = {
    ("latency_us", "read"): "latency of Read IOs",
    ("latency_us", "write"): "latency of Write IOs",
    ("outstanding_count", "all"): "number of outstanding IOs",
    ("io_size_bytes", "all"): "IO lengths of commands",
}
_WAYS = ("all", "read", "write")


def sniff(source: Source) -> int:
    """Sure by the head of a histogram."""
    return 95 if _SIGNATURE.search(source.head_text) else 0


@dataclass(slots=True)
class _Block:
    """One histogram: of what, of which disk, and its numbers as printed."""

    head: re.Match[str]
    line: int
    facts: dict[str, int] = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)

    @property
    def kind(self) -> str:
        title = self.head["title"]
        return next((kind for start, kind in _KINDS.items() if title.startswith(start)), title)

    @property
    def way(self) -> str:
        title = self.head["title"]
        return next((way for way in ("read", "write") if re.search(rf"\b{way}s?\b", title, re.IGNORECASE)), "all")

    @property
    def is_whole(self) -> bool:
        return len(self.limits) > 1 and self.limits[-1] == self.limits[-2] and self.facts.keys() >= {"count", "mean"}

    @property
    def summary(self) -> dict[str, Any]:
        """The numbers for the result's workload; without I/O there is no minimum, maximum or mean."""
        known = ("count", "min", "max", "mean") if self.facts["count"] else ("count",)
        limits = [*self.limits[:-1], None]  # the last bucket is open
        return {k: self.facts.get(k) for k in known} | {"buckets": list(zip(limits, self.counts, strict=True))}


def read(source: Source, request: Request) -> Capture:
    """A result with latency histograms for each virtual disk, and its mean latency, depth and size as one sample.

    Raises:
        InputError: no histogram, a damaged one, or one that breaks off before another begins.
    """
    builder = CaptureBuilder(source.name, "vscsistats", META.tool)
    blocks = _blocks(source)
    if blocks and not blocks[-1].is_whole:
        builder.warn("cut", "the last histogram was cut while it was printed and is left out")
        blocks.pop()
    if not blocks:
        raise InputError(
            f"{source.name}:1",
            found="no whole histogram",
            expected="the output of `vscsiStats -p all -c`",
            advice="Start counting with `vscsiStats -s`, then record again with -p all -c.",
        )
    disks: dict[tuple[str, str], dict[tuple[str, str], _Block]] = {}
    for block in blocks:
        if not block.is_whole:
            raise bad_line(
                source.name, block.line - 1, "a histogram that breaks off", "buckets up to the repeated limit"
            )
        if sum(block.counts) != block.facts["count"]:
            builder.warn("count", "counts that do not add up to the printed total: I/O went on while they were printed")
        of = disks.setdefault((block.head["world"], block.head["disk"] or f"handle {block.head['handle']}"), {})
        if (block.kind, block.way) in of:
            builder.warn("repeated", "histograms printed more than once; the last is taken, since counts only grow")
        of[block.kind, block.way] = block
    for (world, disk), disk_blocks in disks.items():
        _add_disk(builder, request, _entity(world, disk), disk_blocks, source)
    builder.warn("no-times", "the file has no times and no duration; its last change is taken for all")
    return builder.build(clock_known=False, start_ns=None, end_ns=source.mtime_ns)


def _blocks(source: Source) -> list[_Block]:
    blocks: list[_Block] = []
    lines = source.lines()
    for index, line in enumerate(lines):
        if head := _HEAD.match(line):
            blocks.append(_Block(head, index + 1))
        elif line.strip() and blocks:
            if _take(blocks[-1], line):
                continue
            if index + 1 < len(lines):
                raise bad_line(source.name, index, line.strip(), "a count and a bucket limit")
            if blocks[-1].is_whole:  # what the last line began is cut; otherwise the histogram it belongs to
                blocks.append(_Block(blocks[-1].head, index + 1))
        elif line.startswith("Histogram"):
            raise bad_line(source.name, index, line.strip(), "a histogram's head with world group and disk handle")
    return blocks


def _take(block: _Block, line: str) -> bool:
    """Take in a line of a histogram; False when it is none."""
    pair = _PAIR.match(line)
    if pair is None or len(line) > 60:
        return False
    key, value = pair["key"], pair["value"]
    if key == "Frequency":
        return not block.limits
    if value == "Histogram Bucket Limit":
        return False
    if key in ("min", "max", "mean", "count"):
        block.facts[key] = int(value)
        return not block.limits and abs(int(value)) < 1 << 62
    if not key.isascii() or not key.isdigit() or (block.limits and int(value) < block.limits[-1]):
        return False
    block.counts.append(int(key))
    block.limits.append(int(value))
    return int(key) < 1 << 62 and abs(int(value)) < 1 << 62


def _entity(world: str, disk: str) -> Entity:
    return Entity(EntityKind.VIRTUAL_DISK, disk, Entity(EntityKind.VM, f"world group {world}"))


def _add_disk(
    builder: CaptureBuilder, request: Request, disk: Entity, blocks: dict[tuple[str, str], _Block], source: Source
) -> None:
    times = np.array([source.mtime_ns], dtype=np.int64)
    for of, name in _SERIES.items():
        block, known = blocks.get(of), META.fields[name]
        if block is not None and block.facts["count"] > 0 and request.wants(known.metric):
            scale = factor(known.unit, "ms") if known.unit == "us" else 1.0
            builder.add_series(known.metric, disk, times, np.array([block.facts["mean"] * scale]))
    operations = [
        _operation(blocks, way) for way in _WAYS if any(of == way and blocks[k, of].facts["count"] for k, of in blocks)
    ]
    workload: dict[str, Any] = {}
    for (kind, way), block in blocks.items():
        if kind != "latency_us":
            workload.setdefault(kind, {})[way] = block.summary
    world = disk.parent.name if disk.parent else ""
    builder.results.append(
        Result(
            META.tool,
            f"{world} {disk.name}",
            tuple(operations),
            workload=workload,
            source=source.name,
            is_observed=True,
        )
    )


def _operation(blocks: dict[tuple[str, str], _Block], way: str) -> Operation:
    """Latencies of all commands, of reads or of writes."""
    block = blocks.get(("latency_us", way))
    if block is None:
        count = next((float(b.facts["count"]) for (_, of), b in blocks.items() if of == way), math.nan)
        return Operation(way, count=count)
    scale = factor("us", "ms")
    spread: dict[str, float] = {key: block.facts[key] * scale for key in ("mean", "min", "max") if key in block.facts}
    return Operation(way, count=float(block.facts["count"]), latency_ms=spread, histogram=_histogram(block, scale))


def _histogram(block: _Block, scale: float) -> Histogram | None:
    """Limits are inclusive whole microseconds, so a bucket runs to one above; the open last one to the maximum."""
    if not block.facts["count"]:
        return None
    edges = [limit + 1.0 for limit in block.limits[:-1]]
    above = block.facts.get("max", 0) + 1.0
    edges.append(above if above > edges[-1] else math.inf)
    return Histogram.of([0.0, *(e * scale for e in edges[:-1])], [e * scale for e in edges], block.counts, "ms")
