"""Damaged copies of valid recordings, for the tests that nothing but an error of ours leaves an importer."""

from __future__ import annotations

from pathlib import Path

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Importer, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture


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
