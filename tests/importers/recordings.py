"""What tests of importers share: making sources, looking up series, damaging files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, SeriesGroup

MTIME_NS = 1_795_215_600_000_000_000  # 2026-11-20 23:00:00 UTC


def source_of(folder: Path, content: str | bytes, name: str = "recording.txt") -> Source:
    """A source with the given content, last written at `MTIME_NS`."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, ns=(MTIME_NS, MTIME_NS))
    return Source(name, path)


def group_of(capture: Capture, metric: str, entity: str) -> SeriesGroup:
    """The group of one series; fails when there is none or more than one."""
    found = [
        group.take([row])
        for group in capture.groups
        if group.metric == metric
        for row, each in enumerate(group.entities)
        if str(each) == entity
    ]
    assert len(found) == 1, f"{metric} of {entity}: {len(found)} series"
    return found[0]


def values_of(capture: Capture, metric: str, entity: str) -> NDArray[np.float64]:
    """The values of one series."""
    return np.asarray(group_of(capture, metric, entity).values[0], dtype=np.float64)


def codes(capture: Capture) -> list[str]:
    """Codes of the warnings, in order."""
    return [warning.code for warning in capture.sources[0].warnings]


def seconds(group: SeriesGroup) -> list[float]:
    """Times of a group in seconds of UTC."""
    return [int(moment) / 10**9 for moment in group.times_ns]
