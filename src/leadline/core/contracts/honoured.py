"""Whether the load that was there is the load a workload asked for: key by key, from counts, never from options.

A tool may drop an option without a word, round it, or read another unit. So drivers deliver what their tool counted
(`StreamLoad`, `DatabaseLoad`, `WebLoad`), whatever the tool, and `compare` sets it beside the workload. A run has
failed when one key was not honoured. A device or server that is too slow for an offered rate is no such key: every
request that may be in flight is in flight then, and the run says so in a note.

Source: Little, A Proof for the Queuing Formula L = λW (1961), for requests in flight; fio HOWTO, iodepth distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from leadline.core.contracts.honoured_bursts import OverTime, Phases, phases
from leadline.core.model.errors import ToolError
from leadline.core.model.workload import Burst, Database, Rates, Stream, Web, Workload

SIGMAS = 4.0  # one deviation in 16,000 by chance: independent requests of known shares and rates
RATE_PCT = 5.0  # Judgement: begin and end of a round, and fio's whole microseconds between two requests
SIZE_PCT = 5.0  # of the mean size: fio takes shares in whole percents, and drivers refuse what that moves further
SHARE_POINTS = 1.0  # fio takes whole percents: half a point, and one where a share would vanish
SYNC_PCT = 5.0  # Judgement: requests under way at both ends of a round
DEPTH_MIN = 0.5  # of what was asked, from fio's depths by powers of two: a fast device completes several at once
LITTLE_MS = 1.0  # Judgement: below, fio's own work between two requests counts
LITTLE_LOW, LITTLE_HIGH = 0.8, 1.1  # of what was asked, by Little's law
FULL_SHARE = 0.7  # Judgement: so many of the requests that may be in flight: the device keeps the load waiting
CPU_FULL_PCT = 80.0  # Judgement: the tool, or the machine, is at the end of its CPU
THINK_LOW, THINK_HIGH, THINK_SLACK_S = 0.8, 2.0, 0.001  # Judgement: a timer wakes late, never early
TIME_PCT, TIME_SLACK_S = 5.0, 2.0  # Judgement: a tool counts whole seconds and ends what is under way
HEADER_BYTES_MAX = 1024  # Judgement: nginx's own header of a file has about 250 bytes
BURST_PCT = 25.0  # Judgement: of a burst's and a pause's length
BURST_RATE_PCT = 25.0  # Judgement: of the rate inside bursts, whose ends are known to one sample
SPARSE_PER_S = 20.0  # Judgement: below so many operations per second a gap between two is no pause
STOP_SHARE, LATE_FACTOR = 0.2, 20.0  # Judgement: of the round, and of a request's time; a device stalls for less
LATE_SHARE = 0.25  # Judgement: requests that take longer than this share of a phase blur its end


class LoadState(StrEnum):
    """What became of a key."""

    HONOURED = "honoured"
    BROKEN = "not honoured"
    NOT_REACHED = "not reached"
    NOT_SEEN = "not seen"


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """What one stream really did; NaN is not known.

    Attributes:
        jobs: how many jobs ran at the same time.
        reads, writes, syncs: operations; syncs are flushes.
        busy_s: the latencies of all of them added up: divided by the duration, requests in flight.
        depth: the least and the most that the mean depth of a job may have been.
        cpu_pct: CPU time of a job, of one CPU.
        random_pct: share of requests that did not begin where the one before ended.
        over_time: operations over time, of each job.
    """

    name: str
    duration_s: float
    reads: float = 0.0
    writes: float = 0.0
    syncs: float = 0.0
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    jobs: float = math.nan
    busy_s: float = math.nan
    depth: tuple[float, float] = (math.nan, math.nan)
    cpu_pct: float = math.nan
    random_pct: float = math.nan
    over_time: tuple[OverTime, ...] = ()

    @property
    def in_flight(self) -> float:
        """Requests in flight on average, by Little's law."""
        return self.busy_s / self.duration_s if self.duration_s > 0 else math.nan

    @property
    def mean_s(self) -> float:
        """Mean latency of a request, seconds."""
        count = self.reads + self.writes + self.syncs
        return self.busy_s / count if count > 0 else math.nan


