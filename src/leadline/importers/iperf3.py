"""iperf3's JSON: throughput, retransmits, round-trip times, loss and jitter of a network test.

Reads:
    ``iperf3 -J`` of 3.0 to 3.18 from client or server, TCP and UDP, one or several streams, reverse and bidirectional;
    ``--json-stream`` (one event per line); several documents in one file; documents of a run that failed.

Sample:
    .. code-block:: text

        {"start": {"connected": [], "version": "iperf 3.12", "system_info": "Linux db01 6.18.44 …"},
         "intervals": [], "end": {}, "error": "unable to connect to server: Connection refused"}

Lost:
    User and system shares of the CPU, sizes of socket buffers. Intervals iperf3 marks as omitted (``-O``, TCP slow
    start).

Units:
    Bits per second become 10^6 bits per second; round-trip times are microseconds, jitter is milliseconds. Round-trip
    times and windows of 0 are those of an end that does not send: "not measured". ``cpu_pct`` and ``remote_cpu_pct`` of
    a result are iperf3's own use at the two ends, in percent of one processor.

Sources:
    iperf3 manual page; ``iperf_api.c`` ``iperf_print_intermediate`` and ``iperf_print_results``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import ELAPSED_S_MAX, NAN, add_columns, epoch_ns

META = ImporterMeta(
    tool="iperf3",
    marks=("iperf 3", '"event"', '"cookie"'),
    layers=(Layer.NETWORK,),
    fields={
        "bits_per_second": Field("job_mbit_per_s", "mbit_per_s"),
        "retransmits": Field("net_tcp_retransmits_count", "count"),
        "rtt": Field("net_tcp_rtt_us", "us"),
        "snd_cwnd": Field("net_tcp_window_bytes", "bytes"),
        "jitter_ms": Field("net_udp_jitter_ms", "ms"),
        "lost_percent": Field("net_udp_lost_pct", "pct"),
    },
    record="iperf3 -c SERVER -J -t 60 -i 1 >iperf3.json",
)
BITS_PER_MBIT = 1e6
US_PER_MS = 1000.0
# iperf3's field -> metric, divisor, whether 0 means "not measured"
_FIELDS = {
    "bits_per_second": ("job_mbit_per_s", BITS_PER_MBIT, False),
    "retransmits": ("net_tcp_retransmits_count", 1.0, False),
    "rtt": ("net_tcp_rtt_us", 1.0, True),
    "snd_cwnd": ("net_tcp_window_bytes", 1.0, True),
    "jitter_ms": ("net_udp_jitter_ms", 1.0, False),
    "lost_percent": ("net_udp_lost_pct", 1.0, False),
    "packets": ("raw.iperf3.packets", 1.0, False),
    "lost_packets": ("raw.iperf3.lost_packets", 1.0, False),
    "rttvar": ("raw.iperf3.rttvar_us", 1.0, True),
}
_MARK = re.compile(rb'"version"\s*:\s*"iperf 3|^\{"event"\s*:\s*"start"|"cookie"\s*:.{0,400}"tcp_mss', re.DOTALL)

_ENDS = {"sum", "sum_sent", "sum_received"}

Document = dict[str, Any]


def sniff(source: Source) -> int:
    """Sure by iperf3's version in a JSON document."""
    return 95 if source.head.lstrip()[:1] == b"{" and _MARK.search(source.head) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the intervals per job (and per stream when there are several), one result per document.

    Raises:
        InputError: it is not iperf3's JSON, or a document is damaged or cut.
    """
    builder = CaptureBuilder(source.name, "iperf3", META.tool)
    clock_known, version, host = True, None, None
    for document in _documents(source, builder):
        start = _object(document, "start")
        version = str(start.get("version", "")).removeprefix("iperf ") or version
        words = str(start.get("system_info", "")).split()
        host = words[1] if len(words) > 1 else host
        guest = Entity(EntityKind.GUEST, host) if host else UNNAMED_GUEST
        if "error" in document:
            builder.warn("failed", f"iperf3 stopped: {document['error']}")
        _check(document, source.name)
        job = Entity(EntityKind.JOB, _job_name(start), guest)
        start_ns = _start_ns(start, source.name)
        clock_known = _add_intervals(builder, request, source, (document, job, start_ns)) and clock_known
        if "error" in document or _has_end(document):
            builder.results.append(_result(document, job, start_ns, source.name))
        else:
            builder.warn("no-summary", "the events stop before the end of the run: there is no result of it")
    return builder.build(clock_known=clock_known, tool_version=version, host=host)


def _documents(source: Source, builder: CaptureBuilder) -> Iterator[Document]:
    """The JSON documents of the file; a stream of events is put together to one."""
    text = source.text()
    decoder = json.JSONDecoder()
    position, count = 0, 0
    events: list[Document] = []
    while match := re.compile(r"\s*(?=\S)").match(text, position):
        try:
            document, position = decoder.raw_decode(text, match.end())
        except (json.JSONDecodeError, RecursionError) as error:
            if count or events:
                builder.warn("cut", "the last document is cut and was dropped")
                break
            line = text.count("\n", 0, getattr(error, "pos", 0)) + 1
            raise _damage(f"{source.name}:{line}", "JSON that ends or breaks here", "a whole document") from error
        if not isinstance(document, dict) or not {"event", "start", "error"} & document.keys():
            raise _damage(source.name, "JSON of another kind", 'an object with "start" and "intervals"')
        if "event" in document:
            events.append(document)
        else:
            count += 1
            yield document
    if events:
        yield _put_together(events)
    elif not count:
        raise _damage(source.name, "no JSON document", "the output of iperf3 -J")


def _put_together(events: list[Document]) -> Document:
    """One document from ``--json-stream`` events."""
    whole: Document = {"intervals": [], "events": True}
    for event in events:
        kind, data = str(event["event"]), event.get("data", {})
        if kind == "interval":
            whole["intervals"].append(data)
        else:
            whole[kind] = data
    return whole


def _check(document: Document, name: str) -> None:
    """A run that did not fail has intervals, each with a sum or streams, and an end; only events may lack the end.

    Raises:
        InputError: it has not.
    """
    intervals = document.get("intervals", [] if "error" in document else None)
    whole = isinstance(intervals, list) and all(
        isinstance(i, dict) and {"sum", "streams"} & i.keys() for i in intervals
    )
    if not whole:
        raise _damage(name, 'a document whose "intervals" are damaged', "a list of intervals with sums or streams")
    if "error" not in document and not ("events" in document or _has_end(document)):
        raise _damage(name, 'a document whose "end" is damaged', "the sums of a finished run")


def _has_end(document: Document) -> bool:
    return any(_object(_object(document, "end"), key) for key in _ENDS)


def _damage(where: str, problem: str, expected: str) -> InputError:
    return InputError(
        where, found=problem, expected=expected, advice="Run iperf3 again with -J and keep its whole output."
    )


def _object(document: Document, key: str) -> Document:
    """A member that should be an object; an empty one when it is absent or something else."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _objects(document: Document, key: str) -> list[Document]:
    """A member that should be a list of objects."""
    value = document.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(document: Document, key: str) -> float:
    """A member that should be a number; NaN when it is absent, null or something else."""
    value = document.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if is_number and value is not None else NAN


