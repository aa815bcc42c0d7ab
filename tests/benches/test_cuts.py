"""The bench of cut recordings, on one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches.bench_cuts import LENGTHS_S, Cut, cuts_of, lines_of, wrong
from benches.bench_incidents import RECORDED
from benches.incidents.recordings import archives
from leadline.core.model.answer import Disk

SLOW_DISK = RECORDED / "slow-disk" / "1.tar.xz"
CAPPED_DISKS = archives(RECORDED, ["iops-limit-data"])[::3]
FEW_LENGTHS_S = (1, 4, 8, 12, 14, 15)  # of one recording, for `make test`; `make test-real` cuts it to every length


def name_of(archive: Path) -> str:
    return f"{archive.parent.name}/{archive.name.split('.')[0]}"


@pytest.mark.parametrize(
    ("archive", "lengths_s"),
    [
        (SLOW_DISK, FEW_LENGTHS_S),
        *(pytest.param(one, LENGTHS_S, marks=pytest.mark.slow) for one in (SLOW_DISK, *CAPPED_DISKS)),
    ],
    ids=lambda value: name_of(value) if isinstance(value, Path) else f"{len(value)} lengths",
)
def test_no_cut_of_a_disk_with_a_fault_is_answered_no(archive: Path, lengths_s: tuple[int, ...]) -> None:
    cuts = cuts_of(archive, lengths_s)
    assert {cut.length_s for cut in cuts} == set(lengths_s)
    assert wrong(cuts) == []
    assert any(cut.answer.accuses for cut in cuts)


def test_a_no_without_power_is_printed() -> None:
    cuts = [Cut("a/1", "full", 5, 5.0, Disk.NO, "No: x."), Cut("a/1", "full", 15, 15.0, Disk.NO, "No: x.")]
    assert wrong(cuts) == cuts[:1]
    assert list(lines_of(cuts))[-1] == "a/1, full, 5 s (5 s of disks): No: x."
