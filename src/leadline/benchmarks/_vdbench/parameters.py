"""The parameter file of vdbench for a stream, and what vdbench cannot do as a stream asks.

Source: Vdbench User Guide 5.04.07, "Storage Definition", "Workload Definition", "Run Definition", ``monitor=``; that
rdpct is whole, and that elapsed is two intervals at least: the program's messages and source of 5.04.06.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from leadline.core.contracts.benchmark import Step
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import IoSettings, Stream, Workload

LEAD_S = 1  # vdbench leaves one interval at least out of every average
ELAPSED_MIN_S = 2
FILL_S = 86_400
FILL_THREADS = 8
RATE_MAX = 900_000.0  # vdbench uses rates from 999,977 as words for "as fast as it goes"
SIZE_OFF_PCT = 5.0  # Judgement: how far whole percents may move the mean size; what `honoured` allows
MONITOR, END_RUN = "monitor.txt", "end_rd\n"
_ODD = re.compile(r"[^A-Za-z0-9_]")
_RESERVED = ("default", "fill")


@dataclass(frozen=True, slots=True)
class VdbenchDisk:
    """What a parameter file names as its storage: a path, its bytes, and whether the page cache is in between."""

    lun: str
    size_bytes: int
    buffered: bool

    def line(self, threads: int) -> str:
        """The storage definition with so many requests in flight."""
        flags = "" if self.buffered else ",openflags=o_direct"
        return f"sd=sd1,lun={self.lun},size={self.size_bytes},threads={threads}{flags}"


def only_stream(workload: Workload) -> Stream:
    """Return the stream of a workload that vdbench can carry out.

    Raises:
        UsageError: it has several, or one asks for what vdbench does not do; the error names the key.
    """
    if len(workload.io) > 1:
        names = ", ".join(stream.name for stream in workload.io)
        raise UsageError(
            f"workload {workload.name}: io",
            found=f"{len(workload.io)} streams ({names})",
            expected="one: vdbench reports the rates and latencies of all its workloads together",
            advice="Run it with fio (--tool fio), or make one workload of each stream.",
        )
    (stream,) = workload.io
    refused = _refused_setting(workload.io_settings) or _refused(stream)
    if refused is not None:
        key, problem, expected = refused
        raise UsageError(
            f"{key if key.startswith('io_settings') else f'stream {stream.name}: {key}'}",
            found=problem,
            expected=expected,
            advice="Run it with fio (--tool fio), or leave the key out.",
        )
    return stream


def _refused_setting(settings: IoSettings) -> tuple[str, str, str] | None:
    """Return key, problem and expectation where a setting is one that vdbench does not have."""
    reasons = {
        "engine": (settings.engine != "auto", "an engine of fio", "vdbench's, which has a thread for each request"),
        "verify": (settings.verify, "a check of what was written", "none: vdbench would keep a journal of its own"),
        "compress_pct": (settings.compress_pct > 0, "a share of compressible data", "the data that vdbench writes"),
        "dedupe_pct": (settings.dedupe_pct > 0, "a share of equal data", "the data that vdbench writes"),
        "cpus": (settings.cpus is not None, "processors to bind to", "none: Java places the threads of vdbench"),
        "numa_node": (settings.numa_node is not None, "a node to bind to", "none: Java places the threads of vdbench"),
    }
    for key, (is_asked, problem, expected) in reasons.items():
        if is_asked:
            return f"io_settings.{key}", problem, expected
    return None


def _refused(stream: Stream) -> tuple[str, str, str] | None:
    """Return key, problem and expectation where vdbench would not load as a stream asks; None where it would."""
    if stream.burst is not None:
        return "burst", "bursts and pauses by time", "a steady load: vdbench bursts by rates for whole seconds"
    if stream.request_burst is not None:
        return "request_burst", "bursts of so many requests", "a steady load: vdbench has no such bursts"
    if stream.think_time_s:
        return "think_time_s", "a pause after each request", "none: vdbench issues the next at once, or by a rate"
    if stream.sync_every:
        return "sync_every", "flushes after writes", "none: vdbench flushes when it closes a file, or never"
    if stream.rate_iops is not None and stream.rate_iops.total >= RATE_MAX:
        return "rate_iops", f"{stream.rate_iops.total:,.0f}/s", f"below {RATE_MAX:,.0f}/s, above which vdbench has none"
    mean = sum(size * share for size, share in whole_shares(stream.block).items()) / 100.0
    if abs(mean - stream.mean_block_bytes) > SIZE_OFF_PCT / 100.0 * stream.mean_block_bytes:
        fault = f"shares of which whole percents make {mean:,.0f} bytes on average"
        return "block", fault, f"{stream.mean_block_bytes:,.0f} bytes on average"
    return None


def whole_shares(shares: dict[int, float]) -> dict[int, int]:
    """Return shares as whole percents that are 100 in all; what was more than nothing is 1 at least."""
    total = sum(shares.values())
    exact = {size: share * 100.0 / total for size, share in shares.items()}
    whole = {size: max(round(share), 1) for size, share in exact.items()}
    largest = max(whole, key=lambda size: whole[size])
    whole[largest] += 100 - sum(whole.values())
    return whole


def whole_read_pct(stream: Stream) -> int:
    """Return the read share as vdbench takes it: a whole percent; what is neither none nor all stays so."""
    share = stream.read_pct
    return int(share) if share in (0.0, 100.0) else min(max(round(share), 1), 99)


def run_name(stream: Stream) -> str:
    """Return the name of a stream as the run is called in every report of vdbench.

    >>> run_name(Stream(name="redo-log")), run_name(Stream(name="2nd"))
    ('redo_log', 'run_2nd')
    """
    plain = _ODD.sub("_", stream.name)
    return plain if plain[0].isalpha() and plain not in _RESERVED else f"run_{plain}"


def elapsed_s(step: Step) -> int:
    """Return the seconds that are measured: whole ones, two at least."""
    return max(round(step.duration_s), ELAPSED_MIN_S)


def run_text(stream: Stream, step: Step, disk: VdbenchDisk, monitor: str = "") -> str:
    """Return the parameter file of a step.

    vdbench ends the run when it reads ``end_rd`` in the file ``monitor``, where one is named.
    """
    shares = whole_shares(stream.block)
    sizes = ",".join(f"{size},{share}" for size, share in shares.items())
    size = f"({sizes})" if len(shares) > 1 else str(next(iter(shares)))
    load = f"xfersize={size},rdpct={whole_read_pct(stream)},seekpct={stream.random_pct:g}"
    rate = "iorate=max"
    if stream.rate_iops is not None:
        arrivals = "exponential" if stream.arrivals == "poisson" else "deterministic"
        rate = f"iorate={stream.rate_iops.total:g},distribution={arrivals}"
    times = f"elapsed={elapsed_s(step)},interval=1,warmup={LEAD_S}"
    return _text(
        *((f"monitor={monitor}",) if monitor else ()),
        disk.line(stream.oio * stream.jobs),
        f"wd=wd1,sd=sd1,{load}",
        f"rd={run_name(stream)},wd=wd1,{rate},{times}",
    )


def fill_text(disk: VdbenchDisk) -> str:
    """Return the parameter file that writes every block of a storage once and ends there."""
    return _text(
        disk.line(FILL_THREADS),
        "wd=wd1,sd=sd1,xfersize=1m,rdpct=0,seekpct=eof",
        f"rd=fill,wd=wd1,iorate=max,elapsed={FILL_S},interval=1",
    )


def _text(*lines: str) -> str:
    return "\n".join(("* Written by Leadline.", *lines, ""))
