"""offcputime: for what programs were blocked."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import UNNAMED_GUEST, Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import offcputime
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

SEEDS = ROOT / "tests" / "importers" / "seeds"


def waits_of(source: Source) -> dict[str, float]:
    waits: dict[str, float] = offcputime.read(source, Request()).inventory.get(UNNAMED_GUEST, "off_cpu_s")
    return waits


def test_stacks(tmp_path: Path) -> None:
    source = source_of(tmp_path, (SEEDS / "offcputime.txt").read_text())
    assert offcputime.sniff(source) == 95
    assert waits_of(source) == {
        "mysqld: a lock or work to do": 5.000123,
        "sleep: work to do": 4.0,
        "mysqld: the sync of a file": 0.013393,
    }
    assert codes(offcputime.read(source, Request())) == []


def test_folded_stacks(tmp_path: Path) -> None:
    source = source_of(tmp_path, (SEEDS / "offcputime-folded.txt").read_text())
    assert offcputime.sniff(source) == 90
    assert waits_of(source) == {
        "postgres: the disk": 2.3,
        "postgres: a lock of the program": 0.7,
        "DB Writer: a CPU": 0.009,
    }


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ("blk_mq_get_tag io_schedule schedule", "a slot in the disk's queue"),
        ("balance_dirty_pages io_schedule_timeout", "room for dirty pages"),
        ("rpc_wait_bit_killable nfs_file_fsync", "the sync of a file"),
        ("rwsem_down_write_slowpath ext4_buffered_write_iter", "a lock of the kernel"),
        ("swap_readpage do_swap_page io_schedule", "memory"),
        ("ep_poll schedule", "work to do"),
        ("futex_wait pthread_mutex_lock", "a lock or work to do"),
    ],
)
def test_what_a_stack_says(frames: str, reason: str) -> None:
    assert offcputime.reason_of(frames.split()) == reason


def test_no_stack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no stack with a time"):
        offcputime.read(source_of(tmp_path, "Tracing off-CPU time (us) of all threads.\n"), Request())
