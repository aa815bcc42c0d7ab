"""A scenario of a storage path as the simulator takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leadline._core import TraceRequests
from leadline.core.model.errors import InputError
from leadline.core.model.workload import Stream
from leadline.formats.traces import find_traces, read_requests
from leadline.scenarios._draws import NS_PER_S, ns_of
from leadline.scenarios._io import sources_of, times_of
from leadline.scenarios._simulator import closed, timed
from leadline.scenarios._storage_path.parts import TRACE, Device, Disk, Drive, StoragePath, Trace, index_of

Owned = tuple[str, list[Stream]]  # a VM, and the stream of each of its sources


def document_of(scenario: StoragePath) -> tuple[dict[str, Any], list[Owned], list[TraceRequests]]:
    """What the simulator takes, each VM with the stream of each of its sources, and the recordings it replays."""
    vms: list[dict[str, Any]] = []
    disks: list[dict[str, Any]] = []
    owned: list[Owned] = []
    recorded: list[TraceRequests] = []
    for kind in scenario.vms:
        if kind.trace is not None:
            recorded.append(_requests(kind.trace))
        for name in kind.names():
            place = {"": len(disks)}
            disks.append(_disk(scenario, name, kind))
            for role, disk in kind.disks.items():
                place[role] = len(disks)
                disks.append(_disk(scenario, f"{name}/{role}", disk))
            sources, streams = [], []
            for stream in kind.streams:
                for source in sources_of(stream):
                    sources.append({**source, "disk": place.get(stream.role or "", place[""])})
                    streams.append(stream)
            if kind.trace is not None:
                replay = {"index": len(recorded) - 1, "speed": kind.trace.speed, "repeats": kind.trace.repeat}
                stream = Stream(name=TRACE)
                (source,) = sources_of(stream)
                sources.append({**source, "disk": place[""], "arrivals": {"recorded": replay}})
                streams.append(stream)
            host = index_of(scenario.hosts, kind.host)
            vms.append({"name": name, "host": host, "adapter_depth": kind.depth, "sources": sources})
            owned.append((name, streams))
    _add_copies(scenario, vms, owned)
    spec = {
        "measured": ns_of(scenario.timing.measure_s),
        "vms": vms,
        "disks": disks,
        "hosts": [host.model_dump() for host in scenario.hosts],
        "devices": [_device(device) for device in scenario.devices],
    }
    return timed(scenario, spec), owned, recorded


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
                {
                    **source,
                    "name": f"{stream.name}/{step}",
                    "disk": disks.index(disk),
                    "arrivals": closed(stream, outstanding),
                }
            )
            owned[vm][1].append(stream)
            at.append((vm, len(vms[vm]["sources"]) - 1))
        for one, other in (at, at[::-1]):
            vms[one[0]]["sources"][one[1]]["then"] = other


def _disk(scenario: StoragePath, name: str, disk: Disk) -> dict[str, Any]:
    limit = disk.iops_limit
    client = {
        "name": name,
        "shares": disk.shares,
        "reservation_iops": disk.reservation_iops,
        "limit_iops": limit,
        "idle_credit": disk.idle_credit,
    }
    return {
        "client": client,
        "device": index_of(scenario.devices, disk.device),
        "limit": None if limit is None else (limit, disk.iops_burst),
    }


def _requests(trace: Trace) -> TraceRequests:
    traces, _ = find_traces([Path(path) for path in trace.files])
    if len(traces) > 1:
        raise InputError(
            f"trace: {', '.join(trace.files)}",
            found=f"{len(traces)} traces",
            expected="the files of one",
            advice="Give each VM a separate trace.",
        )
    return read_requests(traces[0], trace.disk)


def _device(device: Device) -> dict[str, Any]:
    network = device.network
    return {
        "name": device.name,
        "parallelism": device.parallelism,
        "speed": _speed(device),
        "network": None if network is None else (ns_of(network.latency), network.mb_per_s * 1e6),
        "threshold": ns_of(device.congestion_threshold),
    }


def _speed(device: Device) -> dict[str, Any]:
    if device.drive is not None:
        return {"drive": _drive(device.drive)}
    if device.service is None:
        points = [(rate, latency * NS_PER_S) for rate, latency in device.curve]
        return {"curve": {"points": points, "spread": device.spread}}
    return {"times": times_of(device.service, device.write_service, device.sequential_service, device.mb_per_s)}


def _drive(drive: Drive) -> dict[str, Any]:
    inner = drive.mb_per_s if drive.inner_mb_per_s is None else drive.inner_mb_per_s
    return {
        "settle": drive.settle * NS_PER_S,
        "full_stroke": drive.full_stroke * NS_PER_S,
        "revolution": 60.0 / drive.rpm * NS_PER_S,
        "bytes_per_second": (drive.mb_per_s * 1e6, inner * 1e6),
        "capacity": float(drive.size),
        "queue": drive.queue,
    }
