"""vSAN Observer: the seeds are what its own writer made of counters that were chosen, so that every value is known.

Counters of esx01 since boot at four moments, 60 seconds apart: reads 100,000, 160,000, 280,000, 280,000; writes 50,000,
then 80,000; 600 microseconds for each read of the first minute, 1,400 of the second.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import metric as metric_of
from leadline.importers import vsan_observer
from tests.importers.recordings import codes, group_of, seconds, values_of
from tests.importers.test_gaps import moved_all

SEEDS = Path(__file__).parent / "seeds" / "vsan-observer"
RES = Path(__file__).parent / "seeds" / "hcibench-fio-res.txt"
CLIENT = SEEDS / "dom" / "domobj-client-esx01.example.json"
NAN = float("nan")
HOST = "host:esx01.example"
GROUP = f"{HOST}/disk-group:52aa0000-0000-0000-0000-000000000000"
CACHE, CAPACITY = f"{HOST}/device:naa.55cd2e404c000000", f"{HOST}/device:naa.5000c500a0000000"
VSCSI = "vm:hci-fio-vsan-1/virtual-disk:scsi0:1"
NIC = f"{HOST}/nic:vmnic0"


def read(path: Path, **request: Any) -> Capture:
    return vsan_observer.read(Source(str(path), path), Request(**request))


@pytest.fixture(scope="module")
def folder() -> Capture:
    files = [path for path in sorted(SEEDS.rglob("*.json")) if path.name != "hosts.json"]
    return import_paths([path for path in files if vsan_observer.sniff(Source(str(path), path))]).capture


def changed(tmp_path: Path, change: Callable[[dict[str, Any]], object], seed: Path = CLIENT) -> Capture:
    record = json.loads(seed.read_text())
    change(record)
    path = tmp_path / seed.name
    path.write_text(json.dumps(record))
    return read(path)


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        # 60,000 reads and 30,000 writes of 4 KiB in the first minute, 120,000 reads in the second
        ("vsan_client_iops", HOST, [1500, 2000, 0]),
        ("vsan_client_bytes_per_s", HOST, [1500 * 4096, 2000 * 4096, 0]),
        ("vsan_client_latency_us_read", HOST, [600, 1400, NAN]),
        ("vsan_client_latency_us_write", HOST, [1500, NAN, NAN]),
        ("vsan_client_outstanding_count", HOST, [8, 32, NAN]),
        ("vsan_congestion_count", HOST, [30, 2, NAN]),
        ("vsan_backend_latency_us_read", HOST, [300, 700, NAN]),
        ("vsan_backend_latency_us_write", HOST, [750, NAN, NAN]),
        ("vsan_resync_iops", HOST, [0, 10, 20]),
        ("vsan_resync_latency_us", HOST, [NAN, 9000, 9000]),
        ("raw.vsan-observer.owner.readLatency", HOST, [300, 700, NAN]),
        ("vsan_disk_group_congestion_count", GROUP, [0, 12, 60, 95]),
        ("vsan_disk_group_congestion_count_log", GROUP, [0, 12, 60, 20]),
        ("vsan_write_buffer_free_pct", GROUP, [100, 75, 25, 15]),
        # the highest of reads (120), writes (250) and all at the device (150 + 20 - 10)
        ("vsan_cache_device_latency_us", GROUP, [250, 160, NAN]),
        ("disk_iops", GROUP, [1500, 2000, 0]),
        ("disk_reads_per_s", CACHE, [1000, 2000, 0]),
        ("vsan_capacity_device_latency_us", CAPACITY, [7000, 5100, NAN]),
        # 64 blocks of 512 bytes, 500 times a second
        ("disk_write_mib_per_s", CAPACITY, [15.625, 0, 0]),
        ("disk_write_mib_per_s", VSCSI, [500 * 4096 / 2**20, 0, 0]),
        ("virtual_disk_latency_ms_read", VSCSI, [0.6, 1.4, NAN]),
        ("host_cpu_core_util_pct", f"{HOST}/pcpu:0", [NAN, 50, 75, 100]),
        ("host_memory_used_pct", HOST, [40, 50, 50, 60]),
        ("net_rx_mbit_per_s", NIC, [1000 * 4096 * 8 / 1e6, 2000 * 4096 * 8 / 1e6, 0]),
        ("net_rx_dropped_per_s", NIC, [0, 10, 0]),
    ],
)
def test_values(folder: Capture, metric: str, entity: str, expected: list[float]) -> None:
    np.testing.assert_allclose(values_of(folder, metric, entity), expected)


def test_times_are_utc_and_the_first_of_a_rate_is_left_out() -> None:
    group = group_of(read(CLIENT), "vsan_client_iops", HOST)
    assert seconds(group) == [1763625660.75, 1763625720.75, 1763625780.75]
    assert group.interval_s == 60


def test_only_what_is_asked_for() -> None:
    asked = frozenset({"vsan_disk_group_congestion_count_log"})
    capture = read(next(SEEDS.glob("lsom/cong-*.json")), metrics=asked)
    assert asked < set(capture.metrics())
    assert read(CLIENT, metrics=asked).metrics() == []


def test_every_field_is_a_metric() -> None:
    assert all(metric_of(known.metric).unit for known in vsan_observer.META.fields.values())


def test_files_of_several_hosts_in_one() -> None:
    capture = read(SEEDS / "dom" / "hosts.json")
    np.testing.assert_allclose(values_of(capture, "vsan_client_iops", "host:esx02.example"), [3000, 4000, 0])


@pytest.mark.parametrize("path", sorted(SEEDS.rglob("*.json")), ids=lambda path: path.name)
def test_recognised_among_all_importers(path: Path) -> None:
    known = recognise(Source(str(path), path), load_units("importer"))
    is_read = not path.name.endswith("_thumb.json") and not path.name.startswith(("lsomhost", "vscsihost"))
    assert (known is not None and known[0] == "vsan-observer") is is_read


@pytest.mark.parametrize(
    "pattern", ["dom/*client-esx01.example.json", "lsom/cong*", "misc/pnics*", "mem/*", "pcpu/*", "vm/*"]
)
def test_two_days_are_recognised_by_their_beginning(pattern: str, tmp_path: Path) -> None:
    """Each counter has all its samples in one place: the second may begin beyond what is looked at."""

    def grown(value: object) -> object:
        if isinstance(value, dict):
            return {key: held if key in ("statsInfo", "thumbSpecs") else grown(held) for key, held in value.items()}
        return value * 800 if isinstance(value, list) else value

    seed = next(SEEDS.glob(pattern))
    path = tmp_path / seed.name
    path.write_text(json.dumps(grown(json.loads(seed.read_text()))))
    assert vsan_observer.sniff(Source(seed.name, path)) > 90


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if vsan_observer.sniff(Source("", path))] == []


@pytest.mark.parametrize("packing", ["folder", "archive"])
def test_a_result_folder_of_hcibench_is_read_whole_and_what_is_not_is_named(tmp_path: Path, packing: str) -> None:
    test = tmp_path / "easy-run-1763625600"
    case = test / "fio-8vmdk-100ws-4k-70rdpct-100randompct-4threads-1763625600"
    shutil.copytree(SEEDS, case / "iotest-fio-8vm" / "jsonstats")
    (case / "iotest-fio-8vm" / "jsonstats" / "dom" / "hosts.json").unlink()
    (case / "iotest-fio-8vm" / "stats.html").write_text("<html>vSAN Observer</html>")
    (case / "iotest-fio-8vm" / "observer.json.gz").write_bytes(gzip.compress(b'{"snapshot": {"vsi": {}}}\n'))
    shutil.copy(RES, test / f"{case.name}-res.txt")
    path = test
    if packing == "archive":
        path = tmp_path / "results.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(test, test.name)
    imported = import_paths([path])
    capture = imported.capture
    assert [result.job for result in capture.results] == ["job0", "job1"]
    np.testing.assert_allclose(values_of(capture, "vsan_client_iops", HOST), [1500, 2000, 0])
    np.testing.assert_allclose(values_of(capture, "net_rx_dropped_per_s", NIC), [0, 10, 0])
    left_out = sorted(Path(name).name for name in imported.unrecognised)
    assert left_out == [
        "domobj-client-esx01.example_thumb.json",
        "lsomhost-esx01.example.json",
        "observer.json",
        "stats.html",
        "vscsihost-esx01.example.json",
    ]
    assert imported.left_out == []


def test_two_test_cases_are_two_times_of_one_host(tmp_path: Path) -> None:
    for number in range(2):
        path = tmp_path / f"case-{number}" / "iotest-fio-8vm" / "jsonstats" / "dom" / CLIENT.name
        path.parent.mkdir(parents=True)
        path.write_text(moved_all(CLIENT.read_text(), 3600 * number))
    groups = import_paths([tmp_path]).capture.of("vsan_client_iops")
    assert [str(entity) for group in groups for entity in group.entities] == [HOST, HOST]
    assert [seconds(group)[0] for group in groups] == [1763625660.75, 1763629260.75]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda counter: counter["avgs"].pop(), "3 values; expected 4, one for each time"),
        (lambda counter: counter.pop("times"), "no list of times and avgs; expected both"),
        (lambda counter: counter["times"].__setitem__(0, "soon"), "the time 'soon'; expected seconds since 1970"),
        (lambda counter: counter["times"].__setitem__(0, 1e12), "the time '1000000000000.0'; expected seconds"),
    ],
)
def test_damage_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], object], problem: str) -> None:
    with pytest.raises(InputError, match=rf"client-esx01.example.json:1, readBytes: {problem}.*Copy the file again"):
        changed(tmp_path, lambda record: change(record["stats"]["readBytes"]))


def test_a_file_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / CLIENT.name
    path.write_text(CLIENT.read_text()[:-700])
    with pytest.raises(InputError, match=r"damaged JSON; expected whole JSON documents"):
        read(path)


def test_a_file_without_counters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no counters of a host, disk or VM; expected .* Name the folder"):
        changed(tmp_path, lambda record: record.update(uuid="52aa0000-0000"))


def test_a_file_cut_in_the_second_document_keeps_the_first(tmp_path: Path) -> None:
    path = tmp_path / "hosts.json"
    path.write_text((SEEDS / "dom" / "hosts.json").read_text()[:-700])
    capture = read(path)
    assert codes(capture) == ["cut"]
    np.testing.assert_allclose(values_of(capture, "vsan_client_iops", HOST), [1500, 2000, 0])


def test_two_vms_of_one_name_are_not_one_series(tmp_path: Path) -> None:
    """Observer keeps values by time and all times: a time that is there twice has one value."""

    def twice(record: dict[str, Any]) -> None:
        times = record["stats"]["numReads"]["times"]
        record["stats"]["numReads"]["times"] = [moment for moment in times for _ in range(2)]

    seed = next(SEEDS.glob("vm/*.json"))
    capture = changed(tmp_path, twice, seed)
    assert codes(capture) == ["mixed"]
    assert capture.of("disk_reads_per_s") == []
    assert len(capture.of("disk_writes_per_s")) == 1


def test_what_is_no_number_is_not_measured(tmp_path: Path) -> None:
    capture = changed(tmp_path, lambda record: record["stats"]["readLatency"]["avgs"].__setitem__(1, None))
    np.testing.assert_allclose(values_of(capture, "vsan_client_latency_us_read", HOST), [NAN, 1400, NAN])


def test_a_nic_of_a_file_that_was_renamed_has_no_host(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    shutil.copy(SEEDS / "misc" / "pnics-esx01.example.json", path)
    np.testing.assert_allclose(values_of(read(path), "net_rx_dropped_per_s", "nic:vmnic0"), [0, 10, 0])
