"""Reading data and what is answered of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from leadline.app.reduction.contents import ContentTable
from leadline.app.reduction.kept import kept_folder, load_state, save_state
from leadline.app.reduction.model import Reduction, ReductionLimits, ReductionState
from leadline.app.reduction.reducing import measure_reduction, new_state, reduction_so_far, shuffled
from leadline.core.model.errors import InputError, UsageError
from tests.app.reduction.data import CELL, true_shares, write_data

PLENTY = ReductionLimits(2**40)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("LEADLINE_HOME", str(folder))
    return folder


def measured(path: Path, limits: ReductionLimits = PLENTY, seed: int = 1) -> Reduction:
    done = measure_reduction(new_state(path, limits, seed), limits)
    assert done is not None
    return done


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_a_whole_scan_is_exact(tmp_path: Path, share: float) -> None:
    write_data(tmp_path / "a", 1500, share, 3, zero_share=0.1)
    write_data(tmp_path / "b", 300, share, 3)
    (tmp_path / "c").write_bytes(b"x" * 70_001)
    (tmp_path / "empty").touch()
    done = measured(tmp_path)
    assert done.is_whole
    for row in done.block_sizes:
        zeros, duplicates = true_shares([tmp_path / "a", tmp_path / "b", tmp_path / "c"], row.block_bytes)
        assert row.zero_share == pytest.approx(zeros)
        assert row.duplicate_share.value == pytest.approx(duplicates)
        assert row.duplicate_share.low == pytest.approx(row.duplicate_share.high)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("part", [0.1, 0.3, 0.7])
def test_the_interval_of_a_sample_contains_the_truth(tmp_path: Path, share: float, part: float) -> None:
    write_data(tmp_path / "a", 4000, share, 7, zero_share=0.2)
    for seed in range(5):
        done = measured(tmp_path / "a", ReductionLimits(int(4000 * CELL * part)), seed)
        assert not done.is_whole
        assert done.read_bytes <= 4000 * CELL * part
        for row in done.block_sizes:
            duplicates = true_shares([tmp_path / "a"], row.block_bytes)[1]
            assert row.duplicate_share.low - 1e-9 <= duplicates <= row.duplicate_share.high + 1e-9, (seed, row)


def test_the_interval_narrows_as_more_is_read(tmp_path: Path) -> None:
    write_data(tmp_path / "a", 6000, 0.5, 7)
    shares = [
        measured(tmp_path / "a", ReductionLimits(int(6000 * CELL * part))).block_sizes[0].duplicate_share
        for part in (0.1, 0.4, 0.9)
    ]
    widths = [share.high - share.low for share in shares]
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.1


def test_contents_that_are_drawn_are_not_biased(tmp_path: Path) -> None:
    write_data(tmp_path / "a", 12_000, 0.4, 5)
    state = new_state(tmp_path / "a", PLENTY, 1)
    for table in state.tables:
        table.kept_max = 2000
    done = measure_reduction(state, PLENTY)
    assert done is not None
    assert state.tables[0].halvings > 0
    share = done.block_sizes[0].duplicate_share
    assert share.low <= 0.4 <= share.high
    assert share.high - share.low < 0.1


def test_compression_is_that_of_each_block_alone(tmp_path: Path) -> None:
    # A block is half random: alone it halves; its twin in the same larger block is no duplicate of it.
    draw = np.random.default_rng(2)
    (tmp_path / "a").write_bytes(b"".join(draw.bytes(1900) + bytes(CELL - 1900) for _ in range(512)))
    done = measured(tmp_path / "a")
    row = done.block_sizes[0]
    assert row.zstd_ratio is not None
    assert row.zstd_ratio.value == pytest.approx(CELL / 1920, rel=0.02)
    assert done.vsan is not None
    assert done.vsan.fits_share == 1.0
    assert done.vsan.compression.value == pytest.approx(2.0)
    assert done.vsan.esa_compression.value == pytest.approx(2.0)  # four sectors
    assert row.both_lz4_ratio is not None


def test_deduplication_and_compression_multiply(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    block = draw.bytes(1900) + bytes(CELL - 1900)
    (tmp_path / "a").write_bytes(block * 4 + b"".join(draw.bytes(CELL) for _ in range(4)))
    vsan = measured(tmp_path / "a").vsan
    assert vsan is not None
    assert vsan.compression.value == pytest.approx(8 / 6)
    assert vsan.dedup.value == pytest.approx(8 / 4.5)


def test_without_pyarrow_lz4_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.app.reduction.packing.lz4_packer", lambda: None)
    write_data(tmp_path / "a", 64, 0.5, 1)
    done = measured(tmp_path / "a")
    assert done.vsan is None
    assert done.block_sizes[0].lz4_ratio is None
    assert done.block_sizes[0].zstd_ratio is not None


def test_holes_are_zeros_that_are_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(8 * 2**20)
        file.write(os.urandom(2**20))
    done = measured(tmp_path / "a")
    assert done.block_sizes[0].zero_share == pytest.approx(7 / 8)
    assert done.hole_bytes + done.read_bytes == 8 * 2**20
    assert done.read_bytes < 2 * 2**20


def test_only_zeros(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(100_000))
    done = measured(tmp_path / "a")
    assert [row.zero_share for row in done.block_sizes] == [1.0] * 4
    assert done.block_sizes[0].zstd_ratio is None
    assert done.block_sizes[0].duplicate_share.value == 0.0


def test_what_is_no_data_is_left_out_and_counted(tmp_path: Path) -> None:
    write_data(tmp_path / "a", 32, 0.0, 1)
    (tmp_path / "link").symlink_to("a")
    os.link(tmp_path / "a", tmp_path / "again")
    os.mkfifo(tmp_path / "fifo")
    left_out = measured(tmp_path).left_out
    assert (left_out.links, left_out.hard_links, left_out.special) == (1, 1, 1)


def test_a_file_that_changes_is_left_out_and_counted(tmp_path: Path) -> None:
    write_data(tmp_path / "a", 32, 0.0, 1)
    write_data(tmp_path / "b", 32, 0.0, 2)
    state = new_state(tmp_path, PLENTY, 1)
    (tmp_path / "a").write_bytes(b"shorter")
    (tmp_path / "b").unlink()
    done = measure_reduction(state, PLENTY)
    assert done is not None
    assert done.left_out.changed == 2
    assert done.read_bytes == 0


def test_nothing_of_what_is_read_changes(tmp_path: Path) -> None:
    write_data(tmp_path / "a", 64, 0.3, 1)
    (tmp_path / "a").chmod(0o444)
    before = (tmp_path / "a").stat()
    measured(tmp_path)
    after = (tmp_path / "a").stat()
    assert before == after
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_what_is_resumed_is_what_one_run_answers(tmp_path: Path) -> None:
    write_data(tmp_path / "a", 4000, 0.4, 9)
    whole = measured(tmp_path / "a", ReductionLimits(8 * 2**20), seed=5)
    state = new_state(tmp_path / "a", ReductionLimits(3 * 2**20), seed=5)
    measure_reduction(state, ReductionLimits(3 * 2**20))
    again = load_state("last")
    assert again.position == state.position
    done = measure_reduction(again, ReductionLimits(8 * 2**20))
    assert done is not None
    assert done.block_sizes == whole.block_sizes
    assert done.vsan == whole.vsan


def test_the_beginning_of_data_read_in_order_answers_nothing(tmp_path: Path) -> None:
    write_data(tmp_path / "a", 3000, 0.4, 9)
    state = new_state(tmp_path / "a", PLENTY, 1)
    assert state.is_sequential
    assert measure_reduction(state, ReductionLimits(2**40, 1e-9)) is None
    done = measure_reduction(load_state(state.id), PLENTY)
    assert done is not None
    assert done.is_whole


def test_states_are_private_and_damaged_ones_are_said(tmp_path: Path) -> None:
    write_data(tmp_path / "a", 32, 0.4, 9)
    path = save_state(new_state(tmp_path / "a", PLENTY, 1))
    assert path.stat().st_mode & 0o77 == 0
    path.write_text(path.read_text()[:-40])
    with pytest.raises(InputError, match="damaged"):
        load_state(path.stem)
    for name in ("../etc/passwd", "none", ""):
        with pytest.raises(UsageError, match="nothing kept"):
            load_state(name)


def test_the_folder_of_states_is_not_read(home: Path) -> None:
    save_state(new_state(Path(__file__), PLENTY, 1))
    (home / "data").write_bytes(b"x" * 10)
    assert new_state(home, PLENTY, 1).places.paths == (str(home / "data"),)
    assert kept_folder().is_dir()


@pytest.mark.parametrize("kind", ["missing", "empty", "character device"])
def test_what_is_no_data_is_refused(tmp_path: Path, kind: str) -> None:
    path = {"missing": tmp_path / "none", "empty": tmp_path, "character device": Path("/dev/null")}[kind]
    with pytest.raises((InputError, UsageError)):
        new_state(path, PLENTY)


@pytest.mark.parametrize("count", [1, 2, 3, 64, 1000, 4097])
def test_every_piece_is_drawn_once(count: int) -> None:
    order = shuffled(np.arange(count), count, 3)
    assert sorted(order.tolist()) == list(range(count))
    if count == 1000:
        assert abs(np.corrcoef(order, np.arange(count))[0, 1]) < 0.1
        assert (order != shuffled(np.arange(count), count, 4)).any()


def test_a_table_stays_bounded() -> None:
    table = ContentTable(kept_max=100)
    draw = np.random.default_rng(1)
    for piece in range(0, 4000, 100):
        prints = draw.integers(1, 2**63, (100, 16)).astype(np.uint64) * np.uint64(2)
        table.add(prints, np.ones((100, 16), np.uint8), np.arange(piece, piece + 100))
    table.settle()
    assert len(table.fingerprints) <= 100
    assert table.total_cells == 64_000


def test_a_stop_keeps_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path / "a", 4000, 0.4, 9)
    limits = ReductionLimits(12 * 2**20)
    state = new_state(tmp_path / "a", limits, 1)

    stops: list[threading.Event] = []

    def interrupted(work: object) -> None:
        stop = threading.Event()
        stops.append(stop)
        work(stop)  # type: ignore[operator]
        raise KeyboardInterrupt

    monkeypatch.setattr("leadline.app.reduction.reducing.uninterrupted", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure_reduction(state, limits, lambda *_: stops[0].set())
    kept: ReductionState = load_state(state.id)
    assert kept.position == 64
    assert reduction_so_far(kept) is not None
