"""Histograms of flushes in a Prometheus scrape: their mean and percentiles, and what is said of the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.io.source import Source
from leadline.core.model.answer import Disk
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import fsync_histograms

FAMILY = "etcd_disk_wal_fsync_duration_seconds"


def scrape(*buckets: tuple[str, int], sum_s: float | None = None, family: str = FAMILY) -> str:
    lines = [f"# TYPE {family} histogram", *(f'{family}_bucket{{le="{edge}"}} {count}' for edge, count in buckets)]
    if sum_s is not None:
        lines += [f"{family}_sum {sum_s}", f"{family}_count {buckets[-1][1]}"]
    return "\n".join([*lines, "go_goroutines 12", ""])


def read(folder: Path, text: str) -> Capture:
    path = folder / "metrics.txt"
    path.write_text(text)
    return import_paths([path]).capture


SLOW = (("0.008", 0), ("0.016", 100), ("0.032", 900), ("0.064", 1000), ("+Inf", 1000))
QUICK = (("0.001", 900), ("0.002", 990), ("0.004", 1000), ("+Inf", 1000))


def test_mean_and_percentiles(tmp_path: Path) -> None:
    (result,) = read(tmp_path, scrape(*SLOW, sum_s=25.0)).results
    assert (result.tool, result.job) == ("etcd", "disk wal fsync")
    (operation,) = result.operations
    assert operation.count == 1000
    assert operation.mean_ms == pytest.approx(25.0)
    assert operation.latency_ms["p50"] == pytest.approx(24.0)
    assert operation.latency_ms["p99"] == pytest.approx(60.8)


def test_without_a_sum_the_mean_is_of_the_buckets(tmp_path: Path) -> None:
    (operation,) = read(tmp_path, scrape(*SLOW)).results[0].operations
    assert operation.mean_ms == pytest.approx((100 * 12 + 800 * 24 + 100 * 48) / 1000)


def test_several_label_sets_are_added(tmp_path: Path) -> None:
    text = scrape(*SLOW, sum_s=25.0).replace('{le="', '{shard="1",le="') + scrape(*SLOW, sum_s=25.0)
    (operation,) = read(tmp_path, text).results[0].operations
    assert operation.count == 2000
    assert operation.mean_ms == pytest.approx(25.0)


def test_slow_flushes_accuse_the_disk_and_quick_ones_do_not(tmp_path: Path) -> None:
    slow = diagnose(read(tmp_path, scrape(*SLOW, sum_s=25.0)))
    assert slow.answer.disk is Disk.YES_AS_SEEN_BY_GUEST
    assert "fsync mean 25 ms" in slow.findings[0].summary
    quick = diagnose(read(tmp_path, scrape(*QUICK, sum_s=0.9)))
    assert quick.answer.disk is Disk.UNKNOWN
    assert not quick.findings


def test_a_scrape_without_a_flush_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="histograms of flushes without a count"):
        read(tmp_path, scrape(("0.008", 0), ("+Inf", 0)))


@pytest.mark.parametrize("text", ["", "go_goroutines 12\n", 'http_duration_seconds_bucket{le="1"} 3\n'])
def test_other_scrapes_are_not_mine(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.txt"
    path.write_text(text)
    assert fsync_histograms.sniff(Source(str(path), path)) == 0
