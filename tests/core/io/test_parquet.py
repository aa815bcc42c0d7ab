"""Captures on disk: how much is put together before it is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from leadline.core.io import parquet
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind


@pytest.mark.parametrize(("cell_count_max", "row_groups"), [(10, 3), (1000, 1)])
def test_long_series_are_written_in_row_groups_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell_count_max: int, row_groups: int
) -> None:
    monkeypatch.setattr(parquet, "CELLS_PER_WRITE", cell_count_max)
    times, entity = np.arange(20, dtype=np.int64), Entity(EntityKind.GUEST, "db01")
    metrics = ["guest_cpu_user_pct", "guest_cpu_system_pct", "guest_cpu_idle_pct"]
    groups = [SeriesGroup(metric, [entity], times, np.full((1, 20), float(i))) for i, metric in enumerate(metrics)]
    path = tmp_path / "capture.parquet"
    parquet.save(Capture(groups), path)
    assert pq.ParquetFile(path).num_row_groups == row_groups
    loaded = parquet.load(path, path.name)
    assert [group.metric for group in loaded.groups] == metrics
    assert [group.values.tolist() for group in loaded.groups] == [group.values.tolist() for group in groups]
