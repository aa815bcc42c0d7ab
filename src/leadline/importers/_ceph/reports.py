"""Samples of a Ceph cluster as its commands report them, and how they become series."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from leadline.core.io.clock import synthetic_times
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

CLUSTER = Entity(EntityKind.CLUSTER, "ceph")
PERIOD_S = 5.0  # how often `rbd perf image iostat` prints, and the manager gathers what `ceph osd perf` shows
MIB = float(1 << 20)


def osd(number: str | int) -> Entity:
    """The OSD with a number."""
    return Entity(EntityKind.DEVICE, f"osd.{number}", CLUSTER)


def image(name: str) -> Entity:
    """The RBD image with a name."""
    return Entity(EntityKind.VIRTUAL_DISK, name[:200], CLUSTER)


@dataclass(slots=True)
class CephReport:
    """What one run of a command shows.

    Attributes:
        command: which one.
        time_ns: when, UTC nanoseconds; None where no time is printed.
        values: by metric and entity, in the metric's unit.
    """

    command: str
    time_ns: int | None
    values: dict[tuple[str, Entity], float] = field(default_factory=dict)

    def put(self, metric: str, entity: Entity, value: float) -> None:
        """Add a value, unless it is NaN; of several of the same the highest counts."""
        known = self.values.get((metric, entity))
        if not math.isnan(value):
            self.values[metric, entity] = value if known is None else max(known, value)


def add_reports(
    reports: list[CephReport], builder: CaptureBuilder, wants: frozenset[str] | None, mtime_ns: int
) -> bool:
    """Add the series of all reports; whether all have times."""
    is_timed = all(report.time_ns is not None for report in reports)
    for command in dict.fromkeys(report.command for report in reports):
        taken = [report for report in reports if report.command == command]
        times = synthetic_times(len(taken), PERIOD_S, mtime_ns).tolist()
        if any(report.time_ns is None for report in taken):
            if len(taken) > 1:
                builder.warn(
                    "no-times",
                    f"{command} has no times (run `date` before it): {PERIOD_S:g} s apart up to the file's last change",
                )
        else:
            times = [report.time_ns or 0 for report in taken]
        series: dict[tuple[str, Entity], dict[int, float]] = {}
        for report, time_ns in zip(taken, times, strict=True):
            for key, value in report.values.items():
                series.setdefault(key, {})[time_ns] = value
        _add(series, builder, wants)
    return is_timed


def _add(
    series: dict[tuple[str, Entity], dict[int, float]], builder: CaptureBuilder, wants: frozenset[str] | None
) -> None:
    import numpy as np  # noqa: PLC0415 - nothing else here needs it

    for (metric, entity), samples in series.items():
        if wants is None or metric in wants:
            times = np.array(sorted(samples), dtype=np.int64)
            builder.add_series(metric, entity, times, np.array([samples[int(t)] for t in times], dtype=np.float64))
