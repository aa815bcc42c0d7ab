"""Blank devices filled part by part, and results of several targets of one address."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.measure.hosts import Host, host_result
from leadline.app.measure.prefill import MIB, PARTS_MAX, fill_devices, fill_text, parts
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.run import Round
from leadline.core.system.tools import find_program
from tests.fio_servers import fio_server


@given(st.integers(MIB, 2**45))
def test_the_parts_are_the_whole_without_gaps(size_bytes: int) -> None:
    steps = parts(size_bytes)
    assert (steps[0][0], steps[-1][1]) == (0, size_bytes)
    assert all(first[1] == second[0] for first, second in pairwise(steps))
    assert all(start < end and start % MIB == 0 for start, end in steps)
    assert len(steps) <= PARTS_MAX


def test_the_job_writes_its_stretch_alone() -> None:
    lines = fill_text("/dev/sdb", 4 * MIB, 6 * MIB).splitlines()
    assert {
        "rw=write",
        "filename=/dev/sdb",
        f"offset={4 * MIB}",
        f"size={2 * MIB}",
        "refill_buffers=1",
        "allow_file_create=0",
    } <= set(lines)


@pytest.mark.real
@pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")
def test_a_device_is_filled_with_data_that_cannot_be_deduplicated(tmp_path: Path) -> None:
    """Two stretches by hand through the public way: a file of the size of a device stands for it."""
    device = tmp_path / "disk"
    device.write_bytes(bytes(8 * MIB))
    lines: list[str] = []
    with fio_server(tmp_path) as address:
        hosts = [Host(address, str(device), is_blank=True, label="w1"), Host(address, str(tmp_path), label="w2")]
        assert fill_devices(hosts, 6 * MIB, tmp_path, lines.append) == {}
        failed = fill_devices(
            [Host(address, "/dev/shm/leadline-none", is_blank=True, label="w3")], MIB, tmp_path, print
        )
    content = device.read_bytes()
    assert len(content) == 8 * MIB
    blocks = {content[start : start + 4096] for start in range(0, 6 * MIB, 4096)}
    assert len(blocks) == 6 * MIB // 4096
    assert content[6 * MIB :] == bytes(2 * MIB)
    assert not Path("/dev/shm/leadline-none").exists()  # a name no device has must not become a file in memory
    assert list(failed) == ["w3"]
    assert "fill-1: its client ended with 1" in failed["w3"]
    assert lines[0] == "filling 6m on each of 1 disks"
    assert lines[-1].startswith("filled 100 % of the disks")


def test_targets_of_one_address_are_told_apart_by_their_labels() -> None:
    """Without labels the load of two disks would count for each of them."""
    hosts = [Host("192.0.2.7", f"/dev/sd{letter}", label=f"w1 /dev/sd{letter}") for letter in "bc"]
    histogram = Histogram.of([0.0], [1.0], [10], "ms")
    results = tuple(
        Result("fio", "j", (Operation("read", rate, rate * 4096, 10, {}, histogram),), host=host.name)
        for host, rate in zip(hosts, (100.0, 300.0), strict=True)
    )
    each = [host_result(host, [Round("round-1", results, ())], None) for host in hosts]
    assert [result.per_s for result in each] == [100.0, 300.0]
    assert [int(np.sum(result.histogram.counts)) for result in each if result.histogram is not None] == [10, 10]
