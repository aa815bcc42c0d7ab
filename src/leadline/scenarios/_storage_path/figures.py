"""What a simulated storage path tells beside what all streams of I/O have: queues, devices, what to beware of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline.core.contracts.scenario import Measure, listed
from leadline.scenarios import _simulator
from leadline.scenarios._io import MS_PER_NS, doubt_of
from leadline.scenarios._simulator import Figures, IoFigures, Number
from leadline.scenarios._storage_path.parts import StoragePath
from leadline.scenarios._storage_path.spec import Owned

_NAN = float("nan")


class StageFigures(Figures):
    """Requests of a VM at one stage of the way, and how long they stay, ns."""

    name: str
    inside_mean: Number
    inside_max: int
    stay_mean: Number


class VmFigures(IoFigures):
    """Requests of a VM, on the whole and by stage."""

    stages: tuple[StageFigures, ...]


class DeviceFigures(Figures):
    """Servers of a device in use, and requests at it."""

    busy_mean: Number
    inside_mean: Number


class PathFigures(_simulator.Outcome):
    """What the simulator measured."""

    vms: tuple[VmFigures, ...]
    devices: tuple[DeviceFigures, ...]


def queues(name: str, vm: VmFigures) -> Iterator[Measure]:
    """How many requests of a VM wait at each stage, and how long."""
    for stage in vm.stages:
        yield Measure(name, f"{stage.name}_count_mean", stage.inside_mean, "count")
        yield Measure(name, f"{stage.name}_count_max", stage.inside_max, "count")
        yield Measure(name, f"{stage.name}_ms_mean", stage.stay_mean * MS_PER_NS, "ms")


def device_measures(scenario: StoragePath, devices: Sequence[DeviceFigures]) -> Iterator[Measure]:
    """The numbers of the devices."""
    for device, measured in zip(scenario.devices, devices, strict=True):
        share = _NAN if device.curve else 100.0 * measured.busy_mean / device.parallelism
        yield Measure(device.name, "utilisation_pct", share, "pct")
        yield Measure(device.name, "device_count_mean", measured.inside_mean, "count")


def notes(pairs: Sequence[tuple[Owned, VmFigures]]) -> tuple[str, ...]:
    """What to beware of, with the VMs it holds for."""
    names_of: dict[str, list[str]] = {}
    for (name, streams), vm in pairs:
        if any(stream.sync_every for stream in streams):
            names_of.setdefault("flushes are not simulated", []).append(name)
        text = doubt_of(vm)
        if text:
            names_of.setdefault(text, []).append(name)
    return tuple(f"{listed(names)}: {text}" for text, names in names_of.items())
