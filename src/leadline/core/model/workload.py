"""Workloads: a description of load that drives a real tool, a replay or a simulator alike.

A file holds exactly one section that says what is loaded: I/O streams (``io``), a database, a network, the latency of
single requests, what flushing costs, or a web server. ``docs/guides/workloads.md`` explains every key with examples.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from leadline.core.io.yaml_files import parse_model, read_model
from leadline.core.model.errors import UsageError
from leadline.core.model.numbers import NUMBER_MAX, SIZE_BYTES_MAX
from leadline.core.model.similar import similar

_STRICT = ConfigDict(extra="forbid", frozen=True)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h)?")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0}
PAGE_BYTES_MAX = 64 * 1024**2  # Judgement: larger is a download, of which a round has too few for percentiles
WHAT, GUIDE = "a workload file", "docs/guides/workloads.md"
# Shipped workloads by names they had: fio does the I/O of a database, and the name says so.
RENAMED = {
    name: f"{name}-io" for name in ("postgresql", "intersystems", "oracle-oltp", "sql-server-tier1", "sql-server-tier2")
}


def size_of(text: object) -> int:
    """Bytes of ``8k``, ``64 KiB``, ``10g`` or a plain number; k is 1024, as fio counts.

    Raises:
        ValueError: it is no size.

    >>> size_of("8k"), size_of(512)
    (8192, 512)
    """
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        message = f"{text!r} is no size such as 8k, 64k or 10g"
        raise ValueError(message)
    size_bytes = float(match[1]) * 1024 ** _POWERS[match[2].lower()]
    if not size_bytes < SIZE_BYTES_MAX:
        message = f"{str(text)[:40]!r} is larger than any disk"
        raise ValueError(message)
    return int(size_bytes)


def seconds_of(text: object) -> float:
    """Seconds of ``500us``, ``2s``, ``10m`` or a plain number.

    Raises:
        ValueError: it is no duration.

    >>> seconds_of("10m"), seconds_of(2)
    (600.0, 2.0)
    """
    if isinstance(text, int | float) and not isinstance(text, bool) and 0 <= text <= NUMBER_MAX:
        return float(text)
    match = _TIME.fullmatch(str(text).strip())
    if match is None:
        message = f"{text!r} is no duration such as 500us, 30s or 10m"
        raise ValueError(message)
    seconds = float(match[1]) * _SECONDS[match[2]]
    if not seconds <= NUMBER_MAX:
        message = f"{str(text)[:40]!r} is longer than anything lasts"
        raise ValueError(message)
    return seconds


Size = Annotated[int, BeforeValidator(size_of)]
Seconds = Annotated[float, BeforeValidator(seconds_of)]
Percent = Annotated[float, Field(ge=0.0, le=100.0)]


class _Section:
    """Marks the fields of a workload of which a file has exactly one."""


_SECTION = _Section()


class Rates(BaseModel):
    """Operations per second offered in each direction, open arrivals."""

    model_config = _STRICT

    read: Annotated[float, Field(ge=0)] = 0.0
    write: Annotated[float, Field(ge=0)] = 0.0

    @property
    def total(self) -> float:
        """Of both directions together."""
        return self.read + self.write

    def times(self, factor: float) -> Rates:
        """So many times the rates."""
        return Rates(read=self.read * factor, write=self.write * factor)


class Burst(BaseModel):
    """Load for ``on_s``, then none for ``off_s``, again and again."""

    model_config = _STRICT

    on_s: Annotated[Seconds, Field(gt=0)]
    off_s: Annotated[Seconds, Field(gt=0)]


class RequestBurst(BaseModel):
    """So many requests of a job at once, then none for ``gap_s`` after the last is complete, again and again."""

    model_config = _STRICT

    requests: Annotated[int, Field(ge=1, le=65536)]
    gap_s: Annotated[Seconds, Field(gt=0)]


class Stream(BaseModel):
    """One stream of I/O: what one kind of process of the database does."""

    model_config = _STRICT

    name: str = "io"
    role: Literal["data", "wal", "temp", "backup"] | None = None
    block: dict[int, float] = Field(default_factory=lambda: {8192: 100.0})
    read_pct: Percent = 100.0
    random_pct: Percent = 100.0
    oio: Annotated[int, Field(ge=1, le=65536)] = 1
    jobs: Annotated[int, Field(ge=1, le=1024)] = 1
    rate_iops: Rates | None = None
    arrivals: Literal["poisson", "even"] = "poisson"
    burst: Burst | None = None
    request_burst: RequestBurst | None = None
    think_time_s: Seconds = 0.0
    working_set: Size | None = None
    sync_every: Annotated[int, Field(ge=0)] = 0

    @field_validator("block", mode="before")
    @classmethod
    def _blocks(cls, given: object) -> dict[int, float]:
        if not isinstance(given, dict):
            return {_block(given): 100.0}
        shares = {_block(size): float(share) for size, share in given.items()}
        if not shares or any(share <= 0 for share in shares.values()) or abs(sum(shares.values()) - 100.0) > 0.5:
            message = "the shares of a block mix are percentages above 0 that add up to 100"
            raise ValueError(message)
        return shares

    @field_validator("rate_iops", mode="before")
    @classmethod
    def _total(cls, given: object) -> object:
        return {"total": given} if isinstance(given, int | float) and not isinstance(given, bool) else given

    @model_validator(mode="before")
    @classmethod
    def _split(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """A single rate is split by the read share; a rate of each direction makes the read share."""
        rates = given.get("rate_iops") if isinstance(given, dict) else None
        if isinstance(rates, int | float):
            share = float(given.get("read_pct", 100.0)) / 100.0
            return {**given, "rate_iops": {"read": rates * share, "write": rates * (1.0 - share)}}
        if isinstance(rates, dict) and "read_pct" not in given:
            read, write = (rates.get(way, 0.0) for way in ("read", "write"))
            if isinstance(read, int | float) and isinstance(write, int | float) and read + write > 0:
                return {**given, "read_pct": 100.0 * read / (read + write)}
        return given

    @model_validator(mode="before")
    @classmethod
    def _outstanding(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """The requests of a burst are outstanding together, so they are the depth."""
        burst = given.get("request_burst") if isinstance(given, dict) else None
        if isinstance(burst, dict) and "requests" in burst and "oio" not in given:
            return {**given, "oio": burst["requests"]}
        return given

    @model_validator(mode="after")
    def _bursts(self) -> Stream:
        if self.request_burst is None:
            return self
        if self.oio != self.request_burst.requests:
            message = "the requests of a request_burst are outstanding together: leave oio out"
            raise ValueError(message)
        if self.burst is not None or self.think_time_s or self.rate_iops is not None:
            message = "request_burst goes without burst, think_time_s and rate_iops: the gap sets the pace"
            raise ValueError(message)
        return self

    @property
    def gap_s(self) -> float:
        """The pause after a burst of so many requests; 0 without one."""
        return 0.0 if self.request_burst is None else self.request_burst.gap_s

    @model_validator(mode="after")
    def _agree(self) -> Stream:
        if self.rate_iops is not None:
            read, total = self.rate_iops.read, self.rate_iops.read + self.rate_iops.write
            if total <= 0:
                message = "a rate is above 0 in one direction"
                raise ValueError(message)
            if abs(100.0 * read / total - self.read_pct) > 1.0:
                share = f"{100.0 * read / total:.3g} % reads"
                message = f"rate_iops has {share} and read_pct is {self.read_pct:g}: they must agree"
                raise ValueError(message)
        return self

    @property
    def mean_block_bytes(self) -> float:
        """The average size of an operation."""
        return sum(size * share for size, share in self.block.items()) / 100.0


def _block(text: object) -> int:
    size = size_of(text)
    if size < 512 or size % 512:
        message = f"block {text!r} is no multiple of 512 bytes"
        raise ValueError(message)
    return size


class IoSettings(BaseModel):
    """What holds for all streams of a workload.

    ``tool`` makes the load: fio, or vdbench where it is installed.
    ``engine`` is fio's: auto is io_uring or libaio, what is there. psync, mmap and libpmem have one request at a time,
    so jobs are multiplied by ``oio``; mmap goes through the page cache, libpmem needs a file on persistent memory.
    ``cpus`` (as 0-3,8) and ``numa_node`` bind the jobs, the latter their memory as well.
    """

    model_config = _STRICT

    tool: Literal["fio", "vdbench"] = "fio"
    engine: Literal["auto", "io_uring", "libaio", "psync", "mmap", "libpmem"] = "auto"
    buffered: bool = False
    verify: bool = False
    compress_pct: Percent = 0.0
    dedupe_pct: Percent = 0.0
    working_set: Size = 1024**3
    cpus: Annotated[str, Field(pattern=r"^\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?){0,64}$")] | None = None
    numa_node: Annotated[int, Field(ge=0, le=1023)] | None = None

    def engine_elsewhere(self, buffered: str = "psync") -> str:
        """The engine where the kernel is not known: as asked, else libaio, which is everywhere and keeps the depth.

        With buffered I/O it would wait at every request; ``buffered`` is taken then.
        """
        if self.engine != "auto":
            return self.engine
        return buffered if self.buffered else "libaio"

    @model_validator(mode="after")
    def _goes_together(self) -> IoSettings:
        if self.engine == "mmap" and not self.buffered:
            message = "mmap goes through the page cache: buffered must be true"
            raise ValueError(message)
        if self.engine == "libpmem" and self.buffered:
            message = "libpmem has no page cache below it: leave buffered out"
            raise ValueError(message)
        if self.cpus is not None and self.numa_node is not None:
            message = "cpus and numa_node both bind the jobs: take one"
            raise ValueError(message)
        if self.engine == "libaio" and self.buffered:
            message = "libaio waits at every buffered request: use io_uring, psync or mmap"
            raise ValueError(message)
        return self


class Database(BaseModel):
    """A database load: pgbench, sysbench or go-tpc on PostgreSQL, sysbench or go-tpc on MySQL.

    ``scale`` counts warehouses of TPC-C, and gigabytes of TPC-H; ``script`` of go-tpc is tpcc or tpch.
    """

    model_config = _STRICT

    tool: Literal["pgbench", "sysbench", "go-tpc"] = "pgbench"
    engine: Literal["postgresql", "mysql"] = "postgresql"
    scale: Annotated[int, Field(ge=1)] = 10
    clients: Annotated[int, Field(ge=1, le=10_000)] = 8
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    script: str = "tpcb-like"
    rate_per_s: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _known(self) -> Database:
        if self.engine == "mysql" and self.tool == "pgbench":
            message = "MySQL is driven by sysbench or go-tpc"
            raise ValueError(message)
        return self


class Network(BaseModel):
    """A network load: throughput by iperf3; latency by sockperf, without that load and under it.

    ``message_bytes`` and ``messages_per_s`` are sockperf's, the others iperf3's; ``rate_mbit_per_s`` is of all streams
    together. ``rdma``: measure RDMA as well where both ends have it.
    """

    model_config = _STRICT

    streams: Annotated[int, Field(ge=1, le=128)] = 1
    direction: Literal["there", "back", "both"] = "there"
    rate_mbit_per_s: Annotated[float, Field(gt=0, le=1e7)] | None = None
    message_bytes: Annotated[Size, Field(ge=14, le=65_507)] = 64
    messages_per_s: Annotated[int, Field(ge=10, le=100_000)] = 1000
    rdma: bool = True


class Latency(BaseModel):
    """Requests one after the other, each timed by ioping; ``sync``: a write is over when the medium holds it."""

    model_config = _STRICT

    block: Annotated[int, BeforeValidator(_block)] = 8192
    working_set: Annotated[Size, Field(ge=1024**2)] = 1024**3
    write: bool = False
    sync: bool = False
    random: bool = True
    buffered: bool = False
    interval_s: Annotated[Seconds, Field(le=60)] = 0.0

    @model_validator(mode="after")
    def _known(self) -> Latency:
        if self.sync and not self.write:
            message = "only writes can be sync"
            raise ValueError(message)
        if self.block > self.working_set:
            message = "a block is larger than the working set"
            raise ValueError(message)
        return self


class Flush(BaseModel):
    """What it costs to have data on the medium, by every method a database has, timed by pg_test_fsync."""

    model_config = _STRICT

    tool: Literal["pg_test_fsync"] = "pg_test_fsync"


class Web(BaseModel):
    """A web load: wrk asks for one page on every connection, and asks again as soon as it has it.

    That is a closed loop, so there is no rate. ``page`` is how large the page of a throw-away server is.
    """

    model_config = _STRICT

    connections: Annotated[int, Field(ge=1, le=10_000)] = 16
    threads: Annotated[int, Field(ge=1, le=256)] = 2
    page: Annotated[Size, Field(ge=1, le=PAGE_BYTES_MAX)] = 16 * 1024

    @model_validator(mode="before")
    @classmethod
    def _no_rate(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(given, dict) and {"rate", "rate_per_s"} & set(given):
            message = "wrk offers no rate: each connection asks again as soon as it has the page. Leave the rate out"
            raise ValueError(message)
        return given

    @model_validator(mode="after")
    def _shares(self) -> Web:
        if self.connections % self.threads:
            message = f"each of {self.threads} threads has as many connections: make connections a multiple of threads"
            raise ValueError(message)
        return self


class Steadiness(BaseModel):
    """When the warm-up is over: ``window_count`` windows whose means spread and drift little.

    Source: SNIA Solid State Storage Performance Test Specification, steady state: range within 20 % of the average,
    slope of the best linear fit within 10 %.
    """

    model_config = _STRICT

    window_s: Annotated[Seconds, Field(ge=1)] = 2.0
    window_count: Annotated[int, Field(ge=3, le=100)] = 5
    range_pct: Annotated[float, Field(gt=0)] = 20.0
    slope_pct: Annotated[float, Field(gt=0)] = 10.0


class Timing(BaseModel):
    """How long: at most ``warm_up_s`` until steady, then ``rounds`` of ``measure_s``."""

    model_config = _STRICT

    warm_up_s: Annotated[Seconds, Field(ge=0)] = 30.0
    measure_s: Annotated[Seconds, Field(ge=1)] = 30.0
    rounds: Annotated[int, Field(ge=1, le=100)] = 3


class Workload(BaseModel):
    """A workload file."""

    model_config = _STRICT

    leadline_workload: Literal[1] = 1
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")]
    about: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()  # what the file it was translated from asks for and this does not give; kept with runs
    io: Annotated[tuple[Stream, ...], _SECTION] = ()
    io_settings: IoSettings = IoSettings()
    database: Annotated[Database | None, _SECTION] = None
    network: Annotated[Network | None, _SECTION] = None
    latency: Annotated[Latency | None, _SECTION] = None
    flush: Annotated[Flush | None, _SECTION] = None
    web: Annotated[Web | None, _SECTION] = None
    timing: Timing = Timing()
    steady: Steadiness = Steadiness()

    @model_validator(mode="after")
    def _one_kind(self) -> Workload:
        if len(self._given()) != 1:
            message = f"a workload has exactly one of {', '.join(KINDS[:-1])} and {KINDS[-1]}"
            raise ValueError(message)
        if len({stream.name for stream in self.io}) != len(self.io):
            message = "two streams have the same name"
            raise ValueError(message)
        return self

    def _given(self) -> list[str]:
        return [kind for kind in KINDS if getattr(self, kind) not in (None, ())]

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        return self._given()[0]

    @property
    def tool(self) -> str | None:
        """The tool its section names, where it has a choice."""
        if self.kind == "io":
            return self.io_settings.tool
        return getattr(getattr(self, self.kind), "tool", None)

    def working_set_bytes(self, stream: Stream) -> int:
        """What a stream's jobs touch."""
        return stream.working_set or self.io_settings.working_set

    def plain(self) -> dict[str, Any]:
        """Plain data that `parse_workload` reads back, without what is default."""
        return self.model_dump(mode="json", exclude_defaults=True)


