"""Storage of a cluster: data of VMs as copies or codes on the disks of many nodes, with failures and rebuilds.

Model:
    A VM's disk is cut into chunks. Each is kept as n copies, or striped in units over k data fragments with m parity
    fragments; every fragment is on a node of its own, the emptiest first, ties by chance. A request passes the VM's
    IOPS limit, which delays it, and becomes reads and writes of fragments. A read takes one copy, a local one if there
    is one, or the data units it touches; a write goes to all copies. With a code, whole stripes are written at once; of
    a stripe that a write does not fill, the touched data units and all parity units are read and then written. What is
    on another node passes both nodes' network cards, a server for each direction. Disks and cards serve guests and
    resynchronising in turn by their shares while both wait. What is lost is rebuilt at once on other nodes, what is
    absent after ``absent_delay``; when it is back before, only what was written meanwhile is copied. Events in virtual
    time; every random number comes from the seed and the name of what draws it.

Assumptions:
    The VM's node sends to all copies and computes parity, in no time. Nobody waits for another's write of the same
    stripe. A disk positions for every request that does not follow its last one. What is under way when something fails
    is finished; VMs of a failed node stop until it is back; what cannot be read waits. IOPS limits (32 KB count as one)
    stand before the cluster and touch guests only: resynchronising passes none.

Parameters:
    ``cluster``: protection (replicas-N or ec-K+M), chunk, stripe_unit, network_latency (one way, software included).
    ``nodes``: name, count, disks (how many), disk (their kind), mb_per_s of the network card in each direction.
    ``disks``, the kinds: name, service and write_service (to position, or of an SSD), sequential_service (of what
    follows the request before), mb_per_s, parallelism, size. ``vms``: name, count, workload, nodes (the kind of node
    they are spread over), size, iops_limit, iops_burst. ``failures``: at (since measuring began), what (a node, or a
    disk as node-1/3), state (lost, absent), returns_after. ``recovery``: share_pct of disks and cards while guests want
    them too, streams for each node with disks, piece, absent_delay. ``service_level``: the longest 95th percentile of a
    VM.

Limits:
    No caches, journals or checksums, no processors to wait for, no merging of requests, no balancing after a rebuild;
    what returns after it was given up comes back empty. Flushes (``sync_every``), verification and compression change
    nothing.

Sources:
    VMware, "Administering vSAN": absent and degraded components, the object repair timer of 60 minutes, RAID-5/6.
    Virtuozzo, "Hybrid Infrastructure administrator's guide": chunks of 256 MB, encoding in units of 1 MB.
    Patterson, Gibson and Katz, "A case for redundant arrays of inexpensive disks" (SIGMOD 1988), for small writes.
    Little, "A proof for the queuing formula L = λW" (Operations Research 9, 1961), which each run is checked against.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import BaseModel, Field, field_validator, model_validator

from leadline import _core
from leadline.core.contracts.ignored_keys import UNLIMITED, Ignored, idle
from leadline.core.contracts.scenario import (
    STRICT,
    IoWorkloadOf,
    Measure,
    Name,
    Outcome,
    Progress,
    Scenario,
    ScenarioMeta,
    Series,
    VirtualTiming,
    listed,
    named_streams,
    whole_windows,
)
from leadline.core.model.workload import Seconds, Size
from leadline.scenarios._cluster_storage.figures import ClusterFigures
from leadline.scenarios._draws import NS_PER_S, DrawOf, ns_of
from leadline.scenarios._io import (
    MS_PER_NS,
    doubt_of,
    measures_of,
    results_of,
    series_of,
    sources_of,
    ticks_of,
    times_of,
)
from leadline.scenarios._simulator import IoFigures, run_system, timed

META = ScenarioMeta(
    policy_key="cluster.protection",
    policies=(
        *("replicas-1", "replicas-2", "replicas-3"),
        *("ec-2+1", "ec-3+1", "ec-3+2", "ec-4+2", "ec-5+2", "ec-7+2", "ec-17+3"),
    ),
    columns=(
        ("iops", "per s"),
        ("mb_per_s", "MB/s"),
        ("latency_ms_mean", "mean ms"),
        ("latency_ms_p99", "p99 ms"),
        ("rebuild_s", "rebuild s"),
        ("disk_use_pct", "disks %"),
        ("nic_use_pct", "NICs %"),
    ),
)
WHOLE = "cluster"
_NAN = float("nan")


class Cluster(BaseModel):
    """How data is kept."""

    model_config = STRICT

    protection: str = "replicas-3"
    chunk: Annotated[Size, Field(ge=4096, le=2**40)] = 256 * 1024**2  # Source: Virtuozzo, as above
    stripe_unit: Annotated[Size, Field(ge=512, le=2**30)] = 1024**2  # Source: as above
    network_latency: Annotated[Seconds, Field(ge=0, le=1)] = 50e-6  # Judgement: a switch and a kernel each way

    @field_validator("protection")
    @classmethod
    def _known(cls, given: str) -> str:
        _core.protection_facts(given)  # a ValueError with what is expected
        return given


class Disk(BaseModel):
    """A kind of disk."""

    model_config = STRICT

    name: Name
    service: DrawOf
    write_service: DrawOf | None = None
    sequential_service: DrawOf | None = None
    mb_per_s: Annotated[float, Field(gt=0)]
    parallelism: Annotated[int, Field(ge=1, le=65_536)] = 1
    size: Size | None = None


class Many(BaseModel):
    """Things of one kind."""

    model_config = STRICT

    name: Name
    count: Annotated[int, Field(ge=1, le=10_000)] = 1

    def names(self) -> list[str]:
        """One name for each."""
        return [self.name] if self.count == 1 else [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class Node(Many):
    """Nodes of one kind: their disks and their network cards."""

    disks: Annotated[int, Field(ge=0, le=1000)] = 0
    disk: str | None = None
    mb_per_s: Annotated[float, Field(gt=0)]


class Vm(Many):
    """VMs of one kind, spread over the nodes of a kind."""

    workload: IoWorkloadOf
    nodes: str | None = None
    size: Annotated[Size, Field(gt=0)] = 16 * 1024**3
    iops_limit: Annotated[float, Field(gt=0, le=1e9)] | None = None
    iops_burst: Annotated[int, Field(ge=1, le=10**9)] = 1


class Failure(BaseModel):
    """What fails, when, and whether it may come back."""

    model_config = STRICT

    at: Annotated[Seconds, Field(ge=0)]
    what: str
    state: Literal["lost", "absent"] = "lost"
    returns_after: Annotated[Seconds, Field(gt=0)] | None = None


class Recovery(BaseModel):
    """How what failed is made good."""

    model_config = STRICT

    share_pct: Annotated[float, Field(gt=0, lt=100)] = 20.0  # Source: vSAN 6.7 adaptive resync, at contention
    streams: Annotated[int, Field(ge=1, le=1000)] = 4
    piece: Annotated[Size, Field(ge=512, le=2**30)] = 1024**2
    absent_delay: Annotated[Seconds, Field(ge=0)] = 3600.0  # Source: VMware, object repair timer


class ClusterStorage(Scenario):
    """A scenario file of this system."""

    system: Literal["cluster-storage"] = "cluster-storage"
    cluster: Cluster = Cluster()
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]
    disks: Annotated[tuple[Disk, ...], Field(min_length=1)]
    vms: Annotated[tuple[Vm, ...], Field(min_length=1)]
    failures: tuple[Failure, ...] = ()
    recovery: Recovery = Recovery()
    service_level: Annotated[Seconds, Field(gt=0)] | None = None

    def loads(self) -> list[dict[str, Any]]:
        """The streams of all VMs."""
        return named_streams([(vm.name, stream) for vm in self.vms for stream in vm.workload.io])

    def ignored(self) -> Iterator[Ignored]:
        """What copies, a cluster without failures and a disk without a limit have no use for."""
        kind, states = self.cluster.protection, {failure.state for failure in self.failures}
        return idle(
            (kind[:2] != "ec", "cluster.stripe_unit", f"protection {kind} ignores it", "an ec-K+M, which honours it"),
            (not states, "recovery", "a cluster without failures ignores it", "failures"),
            ("absent" not in states, "recovery.absent_delay", "lost fragments ignore it", "a failure, state: absent"),
            *((vm.iops_limit is None, f"vms.{vm.name}.iops_burst", *UNLIMITED) for vm in self.vms),
        )

    @model_validator(mode="after")
    def _fits(self) -> ClusterStorage:
        nodes = [name for node in self.nodes for name in node.names()]
        vms = [WHOLE, *(name for vm in self.vms for name in vm.names())]
        for kind, names in (("VMs", vms), ("nodes", nodes), ("disks", [disk.name for disk in self.disks])):
            if len(set(names)) != len(names):
                message = f"two {kind} have the same name, or one is called {WHOLE}"
                raise ValueError(message)
        wanted = [("disk", node.disk, [disk.name for disk in self.disks]) for node in self.nodes]
        wanted += [("nodes", vm.nodes, [node.name for node in self.nodes]) for vm in self.vms]
        wanted += [("node or disk", failure.what, [*_disk_names(self), *nodes]) for failure in self.failures]
        for kind, name, there in wanted:
            if name is not None and name not in there:
                message = f"no {kind} {name}; there are {', '.join(there[:12])}"
                raise ValueError(message)
        return self


MODEL = ClusterStorage


def _disk_names(scenario: ClusterStorage) -> list[str]:
    """Disks are numbered on their node: node-1/3."""
    nodes = [(name, kind.disks) for kind in scenario.nodes for name in kind.names()]
    return [f"{name}/{number}" for name, count in nodes for number in range(1, count + 1)]


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("ClusterStorage", scenario)  # read with MODEL
    timing = scenario.timing
    figures = run_system("cluster-storage", _document(scenario), ClusterFigures, progress)
    *groups, together = figures.groups
    whole = together.model_copy(update={"done": tuple(way for group in groups for way in group.done)})
    parts = list(zip([vm.name for vm in scenario.vms], groups, strict=True)) if len(groups) > 1 else []
    return Outcome(
        results=tuple(
            result
            for vm, group in zip(scenario.vms, groups, strict=True)
            for result in results_of(vm.name, _owners(vm), group.done, timing.measure_s)
        ),
        warm_up=ticks_of([whole.warm_up], timing.warm_up_count, timing.window_s),
        ticks=ticks_of([whole.series], timing.window_count, timing.window_s),
        measures=(
            *measures_of(timing, WHOLE, whole),
            *_cluster_measures(figures),
            *(measure for name, group in parts for measure in measures_of(timing, name, group)),
            *_other_measures(scenario, figures),
        ),
        series=(
            *(series for name, part in [(WHOLE, whole), *parts] for series in series_of(timing, name, part.series)),
            _resync_series(timing, figures),
        ),
        trace=figures.trace,
        event_count=figures.event_count,
        notes=tuple(_notes(scenario, figures, [(WHOLE, whole), *parts])),
    )


def _document(scenario: ClusterStorage) -> dict[str, Any]:
    timing, recovery = scenario.timing, scenario.recovery
    nodes = [(name, kind) for kind in scenario.nodes for name in kind.names()]
    names = [name for name, _ in nodes]
    kinds = {disk.name: disk for disk in scenario.disks}
    disks = [
        _disk(f"{name}/{n}", index, kinds[kind.disk or scenario.disks[0].name])
        for index, (name, kind) in enumerate(nodes)
        for n in range(1, kind.disks + 1)
    ]
    spec = {
        "measured": ns_of(timing.measure_s),
        "protection": scenario.cluster.protection,
        "chunk_bytes": scenario.cluster.chunk,
        "unit_bytes": scenario.cluster.stripe_unit,
        "network_latency": ns_of(scenario.cluster.network_latency),
        "nodes": [{"name": name, "bytes_per_second": kind.mb_per_s * 1e6} for name, kind in nodes],
        "disks": disks,
        "group_count": len(scenario.vms),
        "vms": list(_vms(scenario, nodes)),
        "failures": [_failure(failure, names, disks, timing.warm_up_s) for failure in scenario.failures],
        "recovery": {
            "share": recovery.share_pct / 100.0,
            "streams": recovery.streams,
            "piece_bytes": recovery.piece,
            "absent_delay": ns_of(recovery.absent_delay),
        },
    }
    return timed(scenario, spec)


def _disk(name: str, node: int, kind: Disk) -> dict[str, Any]:
    times = times_of(kind.service, kind.write_service, kind.sequential_service, kind.mb_per_s)
    return {"name": name, "node": node, "parallelism": kind.parallelism, "times": times, "capacity": kind.size}


def _owners(vm: Vm) -> list[str]:
    """The stream of each of its sources."""
    return [stream.name for stream in vm.workload.io for _ in sources_of(stream)]


def _vms(scenario: ClusterStorage, nodes: list[tuple[str, Node]]) -> Iterator[dict[str, Any]]:
    for group, kind in enumerate(scenario.vms):
        places = [index for index, (_, node) in enumerate(nodes) if kind.nodes in (None, node.name)]
        for number, name in enumerate(kind.names()):
            yield {
                "name": name,
                "group": group,
                "node": places[number % len(places)],
                "bytes": kind.size,
                "limit": None if kind.iops_limit is None else (kind.iops_limit, kind.iops_burst),
                "sources": [source for stream in kind.workload.io for source in sources_of(stream)],
            }


def _failure(failure: Failure, nodes: list[str], disks: list[dict[str, Any]], warm_up_s: float) -> dict[str, Any]:
    node = nodes.index(failure.what) if failure.what in nodes else None
    return {
        "at": ns_of(warm_up_s + failure.at),
        "disks": [index for index, disk in enumerate(disks) if disk["name"] == failure.what or disk["node"] == node],
        "node": node,
        "is_lost": failure.state == "lost",
        "returns_after": None if failure.returns_after is None else ns_of(failure.returns_after),
    }


def _resync_series(timing: VirtualTiming, figures: ClusterFigures) -> Series:
    rates = whole_windows(figures.resynced, timing.window_count, 0.0) / timing.window_s / 1e6
    return Series(WHOLE, "resync_mb_per_s", "mb_per_s", tuple(rates.tolist()))


def _cluster_measures(figures: ClusterFigures) -> Iterator[Measure]:
    yield Measure(WHOLE, "rebuild_s", _span_s(figures.healing.began, figures.healing.ended), "s")
    for name, shares in (("disk", figures.disk_use), ("nic", figures.wire_use)):
        yield Measure(WHOLE, f"{name}_use_pct", 100.0 * float(np.mean(shares)), "pct")
        yield Measure(WHOLE, f"{name}_use_pct_max", 100.0 * float(np.max(shares)), "pct")


def _span_s(start_ns: float, end_ns: float) -> float:
    return (end_ns - start_ns) / NS_PER_S


def _other_measures(scenario: ClusterStorage, figures: ClusterFigures) -> Iterator[Measure]:
    """Of capacity, of the disks' and the network's work, of recovery and of the service level."""
    yield Measure("capacity", "raw_by_data", figures.raw_by_data, "ratio")
    yield Measure("capacity", "chunk_count", figures.chunk_count, "count")
    seconds, traffic = scenario.timing.measure_s, figures.traffic
    for index, who in enumerate(("guests", "resync") if scenario.failures else ("guests",)):
        for name, counts in (("reads", traffic.reads), ("writes", traffic.writes)):
            yield Measure(who, f"disk_{name}_per_s", counts[index] / seconds, "per_s")
        sizes = {"read": traffic.read_bytes, "written": traffic.written_bytes, "sent": traffic.sent_bytes}
        for name, counts in sizes.items():
            yield Measure(who, f"{name}_mb_per_s", counts[index] / seconds / 1e6, "mb_per_s")
    if scenario.failures:
        healing = figures.healing
        yield Measure("recovery", "exposed_s", _span_s(healing.failed, healing.ended), "s")
        yield Measure("recovery", "delay_s", _span_s(healing.failed, healing.began), "s")
        yield Measure("recovery", "rebuilt_mb", healing.bytes / 1e6, "mb")
        yield Measure("recovery", "fragment_count", healing.fragment_count, "count")
        yield Measure("recovery", "stalled_count", healing.stalled_count, "count")
        yield Measure("recovery", "unreadable_count", figures.unreadable_count, "count")
    if scenario.service_level is not None:
        tails = [tail * MS_PER_NS for tail in figures.latency_p95 if not isnan(tail)] or [_NAN]
        within = sum(tail <= scenario.service_level * 1e3 for tail in tails) / len(figures.latency_p95)
        yield Measure("service-level", "vms_within_pct", 100.0 * within, "pct")
        yield Measure("service-level", "latency_ms_p95_max", max(tails), "ms")


def _notes(scenario: ClusterStorage, figures: ClusterFigures, parts: list[tuple[str, IoFigures]]) -> Iterator[str]:
    """What to beware of."""
    synced = [vm.name for vm in scenario.vms if any(stream.sync_every for stream in vm.workload.io)]
    if synced:
        yield f"{listed(synced)}: flushes are not simulated"
    healing = figures.healing
    if healing.stalled_count:
        reason = "no node without one of their chunk, or too little left"
        yield f"{healing.stalled_count} fragments cannot be rebuilt: {reason}"
    elif not isnan(healing.began) and isnan(healing.ended):
        yield "the rebuild was not done when the run ended: measure longer"
    if figures.parked_count:
        yield f"{figures.parked_count} requests wait for data that cannot be read"
    for name, part in parts:
        text = doubt_of(part, is_steady=not scenario.failures)
        if text:
            yield f"{name}: {text}"
