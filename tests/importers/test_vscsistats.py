"""vscsiStats: histograms per virtual disk, what they become, and damage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import vscsistats
from tests.importers.damage import chosen, imported, row, warned

LIMITS_US = (1, 10, 100, 500, 1000, 5000, 15000, 30000, 50000, 100000)
DISK = "virtual disk handleID,8194 (scsi0:0)"
READS = (0, 0, 0, 40, 50, 8, 0, 0, 1, 0, 1)
TITLES = {
    "latency": "latency of {}IOs in Microseconds (us)",
    "length": "IO lengths of {}commands",
    "distance": "distance (in LBNs) between successive {}commands",
    "closest": "distance (in LBNs) between each command from the closest of previous 16",
    "outstanding": "number of outstanding {}IOs when a new {}IO is issued",
}


def block(
    kind: str = "latency",
    *,
    way: str = "",
    counts: Sequence[int] = READS,
    limits: Sequence[int] = LIMITS_US,
    facts: str = "min,120\nmax,150000\nmean,2300\n",
    disk: str = DISK,
    world: str = "70114",
) -> str:
    """A histogram as ``vscsiStats -p all -c`` prints it."""
    title = TITLES[kind].format(*[f"{way} " if way else ""] * 2)
    rows = "".join(f"{count},{limit}\n" for count, limit in zip(counts, [*limits, limits[-1]], strict=True))
    head = f"Histogram: {title},virtual machine worldGroupID,{world},{disk}\n"
    return f"{head}{facts}count,{sum(counts)}\nFrequency,Histogram Bucket Limit\n{rows}"


def written(folder: Path, *blocks: str) -> Path:
    path = folder / "vscsistats.csv"
    path.write_text("".join(blocks))
    return path


WHOLE = (
    block()
    + block(way="Read")
    + block("length", limits=(512, 4096, 8192), counts=(0, 90, 10, 0), facts="min,4096\nmax,8192\nmean,4505\n")
    + block("distance", limits=(-1, 0, 1), counts=(5, 0, 85, 10), facts="min,-900\nmax,7000\nmean,31\n")
    + block("outstanding", limits=(1, 2, 4), counts=(60, 30, 9, 1), facts="min,1\nmax,6\nmean,2\n")
)


def test_latencies_are_a_histogram_in_milliseconds(tmp_path: Path) -> None:
    (result,) = imported(vscsistats, written(tmp_path, WHOLE)).results
    assert [operation.name for operation in result.operations] == ["all", "read"]
    read = result.operation("read")
    assert read is not None
    assert read.count == 100
    assert read.latency_ms == pytest.approx({"mean": 2.3, "min": 0.12, "max": 150.0})
    assert read.histogram is not None
    assert read.histogram.counts.tolist() == [40, 50, 8, 1, 1]
    assert read.histogram.lower.tolist() == pytest.approx([0.101, 0.501, 1.001, 30.001, 100.001])
    assert read.histogram.upper.tolist() == pytest.approx([0.501, 1.001, 5.001, 50.001, 150.001])
    assert read.histogram.quantile_bounds(0.99) == pytest.approx((30.001, 50.001))


def test_the_last_bucket_stays_open_without_a_maximum(tmp_path: Path) -> None:
    (result,) = imported(vscsistats, written(tmp_path, block(facts="mean,2300\n"))).results
    histogram = result.operations[0].histogram
    assert histogram is not None
    assert math.isinf(histogram.upper[-1])


def test_means_are_one_sample_of_the_virtual_disk(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    capture = imported(vscsistats, path)
    disk = "vm:world group 70114/virtual-disk:scsi0:0"
    assert row(capture, "virtual_disk_latency_ms_read", disk) == [pytest.approx(2.3)]
    assert row(capture, "virtual_disk_io_size_bytes", disk) == [4505.0]
    assert row(capture, "virtual_disk_outstanding_count", disk) == [2.0]
    assert capture.groups[0].times_ns.tolist() == [path.stat().st_mtime_ns]
    assert warned(capture) == {"no-times"}
    asked = imported(vscsistats, path, Request(metrics=frozenset({"virtual_disk_io_size_bytes"})))
    assert [group.metric for group in asked.groups] == ["virtual_disk_io_size_bytes"]


def test_the_other_histograms_describe_the_workload(tmp_path: Path) -> None:
    (result,) = imported(vscsistats, written(tmp_path, WHOLE)).results
    assert set(result.workload) == {"io_size_bytes", "seek_distance_blocks", "outstanding_count"}
    distance = result.workload["seek_distance_blocks"]["all"]
    assert distance["buckets"] == [(-1, 5), (0, 0), (1, 85), (None, 10)]
    assert (distance["min"], distance["max"], distance["mean"], distance["count"]) == (-900, 7000, 31, 100)


def test_disks_and_machines_are_kept_apart(tmp_path: Path) -> None:
    other = block(disk="virtual disk handleID,8195 (scsi0:1)") + block(world="9", disk="virtual disk handleID,8194")
    capture = imported(vscsistats, written(tmp_path, WHOLE, other))
    jobs = ["world group 70114 scsi0:0", "world group 70114 scsi0:1", "world group 9 handle 8194"]
    assert [result.job for result in capture.results] == jobs


def test_a_disk_without_io_has_no_latency(tmp_path: Path) -> None:
    capture = imported(
        vscsistats, written(tmp_path, block(way="Write", counts=(0,) * 11, facts="min,0\nmax,0\nmean,0\n"))
    )
    assert capture.groups == []
    assert capture.results[0].operations == ()


def test_a_later_print_replaces_an_earlier_one(tmp_path: Path) -> None:
    capture = imported(vscsistats, written(tmp_path, block(), block(counts=(0,) * 10 + (7,))))
    assert capture.results[0].operations[0].count == 7
    assert "repeated" in warned(capture)


def test_counts_that_do_not_add_up_are_said(tmp_path: Path) -> None:
    capture = imported(vscsistats, written(tmp_path, block().replace("count,100", "count,101")))
    assert "count" in warned(capture)


@pytest.mark.parametrize("end", [-1, -5, -12, -60, -160])
def test_a_cut_last_histogram_is_dropped(tmp_path: Path, end: int) -> None:
    cut = block(way="Write", limits=(*LIMITS_US[:-1], 987_654_321))[: end - 1]
    capture = imported(vscsistats, written(tmp_path, WHOLE, cut))
    assert "cut" in warned(capture)
    assert [operation.name for operation in capture.results[0].operations] == ["all", "read"]


@pytest.mark.parametrize(
    ("old", "new", "line", "found"),
    [
        ("50,1000\n", "fifty,1000\n", 11, "fifty,1000"),
        ("50,1000\n", "50;1000\n", 11, "50;1000"),
        ("8,5000\n", "8,50\n", 12, "8,50"),
        ("1,100000\n", "", 1, "a histogram that breaks off"),
        ("Histogram: latency", "Histogram latency", 1, ""),
    ],
)
def test_damage_in_the_middle_is_an_error_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, found: str
) -> None:
    path = written(tmp_path, block().replace(old, new), WHOLE)
    with pytest.raises(InputError) as caught:
        imported(vscsistats, path)
    assert caught.value.where == f"{path}:{line}"
    assert found in caught.value.found


def test_a_file_without_histograms_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "min,1\nmax,2\n")
    assert vscsistats.sniff(Source(str(path), path)) == 0
    with pytest.raises(InputError, match="no whole histogram"):
        imported(vscsistats, path)


def test_a_generated_file_is_recognised(tmp_path: Path) -> None:
    assert chosen(written(tmp_path, WHOLE)) == "vscsistats"


def test_a_real_file(samples: Path) -> None:
    path = samples / "vscsistats" / "er0080__vscsiStats-helper__algonquin.csv"
    assert chosen(path) == "vscsistats"
    capture = imported(vscsistats, path)
    (result,) = capture.results
    write = result.operation("write")
    assert write is not None
    assert [write.count, write.latency_ms["max"]] == pytest.approx([789, 1.709])
    assert write.histogram is not None
    assert write.histogram.counts.tolist() == [403, 304, 78, 4]
    assert row(capture, "virtual_disk_latency_ms_read", "vm:world group 2099979/virtual-disk:scsi0:0") == [
        pytest.approx(42.551)
    ]
    assert set(result.workload) == {
        "io_size_bytes",
        "seek_distance_blocks",
        "seek_distance_blocks_closest",
        "outstanding_count",
        "interarrival_us",
    }
    assert result.workload["interarrival_us"]["read"]["buckets"][-1] == (None, 4)
    assert warned(capture) == {"no-times"}
