"""A scenario of a storage path as the simulator takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leadline._core import TraceRequests
from leadline.core.model.draws import NS_PER_S, Plain, ns_of
from leadline.core.model.errors import InputError
from leadline.core.model.workload import Stream
from leadline.formats.traces import find_traces, read_requests
from leadline.scenarios._io import sources_of
from leadline.scenarios._storage_path.parts import TRACE, Device, Disk, Drive, StoragePath, Trace, index_of

Owned = tuple[str, list[Stream]]  # a VM, and the stream of each of its sources


def spec_of(scenario: StoragePath) -> tuple[dict[str, Any], list[Owned]]:
    """What the simulator takes, and each VM's name with the stream of each of its sources."""
    vms: list[dict[str, Any]] = []
    disks: list[dict[str, Any]] = []
    owned: list[Owned] = []
    for kind in scenario.vms:
        recorded = None if kind.trace is None else _requests(kind.trace)
        for name in kind.names():
            place = {"": len(disks)}
            disks.append(_disk(scenario, name, kind))
            for role, own in kind.disks.items():
                place[role] = len(disks)
                disks.append(_disk(scenario, f"{name}/{role}", own))
            sources, streams = [], []
            for stream in kind.streams:
                for source in sources_of(stream):
                    sources.append({**source, "disk": place.get(stream.role or "", place[""])})
                    streams.append(stream)
            if kind.trace is not None:
                replay = (recorded, kind.trace.speed, kind.trace.repeat)
                stream = Stream(name=TRACE)
                (source,) = sources_of(stream)
                sources.append({**source, "disk": place[""], "outstanding": None, "replay": replay})
                streams.append(stream)
            host = index_of(scenario.hosts, kind.host)
            vms.append({"name": name, "host": host, "adapter_depth": kind.depth, "sources": sources})
            owned.append((name, streams))
    _add_copies(scenario, vms, owned)
    timing = scenario.timing
    times = {"warm_up": timing.warm_up_s, "measured": timing.measure_s, "window": timing.window_s}
    return {
        "seed": scenario.seed,
        **{name: ns_of(seconds) for name, seconds in times.items()},
        "vms": vms,
        "disks": disks,
        "hosts": [host.model_dump() for host in scenario.hosts],
        "devices": [_device(device) for device in scenario.devices],
    }, owned


def _add_copies(scenario: StoragePath, vms: list[dict[str, Any]], owned: list[Owned]) -> None:
    """Sources for both steps of every copy, each of which sets off the other."""
    steps = scenario.copied()
    disks, names = scenario.disk_names(), [vm["name"] for vm in vms]
    for number in range(0, len(steps), 2):
        pair = steps[number : number + 2]
        at = []
        for (disk, stream), outstanding in zip(pair, (pair[0][1].oio, 0), strict=True):
            vm = names.index(disk.partition("/")[0])
            (source,) = sources_of(stream)
            step = "read" if outstanding else "write"
            vms[vm]["sources"].append(
                {**source, "name": f"{stream.name}/{step}", "disk": disks.index(disk), "outstanding": outstanding}
            )
            owned[vm][1].append(stream)
            at.append((vm, len(vms[vm]["sources"]) - 1))
        for one, other in (at, at[::-1]):
            vms[one[0]]["sources"][one[1]]["then"] = other


def _disk(scenario: StoragePath, name: str, own: Disk) -> dict[str, Any]:
    limit = own.iops_limit
    return {
        "name": name,
        "device": index_of(scenario.devices, own.device),
        "limit": None if limit is None else (limit, own.iops_burst),
        "shares": own.shares,
        "reservation_iops": own.reservation_iops,
        "limit_iops": float("inf") if limit is None else limit,
        "idle_credit": own.idle_credit,
    }


def _requests(trace: Trace) -> TraceRequests:
    found, _ = find_traces([Path(path) for path in trace.files])
    if len(found) > 1:
        raise InputError(
            f"trace: {', '.join(trace.files)}",
            found=f"{len(found)} traces",
            expected="the files of one",
            advice="Give each VM a separate trace.",
        )
    return read_requests(found[0], trace.disk)


def _device(own: Device) -> dict[str, Any]:
    # What a curve says is multiplied by a number of mean 1.
    around: Plain = ("lognormal", [1.0, own.spread], []) if own.spread else ("constant", [1.0], [])
    read = around if own.service is None else own.service.plain()
    return {
        "name": own.name,
        "parallelism": own.parallelism,
        "read": read,
        "write": read if own.write_service is None else own.write_service.plain(),
        "sequential": None if own.sequential_service is None else own.sequential_service.plain(),
        "bytes_per_second": float("inf") if own.mb_per_s is None else own.mb_per_s * 1e6,
        "curve": [(rate, latency * NS_PER_S) for rate, latency in own.curve],
        "drive": None if own.drive is None else _drive(own.drive),
        "network": None if own.network is None else (ns_of(own.network.latency), own.network.mb_per_s * 1e6),
        "threshold": ns_of(own.congestion_threshold),
    }


def _drive(own: Drive) -> dict[str, Any]:
    inner = own.mb_per_s if own.inner_mb_per_s is None else own.inner_mb_per_s
    return {
        "settle": own.settle * NS_PER_S,
        "full_stroke": own.full_stroke * NS_PER_S,
        "revolution": 60.0 / own.rpm * NS_PER_S,
        "bytes_per_second": (own.mb_per_s * 1e6, inner * 1e6),
        "capacity": float(own.size),
        "queue": own.queue,
    }
