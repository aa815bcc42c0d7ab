"""The bench of cut recordings, on one of them."""

from __future__ import annotations

from benches.bench_cuts import LENGTHS_S, Cut, cuts_of, lines_of, wrong
from benches.bench_incidents import RECORDED
from leadline.core.model.answer import Disk

SLOW_DISK = RECORDED / "slow-disk" / "1.tar.xz"


def test_no_cut_of_a_slow_disk_is_answered_no() -> None:
    cuts = cuts_of(SLOW_DISK)
    assert {cut.length_s for cut in cuts} == set(LENGTHS_S)
    assert wrong(cuts) == []
    assert any(cut.answer.accuses for cut in cuts)


def test_a_no_without_power_is_printed() -> None:
    cuts = [Cut("a/1", "full", 5, 5.0, Disk.NO, "No: x."), Cut("a/1", "full", 15, 15.0, Disk.NO, "No: x.")]
    assert wrong(cuts) == cuts[:1]
    assert list(lines_of(cuts))[-1] == "a/1, full, 5 s (5 s of disks): No: x."