@dataclass(frozen=True, slots=True)
class DatabaseLoad:
    """What a database tool really did; NaN is not known. ``least`` and ``most``: transactions of one client."""

    duration_s: float
    transactions: float
    clients: float = math.nan
    busy_s: float = math.nan
    least: float = math.nan
    most: float = math.nan


@dataclass(frozen=True, slots=True)
class WebLoad:
    """What a web load really did.

    Attributes:
        busy_s: the latencies of all requests added up: divided by the duration, requests in flight.
        received_bytes: of all responses, with their headers.
        is_our_page: the server is ours and serves the page that the workload asks for.
    """

    duration_s: float
    requests: float
    busy_s: float
    received_bytes: float
    is_our_page: bool


Load = StreamLoad | DatabaseLoad | WebLoad


@dataclass(frozen=True, slots=True)
class LoadCheck:
    """One key of a workload: what was asked, what was measured, and what that means."""

    stream: str
    key: str
    asked: str
    measured: str
    state: LoadState

    @property
    def sentence(self) -> str:
        """The check in words."""
        name = f"{self.stream}: {self.key}" if self.stream else self.key
        return f"{name}: asked {self.asked}, measured {self.measured}"


def compare(
    workload: Workload, loads: Sequence[Load], duration_s: float, cpu_busy_pct: float = math.nan
) -> tuple[LoadCheck, ...]:
    """Compare every key of a workload that shows in the counters of a round with what the workload asks.

    Args:
        workload: what was asked.
        loads: what was counted, by stream; a stream that is missing was not there.
        duration_s: how long the round was to be; NaN is not compared.
        cpu_busy_pct: how busy all CPUs of the loading machine were together; NaN is not known.
    """
    checks: list[LoadCheck] = []
    if workload.database is not None:
        for load in loads:
            if isinstance(load, DatabaseLoad):
                checks += _database(workload.database, load, duration_s)
        return tuple(checks)
    if workload.web is not None:
        return tuple(
            check for load in loads if isinstance(load, WebLoad) for check in _web(workload.web, load, duration_s)
        )
    there = {load.name: load for load in loads if isinstance(load, StreamLoad)}
    for stream in workload.io if there else ():
        counted = there.get(stream.name)
        if counted is None or counted.reads + counted.writes <= 0:
            checks.append(_Of(stream).check("stream", "requests", "none", False))
            continue
        checks += _stream(workload, stream, counted, (duration_s, cpu_busy_pct))
    return tuple(checks)


def notes_of(checks: Sequence[LoadCheck]) -> tuple[str, ...]:
    """What a run must say of its load: keys that were not honoured, not reached, or could not be seen."""
    words = {
        LoadState.BROKEN: "was not honoured",
        LoadState.NOT_REACHED: "was not reached",
        LoadState.NOT_SEEN: "was not seen",
    }
    return tuple(f"load {words[check.state]}: {check.sentence}" for check in checks if check.state in words)


def require_honoured(workload: Workload, checks: Sequence[LoadCheck]) -> None:
    """Fail a run whose load is not the one that was asked for.

    Raises:
        ToolError: a key was not honoured; it names all of them.
    """
    broken = [check for check in checks if check.state is LoadState.BROKEN]
    if not broken:
        return
    first, *others = broken
    where = f"workload {workload.name}: {first.stream}: {first.key}" if first.stream else f"workload {workload.name}"
    if not first.stream:
        where += f": {first.key}"
    also = f" Also not honoured: {', '.join(f'{o.stream} {o.key}'.strip() for o in others)}." if others else ""
    raise ToolError(
        where,
        found=f"measured {first.measured}",
        expected=f"{first.asked}, as the workload asks",
        advice=f"Do not use its figures: another load ran. Look at the tool's version and its job file.{also}",
    )


