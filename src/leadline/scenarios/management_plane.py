"""vCenter operations on hosts and VMs behind a link: remote and branch offices.

Model:
    A client does operations one after the other. An operation is a number of exchanges, each a request, work at the
    other end and a response. A message goes in flights of segments as TCP sends them: ten at first, twice as many after
    each round trip, one more once a loss was seen. A lost segment is sent again after a round trip when three or more
    follow it, else after a timeout that doubles. Each direction of the link sends one flight at a time. Events in
    virtual time.

Assumptions:
    Windows and buffers suffice. Acknowledgements are not lost. Bytes and work spread evenly over an operation's
    exchanges. ``connection: new`` adds the round trips of TCP and TLS 1.2 to each operation. The link between vCenter
    and a host is used as that between a client and vCenter is: both speak the same API.

Parameters:
    ``link``: round_trip, mbit_per_s, loss_pct. ``connection``: persistent or new. ``clients``: at once; each does all
    operations in turn. ``operations``: names of the known ones (connect, power-on, clone, vmotion, inventory,
    statistics), or name, exchanges, request_bytes, response_bytes, work; the known with a ``count`` read that many VMs.

Limits:
    Disks of clones and memory of vMotion do not cross the link. Work is yours to measure: it is in every operation, and
    more of it makes all else count less. No queues of other traffic, no limits of sessions.

Sources:
    Exchanges and bytes: counted between pyVmomi 9 and govmomi's simulator over TLS, with persistent connections and
    tasks asked for their state until done. Work: judgement.
    RFC 6928, RFC 5681, RFC 6298 for TCP; Mathis et al., "The macroscopic behavior of the TCP congestion avoidance
    algorithm" (CCR 27, 1997), which long messages on a link with losses are checked against.
    VMware, "Performance of VMware vCenter 5.0 in remote offices and branch offices" (2012), for links.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, nan
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from leadline import __version__
from leadline.core.contracts.ignored_keys import Ignored
from leadline.core.contracts.scenario import (
    STRICT,
    Measure,
    Name,
    Outcome,
    Progress,
    Scenario,
    ScenarioMeta,
    Series,
    listed,
    whole_windows,
)
from leadline.core.model.result import Operation as Counted
from leadline.core.model.result import Result, Tick
from leadline.core.model.run import percentiles
from leadline.core.model.workload import Seconds
from leadline.scenarios import _simulator
from leadline.scenarios._draws import NS_PER_S, ns_of
from leadline.scenarios._simulator import Column, Spread, pooled, run_system, timed

META = ScenarioMeta(
    policy_key="connection",
    policies=("persistent", "new"),
    columns=(
        ("latency_ms_mean", "mean ms"),
        ("latency_ms_p99", "p99 ms"),
        ("operations_per_s", "per s"),
        ("round_trips_pct", "trips %"),
        ("sending_pct", "sending %"),
        ("work_pct", "work %"),
    ),
)
NS_PER_MS = 1e6
HANDSHAKE_TRIPS = 3  # Source: RFC 9293: one for TCP; RFC 5246, 7.3: two for TLS 1.2
# Exchanges, bytes of requests, bytes of responses: source above. Work in seconds: judgement, a small host's.
KNOWN = {
    "connect": (7, 4_500, 14_400, 0.1),
    "power-on": (2, 1_600, 1_800, 3.0),
    "clone": (5, 4_300, 4_300, 20.0),
    "vmotion": (2, 1_700, 1_800, 10.0),
    "inventory": (3, 3_100, 6_800, 0.2),
    "statistics": (1, 900, 600, 0.2),
}
# What each VM adds to operations that read many.
PER_VM = {"inventory": (0, 650), "statistics": (140, 575)}


class Link(BaseModel):
    """A link; a satellite's or a T1's numbers are those of the last source."""

    model_config = STRICT

    round_trip: Annotated[Seconds, Field(ge=0, le=60)] = 0.1
    mbit_per_s: Annotated[float, Field(gt=0, le=1e6)] = 1.5
    loss_pct: Annotated[float, Field(ge=0, le=50)] = 0.0


class Operation(BaseModel):
    """A kind of operation; of a known one whatever is left out is known."""

    model_config = STRICT

    name: Name
    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    exchanges: Annotated[int, Field(ge=1, le=1_000_000)]
    request_bytes: Annotated[int, Field(ge=0, le=10**12)]
    response_bytes: Annotated[int, Field(ge=0, le=10**12)]
    work: Annotated[Seconds, Field(ge=0, le=1e6)] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(given, dict) or given.get("name") not in KNOWN:
            return given
        name = given["name"]
        exchanges, request, response, work = KNOWN[name]
        count = given.get("count", 1) if isinstance(given.get("count", 1), int) else 1
        more = PER_VM.get(name, (0, 0))
        known = {
            "exchanges": exchanges,
            "request_bytes": request + more[0] * (count - 1),
            "response_bytes": response + more[1] * (count - 1),
            "work": work,
        }
        return {**known, **given}


def _named(given: object) -> object:
    return {"name": given} if isinstance(given, str) else given


class ManagementPlane(Scenario):
    """A scenario file of this system."""

    system: Literal["management-plane"] = "management-plane"
    link: Link = Link()
    connection: Literal["persistent", "new"] = "persistent"
    clients: Annotated[int, Field(ge=1, le=10_000)] = 1
    operations: Annotated[tuple[Annotated[Operation, BeforeValidator(_named)], ...], Field(min_length=1)]

    def ignored(self) -> Iterator[Ignored]:
        """The count of an operation that does not read many VMs."""
        for operation in self.operations:
            if operation.name not in PER_VM:
                because = f"operation {operation.name} ignores it"
                yield Ignored(f"operations.{operation.name}.count", because, f"one of {', '.join(PER_VM)}")

    @model_validator(mode="after")
    def _fits(self) -> ManagementPlane:
        names = [operation.name for operation in self.operations]
        if len(set(names)) != len(names):
            message = "two operations have the same name"
            raise ValueError(message)
        takes_time = self.link.round_trip > 0 or any(operation.work > 0 for operation in self.operations)
        if not takes_time:
            message = "a link without a round trip, and operations without work, never end in virtual time"
            raise ValueError(message)
        return self


MODEL = ManagementPlane


class OperationFigures(Spread):
    """Operations of a kind, ns; columns are by window."""

    counts: Column
    times_ms: Column
    warm_up_counts: Column


class PlaneFigures(_simulator.Outcome):
    """What the simulator measured.

    ``sent``: ns that each direction sent, to the hosts and back; ``segments``: sent, sent again at once, and after a
    timeout.
    """

    sent: tuple[int, int]
    segments: tuple[int, int, int]
    operations: tuple[OperationFigures, ...]


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("ManagementPlane", scenario)  # read with MODEL
    timing = scenario.timing
    figures = run_system("management-plane", _document(scenario), PlaneFigures, progress)
    pairs = list(zip(scenario.operations, figures.operations, strict=True))
    window = timing.window_s
    few = [kind.name for kind, times in pairs if not times.count]
    return Outcome(
        results=tuple(_result(scenario, kind, times) for kind, times in pairs if times.count),
        warm_up=_ticks([times.warm_up_counts for times in figures.operations], timing.warm_up_count, window),
        ticks=_ticks([times.counts for times in figures.operations], timing.window_count, window),
        measures=(
            *(measure for kind, times in pairs for measure in _measures(scenario, kind, times)),
            *_link_measures(scenario, figures),
        ),
        series=tuple(series for kind, times in pairs for series in _series(scenario, kind, times)),
        trace=figures.trace,
        event_count=figures.event_count,
        notes=(f"{listed(few)}: none ended while measured; measure longer",) if few else (),
    )


def _document(scenario: ManagementPlane) -> dict[str, Any]:
    link = scenario.link
    spec = {
        "round_trip": ns_of(link.round_trip),
        "bits_per_second": link.mbit_per_s * 1e6,
        "loss": link.loss_pct / 100.0,
        "reconnects": scenario.connection == "new",
        "clients": scenario.clients,
        "operations": [
            {
                "name": kind.name,
                "round_trips": kind.exchanges,
                "request_bytes": kind.request_bytes,
                "response_bytes": kind.response_bytes,
                "work": ns_of(kind.work),
            }
            for kind in scenario.operations
        ],
    }
    return timed(scenario, spec)


def _result(scenario: ManagementPlane, kind: Operation, times: OperationFigures) -> Result:
    seconds = scenario.timing.measure_s
    size = (kind.request_bytes + kind.response_bytes) * times.count / seconds
    means = {"mean": times.mean / NS_PER_MS}
    counted = Counted(kind.name, times.count / seconds, size, times.count, means, pooled([times]))
    return Result("simulation", kind.name, (counted,), seconds, tool_version=__version__)


def _ticks(counts: list[Column], count: int, window_s: float) -> tuple[Tick, ...]:
    rates = np.sum([whole_windows(part, count, 0.0) for part in counts], axis=0) / window_s
    return tuple(Tick((n + 1) * window_s, float(rate)) for n, rate in enumerate(rates))


def _series(scenario: ManagementPlane, kind: Operation, times: OperationFigures) -> Iterator[Series]:
    count = scenario.timing.window_count
    yield Series(kind.name, "latency_ms", "ms", tuple(whole_windows(times.times_ms, count, nan).tolist()))


def _measures(scenario: ManagementPlane, kind: Operation, times: OperationFigures) -> Iterator[Measure]:
    """Numbers of a kind of operation; what is neither round trips nor work is sending, losses and the other clients."""
    mean = times.mean / NS_PER_MS
    known = percentiles(histogram) if (histogram := pooled([times])) is not None else {}
    trips = kind.exchanges + (HANDSHAKE_TRIPS if scenario.connection == "new" else 0)
    trips_pct = 100.0 * trips * scenario.link.round_trip * 1e3 / mean
    work_pct = 100.0 * kind.work * 1e3 / mean
    yield Measure(kind.name, "latency_ms_mean", mean, "ms")
    yield Measure(kind.name, "latency_ms_p99", known.get("p99", (nan, 0))[0], "ms")
    yield Measure(kind.name, "operations_per_s", times.count / scenario.timing.measure_s, "per_s")
    yield Measure(kind.name, "round_trips_pct", trips_pct, "pct")
    yield Measure(kind.name, "sending_pct", max(100.0 - trips_pct - work_pct, 0.0) if isfinite(mean) else nan, "pct")
    yield Measure(kind.name, "work_pct", work_pct, "pct")


def _link_measures(scenario: ManagementPlane, figures: PlaneFigures) -> Iterator[Measure]:
    span_ns = scenario.timing.measure_s * NS_PER_S
    segments, again, late = figures.segments
    for name, busy in zip(("to_hosts", "from_hosts"), figures.sent, strict=True):
        yield Measure("link", f"{name}_pct", 100.0 * busy / span_ns, "pct")
    yield Measure("link", "lost_pct", 100.0 * (again + late) / segments if segments else nan, "pct")
    yield Measure("link", "timeouts_count", late, "count")
