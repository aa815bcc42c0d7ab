"""sockperf: how long a message takes between two machines, and every single message of a full log.

Reads:
    What ``sockperf ping-pong`` and ``under-load`` print (latency, or round trip with ``--full-rtt``), what
    ``throughput`` prints, several runs and several servers in one file; the ``--full-log`` CSV with a line per message.

Sample:
    .. code-block:: text

        sockperf: [Valid Duration] RunTime=1.550 sec; SentMessages=71809; ReceivedMessages=71809
        sockperf: Summary: Latency is 10.785 usec
        sockperf: ---> percentile 99.990 =  797.338
        packet, txTime(sec), rxTime(sec), latency(usec)
        0, 2.415207735, 2.415221305, 6.785

Lost:
    Messages of sockperf's own warm-up (400 ms) and of its last 50 ms, as in its own statistics. When the run was: the
    times of a full log count from the start of the program, so they are placed up to the file's last change. Text has
    percentiles and no histogram.

Units:
    usec. What sockperf calls latency is half of the round trip, taken to be the way there; with ``--full-rtt`` it
    prints the whole round trip. The operation's name says which; the series are half round trips in either case. MBps
    are 2^20 bytes per second.

Sources:
    sockperf README, "Output"; client.cpp ``client_statistics``, ``dumpFullLog``; recordings of version 3.7.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import ELAPSED_S_MAX, NAN, add_columns, bad_line, sample_histogram

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

META = ImporterMeta(
    tool="sockperf",
    marks=("sockperf: ",),
    layers=(Layer.NETWORK,),
    fields={
        "latency": Field("net_half_trip_us", "us"),
        "latency (99 %)": Field("net_half_trip_us_p99", "us"),
        "messages": Field("net_messages_per_s", "per_s"),
    },
    record="sockperf ping-pong --tcp -i ADDRESS -t 60 --full-log sockperf.csv",
)
US_PER_MS = 1000.0
NS_PER_US = 1000.0
TRIMMED_S = 0.45  # of each run, 0.4 at its beginning and 0.05 at its end: Source: defs.h, TEST_START_WARMUP_MSEC
CLOCK_ERROR_MAX = 0.1  # Judgement: more than this between sockperf's two measures of its run is no rounding
HALF, WHOLE, SENT = "half round trip", "round trip", "message"

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TABLE = re.compile(rb"^packet, txTime\(sec\), rxTime\(sec\), (latency|rtt)\(usec\)\r?\n", re.MULTILINE)
_PARAMETERS = "test was performed using the following parameters:"
_ROW_WIDTH = 4  # columns of a full log: number, sent, received, how long
_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_COUNTED = rf"RunTime={_NUMBER} sec; (?:Warm up time=\d+ msec; )?SentMessages={_NUMBER}; ReceivedMessages={_NUMBER}"
# A mark that names what a line says, and the line as it must then be.
_LINES = {
    "[Total Run]": re.compile(rf"\[Total Run\] {_COUNTED}"),
    "[Valid Duration]": re.compile(rf"\[Valid Duration\] {_COUNTED}"),
    "====> avg-": re.compile(rf"====> avg-(latency|rtt)={_NUMBER} \(std-dev={_NUMBER}.*\)"),
    "# dropped messages": re.compile(
        rf"# dropped messages = {_NUMBER}; # duplicated messages = {_NUMBER}; # out-of-order messages = {_NUMBER}"
    ),
    "Summary: Message Rate": re.compile(rf"Summary: Message Rate is {_NUMBER} \[msg/sec\]"),
    "Summary: BandWidth": re.compile(rf"Summary: BandWidth is {_NUMBER} MBps \({_NUMBER} Mbps\)"),
    "observations;": re.compile(rf"Total {_NUMBER} observations; each percentile contains {_NUMBER} observations"),
    "---> <M": re.compile(rf"---> <(MAX|MIN)> observation\s*=\s*{_NUMBER}"),
    "---> percentile": re.compile(rf"---> percentile {_NUMBER}\s*=\s*{_NUMBER}"),
}
_KEPT = {"mps": "messages_per_s", "burst": "burst", "reply-every": "reply_every", "msg-size": "message_bytes"}


@dataclass(slots=True)
class _Run:
    """One run against one server, as its text says; ``whole_s`` is NaN where that was not printed."""

    whole_s: float = NAN
    valid_s: float = NAN
    sent: float = NAN
    count: float = NAN
    dropped: int = 0
    name: str = ""
    latency_us: dict[str, float] = field(default_factory=dict)
    per_s: float = NAN
    bytes_per_s: float = NAN
    asked: dict[str, object] = field(default_factory=dict)
    error: str = ""


def sniff(source: Source) -> int:
    """Sure by the lines only sockperf prints."""
    text = source.head_text
    if _PARAMETERS in text and "sockperf: " in text:
        return 95
    return 94 if "sockperf: " in text and ("sockperf: [" in text or "== version #" in text) else 0


def read(source: Source, request: Request) -> Capture:
    """A result for each run and server; of a full log also the series of its messages, and their exact histogram.

    Raises:
        InputError: a line is damaged, or there is neither a result nor an error of sockperf.
    """
    builder = CaptureBuilder(source.name, "sockperf", META.tool)
    data = source.content()
    table = _TABLE.search(data)
    head = data if table is None else data[: table.start()]
    runs = _runs(builder, head.decode("utf-8", errors="replace"), source.name, may_be_cut=table is None)
    if not runs:
        raise InputError(
            source.name,
            found="no summary of a run",
            expected="what sockperf prints at the end of a run",
            advice="Let the run end, and keep all it prints.",
        )
    stem = PurePath(source.name.replace("!", "/")).stem
    for number, run in enumerate(runs, 1):
        if run.error:
            builder.warn("failed", f"sockperf stopped: {run.error}")
        _check_clock(builder, run)
        job = stem if len(runs) == 1 else f"{stem}#{number}"
        operation = _operation(run)
        if table is not None and number == 1:
            is_half = table[1] == b"latency"
            samples = _samples(builder, data, table.end(), source.name)
            operation = _measured(run, samples, is_half=is_half)
            _add_seconds(builder, request, Entity(EntityKind.JOB, job, UNNAMED_GUEST), samples, source.mtime_ns)
        builder.results.append(_result(run, job, operation, source.name))
    return builder.build(clock_known=table is None)


def _runs(builder: CaptureBuilder, text: str, name: str, *, may_be_cut: bool) -> list[_Run]:
    """Parse the runs in a text; the end of a cut text is left out, with a warning."""
    runs: list[_Run] = []
    before = _Run()  # what is said before the first summary of a run
    lines = _COLOUR.sub("", text).splitlines()
    for index, line in enumerate(lines):
        message = line.strip().removeprefix("sockperf: ")
        if message.startswith(_PARAMETERS):
            before.asked |= _asked(message)
        elif (error := _error(message)) and not runs:
            before.error = before.error or error
        else:
            mark = next((mark for mark in _LINES if mark in message), None)
            if mark is None:
                continue
            match = _LINES[mark].fullmatch(message)
            # Without an end of line, the last number may have been cut as well.
            if may_be_cut and index == len(lines) - 1 and not text.endswith("\n"):
                builder.warn("cut", "the last line was cut while it was written and is left out")
                continue
            if match is None:
                raise bad_line(name, index, line, "a line as sockperf prints it")
            _take(runs, before, mark, match)
    whole = [run for run in runs if run.name]
    if len(whole) < len(runs):
        builder.warn("cut", "a run has no summary and is left out", len(runs) - len(whole))
    if not whole and before.error:
        return [before]
    return whole


def _asked(message: str) -> dict[str, object]:
    options = dict(re.findall(r"(?<![a-z-])--([a-z-]++)=(\d{1,12})\b", message))
    return {ours: int(options[theirs]) for theirs, ours in _KEPT.items() if theirs in options}


def _error(message: str) -> str:
    """Return the error that a line reports, empty for none."""
    if message.startswith("ERROR: "):
        return message.removeprefix("ERROR: ")[:200]
    return message[:200] if message.startswith("No messages were received") else ""


def _take(runs: list[_Run], before: _Run, mark: str, match: re.Match[str]) -> None:
    """Keep what one line says."""
    if mark == "[Total Run]":
        before.whole_s = float(match[1])
        return
    if mark == "[Valid Duration]" or (mark == "Summary: Message Rate" and not (runs and not runs[-1].name)):
        runs.append(_Run(whole_s=before.whole_s, asked=dict(before.asked)))
    if not runs:
        return
    run = runs[-1]
    if mark == "[Valid Duration]":
        run.valid_s, run.sent, run.count = (float(match[i]) for i in (1, 2, 3))
    elif mark == "====> avg-":
        run.name = HALF if match[1] == "latency" else WHOLE
        run.latency_us |= {"mean": float(match[2]), "stddev": float(match[3])}
    elif mark == "# dropped messages":
        run.dropped = int(float(match[1]))
    elif mark == "Summary: Message Rate":
        run.name, run.per_s = SENT, float(match[1])
    elif mark == "Summary: BandWidth":
        run.bytes_per_s = float(match[1]) * 2**20
    elif mark == "observations;":
        run.count = float(match[1])
    elif mark == "---> <M":
        run.latency_us[match[1].lower()] = float(match[2])
    else:
        run.latency_us[f"p{float(match[1]):.6g}"] = float(match[2])


def _check_clock(builder: CaptureBuilder, run: _Run) -> None:
    """Warn when sockperf's two measures of one run differ: then its latencies are wrong by the same factor."""
    expected = run.whole_s - TRIMMED_S
    if expected > 1.0 and run.valid_s < expected * (1.0 - CLOCK_ERROR_MAX):
        builder.warn(
            "clock",
            f"of {run.whole_s:g} s sockperf counted {run.valid_s:g} s: its clock is wrong, as with --no-rdtsc in 3.7, "
            "or no message came for long; do not trust its latencies",
        )


