"""What the tests of load generators' importers share: reading, damaging, choosing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Importer, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.metrics import metric
from leadline.core.model.result import Operation, Result
from tests.conftest import SAMPLES

SEEDS = Path(__file__).parent / "seeds"


def seed(name: str) -> str:
    """A small recording written after what a tool prints that cannot be run here."""
    return (SEEDS / name).read_text(encoding="utf-8")


def read(module: ModuleType, path: Path, **request: Any) -> Capture:
    capture = cast("Importer", module).read(Source(str(path), path), Request(**request))
    check(capture)
    return capture


def read_text(module: ModuleType, folder: Path, text: str | bytes, name: str = "x.txt", **request: Any) -> Capture:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(module, path, **request)


def check(capture: Capture) -> None:
    """What holds for every capture: rising times, known metrics, one source that says what it holds."""
    for group in capture.groups:
        assert group.times_ns.dtype == np.int64
        assert (np.diff(group.times_ns) >= 0).all()
        assert group.values.shape == (len(group.entities), len(group.times_ns))
        assert not np.isinf(group.values).any()
        assert group.metric.startswith("raw.") or metric(group.metric).name == group.metric
    assert len(capture.sources) == 1
    assert all(result.operations or result.error_count for result in capture.results)


def values(capture: Capture, name: str, entity: str | None = None) -> list[float]:
    """The values of a metric over all its groups, of one entity or of the only one."""
    found: list[float] = []
    for group in capture.groups:
        if group.metric == name:
            rows = [i for i, e in enumerate(group.entities) if entity is None or str(e) == entity]
            found.extend(group.values[rows].ravel().tolist())
    return found


def times_s(capture: Capture, name: str) -> list[float]:
    """The times of the first group of a metric in seconds since 1970."""
    group = next(group for group in capture.groups if group.metric == name)
    return [time / 1e9 for time in group.times_ns.tolist()]


def entities(capture: Capture) -> set[str]:
    return {str(entity) for group in capture.groups for entity in group.entities}


def operation(result: Result, name: str) -> Operation:
    found = result.operation(name)
    assert found is not None, [known.name for known in result.operations]
    return found


def warned(capture: Capture) -> list[str]:
    return [warning.code for warning in capture.sources[0].warnings]


def chosen(path: Path) -> str | None:
    """The importer the application chooses among all."""
    found = recognise(Source(str(path), path), load_units("importer"))
    return None if found is None else found[0]


def sample_files(*patterns: str) -> Sequence[Any]:
    """Sample recordings by pattern, as parameters; one skipped parameter where there are none."""
    found = sorted(path for pattern in patterns for path in SAMPLES.glob(pattern))
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip("the sample recordings are not beside this checkout"))]
    return [pytest.param(path, id=path.name[-60:]) for path in found]