@dataclass(frozen=True, slots=True)
class _Of:
    stream: Stream

    def check(self, key: str, asked: str, measured: str, state: bool | LoadState) -> LoadCheck:
        if isinstance(state, bool):
            state = LoadState.HONOURED if state else LoadState.BROKEN
        return LoadCheck(self.stream.name, key, asked, measured, state)


def _stream(workload: Workload, stream: Stream, load: StreamLoad, around: tuple[float, float]) -> list[LoadCheck]:
    checks = [] if math.isnan(around[0]) else [_duration(stream, load, around[0])]
    checks += _sizes(stream, load)
    verifies = workload.io_settings.verify  # what was written is read again: fio counts those reads as reads
    if stream.rate_iops is not None:
        checks += _rates(stream, stream.rate_iops, load, around[1])
    elif not (verifies and stream.read_pct < 100.0):
        checks.append(_read_share(stream, load))
    # Reading again takes time that is no load of the jobs.
    checks += _in_flight(stream, load if not verifies else replace(load, jobs=math.nan))
    checks += _think(stream, load)
    checks += _syncs(stream, load, verifies=verifies)
    checks += _burst(stream, load)
    checks += _request_burst(stream, load)
    if not math.isnan(load.random_pct):
        slack = SHARE_POINTS + _points(stream.random_pct, load.reads + load.writes)
        fits = abs(load.random_pct - stream.random_pct) <= slack + 1.0  # a random request may follow by chance
        checks.append(_Of(stream).check("random_pct", f"{stream.random_pct:g} %", f"{load.random_pct:.1f} %", fits))
    return checks


def _duration(stream: Stream, load: StreamLoad, asked_s: float) -> LoadCheck:
    pause_s = stream.gap_s if stream.burst is None else stream.burst.off_s  # a job ends its last pause, too
    least = asked_s - _slack(asked_s, TIME_PCT, TIME_SLACK_S)
    most = asked_s + _slack(asked_s, TIME_PCT, TIME_SLACK_S) + pause_s + 2.0 * _known(load.mean_s)
    return _Of(stream).check(
        "measure_s", f"{asked_s:.3g} s", f"{load.duration_s:.3g} s", least <= load.duration_s <= most
    )


def _slack(value: float, percent: float, least: float = 0.0) -> float:
    return max(value * percent / 100.0, least)


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _points(share_pct: float, count: float) -> float:
    """Percentage points a share may be off by chance."""
    share = min(max(share_pct / 100.0, 0.0), 1.0)
    return 100.0 * SIGMAS * math.sqrt(share * (1.0 - share) / count) if count > 0 else 100.0


def _sizes(stream: Stream, load: StreamLoad) -> list[LoadCheck]:
    """Check the mean bytes of an operation in each direction: no tool reports the parts of a mix apart."""
    mean = stream.mean_block_bytes
    spread = math.sqrt(sum(part / 100.0 * (size - mean) ** 2 for size, part in stream.block.items()))
    checks = []
    for way, count, size in (("reads", load.reads, load.read_bytes), ("writes", load.writes, load.write_bytes)):
        if count <= 0:
            continue
        # fio counts the bytes of a request that was under way when it began to count, and not the request.
        slack = _slack(mean, SIZE_PCT if len(stream.block) > 1 else 0.1) + SIGMAS * spread / math.sqrt(count)
        slack += stream.jobs * stream.oio * max(stream.block) / count
        asked = f"{mean:,.0f} bytes on average"
        fits = abs(size / count - mean) <= slack
        checks.append(_Of(stream).check("block", asked, f"{size / count:,.0f} bytes ({way})", fits))
    return checks