def _operation(run: _Run) -> Operation | None:
    """What the text says of a run; None when it failed."""
    if not run.name:
        return None
    latency = {name: value / US_PER_MS for name, value in run.latency_us.items()}
    per_s = run.sent / run.valid_s if run.valid_s > 0 else run.per_s
    return Operation(run.name, per_s, run.bytes_per_s, run.count, latency)


def _samples(builder: CaptureBuilder, data: bytes, begin: int, name: str) -> NDArray[np.float64]:
    """The rows of a full log: float64 [3, n], seconds sent, seconds received, microseconds.

    Raises:
        InputError: a row is damaged.
    """
    end = data.find(b"\n---", begin)
    body = data[begin : end + 1] if end >= 0 else data[begin : data.rfind(b"\n") + 1]
    if end < 0:
        builder.warn("cut", "the log has no end: messages may be missing, the last one was dropped")
    if not body.strip():
        raise InputError(name, found="a log without messages", expected="a line for each", advice="Record it again.")
    try:
        rows = np.loadtxt(io.BytesIO(body), comments=None, delimiter=",", encoding="ascii", ndmin=2)
    except ValueError as error:
        raise _damaged_row(data, begin, body, name) from error
    if rows.shape[1] != _ROW_WIDTH:
        raise _damaged_row(data, begin, body, name)
    table = np.ascontiguousarray(rows.T[1:])
    sent, received, took = table
    sound = np.isfinite(table).all() and (table >= 0).all() and (received < ELAPSED_S_MAX).all()
    if not sound or (received < sent).any() or (took > ELAPSED_S_MAX * 1e6).any():
        raise _damaged_row(data, begin, body, name)
    return table


