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


MAPS = """\
Attaching 3 probes...
^C

@us[
    finish_task_switch+1
    schedule+44
    io_schedule+18
    ext4_file_read_iter+204
,
    __read+77
, postgres, 4711]: 2300000
@us[
    __schedule+670
    schedule+44
    jbd2_log_wait_commit+150
    ext4_sync_file+301
, , mysqld]: 841233
@us[DB Writer,
    finish_task_switch+1
    schedule+44
    ep_poll+1
]: 77
"""


def test_maps_of_bpftrace(tmp_path: Path) -> None:
    source = source_of(tmp_path, MAPS)
    assert offcputime.sniff(source) == 90
    assert waits_of(source) == {
        "postgres: the disk": 2.3,
        "mysqld: the sync of a file": 0.841233,
        "DB Writer: work to do": 0.000077,
    }
    assert codes(offcputime.read(source, Request())) == []


def test_maps_without_a_unit_are_nanoseconds(tmp_path: Path) -> None:
    source = source_of(tmp_path, MAPS.replace("@us[", "@["))
    assert waits_of(source)["postgres: the disk"] == 0.0023
    assert codes(offcputime.read(source, Request())) == ["unit"]


def test_maps_of_counts_are_refused(tmp_path: Path) -> None:
    source = source_of(tmp_path, "@[\n    finish_task_switch+1\n    schedule+44\n, mysqld]: 1317\n")
    with pytest.raises(InputError, match="no stack with a time"):
        offcputime.read(source, Request())


def test_maps_of_other_stacks_are_none_of_its(tmp_path: Path) -> None:
    text = "@[\n    tty_write+5\n    vfs_write+665\n    ksys_write+110\n    __schedule+1\n]: 1317\n"
    assert offcputime.sniff(source_of(tmp_path, text)) == 0
    torn = MAPS + "@us[\n    finish_task_switch+1\n    sche"
    assert len(waits_of(source_of(tmp_path, torn))) == 3


def test_no_stack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no stack with a time"):
        offcputime.read(source_of(tmp_path, "Tracing off-CPU time (us) of all threads.\n"), Request())