def _read_share(stream: Stream, load: StreamLoad) -> LoadCheck:
    count = load.reads + load.writes
    share = 100.0 * load.reads / count
    pure = stream.read_pct in (0.0, 100.0)
    slack = 0.0 if pure else SHARE_POINTS + _points(stream.read_pct, count)
    fits = abs(share - stream.read_pct) <= slack
    return _Of(stream).check("read_pct", f"{stream.read_pct:g} %", f"{share:.1f} %", fits)


def _rates(stream: Stream, asked: Rates, load: StreamLoad, cpu_busy_pct: float) -> list[LoadCheck]:
    """Check the rate in each direction over the time in which there was load."""
    least_s, most_s = _loaded_s(stream, load)
    percent = RATE_PCT if stream.burst is None else BURST_RATE_PCT
    checks = []
    for way, rate, count in (("read", asked.read, load.reads), ("write", asked.write, load.writes)):
        if rate <= 0 and count <= 0:
            continue
        low, high = (rate * seconds for seconds in (least_s, most_s))
        low -= _slack(low, percent, 2.0) + SIGMAS * math.sqrt(low)
        high += _slack(high, percent, 2.0) + SIGMAS * math.sqrt(high)
        state: bool | LoadState = low <= count <= high
        text = f"{2.0 * count / (least_s + most_s):,.4g}/s" if most_s > 0 else "no load"
        if not state and count < low:
            why = _too_slow(stream, load, least_s, cpu_busy_pct)
            if why is not None:
                state, text = LoadState.NOT_REACHED, f"{text}, because {why}"
        checks.append(_Of(stream).check(f"rate_iops.{way}", f"{rate:,.4g}/s", text, state))
    return checks


def _too_slow(stream: Stream, load: StreamLoad, on_s: float, cpu_busy_pct: float) -> str | None:
    """Why an offered rate cannot be reached; None when nothing but the tool explains it."""
    slots = stream.jobs * stream.oio
    thinking = stream.think_time_s * (load.reads + load.writes)
    if on_s > 0 and load.busy_s + thinking >= FULL_SHARE * slots * on_s:
        took = f"{1000.0 * load.mean_s:.3g} ms"
        return f"all {slots} requests that may be in flight wait: one takes {took}"
    if load.cpu_pct >= CPU_FULL_PCT:
        return f"the load tool needs the CPU ({load.cpu_pct:.0f} % of one for each job)"
    if cpu_busy_pct >= CPU_FULL_PCT:
        return f"the CPUs of the loading machine are {cpu_busy_pct:.0f} % busy"
    return None


def _in_flight(stream: Stream, load: StreamLoad) -> list[LoadCheck]:
    """Check jobs and outstanding requests; an engine with one request at a time has a job for each request."""
    slots, of, checks = stream.jobs * stream.oio, _Of(stream), []
    each = stream.oio
    offered = stream.rate_iops is not None
    if not math.isnan(load.jobs):
        jobs = round(load.jobs)
        if jobs == slots and jobs != stream.jobs:
            each = 1
        fits = jobs in (stream.jobs, slots) or (offered and jobs < slots)  # a rate below 1 each has no job
        checks.append(of.check("jobs", f"{stream.jobs}", f"{load.jobs:.3g}", fits))
    least, most = load.depth
    measured = f"{least:.3g} to {most:.3g} in flight" if math.isfinite(most) else f"at least {least:.3g} in flight"
    reached = offered or most >= DEPTH_MIN * each
    if not math.isnan(least):
        checks.append(of.check("oio", f"{stream.oio} of each job", measured, reached and least <= each * 1.01))
    if not _keeps_all(stream, load):
        return checks
    fits = LITTLE_LOW * slots <= load.in_flight <= LITTLE_HIGH * slots
    checks.append(of.check("oio", f"{slots} of all jobs", f"{load.in_flight:.3g} in flight (rate x latency)", fits))
    return checks