KINDS = tuple(name for name, field in Workload.model_fields.items() if _SECTION in field.metadata)


def adjusted(
    workload: Workload,
    size: object = None,
    seconds: float | None = None,
    rounds: int | None = None,
    warm_up: float | None = None,
) -> Workload:
    """The workload with another working set (bytes, or as ``4g``) or other times; what is None stays as it is.

    Raises:
        pydantic.ValidationError: it is no workload any more.
    """
    plain = workload.plain()
    if size is not None and hasattr(getattr(workload, workload.kind), "working_set"):
        plain[workload.kind] = {**plain[workload.kind], "working_set": size}
    elif size is not None:
        plain["io_settings"] = {**plain.get("io_settings", {}), "working_set": size}
        plain["io"] = [{k: v for k, v in stream.items() if k != "working_set"} for stream in plain.get("io", [])]
    timing = {"measure_s": seconds, "rounds": rounds, "warm_up_s": warm_up}
    plain["timing"] = {**plain.get("timing", {}), **{k: v for k, v in timing.items() if v is not None}}
    return Workload.model_validate(plain)


def parse_workload(text: str, name: str) -> Workload:
    """The workload a YAML text describes.

    Raises:
        InputError: it is none; with line and column.
    """
    return parse_model(text, name, Workload, WHAT, GUIDE)


