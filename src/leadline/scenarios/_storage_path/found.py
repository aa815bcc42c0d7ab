"""What a simulated storage path tells beside what all streams of I/O have: queues, devices, what to beware of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from leadline.core.contracts.scenario import Measure, listed
from leadline.scenarios._io import MS_PER_NS, doubt_of
from leadline.scenarios._storage_path.parts import StoragePath
from leadline.scenarios._storage_path.spec import Owned

_NAN = float("nan")


def queues(name: str, vm: dict[str, Any]) -> Iterator[Measure]:
    """How many requests of a VM wait at each stage, and how long."""
    for stage, inside, most, stay in vm["stages"]:
        yield Measure(name, f"{stage}_count_mean", _NAN if inside is None else inside, "count")
        yield Measure(name, f"{stage}_count_max", most, "count")
        yield Measure(name, f"{stage}_ms_mean", _NAN if stay is None else stay * MS_PER_NS, "ms")


def device_measures(scenario: StoragePath, devices: list[tuple[float | None, float | None]]) -> Iterator[Measure]:
    """The numbers of the devices."""
    for own, (busy, inside) in zip(scenario.devices, devices, strict=True):
        share = _NAN if busy is None or own.curve else 100.0 * busy / own.parallelism
        yield Measure(own.name, "utilisation_pct", share, "pct")
        yield Measure(own.name, "device_count_mean", _NAN if inside is None else inside, "count")


def notes(owned: Sequence[tuple[Owned, dict[str, Any]]]) -> tuple[str, ...]:
    """What to beware of, with the VMs it holds for."""
    found: dict[str, list[str]] = {}
    for (name, streams), vm in owned:
        if any(stream.sync_every for stream in streams):
            found.setdefault("flushes are not simulated", []).append(name)
        text = doubt_of(vm)
        if text:
            found.setdefault(text, []).append(name)
    return tuple(f"{listed(names)}: {text}" for text, names in found.items())