def _keeps_all(stream: Stream, load: StreamLoad) -> bool:
    """Whether nothing but the device keeps a request from being in flight, and that for long enough to be counted."""
    waits_s = stream.think_time_s + stream.gap_s
    pauses = stream.burst is not None or waits_s > 0 or stream.rate_iops is not None or stream.sync_every > 0
    return not pauses and not stream.sync_every and 1000.0 * load.mean_s >= LITTLE_MS


def _think(stream: Stream, load: StreamLoad) -> list[LoadCheck]:
    """The pause each request is followed by: what is left of a job's time after its requests."""
    count = load.reads + load.writes
    if not stream.think_time_s or stream.rate_iops is not None or math.isnan(load.busy_s) or count <= 0:
        return []
    slots = stream.jobs * stream.oio
    paused = (slots * load.duration_s - load.busy_s) / count
    edge = 2.0 * slots / count * stream.think_time_s  # the last pause of each ends after the round
    least = THINK_LOW * stream.think_time_s - THINK_SLACK_S
    most = THINK_HIGH * stream.think_time_s + THINK_SLACK_S + edge
    asked = f"{1000.0 * stream.think_time_s:.4g} ms"
    if not load.reads + load.writes > slots:
        return [_Of(stream).check("think_time_s", asked, "too few requests", LoadState.NOT_SEEN)]
    return [_Of(stream).check("think_time_s", asked, f"{1000.0 * paused:.4g} ms", least <= paused <= most)]


def _request_burst(stream: Stream, load: StreamLoad) -> list[LoadCheck]:
    """Check that a job's bursts of so many requests are as far apart as the gap at least.

    How much longer a burst lasts is the device's, so there is no upper limit.
    """
    burst, count = stream.request_burst, load.reads + load.writes
    if burst is None or count <= 0:
        return []
    asked = f"{burst.requests} requests, then {1000.0 * burst.gap_s:.4g} ms without"
    bursts = count / burst.requests
    if bursts < 2.0 * stream.jobs:
        return [_Of(stream).check("request_burst", asked, "too few requests", LoadState.NOT_SEEN)]
    period_s = load.duration_s * stream.jobs / max(bursts - stream.jobs, 1.0)  # the last of each is not followed
    measured = f"{burst.requests} requests each {1000.0 * period_s:.4g} ms"
    return [_Of(stream).check("request_burst", asked, measured, period_s >= THINK_LOW * burst.gap_s)]


def _syncs(stream: Stream, load: StreamLoad, *, verifies: bool) -> list[LoadCheck]:
    if verifies or (not stream.sync_every and not load.syncs):
        return []
    if not stream.sync_every or load.writes <= 0:
        asked, fits = "no flush", load.syncs == 0
    else:
        expected = load.writes / stream.sync_every
        asked = f"a flush after every {stream.sync_every}" if stream.sync_every > 1 else "a flush after every write"
        slack = _slack(expected, SYNC_PCT, 2.0 * max(_known(load.jobs), stream.jobs))
        fits = abs(load.syncs - expected) <= slack
    return [_Of(stream).check("sync_every", asked, f"{load.syncs:,.0f} flushes of {load.writes:,.0f} writes", fits)]


def _loaded_s(stream: Stream, load: StreamLoad) -> tuple[float, float]:
    """Return the least and the most seconds with load, from the bursts that were asked for and those that were seen."""
    burst = stream.burst
    if burst is None:
        return load.duration_s, load.duration_s
    whole, rest = divmod(load.duration_s, burst.on_s + burst.off_s)
    least, most = whole * burst.on_s + max(rest - burst.off_s, 0.0), whole * burst.on_s + min(rest, burst.on_s)
    seen = [load.duration_s * _phases(stream, job, load).on_share for job in load.over_time]
    return min([least, *seen]), max([most, *seen])


def _phases(stream: Stream, over_time: OverTime, load: StreamLoad) -> Phases:
    off_s = 0.0 if stream.burst is None else stream.burst.off_s
    return phases(over_time, off_s, load.duration_s)


