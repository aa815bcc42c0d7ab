"""Many machines: eight real fio servers on loopback, one of them slow, one of them killed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from leadline.app.measure.hosts import Host, HostResult, HostsResult, load_hosts, read_hosts
from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system.tools import find_program
from leadline.formats.fio.results import bucket_bounds, bucket_index
from tests.fio_servers import end, free_ports, start, wait_for

FIO, DAEMON = find_program("fio"), find_program("qemu-storage-daemon")
needs_fio = pytest.mark.skipif(FIO is None, reason="fio is not installed")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[tuple[str, subprocess.Popen[bytes]]]]:
    """Eight fio servers: their addresses and processes."""
    found = [(f"127.0.0.1,{port}", start(tmp_path, port)) for port in free_ports(8)]
    for address, _ in found:
        wait_for(int(address.partition(",")[2]))
    yield found
    for _, process in found:
        end(process)


def workload(seconds: int) -> Workload:
    text = "name: t\nio_settings: {working_set: 4m}\ntiming: {warm_up_s: 0, measure_s: %d, rounds: 1}\n" % seconds
    return parse_workload(text + "io: [{rate_iops: 300, oio: 4}]\n", "t")


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[str]:
    """A disk that lets 50 requests a second pass: at four outstanding they take 80 ms, the others below 1 ms."""
    if DAEMON is None:
        pytest.skip("qemu-storage-daemon is not installed")
    disk, (port,) = tmp_path / "slow.raw", free_ports(1)
    with disk.open("wb") as stream:
        stream.write(np.random.default_rng(1).bytes(8 * 2**20))  # reads of holes are not throttled
    words = [DAEMON, "--object", "throttle-group,id=cap,limits.iops-total=50"]
    words += ["--blockdev", f"driver=file,node-name=f,filename={disk}"]
    words += ["--blockdev", "driver=throttle,node-name=t,throttle-group=cap,file=f"]
    words += ["--nbd-server", f"addr.type=inet,addr.host=127.0.0.1,addr.port={port}"]
    words += ["--export", "type=nbd,id=e,node-name=t,name=disk,writable=on"]
    daemon = subprocess.Popen(words)
    time.sleep(0.5)
    yield f"nbd://127.0.0.1:{port}/disk"
    daemon.terminate()
    daemon.wait(10)


@pytest.mark.real
@needs_fio
def test_one_slow_machine_among_eight_is_named_and_counts(
    servers: list[tuple[str, subprocess.Popen[bytes]]], slow: str, tmp_path: Path
) -> None:
    hosts = []
    for index, (address, _) in enumerate(servers):
        own = tmp_path / f"m{index}"
        own.mkdir()
        hosts.append(Host(address, slow if index == 5 else str(own)))
    work = tmp_path / "work"
    work.mkdir()
    done = load_hosts(workload(4), hosts, work, seed=1, say=lambda _: None)
    assert [own.error for own in done.hosts] == [None] * 8
    assert [own.host.address for own in done.outliers()] == [servers[5][0]]
    assert done.histogram is not None
    assert done.histogram.total == sum(own.histogram.total for own in done.hosts if own.histogram is not None)
    # 50 of some 2,150 requests per second are slow: they are above the pooled p95, and make the pooled p99.
    assert done.percentiles_ms()["p99"][0] > float(np.median([own.p95_ms for own in done.hosts]))
    assert [list((tmp_path / f"m{index}").iterdir()) for index in range(8)] == [[]] * 8


@pytest.mark.real
@needs_fio
def test_a_machine_that_dies_is_told_and_the_rest_kept(
    servers: list[tuple[str, subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    own = [tmp_path / f"m{index}" for index in range(3)]
    for folder in own:
        folder.mkdir()
    hosts = [Host(address, str(folder)) for (address, _), folder in zip(servers, own, strict=False)]
    victim = servers[1][1]
    timer = threading.Timer(2.5, end, [victim])
    timer.start()
    done = load_hosts(workload(5), hosts, tmp_path, seed=1, say=lambda _: None)
    timer.join()
    assert [result.error is None for result in done.hosts] == [True, False, True]
    assert done.per_s == pytest.approx(600, rel=0.1)
    assert list(own[0].iterdir()) == []


@pytest.mark.real
@needs_fio
def test_a_blank_device_is_filled_and_stays(servers: list[tuple[str, subprocess.Popen[bytes]]], tmp_path: Path) -> None:
    """A file stands for the device: fio takes either."""
    device = tmp_path / "disk"
    device.write_bytes(bytes(4 * 1024**2))
    (done,) = load_hosts(
        workload(1), [Host(servers[0][0], str(device), is_blank=True)], tmp_path, seed=1, say=lambda _: None
    ).hosts
    assert done.error is None
    assert device.stat().st_size == 4 * 1024**2
    assert device.read_bytes().count(0) < 4 * 1024**2 / 100


def test_pooled_percentiles_are_those_of_the_pooled_samples() -> None:
    """Eight machines, one twenty times slower, against the raw samples of all."""
    generator = np.random.default_rng(8)
    raw, results = [], []
    for machine in range(8):
        scale = 20.0 if machine == 3 else 1.0
        samples = (generator.lognormal(13.0, 0.5, 20_000) * scale).astype(np.int64)
        raw.append(samples)
        index, counts = np.unique(bucket_index(samples), return_counts=True)
        lower, upper = bucket_bounds(index)
        histogram = Histogram.of(lower / 1e6, upper / 1e6, counts, "ms")
        results.append(HostResult(Host(f"m{machine}", "/x"), 1000.0 / scale, histogram))
    done = HostsResult(tuple(results))
    true = float(np.quantile(np.concatenate(raw), 0.95)) / 1e6
    assert done.percentiles_ms()["p95"][0] == pytest.approx(true, rel=0.01)
    averaged = float(np.mean([own.p95_ms for own in done.hosts]))
    assert abs(averaged / true - 1.0) > 0.3  # what averaging percentiles would say
    assert [own.host.address for own in done.outliers()] == ["m3"]


@pytest.mark.parametrize(
    ("text", "where"), [("a /x y\n", ":1"), ("a\n\na\n", ":3"), ("# nothing\n", ""), ("--output=x\n", ":1")]
)
def test_a_file_of_machines_is_checked(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_hosts(path, "/srv")
    assert caught.value.where == f"{path}{where}"
    path.write_text("a,8765  # first\nb /data\n")
    assert read_hosts(path, "/srv") == [Host("a,8765", "/srv"), Host("b", "/data")]
