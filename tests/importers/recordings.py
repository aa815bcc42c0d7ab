"""What tests of importers share: making sources, looking up series, damaging files."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.errors import LeadlineError

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


@st.composite
def damage(draw: st.DrawFn, content: bytes) -> bytes:
    """A recording with bytes flipped, lines swapped or dropped, or its end cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(0, 6))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    lines = bytes(data).split(b"\n")
    if draw(st.booleans()):
        one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        lines[one], lines[other] = lines[other], lines[one]
    if draw(st.booleans()):
        del lines[draw(st.integers(0, len(lines) - 1))]
    whole = b"\n".join(lines)
    return whole[: draw(st.integers(0, len(whole)))] if draw(st.booleans()) else whole


def survives(importer: ModuleType, folder: Path, content: bytes, name: str) -> None:
    """Reading damaged content ends in a capture or in an error for users, and sniffing in a number."""
    source = source_of(folder, content, name)
    assert 0 <= importer.sniff(source) <= 100
    try:
        capture = importer.read(source, Request())
    except LeadlineError as error:
        assert error.found
        assert error.expected
        assert error.advice
        return
    assert isinstance(capture, Capture)
    for group in capture.groups:
        assert (np.diff(group.times_ns) > 0).all()
