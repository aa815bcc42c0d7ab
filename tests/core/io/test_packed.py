"""Packed values look like any others, and take a fraction of the memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leadline._core import PdhFile, pdh_write_header, pdh_write_rows
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.generating import FaultRequest, generate
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.io.packed import PackedValues
from leadline.core.model import capture as capture_module
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.generators.esxtop import shape_for_width

VALUES = np.array([[0.0, 1.25, np.nan, 3.0], [5.0] * 4, [1e9, 0.01, 7.5, -2.0]])
HOST = Entity(EntityKind.HOST, "esx01")


class Table:
    """Counts how often it is unpacked."""

    def __init__(self) -> None:
        self.times = 0

    def rows(self, series: np.ndarray, dtype: str) -> np.ndarray:
        self.times += 1
        values: np.ndarray = VALUES[series].astype(np.float32 if dtype == "f32" else np.float64)
        return values


def packed(table: Table, **options: object) -> PackedValues:
    return PackedValues(table, np.arange(3, dtype=np.uint32), 4, **options)  # type: ignore[arg-type]


def group_of(values: PackedValues, times: np.ndarray | None = None) -> SeriesGroup:
    entities = [Entity(EntityKind.VM, name, HOST) for name in ("a", "b", "c")]
    return SeriesGroup("cpu_ready_pct", entities, np.arange(4) * 10**9 if times is None else times, values, 1.0)


def test_values_are_unpacked_when_looked_at_and_only_then() -> None:
    table = Table()
    group = group_of(packed(table))
    moved = group.relabelled(source=3).relabelled(metric="cpu_used_pct")
    some = group.take([2, 0])
    assert table.times == 0
    np.testing.assert_array_equal(group.values, VALUES)
    np.testing.assert_array_equal(moved.values, VALUES)
    np.testing.assert_array_equal(some.values, VALUES[[2, 0]])
    assert (moved.source, moved.metric, table.times) == (3, "cpu_used_pct", 2)
    np.testing.assert_array_equal(replace(group, values=2 * group.values).values, 2 * VALUES)


def test_changes_follow_their_series() -> None:
    counts = np.array([[1.0], [2.0], [4.0]])
    values = packed(Table(), changes=((np.multiply, 8.0), (np.divide, counts)))
    np.testing.assert_array_equal(values.unpacked(), VALUES * 8.0 / counts)
    np.testing.assert_array_equal(values.take([2, 1]).unpacked(), (VALUES * 8.0 / counts)[[2, 1]])


def test_unpacked_values_cannot_be_written_to() -> None:
    group = group_of(packed(Table()))
    with pytest.raises(ValueError, match="read-only"):
        group.values[0, 0] = 1.0


def test_what_nobody_holds_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.core.io.packed.RECENT_BYTES_MAX", 0)
    table, other = Table(), Table()
    group = group_of(packed(table))
    held = group.values
    assert group_of(packed(other)).values is not held
    assert group.values is held
    del held
    gc.collect()
    assert group.values.shape == (3, 4)
    assert table.times == 2


def test_alignment_in_slices_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.arange(4) * 10**9
    group = group_of(packed(Table()), times)
    others = group.take([1, 2]).relabelled(metric="cpu_used_pct")
    capture = Capture([group, others])
    whole = capture.aligned(group, "cpu_used_pct")
    monkeypatch.setattr(capture_module, "SLICE_BYTES_MAX", 32)
    parts = list(group.slices())
    assert [len(part.entities) for part in parts] == [1, 1, 1]
    assert whole is not None
    found = [capture.aligned(part, "cpu_used_pct") for part in parts]
    assert found[0] is None
    np.testing.assert_array_equal(whole[0], np.full(4, np.nan))
    np.testing.assert_array_equal(whole[1:], np.concatenate([part for part in found if part is not None]))
    assert capture.is_aligned(group, "cpu_used_pct")
    assert not capture.is_aligned(parts[0], "cpu_used_pct")


def test_a_table_gives_back_what_was_written(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    written = np.round(generator.gamma(2.0, 40.0, (700, 12)), 2)
    written[:, 3] = 32.0
    written[generator.random(written.shape) < 0.01] = np.nan
    path = tmp_path / "a.csv"
    cells = [rf"\\\\esx\\Vcpu({n})\\% Used" for n in range(12)]
    pdh_write_header(path, "UTC", cells)
    pdh_write_rows(path, np.arange(700) * 10**9, written, 2)
    table = PdhFile.open(path).read(np.arange(12, dtype=np.uint32))
    np.testing.assert_array_equal(table.rows(np.arange(12, dtype=np.uint32), "f64"), written.T)
    order = np.array([11, 3, 3], dtype=np.uint32)
    np.testing.assert_array_equal(table.rows(order, "f32"), written.T[order].astype(np.float32))
    assert table.size_bytes < written.nbytes / 2
    with pytest.raises(ValueError, match="there are 12"):
        table.rows(np.array([12], dtype=np.uint32), "f64")


@pytest.mark.parametrize("slice_bytes", [1, 5000])
def test_findings_do_not_depend_on_slices(slice_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cap.csv"
    faults = [FaultRequest.parse(name) for name in ("cpu-contention", "device-slow", "disk-iops-limit", "port-drops")]
    generate(shape_for_width(2900, 120), faults, path, columns=2900)
    imported = import_paths([path], Request())
    whole = diagnose(imported.capture)
    monkeypatch.setattr(capture_module, "SLICE_BYTES_MAX", slice_bytes)
    assert [finding.to_dict() for finding in diagnose(imported.capture).findings] == [
        finding.to_dict() for finding in whole.findings
    ]
    assert whole.findings


_PEAK = """
import sys
from pathlib import Path
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
def peak_kib():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
request = Request(metrics=metrics_read())
diagnose(import_paths([Path(sys.argv[1])], request).capture)
before = peak_kib()
capture = import_paths([Path(sys.argv[2])], request).capture
plain_kib = sum(group.stored.shape[0] * group.stored.shape[1] for group in capture.groups) * 8 // 1024
diagnose(capture)
print(before, peak_kib(), plain_kib)
"""


def test_a_diagnosis_takes_less_memory_than_the_numbers_would(tmp_path: Path) -> None:
    """A hundred MB of numbers, more than is kept of scratch and slices, in a fraction of that."""
    generate(shape_for_width(2900, 50), [], tmp_path / "small.csv", columns=2900)
    generate(shape_for_width(2900, 9000), [], tmp_path / "large.csv", columns=2900)
    words = [sys.executable, "-c", _PEAK, str(tmp_path / "small.csv"), str(tmp_path / "large.csv")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    before, peak, plain = (int(word) for word in done.stdout.split())
    assert plain > 80 * 1024
    assert peak - before < plain, done.stdout