def _job_name(start: Document) -> str:
    """``iperf3 tcp to SERVER``: the end that listens tells runs apart."""
    test, other = _object(start, "test_start"), _object(start, "connecting_to")
    protocol = str(test.get("protocol", "")).lower()
    connected = _objects(start, "connected")
    peer = other.get("host") or _object(start, "accepted_connection").get("host")
    if peer is None and connected:
        peer = connected[0].get("remote_host")
    receives = bool(test.get("reverse")) != ("accepted_connection" in start)
    direction = "from" if receives else "to"
    return " ".join(filter(None, ("iperf3", protocol, f"{direction} {peer}" if peer else "")))


def _start_ns(start: Document, name: str) -> int | None:
    seconds = _number(_object(start, "timestamp"), "timesecs")
    return None if np.isnan(seconds) else epoch_ns(seconds, name, 0)


def _add_intervals(
    builder: CaptureBuilder, request: Request, source: Source, run: tuple[Document, Entity, int | None]
) -> bool:
    """Add the series of a document; whether their clock is known."""
    document, job, start_ns = run
    omit_s = _number(_object(_object(document, "start"), "test_start"), "omit")
    rows: dict[Entity, list[tuple[float, Document]]] = {}
    for interval in _objects(document, "intervals"):
        streams = _objects(interval, "streams")
        one_way = len({str(stream.get("sender")) for stream in streams}) < 2
        for key, entity in (("sum", job), ("sum_bidir_reverse", Entity(job.kind, f"{job.name} reverse", job.parent))):
            total = _object(interval, key)
            if key == "sum" and len(streams) == 1 and one_way:
                total = {**streams[0], **total}
            _put(rows, entity, total)
        for stream in streams if len(streams) > 1 else ():
            _put(rows, Entity(job.kind, f"{job.name} stream {stream.get('socket')}", job.parent), stream)
    shift = omit_s if 0 <= omit_s <= ELAPSED_S_MAX else 0.0
    last = max((row[-1][0] for row in rows.values()), default=0.0)
    base = start_ns if start_ns is not None else source.mtime_ns - round((last + shift) * 1e9)
    for entity, samples in rows.items():
        ends = np.array([end for end, _ in samples])
        if (np.diff(ends) < 0).any():
            raise _damage(source.name, "intervals whose times go back", "intervals in order")
        times = base + np.round((ends + shift) * 1e9).astype(np.int64)
        step = float(np.median([_number(row, "seconds") for _, row in samples]))
        add_columns(builder, request, entity, times, _columns([row for _, row in samples]), interval_s=step)
    if start_ns is None and rows:
        builder.warn("no-times", "the run has no date: it is taken to end when the file was last written")
    return start_ns is not None or not rows


