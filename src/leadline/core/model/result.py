"""Results of load tools: what one run of fio, pgbench, sysbench, ioping, iperf3, vdbench or HammerDB measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from leadline.core.model.histogram import Histogram


@dataclass(frozen=True, slots=True)
class Operation:
    """What was measured for one kind of operation (read, write, transaction, stream).

    Every field may be NaN: not measured. ``latency_ms`` maps statistics the tool printed itself (``mean``, ``min``,
    ``max``, ``stddev``, ``p50``, ``p99``, ``p99.9``) to milliseconds; percentiles of several results must come from
    ``histogram``, never from these.
    """

    name: str
    per_s: float = float("nan")
    bytes_per_s: float = float("nan")
    count: float = float("nan")
    latency_ms: dict[str, float] = field(default_factory=dict)
    histogram: Histogram | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One result: the tool, the job, how long it ran, what it was asked to do, what came out."""

    tool: str
    job: str
    operations: tuple[Operation, ...]
    duration_s: float = float("nan")
    start_ns: int | None = None
    tool_version: str | None = None
    host: str | None = None
    workload: dict[str, Any] = field(default_factory=dict)
    error_count: int = 0
    source: str = ""

    def operation(self, name: str) -> Operation | None:
        """The operation of that name, or None."""
        return next((operation for operation in self.operations if operation.name == name), None)


@dataclass(frozen=True, slots=True)
class Tick:
    """What came out of about one second: operations and bytes per second, p99 latency in ms (NaN: not known)."""

    elapsed_s: float
    per_s: float
    bytes_per_s: float = float("nan")
    p99_ms: float = float("nan")


Watch = Callable[[Tick], bool]