def _damaged_row(data: bytes, begin: int, body: bytes, name: str) -> InputError:
    """The error that names the first damaged row."""
    first = data.count(b"\n", 0, begin)
    for index, line in enumerate(body.decode("utf-8", errors="replace").split("\n")):
        row = re.fullmatch(rf"\d{{1,15}}, {_NUMBER}, {_NUMBER}, {_NUMBER}\r?", line)
        if row is None or float(row[1]) > float(row[2]) or float(row[2]) >= ELAPSED_S_MAX:
            return bad_line(name, first + index, line, "the number of a message, when it went and came, and how long")
    return bad_line(name, first, "numbers that cannot be", "rows as sockperf writes them")


def _measured(run: _Run, samples: NDArray[np.float64], *, is_half: bool) -> Operation:
    """The messages themselves: their exact histogram, and statistics of them instead of those printed."""
    took = samples[2]
    whole_s = float(samples[1].max() - samples[0].min())
    statistics = {"mean": took.mean(), "min": took.min(), "max": took.max(), "stddev": took.std()}
    return Operation(
        HALF if is_half else WHOLE,
        run.sent / run.valid_s if run.valid_s > 0 else len(took) / whole_s if whole_s > 0 else NAN,
        NAN,
        len(took),
        {name: float(value) / US_PER_MS for name, value in statistics.items()},
        sample_histogram(np.round(took * NS_PER_US), "ns"),
    )


def _add_seconds(
    builder: CaptureBuilder, request: Request, job: Entity, samples: NDArray[np.float64], end_ns: int
) -> None:
    """Mean and 99th percentile of the half round trip, and messages, by second."""
    sent, received, _ = samples
    order = np.argsort(received, kind="stable")
    half_us = (received - sent)[order] / 2.0 * 1e6
    since = received[order] - sent.min()
    second = since.astype(np.int64)
    borders = np.flatnonzero(np.diff(second)) + 1
    parts = np.split(half_us, borders)
    seconds = second[np.concatenate([[0], borders])]
    rates = np.array([float(len(part)) for part in parts])
    rates[-1] = NAN  # the last second is not whole
    last_ns = int(received.max() * 1e9) - int(sent.min() * 1e9)
    times = end_ns - last_ns + np.minimum((seconds + 1) * 1_000_000_000, last_ns)
    columns: dict[str, ArrayLike] = {
        "net_half_trip_us": [float(part.mean()) for part in parts],
        "net_half_trip_us_p99": [float(np.quantile(part, 0.99)) for part in parts],
        "net_messages_per_s": rates,
    }
    add_columns(builder, request, job, times, columns, interval_s=1.0)
    builder.warn("no-times", "the log has no date: it is taken to end when the file was last written")


def _result(run: _Run, job: str, operation: Operation | None, name: str) -> Result:
    return Result(
        tool=META.tool,
        job=job,
        operations=() if operation is None else (operation,),
        duration_s=run.valid_s,
        workload=run.asked,
        error_count=run.dropped + bool(run.error and operation is None),
        source=name,
    )
