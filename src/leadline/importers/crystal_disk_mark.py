r"""CrystalDiskMark: the rate and latency of a few tests of a Windows disk.

Reads:
    The text that versions 5 to 9 copy or save, one or several in one file.

Sample:
    .. code-block:: text

        [Read]
          SEQ    1MiB (Q=  8, T= 1):   384.064 MB/s [    366.3 IOPS] < 21765.43 us>
          RND    4KiB (Q= 32, T= 1):    21.640 MB/s [   5283.2 IOPS] <  6020.22 us>

Lost:
    Of its runs of each test it prints the best one. Versions 5 and 6 print no latency: it is taken from the rate, since
    always Q x T requests are under way. What the profile, the interval and the comment say.

Units:
    MB/s of 1,000,000 bytes, requests per second, microseconds. The date is local time.

Sources:
    crystalmark.info, CrystalDiskMark: its texts of versions 5 to 9.
    J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns, bad_line
from leadline.formats.printed import bytes_of, number_of

META = ImporterMeta(
    tool="CrystalDiskMark",
    marks=("crystaldiskmark", "(q="),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "IOPS": Field("job_iops", "per_s"),
        "MB/s": Field("job_mib_per_s", "mb_per_s"),
        "us": Field("job_latency_ms", "us"),
    },
    record="CrystalDiskMark: run All, then File, Save (text)",
)
_HEAD = re.compile(r"\s*CrystalDiskMark (\d+\.\d+\.\w+).{0,200}")
_SECTION = re.compile(r"\s*\[(Read|Write|Mix)\b[^\]]{0,60}\].{0,40}")
_ROW = re.compile(
    r"\s*(?P<kind>Sequential|Random|SEQ|RND|Seq|Rnd)(?: (?P<way>Read|Write|Mix))? {1,8}"
    r"(?:(?P<size>[\d.]{1,8} ?[KMG]i?B) )?"
    r"\((?:Q= ?(?P<queue>[ \d]{1,6}), ?)?T= ?(?P<threads>[ \d]{1,5})\) ?: *(?P<mb>\d{1,9}\.\d{1,4}) MB/s"
    r"(?: \[ *(?P<iops>\d{1,12}\.\d{1,4}) IOPS\])?(?: < *(?P<us>\d{1,12}\.\d{1,4}) us>)?\s*"
)
_FOOT = re.compile(r"\s*(Profile|Test|Mode|Time|Date|OS|Comment) ?: (.*)")
_PLACE = re.compile(r"\[([A-Z]:)[^\]]{0,80}\]")
_NOISE = re.compile(r"\s*+(?:-{5,}+\s*+|\* K?M?B.*\s*+|.*Crystal Dew World.*\s*+)?+")
_WAYS = {"Read": "read", "Write": "write", "Mix": "mixed"}
_SIZES = {"Sequential": {"5": "128KiB", "6": "128KiB"}}  # of versions that do not print it


@dataclass
class _Paste:
    """One text of it."""

    version: str = ""
    rows: list[tuple[str, re.Match[str]]] = field(default_factory=list)
    place: str = ""
    size: str = ""
    host_system: str = ""
    moment: datetime | None = None


def sniff(source: Source) -> int:
    """Sure by its name above a row; rows alone have no other writer."""
    lines = source.head_text.splitlines()
    if not any(_ROW.fullmatch(line) for line in lines):
        return 0
    return 94 if any(_HEAD.fullmatch(line) for line in lines) else 90


def read(source: Source, request: Request) -> Capture:
    """A result and a sample per test.

    Raises:
        InputError: no test, or a line that is none of its.
    """
    builder = CaptureBuilder(source.name, "crystal-disk-mark", META.tool)
    pastes = _pastes(source)
    if not any(paste.rows for paste in pastes):
        raise bad_line(source.name, 0, "no test", "lines such as SEQ 1MiB (Q= 8, T= 1): 384.064 MB/s")
    for number, paste in enumerate(pastes, 1):
        end_ns = source.mtime_ns if paste.moment is None else to_ns(paste.moment, request)
        label = f" {number}" if len(pastes) > 1 else ""
        for way, row in paste.rows:
            _add(builder, request, (paste, way, row, label), end_ns)
    has_dates = all(paste.moment is not None for paste in pastes)
    if not has_dates:
        builder.warn("no-times", "a text has no date: its tests are taken to end when the file was last written")
    elif request.timezone is None:
        builder.warn("no-zone", "the dates are local, without a zone; taken as UTC")
    builder.warn("best-of", "of the runs of each test the best one is printed")
    return builder.build(clock_known=False, tool_version=next((p.version for p in pastes if p.version), None))


def _pastes(source: Source) -> list[_Paste]:
    pastes = [_Paste()]
    section = ""
    for index, line in enumerate(source.lines()):
        if head := _HEAD.fullmatch(line):
            if pastes[-1].rows:
                pastes.append(_Paste())
            pastes[-1].version, section = head[1], ""
        elif mark := _SECTION.fullmatch(line):
            section = _WAYS[mark[1]]
        elif row := _ROW.fullmatch(line):
            way = _WAYS[row["way"]] if row["way"] else section
            if not way:
                raise bad_line(source.name, index, line, "a test below [Read] or [Write]")
            pastes[-1].rows.append((way, row))
        elif foot := _FOOT.fullmatch(line):
            _take_foot(pastes[-1], foot[1], foot[2].strip())
        elif not _NOISE.fullmatch(line):
            raise bad_line(source.name, index, line, "a test of CrystalDiskMark")
    return pastes


def _take_foot(paste: _Paste, name: str, text: str) -> None:
    if name == "Test":
        place = _PLACE.search(text)
        paste.place, paste.size = place[1] if place else "", text.partition("(")[0].strip()
    elif name == "OS":
        paste.host_system = text
    elif name == "Date":
        try:
            paste.moment = datetime.strptime(text, "%Y/%m/%d %H:%M:%S")  # noqa: DTZ007 - local, as printed
        except ValueError:
            paste.moment = None


def _add(builder: CaptureBuilder, request: Request, test: tuple[_Paste, str, re.Match[str], str], end_ns: int) -> None:
    """The result and the sample of a test, all of whose requests have one size."""
    paste, way, row, label = test
    size = row["size"] or _SIZES.get(row["kind"], {}).get(paste.version[:1], "")
    size_bytes = bytes_of(size) if size else NAN
    bytes_per_s = number_of(row["mb"]) * 1e6
    per_s = number_of(row["iops"]) if row["iops"] else bytes_per_s / size_bytes
    queue, threads = int((row["queue"] or "1").strip() or 1), int(row["threads"].strip() or 1)
    if row["us"]:
        latency_ms = number_of(row["us"]) * factor("us", "ms")
    else:
        latency_ms = queue * threads / per_s * factor("s", "ms") if per_s > 0 else NAN
    if not per_s > 0:
        builder.warn("no-rate", "a test that made nothing is left out")
        return
    kind = "SEQ" if row["kind"].upper().startswith("SEQ") else "RND"
    job = " ".join(part for part in (paste.place, kind, size, f"Q{queue}T{threads}", way) if part) + label
    columns = {"job_iops": [per_s], "job_mib_per_s": [bytes_per_s / 2**20], "job_latency_ms": [latency_ms]}
    entity = Entity(EntityKind.JOB, job, UNNAMED_GUEST)
    add_columns(builder, request, entity, np.array([end_ns]), columns, interval_s=NAN)
    workload: dict[str, Any] = {"iodepth": queue, "numjobs": threads, "bs": size, "size": paste.size}
    workload |= {"filename": paste.place, "os": paste.host_system}
    operation = Operation(way, per_s, bytes_per_s, latency_ms={"mean": latency_ms})
    builder.results.append(
        Result(
            META.tool,
            job,
            (operation,),
            tool_version=paste.version or None,
            workload={name: setting for name, setting in workload.items() if setting},
            source=builder.info.name,
        )
    )