def _burst(stream: Stream, load: StreamLoad) -> list[LoadCheck]:
    """Check the bursts and pauses of every job in its operations over time."""
    burst, of = stream.burst, _Of(stream)
    if burst is None:
        return _steady(stream, load)
    asked = f"{burst.on_s:g} s on, {burst.off_s:g} s off"
    blind = _blind(stream, load)
    if blind is not None:
        return [of.check("burst", asked, blind, LoadState.NOT_SEEN)]
    each = [_phases(stream, job, load) for job in load.over_time]
    step_s = max(job.interval_s for job in load.over_time)
    slack_s = 2.0 * step_s + 2.0 * _known(load.mean_s)
    for job in each:
        if not job.pauses and not job.edges:
            return [of.check("burst", asked, "no pause", False)]
        if not _fits(burst, job, load.duration_s, slack_s):
            return [of.check("burst", asked, job.sentence(), False)]
    return [of.check("burst", asked, each[0].sentence(), True)]


def _steady(stream: Stream, load: StreamLoad) -> list[LoadCheck]:
    """Check that a stream without bursts never pauses: a tool may stop every stream when one pauses."""
    count = load.reads + load.writes + load.syncs
    if not load.over_time or count < SPARSE_PER_S * len(load.over_time) * load.duration_s:
        return []
    long_s = max(STOP_SHARE * load.duration_s, LATE_FACTOR * _known(load.mean_s) + stream.think_time_s + stream.gap_s)
    stops = [phases(over_time, 2.0 * long_s, load.duration_s) for over_time in load.over_time]
    longest = max((max((*job.pauses, *job.edges), default=0.0) for job in stops), default=0.0)
    measured = "load all the time" if longest <= long_s else f"{longest:.3g} s without any"
    return [_Of(stream).check("burst", "no pause", measured, longest <= long_s)]


def _fits(burst: Burst, job: Phases, duration_s: float, slack_s: float) -> bool:
    """Whether a job paused as asked.

    A device that stalls makes a burst look shorter and adds a gap or lengthens one. It never makes a burst longer or a
    pause shorter, so that those are looked at: the longest burst, and how many gaps are as long as a pause.
    """
    enough = burst.off_s * (1.0 - BURST_PCT / 100.0) - slack_s
    cycles = int(duration_s / (burst.on_s + burst.off_s))
    pauses = sum(part >= enough for part in (*job.pauses, *job.edges))
    longest = max((*job.bursts, *job.cut), default=0.0)
    fits = longest <= burst.on_s * (1.0 + BURST_PCT / 100.0) + slack_s and pauses >= max(cycles - 1, 1)
    if job.pauses:
        fits = fits and enough <= max(job.pauses) and job.pause_s <= burst.off_s + burst.on_s
    if job.bursts:
        fits = fits and longest >= burst.on_s * (1.0 - BURST_PCT / 100.0) - slack_s
    return fits


def _blind(stream: Stream, load: StreamLoad) -> str | None:
    """Why bursts cannot be seen; None when they can."""
    burst = stream.burst
    if burst is None or not load.over_time:
        return "no rate over time"
    shortest, step_s = min(burst.on_s, burst.off_s), max(job.interval_s for job in load.over_time)
    if load.duration_s < burst.on_s + burst.off_s:
        return f"{load.duration_s:.3g} s of load, less than one cycle"
    if shortest < 3.0 * step_s:
        return f"samples of {step_s:g} s, too long for them"
    if load.mean_s > LATE_SHARE * shortest:
        return f"requests of {load.mean_s:.3g} s, too slow for them"
    least = min(sum(job.counts) for job in load.over_time)
    on_s = load.duration_s * burst.on_s / (burst.on_s + burst.off_s)
    if least / on_s * 0.5 * burst.off_s < 5.0:  # Judgement: so few requests leave pauses of their own
        return "too few requests to tell pauses from chance"
    return None


