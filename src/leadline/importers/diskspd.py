r"""diskspd: load on Windows disks, with latencies per target and percentiles.

Reads:
    The text of versions 2.0 to 2.2, with or without what stands before the tables, several runs and time spans in one
    file, and XML (``-Rxml``).

Sample:
    .. code-block:: text

        Read IO
        thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | LatStdDev |  file
        -----------------------------------------------------------------------------------------------------
             0 |     71644479488 |      1093208 |     569.31 |    9108.89 |    3.510 |     1.806 | D:\t.dat (93GiB)

Lost:
    Threads are added up per target; their means are weighted by their requests. Percentiles of all targets together
    are kept where there is one target. Events of Windows (ETW), shares of single processors, and IOPS deviations.
    Without ``-L`` nothing is known of the latency. Without ``-Sh`` or ``-h`` the file cache was measured in part.

Units:
    Milliseconds, bytes, requests per second as printed; the start time is UTC. Shares of all processors in percent.

Sources:
    github.com/microsoft/diskspd: ResultParser.cpp (``_PrintSection``, ``_PrintLatencyChart``), XmlResultParser.cpp;
    its wiki, "Command line and parameters".
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import ELAPSED_S_MAX, add_columns, bad_line
from leadline.importers._diskspd.document import document_run
from leadline.importers._diskspd.printed import CHART, HEADS, printed_runs
from leadline.importers._diskspd.spans import WAYS, SpdRun, SpdSpan

META = ImporterMeta(
    tool="diskspd",
    marks=("i/o per s", "%-ile |", "<testtimeseconds>"),
    layers=(Layer.STORAGE_PATH, Layer.GUEST),
    fields={
        "I/O per s": Field("job_iops", "per_s"),
        "MiB/s": Field("job_mib_per_s", "mib_per_s"),
        "AvgLat": Field("job_latency_ms", "ms"),
        "Usage": Field("guest_cpu_busy_pct", "pct"),
        "User": Field("guest_cpu_user_pct", "pct"),
        "Kernel": Field("guest_cpu_system_pct", "pct"),
        "Idle": Field("guest_cpu_idle_pct", "pct"),
    },
    record="diskspd -b8K -r -o8 -t4 -w30 -d60 -Sh -L -c10G D:\\test.dat > diskspd.txt",
)
_XML = re.compile(r"<Results>.{0,64000}<TestTimeSeconds>", re.DOTALL)


def sniff(source: Source) -> int:
    """Sure by the heads of its tables; the document by its root and the measured time."""
    text = source.head_text
    if _is_document(text):
        return 92
    return 94 if HEADS.search(text) else 90 if CHART.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """A result per time span and target; a sample of rates, latencies and processor shares per time span.

    Raises:
        InputError: no table, a damaged line among the results, or a document that is cut.
    """
    builder = CaptureBuilder(source.name, "diskspd", META.tool)
    text = source.text()
    runs = [document_run(text, source.name)] if _is_document(text) else printed_runs(text, source.name)
    times: list[tuple[int, int]] = []
    end_ns = source.mtime_ns
    for run in runs:
        begin_ns = None if run.start is None else to_ns(run.start, request)
        for number, span in enumerate(run.spans, 1):
            if begin_ns is not None and span.duration_s > 0:
                times.append((begin_ns + _ns(run.warmup_s), begin_ns + _ns(run.warmup_s + span.duration_s)))
                begin_ns = times[-1][1]
            span_times = times[-1] if begin_ns is not None and times else None
            label = f" {number}" if len(run.spans) > 1 else ""
            _add(builder, request, (run, span, label), span_times, end_ns)
    if not builder.results:
        raise bad_line(source.name, 0, "no table of requests", "diskspd's tables Read IO and Write IO, or its XML")
    _say(builder, runs)
    if not times:
        builder.warn("no-times", "runs have no time: they are taken to end when the file was last written")
    hosts = {run.host for run in runs if run.host}
    return builder.build(
        clock_known=bool(times),
        tool_version=next((run.version for run in runs if run.version), None),
        host=next(iter(hosts)) if len(hosts) == 1 else None,
    )


def _is_document(text: str) -> bool:
    return _XML.search(text) is not None


def _ns(seconds: float) -> int:
    return round(seconds * 1e9) if 0 <= seconds <= ELAPSED_S_MAX else 0


def _add(
    builder: CaptureBuilder,
    request: Request,
    part_of: tuple[SpdRun, SpdSpan, str],
    times: tuple[int, int] | None,
    end_ns: int,
) -> None:
    """The results and samples of a time span."""
    run, span, label = part_of
    guest = Entity(EntityKind.GUEST, run.host) if run.host else UNNAMED_GUEST
    ends_ns = np.array([end_ns if times is None else times[1]])
    for place in span.places:
        operations = _operations(span, place)
        if not operations:
            continue
        job = f"{place or 'all targets'}{label}"
        workload: dict[str, Any] = dict(run.workload.get(place, {})) | ({"filename": place} if place else {})
        builder.results.append(
            Result(
                META.tool,
                job,
                operations,
                span.duration_s,
                None if times is None else times[0],
                run.version or None,
                run.host or None,
                workload,
                source=builder.info.name,
            )
        )
        entity = Entity(EntityKind.JOB, job, guest)
        add_columns(builder, request, entity, ends_ns, _columns(operations), interval_s=span.duration_s)
    if span.cpu_pct:
        columns = {f"guest_cpu_{share}_pct": [value] for share, value in span.cpu_pct.items()}
        add_columns(builder, request, guest, ends_ns, columns, interval_s=span.duration_s)
    if times is not None:
        _add_ticks(builder, request, span, Entity(EntityKind.JOB, f"all targets{label}, by time", guest), times[0])


def _operations(span: SpdSpan, place: str) -> tuple[Operation, ...]:
    operations = []
    for way in WAYS:
        totals = span.targets.get((place, way))
        if totals is None or not totals.count > 0:
            continue
        chart = span.percentiles.get((place, way), {})
        if not chart and len(span.places) == 1:
            chart = span.percentiles.get(("", way), {})
        latency_ms = dict(chart)
        if span.has_latency and totals.mean_ms > 0:
            latency_ms = {"mean": totals.mean_ms, "stddev": totals.spread_ms} | latency_ms
        known = {name: value for name, value in latency_ms.items() if math.isfinite(value)}
        rate = totals.size_bytes / totals.count * totals.per_s
        operations.append(Operation(way, totals.per_s, rate, totals.count, known))
    return tuple(operations)


def _columns(operations: tuple[Operation, ...]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {}
    for operation in operations:
        columns[f"job_iops_{operation.name}"] = [operation.per_s]
        columns[f"job_mib_per_s_{operation.name}"] = [operation.bytes_per_s / 2**20]
        columns[f"job_latency_ms_{operation.name}"] = [operation.mean_ms]
    return columns


def _add_ticks(builder: CaptureBuilder, request: Request, span: SpdSpan, job: Entity, start_ns: int) -> None:
    """Rates and latencies of all targets by time (``-D`` with XML)."""
    for way, ticks in span.ticks.items():
        table = np.array(ticks, dtype=np.float64).reshape(-1, 3)
        table = table[(table[:, 0] > 0) & (table[:, 0] <= ELAPSED_S_MAX)]
        if len(table) and (np.diff(table[:, 0]) > 0).all() and (table[:, 1] > 0).any():
            times_ns = start_ns + np.round(table[:, 0] * 1e9).astype(np.int64)
            columns = {f"job_iops_{way}": table[:, 1], f"job_latency_ms_{way}": table[:, 2]}
            add_columns(builder, request, job, times_ns, columns, interval_s=float(table[0, 0]))


def _say(builder: CaptureBuilder, runs: list[SpdRun]) -> None:
    if not all(span.has_latency for run in runs for span in run.spans if span.targets):
        builder.warn("no-latency", "a run without -L has no latency: record it again with -L")
    if any(workload.get("cache") == "software" for run in runs for workload in run.workload.values()):
        builder.warn(
            "file-cache", "a run without -Sh went through the file cache: what is quick may not have been on the disk"
        )
    if any(math.isnan(span.duration_s) for run in runs for span in run.spans):
        builder.warn("excerpt", "an excerpt without the test time: how long it ran is not known")
