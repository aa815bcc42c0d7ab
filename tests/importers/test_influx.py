"""Telegraf's line protocol; the fixture is written by hand in its shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.importers import influx

OWN = Path(__file__).parent / "seeds" / "telegraf.influx"
VM, DISK = "host:esx01/vm:db 01", "guest:db01/block-device:sdb"
NAN = float("nan")


def read(path: Path, **request: Any) -> Capture:
    return influx.read(Source(str(path), path), Request(**request))


def of(tmp_path: Path, text: str) -> Capture:
    path = tmp_path / "x.influx"
    path.write_text(text)
    return read(path)


def values(capture: Capture, metric: str, entity: str) -> list[float]:
    wanted = Entity.parse(entity)
    (row,) = [row for group in capture.of(metric) if (row := group.row(wanted)) is not None]
    return [float(value) for value in row]


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("cpu_ready_pct", f"{VM}/vcpu:0", [6.9]),
        ("cpu_ready_pct", f"{VM}/vcpu:1", [0.1]),
        ("cpu_ready_pct", VM, [3.5]),
        ("cpu_used_pct", f"{VM}/vcpu:0", [55.5]),
        ("cpu_latency_pct", VM, [2.35]),
        ("virtual_disk_latency_ms_read", f"{VM}/virtual-disk:scsi0:1", [14]),
        ("disk_read_mib_per_s", f"{VM}/virtual-disk:scsi0:1", [2]),
        ("host_memory_swap_read_mib_per_s", "host:esx01", [1]),
        ("host_memory_used_pct", "host:esx01", [71.5]),
        ("datastore_latency_ms", "datastore:ds1", [9]),
        ("disk_reads_per_s", DISK, [10, NAN]),
        ("disk_writes_per_s", DISK, [0, NAN]),
        ("disk_iops", DISK, [10, NAN]),
        ("disk_read_mib_per_s", DISK, [0.975, NAN]),
        ("guest_disk_await_ms_read", DISK, [5, NAN]),
        ("guest_disk_await_ms", DISK, [5, NAN]),
        ("guest_disk_util_pct", DISK, [25, NAN]),
        ("guest_disk_queue_count", DISK, [2, NAN]),
        ("guest_cpu_busy_pct", "guest:db01", [32]),
        ("guest_cpu_steal_pct", "guest:db01", [2]),
        ("guest_cpu_user_pct", "guest:db01/cpu:1", [50]),
        ("guest_memory_available_mib", "guest:db01", [8192]),
        ("guest_load_1m", "guest:db01", [2.5]),
    ],
)
def test_values(metric: str, entity: str, expected: list[float]) -> None:
    np.testing.assert_allclose(values(read(OWN), metric, entity), expected)


def test_a_wait_for_nothing_is_not_measured() -> None:
    metrics = read(OWN).metrics()
    assert "guest_disk_await_ms_write" not in metrics


def test_facts() -> None:
    held = read(OWN).inventory.settings(Entity.parse("guest:db01"))
    assert {name: fact.value for name, fact in held.items()} == {"cpu_count": 4, "memory_mib": 16384}


def test_other_measurements_are_said() -> None:
    assert [(w.code, w.count) for w in read(OWN).sources[0].warnings] == [("unknown", 1)]


def test_only_what_is_asked_for() -> None:
    assert read(OWN, metrics=frozenset({"guest_load_1m"})).metrics() == ["guest_load_1m"]


@pytest.mark.parametrize("stamp", ["1795163420", "1795163420000", "1795163420000000", "1795163420000000000"])
def test_times_in_any_precision(tmp_path: Path, stamp: str) -> None:
    capture = of(tmp_path, f"system,host=a load1=1 {stamp}\n")
    assert int(capture.groups[0].times_ns[0]) == 1795163420 * 10**9


def test_recognised_among_all_importers() -> None:
    known = recognise(Source(str(OWN), OWN), load_units("importer"))
    assert known is not None
    assert known[0] == "influx"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if influx.sniff(Source("", path))] == []


def test_other_tools_samples_are_not_mine(samples: Path) -> None:
    files = [path for path in samples.rglob("*") if path.is_file()]
    assert [path.name for path in files if influx.sniff(Source("", path))] == []


@pytest.mark.parametrize(
    "line",
    ["system,host=a load1=1", "system load1", "system,host load1=1 1795163420", "system,host=a load1=1 9" + "9" * 30],
)
def test_a_malformed_line_is_an_error_with_its_place(tmp_path: Path, line: str) -> None:
    good = "system,host=a load1=1 1795163420\n"
    with pytest.raises(InputError, match=r"x\.influx:2: .*expected measurement,tag"):
        of(tmp_path, f"{good}{line}\n{good}")


def test_a_cut_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    capture = of(tmp_path, "system,host=a load1=1 1795163420\nsystem,host=a lo")
    assert capture.metrics() == ["guest_load_1m"]
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]


def test_one_sample_of_a_disk_is_no_rate(tmp_path: Path) -> None:
    capture = of(tmp_path, "diskio,host=a,name=sda reads=5i 1795163420\n")
    assert capture.metrics() == []
    assert [warning.code for warning in capture.sources[0].warnings] == ["one-sample"]


def test_other_measurements_alone_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no measurement of vsphere"):
        of(tmp_path, "weather,place=x rain=1 1795163420\n")


def test_libvirt(tmp_path: Path) -> None:
    def lines(second: int, delay_ms: int, writes: int) -> str:
        tags, stamp = "domain_name=db01,host=kvm1", 1_795_163_400_000_000_000 + second * 10**9
        return (
            f"libvirt_vcpu,{tags},vcpu_id=0 state=1i,time={second * 5 * 10**8}i,delay={delay_ms * 10**6}i {stamp}\n"
            f'libvirt_block,{tags},block_id=0 name="vda",backingIndex=1i,path="/a b.img",rd_reqs=5i,rd_times=5i,'
            f"wr_reqs={writes}i,wr_bytes={writes * 8192}i,wr_times={writes * 30_000_000}i {stamp}\n"
            f'libvirt_block,{tags},block_id=1 name="vda",backingIndex=2i,wr_reqs=1i,wr_times=9i {stamp}\n'
            f"libvirt_balloon,{tags} current=1048576i,maximum=2097152i {stamp}\n"
            f"libvirt_state,{tags} state=1i {stamp}\n"
        )

    path = tmp_path / "x.influx"
    path.write_text(lines(0, 0, 100) + lines(10, 500, 300))
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "influx"
    capture = read(path)
    assert values(capture, "cpu_ready_pct", "vm:db01/vcpu:0") == [5]
    assert values(capture, "virtual_disk_latency_ms_write", "vm:db01/virtual-disk:vda") == [30]
    assert values(capture, "disk_writes_per_s", "vm:db01/virtual-disk:vda") == [20]
    assert values(capture, "memory_balloon_mib", "vm:db01") == [1024]
    assert "unknown" in [warning.code for warning in capture.sources[0].warnings]


@pytest.mark.parametrize("name", ["hostdomclient", "host-domclient"])
def test_vsan(tmp_path: Path, name: str) -> None:
    fields = "latency_avg_read=1033,latency_avg_write=48211,congestion=0,iops_read=7,iops_write=1,oio=4,io_count=3"
    if name != "hostdomclient":
        fields = "latencyAvgRead=1033,latencyAvgWrite=48211,congestion=0,iopsRead=7,iopsWrite=1,oio=4,ioCount=3"
    tags = "clustername=prod,dcname=dc,host=mon,hostname=esx01,moid=domain-c8,source=prod"
    capture = of(tmp_path, f"vsphere_vsan_performance_{name},{tags} {fields} 1795163400000000000\n")
    assert values(capture, "vsan_client_latency_us_write", "host:esx01") == [48211]
    assert values(capture, "vsan_client_iops", "host:esx01") == [8]
    assert influx.sniff(Source("x.influx", tmp_path / "x.influx"))


def test_vsan_clusters_and_disks(tmp_path: Path) -> None:
    text = (
        "vsphere_vsan_performance_clusterdomcompmgr,clustername=prod,source=prod "
        "latency_avg_write=9886 1795163400000000000\n"
        "vsphere_vsan_performance_capacitydisk,clustername=prod,hostname=esx01,deviceName=naa.1 "
        "latency_dev_read=5000,iops_dev_read=3 1795163400000000000\n"
        "vsphere_vsan_summary,clustername=prod total_bytes_to_sync=0i 1795163400000000000\n"
    )
    capture = of(tmp_path, text)
    assert values(capture, "vsan_backend_latency_us_write", "cluster:prod") == [9886]
    assert values(capture, "vsan_capacity_device_latency_us", "device:naa.1") == [5000]
    assert "unknown" in [warning.code for warning in capture.sources[0].warnings]
