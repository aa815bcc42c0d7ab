r"""TCP connections of a Linux machine, from ``ss`` taken again and again: round trips, and segments sent again.

Reads:
    The output of ``ss -tin`` (or ``-tinp``, ``-tino``), each snapshot after a line with its time in ISO 8601, alone or
    after ``#``.

Sample:
    .. code-block:: text

        # 2026-11-24T01:33:07.556+00:00
        State Recv-Q Send-Q Local Address:Port  Peer Address:Port Process
        ESTAB 0      0         198.18.0.1:21000   198.18.0.2:53994
                 cubic wscale:10,10 rto:208 rtt:7.828/13.932 mss:1448 cwnd:138 segs_out:206 segs_in:259 retrans:0/3

Lost:
    Addresses and programs: what is told is of the machine, not of a connection. Connections in other states than
    established. What a connection sent before the first snapshot it is in, and after the last: short ones are not seen.

Units:
    ``rtt`` is the smoothed round trip in milliseconds; the median over the connections that sent since the snapshot
    before. ``segs_out`` and the total of ``retrans`` are counters; their differences are per second.

Sources:
    ss(8); Linux, ``include/uapi/linux/tcp.h`` (tcpi_rtt, tcpi_total_retrans, tcpi_segs_out).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.stamps import YEARS

META = ImporterMeta(
    tool="ss",
    layers=(Layer.NETWORK,),
    fields={
        "rtt": Field("net_tcp_round_trip_ms", "ms"),
        "segs_out": Field("net_tcp_segments_per_s", "per_s"),
        "retrans": Field("net_tcp_retransmits_per_s", "per_s"),
    },
    record='while sleep 1; do echo "# $(date --iso-8601=ns)"; ss -tin; done > ss.txt',
    marks=("segs_out:",),
)

_TIME = re.compile(r"(?:# ?)?((?:19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s*")
_CONNECTION = re.compile(r"ESTAB\s+\d+\s+\d+\s+(\S+)\s+(\S+)")
_RTT = re.compile(r"(?<!\S)rtt:(\d{1,9}(?:\.\d{1,9})?)/")
_SENT = re.compile(r"(?<!\S)segs_out:(\d{1,18})")
_AGAIN = re.compile(r"(?<!\S)retrans:\d{1,18}/(\d{1,18})")
_LOOPBACK = re.compile(r"127\.|\[?::1\]?:|\[?::ffff:127\.")


@dataclass(frozen=True, slots=True)
class _Connection:
    rtt_ms: float
    sent: int
    sent_again: int


def sniff(source: Source) -> int:
    """Sure by a time, an established connection and its segments."""
    lines = source.head_text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    return 90 if _TIME.fullmatch(first) and any(map(_CONNECTION.match, lines)) and _SENT.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """The machine's series, a value for each two snapshots that follow each other.

    Raises:
        InputError: there are not two snapshots.
    """
    builder = CaptureBuilder(source.name, "ss", META.tool)
    zoned = True
    snapshots: dict[int, dict[tuple[str, str], _Connection]] = {}
    for moment, connections in _snapshots(source.lines()):
        zoned = zoned and moment.tzinfo is not None
        snapshots[to_ns(moment, request)] = connections
    if len(snapshots) < 2:
        raise InputError(
            source.name,
            found=f"{len(snapshots)} snapshot of connections",
            expected="two or more, each after a line with its time",
            advice=f"Record again: {META.record}",
        )
    if not zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    times = np.array(sorted(snapshots), dtype=np.int64)
    rows = [_between(snapshots[a], snapshots[b], (b - a) / 1e9) for a, b in pairwise(times.tolist())]
    for name, values in zip(META.fields.values(), np.array(rows).T, strict=True):
        if request.wants(name.metric) and np.isfinite(values).any():
            builder.add_series(name.metric, UNNAMED_GUEST, times[1:], values)
    return builder.build(clock_known=zoned or request.timezone is not None)


def _snapshots(lines: list[str]) -> Iterator[tuple[datetime, dict[tuple[str, str], _Connection]]]:
    """The time of each snapshot and its connections by both addresses; those of the machine with itself left out."""
    moment: datetime | None = None
    connections: dict[tuple[str, str], _Connection] = {}
    address: tuple[str, str] | None = None
    for line in lines:
        stamp = _TIME.fullmatch(line)
        if stamp is not None:
            if moment is not None:
                yield moment, connections
            moment, connections, address = _moment(stamp[1]), {}, None
            continue
        connection = _CONNECTION.match(line)
        if connection is not None:
            address = (connection[1], connection[2])
            if _LOOPBACK.match(address[0]):
                address = None
        sent = _SENT.search(line)
        if address is not None and sent is not None:
            rtt, again = _RTT.search(line), _AGAIN.search(line)
            connections[address] = _Connection(
                float(rtt[1]) if rtt else float("nan"), int(sent[1]), int(again[1]) if again else 0
            )
            address = None
    if moment is not None:
        yield moment, connections


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(re.sub(r"([.,]\d{6})\d+", r"\1", text))
    except ValueError:
        return None
    return moment if moment.year in YEARS else None


def _between(
    before: dict[tuple[str, str], _Connection], after: dict[tuple[str, str], _Connection], seconds: float
) -> tuple[float, float, float]:
    """Round trip in ms, segments per second, of them sent again; NaN where no connection is in both snapshots."""
    pairs = [(before[address], now) for address, now in after.items() if address in before]
    pairs = [(was, now) for was, now in pairs if now.sent >= was.sent and now.sent_again >= was.sent_again]
    if not pairs:
        return (float("nan"),) * 3
    trips = [now.rtt_ms for was, now in pairs if now.sent > was.sent and now.rtt_ms == now.rtt_ms]
    return (
        float(np.median(trips)) if trips else float("nan"),
        sum(now.sent - was.sent for was, now in pairs) / seconds,
        sum(now.sent_again - was.sent_again for was, now in pairs) / seconds,
    )
