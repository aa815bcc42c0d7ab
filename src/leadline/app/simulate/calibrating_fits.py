"""What is fitted to a disk's load and latency, and the scenario made of it.

The laws are those of `calibrating_laws`, the loads those of `calibrating_loads`. `calibrating_checks` simulates the
scenario and compares the result with the recording.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from leadline.app.simulate.calibrating_laws import AnyLaw, most_of
from leadline.app.simulate.calibrating_loads import Loads, Seen
from leadline.scenarios.storage_path import StoragePath

WEAK_PCT = 25.0
DEPTH = 256  # of queues that let everything through
BEYOND = 4.0  # the curve is drawn to so many times what was seen, at least; above it is a guess, and said so
RATE, LATENCY, P95 = "iops", "latency_ms_mean", "latency_ms_p95"
WORDS = {RATE: "operations per s", LATENCY: "mean latency", P95: "p95 latency"}
NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class BurstWindow:
    """How bursty arrivals are in windows of this length: index of dispersion, and that of the source fitted to them."""

    window_s: float
    trace: float
    fitted: float


@dataclass(frozen=True, slots=True)
class RecordedLatencies:
    """Latencies that a recording has one by one, or their percentiles: of each level, and of all; NaN is not recorded.

    ``is_traced``: every request was seen.
    """

    p95_ms: tuple[float, ...] = ()
    p95_ms_all: float = float("nan")
    is_traced: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """A quantity at a load, recorded and simulated, with 95 % intervals; NaN is not recorded."""

    load: str
    measure: str
    recorded: float
    low: float
    high: float
    simulated: float
    half_width: float

    @property
    def distance_pct(self) -> float:
        """Of the simulation from the recording; NaN where nothing was recorded."""
        return 100.0 * (self.simulated / self.recorded - 1.0) if self.recorded else float("nan")

    @property
    def sentence(self) -> str:
        """For people."""
        if not isfinite(self.recorded):
            return f"{self.load}: {WORDS[self.measure]} not recorded, simulated {self.simulated:.4g}"
        off = f"{self.simulated:.4g} ({self.distance_pct:+.1f} %)"
        return f"{self.load}: {WORDS[self.measure]} recorded {self.recorded:.4g}, simulated {off}"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A disk as a scenario has it, with what was fitted.

    Attributes:
        line: the law of its latency; None where nothing says it.
        streams: what it is asked for.
        device: keys of a device of a scenario.
        most: requests at the device at most.
        recording: keys of a trace that is the load instead of the streams, and how long it is.
        arrivals: how well the source fits, by window; empty where single requests were not seen.
        compared: the scenario simulated, beside the recording.
        warnings: where that is further away than it should be, and why.
    """

    name: str
    seen: Seen
    loads: Loads
    line: AnyLaw | None
    streams: tuple[dict[str, Any], ...]
    device: dict[str, Any]
    most: float
    notes: tuple[str, ...]
    recording: dict[str, Any] | None = None
    recorded_s: float = 0.0
    arrivals: tuple[BurstWindow, ...] = ()
    recorded: RecordedLatencies = RecordedLatencies()
    compared: tuple[Compared, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_traced(self) -> bool:
        """Whether every request was seen."""
        return self.recorded.is_traced

    @property
    def sentence(self) -> str:
        """Describe the fitted latency and its error in a sentence."""
        if self.line is None:
            return "latency not measured"
        most = most_of(self.device)
        limit = "no maximum seen" if most == float("inf") else f"at most {most:,.0f}/s"
        limit_words = "" if self.line.against == "nothing" else f"; {limit}"
        r2 = "not known" if self.line.r2 != self.line.r2 else f"{self.line.r2:.2f}"
        chance = "" if self.line.chance_pct != self.line.chance_pct else f", {self.line.chance_pct:.1f} % by chance"
        tried = f"{self.line.window_count} intervals held out: {self.line.error_pct:.1f} % off on average{chance}"
        return f"latency {self.line.sentence}{limit_words}; {tried}, R2 {r2}"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A scenario that was fitted, its text, and its disks."""

    scenario: StoragePath
    text: str
    disks: tuple[Fitted, ...]


def scenario_of(disks: Sequence[Fitted], name: str) -> StoragePath:
    """A scenario of a VM with a device for each disk."""
    depth = min(max(DEPTH, *(int(np.ceil(disk.most)) for disk in disks)), 65_536)
    plain: dict[str, Any] = {
        "name": NAME.sub("-", name).strip("-_").lower()[:60] or "calibrated",
        "about": "Fitted to captures; for loads that were not recorded it is a guess.",
        "system": "storage-path",
        "vms": [{"name": disk.name, "device": disk.name, "adapter_depth": depth, **_load(disk)} for disk in disks],
        "hosts": [{"name": "host", "queue_depth": depth}],
        "devices": [{"name": disk.name, **disk.device} for disk in disks],
    }
    plain["vary"] = _vary(disks)
    recorded = max(disk.recorded_s for disk in disks)
    if recorded:  # the whole of it, once
        plain["timing"] = {"warm_up_s": 0.0, "measure_s": recorded, "window_s": min(1.0, recorded)}
    return StoragePath.model_validate(plain)


def _vary(disks: Sequence[Fitted]) -> dict[str, list[Any]]:
    """The loads of a recording of one disk, one after the other; of several disks they make no sense together."""
    (disk, *others) = disks
    if others or disk.is_traced or len(disk.loads.levels) < 2:
        return {}
    key = f"vms.{disk.name}"
    if disk.loads.is_closed:
        return {f"{key}.workload.io.0.oio": [level.clients for level in disk.loads.levels]}
    whole = sum(float(stream["rate_iops"]) for stream in disk.streams)
    return {f"{key}.load_factor": [round(level.rate / whole, 4) for level in disk.loads.levels]}


def _load(disk: Fitted) -> dict[str, Any]:
    return {"workload": {"io": list(disk.streams)}} if disk.recording is None else {"trace": disk.recording}


def text_of(scenario: StoragePath, disks: Sequence[Fitted], paths: Sequence[Path]) -> str:
    """The scenario file, with what was fitted and how well as comments."""
    lines = [f"# Fitted to {', '.join(path.name for path in paths)}."]
    for disk in disks:
        lines += [f"# {disk.name}: {disk.sentence}", *(f"#   {note}" for note in disk.notes)]
        lines += [f"#   {row.sentence}" for row in disk.compared]
        lines += [f"#   warning: {warning}" for warning in disk.warnings]
    if len(disks) > 1:
        lines.append("# Disks are independent here, although those of one array are not.")
    kept = scenario.model_dump(mode="json", exclude_unset=True)
    for vm in kept["vms"]:
        if "workload" in vm:
            vm["workload"] = {key: value for key, value in vm["workload"].items() if key != "name"}
    body = yaml.safe_dump({"leadline_scenario": 1, **kept}, sort_keys=False, width=120)
    return "\n".join(lines) + "\n" + body