def _put(rows: dict[Entity, list[tuple[float, Document]]], entity: Entity, row: Document) -> None:
    """Keep a row that is not omitted and has an end."""
    end = _number(row, "end")
    if not row.get("omitted") and 0 <= end <= ELAPSED_S_MAX:
        rows.setdefault(entity, []).append((end, row))


def _columns(rows: list[Document]) -> dict[str, list[float]]:
    """Metrics of interval rows in their units."""
    columns = {}
    for field_name, (metric, divisor, zero_is_none) in _FIELDS.items():
        values = [_number(row, field_name) / divisor for row in rows]
        columns[metric] = [NAN if zero_is_none and value == 0 else value for value in values]
    return columns


def _result(document: Document, job: Entity, start_ns: int | None, name: str) -> Result:
    """The result of a document; of a failed run one without operations."""
    start, end = _object(document, "start"), _object(document, "end")
    test = _object(start, "test_start")
    operations = []
    for key, label in (("sum_sent", "sent"), ("sum_received", "received")):
        for suffix, direction in (("", ""), ("_bidir_reverse", " reverse")):
            total = _object(end, f"{key}{suffix}")
            if total:
                latency = _round_trip(end) if key == "sum_sent" and not suffix else {}
                moved = _number(total, "bits_per_second") / 8
                operations.append(Operation(f"{label}{direction}", bytes_per_s=moved, latency_ms=latency))
                operations.extend(_counts(total, label, direction))
    if not operations and _object(end, "sum"):
        total = _object(end, "sum")
        operations = [
            Operation("sent", bytes_per_s=_number(total, "bits_per_second") / 8),
            *_counts(total, "received", ""),
        ]
    asked = {
        "protocol": test.get("protocol"),
        "stream_count": test.get("num_streams"),
        "block_size_bytes": test.get("blksize"),
        "duration_s": test.get("duration"),
        "reverse": bool(test.get("reverse")),
        "bidirectional": bool(test.get("bidir")),
        "target_mbit_per_s": _number(test, "target_bitrate") / BITS_PER_MBIT,
        "cpu_pct": _number(_object(end, "cpu_utilization_percent"), "host_total"),
        "remote_cpu_pct": _number(_object(end, "cpu_utilization_percent"), "remote_total"),
    }
    ran = _number(_object(end, "sum_sent") or _object(end, "sum"), "seconds")
    return Result(
        tool=META.tool,
        job=job.name,
        operations=tuple(operations),
        duration_s=ran,
        start_ns=start_ns,
        tool_version=str(start.get("version", "")).removeprefix("iperf ") or None,
        host=job.parent.name if job.parent and job.parent != UNNAMED_GUEST else None,
        workload={key: value for key, value in asked.items() if value and value == value},  # noqa: PLR0124 - not NaN
        error_count=int("error" in document),
        source=name,
    )


def _counts(total: Document, end: str, direction: str) -> Iterator[Operation]:
    """Segments sent again as the sender counts them, or packets lost as the receiver does."""
    key, label = ("retransmits", "retransmitted segment") if end == "sent" else ("lost_packets", "lost packet")
    if not np.isnan(_number(total, key)):
        yield Operation(f"{label}{direction}", count=_number(total, key))


def _round_trip(end: Document) -> dict[str, float]:
    """Round-trip times in milliseconds when one stream sent; those of several are not averaged."""
    senders = [_object(stream, "sender") for stream in _objects(end, "streams")]
    if len(senders) != 1:
        return {}
    values = {stat: _number(senders[0], f"{stat}_rtt") / US_PER_MS for stat in ("mean", "min", "max")}
    return {stat: value for stat, value in values.items() if value > 0}