def profiles() -> list[str]:
    """Names of the shipped workloads."""
    folder = resources.files(__package__).joinpath("workloads")
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def find_workload(name: str) -> Workload:
    """A shipped workload by name, or the one in a YAML file; `app.workloads.workload_of` takes job files too.

    Raises:
        UsageError: neither a shipped workload nor a file has that name.
        InputError: the file is no workload.
    """
    if name in profiles():
        text = resources.files(__package__).joinpath("workloads", f"{name}.yaml").read_text(encoding="utf-8")
        return parse_workload(text, name)
    renamed = RENAMED.get(Path(name).name)
    if renamed is not None and not Path(name).is_file():
        raise UsageError(
            f"workload {Path(name).name}",
            found="the old name",
            expected=f"{renamed}, as it is called now: fio issues the I/O of such a database, no database runs",
            advice=f"Write {renamed}; pgbench and sysbench-mysql drive a database.",
        )
    if not Path(name).is_file():
        raise UsageError(
            f"workload {name}",
            found="no shipped workload and no file of that name",
            expected="one of them",
            advice=_nearest(name),
        )
    return read_model(Path(name), Workload, WHAT, GUIDE)


def _nearest(name: str) -> str:
    near = similar(name, profiles())
    return (
        f"Did you mean {near[0]}? `leadline bench workloads` lists all."
        if near
        else f"Shipped: {', '.join(profiles())}."
    )
