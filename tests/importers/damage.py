"""Damaged copies of valid recordings, for the tests that nothing but an error of ours leaves an importer."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Importer, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import LeadlineError


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A recording with some bytes changed, lines exchanged, dropped or repeated, or cut at one end."""
    lines = whole.split(b"\n")
    for _ in range(draw(st.integers(0, 3))):
        one, other = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        lines[one], lines[other] = draw(
            st.sampled_from([(lines[other], lines[one]), (b"", lines[other]), (lines[other], lines[other])])
        )
    data = bytearray(b"\n".join(lines))
    for _ in range(draw(st.integers(0, 8))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(
                st.one_of(st.integers(0, 255), st.sampled_from(b"0919-,.\n "))
            )
    begin, end = draw(st.integers(0, 40)), draw(st.integers(0, max(len(data), 1)))
    return bytes(data[:end]) if draw(st.booleans()) else bytes(data[begin:])


def survives(importer: Importer, path: Path, data: bytes) -> None:
    """Sniff and read the bytes under the path's name; anything but a capture or an error of ours fails the test."""
    path.write_bytes(data)
    source = Source(str(path), path)
    assert 0 <= importer.sniff(source) <= 100
    try:
        capture = importer.read(source, Request())
    except LeadlineError as error:
        assert error.advice
    else:
        assert isinstance(capture, Capture)
        for group in capture.groups:
            assert group.values.shape == (len(group.entities), len(group.times_ns))
            assert all(later >= before for before, later in zip(group.times_ns, group.times_ns[1:], strict=False))


def chosen(path: Path) -> str | None:
    """The importer chosen for a file among all."""
    found = recognise(Source(str(path), path), load_units("importer"))
    return None if found is None else found[0]


def imported(importer: Importer, path: Path, request: Request | None = None) -> Capture:
    """The capture of a file."""
    return importer.read(Source(str(path), path), request or Request())


def row(capture: Capture, metric: str, entity: str) -> list[float]:
    """The values of the one series of a metric and entity (as text)."""
    found = [
        [float(value) for value in group.values[i]]
        for group in capture.groups
        for i, held in enumerate(group.entities)
        if group.metric == metric and str(held) == entity
    ]
    assert len(found) == 1, f"{len(found)} series {metric} of {entity}"
    return found[0]


def warned(capture: Capture) -> set[str]:
    """The codes of a capture's warnings."""
    return {warning.code for warning in capture.sources[0].warnings}