def _database(database: Database, load: DatabaseLoad, duration_s: float) -> list[LoadCheck]:
    checks = []
    slack = _slack(duration_s, TIME_PCT, TIME_SLACK_S)
    fits = abs(load.duration_s - duration_s) <= slack + 2.0 * _known(_each_s(load))
    checks.append(LoadCheck("", "measure_s", f"{duration_s:.3g} s", f"{load.duration_s:.3g} s", _state(fits)))
    if not math.isnan(load.clients):
        # A client that waits for the others' locks may end a short round without a transaction.
        quiet = load.transactions < 10.0 * database.clients
        fits = load.clients == database.clients or (quiet and load.clients < database.clients)
        checks.append(LoadCheck("", "clients", f"{database.clients}", f"{load.clients:.0f}", _state(fits)))
    if database.rate_per_s is not None and load.duration_s > 0:
        checks.append(_transactions(database, database.rate_per_s, load))
    elif not math.isnan(load.busy_s) and load.duration_s > 0:
        # Judgement: half of them; the client's own work between two transactions is not in their latency.
        at_once = load.busy_s / load.duration_s
        fits = 0.5 * min(database.clients, load.transactions) <= at_once <= LITTLE_HIGH * database.clients
        text = f"{at_once:.3g} transactions at once"
        checks.append(LoadCheck("", "clients", f"{database.clients} at once", text, _state(fits)))
    return checks


def _transactions(database: Database, rate: float, load: DatabaseLoad) -> LoadCheck:
    expected = rate * load.duration_s
    slack = _slack(expected, RATE_PCT, 2.0) + SIGMAS * math.sqrt(expected)
    state = _state(abs(load.transactions - expected) <= slack)
    text = f"{load.transactions / load.duration_s:,.4g}/s"
    at_once = load.busy_s / load.duration_s
    if state is LoadState.BROKEN and load.transactions < expected and at_once >= FULL_SHARE * database.clients:
        state = LoadState.NOT_REACHED
        text += f", because all {database.clients} clients wait: a transaction takes {1000.0 * _each_s(load):.3g} ms"
    return LoadCheck("", "rate_per_s", f"{rate:,.4g}/s", text, state)


def _web(web: Web, load: WebLoad, duration_s: float) -> list[LoadCheck]:
    """Check the length, the connections by Little's law, and the size of the page by the bytes of a response."""
    checks = []
    if not math.isnan(duration_s):
        fits = abs(load.duration_s - duration_s) <= _slack(duration_s, TIME_PCT, TIME_SLACK_S)
        checks.append(LoadCheck("", "measure_s", f"{duration_s:.3g} s", f"{load.duration_s:.3g} s", _state(fits)))
    if load.requests <= 0 or not load.duration_s > 0:
        return [*checks, LoadCheck("", "connections", f"{web.connections}", "no request", LoadState.BROKEN)]
    # Judgement: half of them; wrk's own work between a response and the next request is not in a latency.
    at_once = load.busy_s / load.duration_s
    fits = 0.5 * min(web.connections, load.requests) <= at_once <= LITTLE_HIGH * web.connections
    measured = f"{at_once:.3g} requests in flight (rate x latency)"
    checks.append(LoadCheck("", "connections", f"{web.connections}", measured, _state(fits)))
    if load.is_our_page:
        each = load.received_bytes / load.requests
        cut = web.connections * (web.page + HEADER_BYTES_MAX) / load.requests  # under way when the round ends
        fits = web.page <= each <= web.page + HEADER_BYTES_MAX + cut
        measured = f"{each:,.0f} bytes of each response, with its header"
        checks.append(LoadCheck("", "page", f"{web.page:,} bytes", measured, _state(fits)))
    return checks


def _each_s(load: DatabaseLoad) -> float:
    return load.busy_s / load.transactions if load.transactions > 0 else math.nan


def _state(fits: bool) -> LoadState:
    return LoadState.HONOURED if fits else LoadState.BROKEN
