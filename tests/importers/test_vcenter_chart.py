"""Exported performance charts; the fixture is written by hand in the shape a public reader of such exports expects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.importers import vcenter_chart
from tests.importers.damage import chosen
from tests.importers.recordings import codes, group_of, seconds, values_of

OWN = Path(__file__).parent / "seeds" / "vcenter-chart.csv"
NAN = float("nan")
START_S = 1795159820  # 2026-11-20 07:30:20 UTC
TIMES = ("2026-11-20T08:30:20Z", "2026-11-20T08:30:40Z")


def read(path: Path, **request: Any) -> Capture:
    return vcenter_chart.read(Source(str(path), path), Request(**request))


def of(folder: Path, heads: str, *rows: str, sep: str = ",") -> Capture:
    path = folder / "chart.csv"
    lines = [f"Time{sep}{heads}", *(f"{time}{sep}{row}" for time, row in zip(TIMES, rows, strict=False))]
    path.write_text("\n".join(lines) + "\n")
    return read(path)


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("cpu_ready_pct", "vm:db01", [3.45, 3.505, 1.0]),
        ("cpu_ready_pct", "vm:db01/vcpu:0", [3.0, 3.1, 1.0]),
        ("cpu_costop_pct", "vm:db01/vcpu:0", [0.2, NAN, 0.0]),
        ("cpu_used_pct", "vm:db01", [41.3, 42.55, 12.1]),
        ("raw.vcenter.cpu.usagemhz.average", "vm:db01", [4113, 4250, 1210]),
    ],
)
def test_values(metric: str, entity: str, expected: list[float]) -> None:
    np.testing.assert_allclose(values_of(read(OWN), metric, entity), expected)


def test_times_with_the_zone_the_older_client_prints() -> None:
    capture = read(OWN)
    assert seconds(group_of(capture, "cpu_used_pct", "vm:db01")) == [START_S, START_S + 20, START_S + 40]
    assert capture.sources[0].clock_known


def test_times_without_a_zone_are_said(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Time,Ready for db01\n11/20/2026 8:30:20 AM,400\n11/20/2026 8:30:40 AM,400\n")
    assert "no-zone" in codes(read(path))
    berlin = read(path, timezone="Europe/Berlin")
    assert seconds(group_of(berlin, "cpu_ready_pct_sum", "vm:db01"))[0] == START_S


def test_ready_of_a_vm_without_all_of_its_vcpus_is_a_sum(tmp_path: Path) -> None:
    capture = of(tmp_path, "Ready for db01,Ready for 0", "4000,1000", "4000,1000")
    assert values_of(capture, "cpu_ready_pct_sum", "vm:db01").tolist() == [20, 20]
    assert values_of(capture, "cpu_ready_pct", "vm:db01/vcpu:0").tolist() == [5, 5]
    assert capture.inventory.get(Entity.parse("vm:db01"), "vcpu_count") is None


def test_vcpus_that_add_up_to_the_vm_are_all_of_them() -> None:
    assert read(OWN).inventory.get(Entity.parse("vm:db01"), "vcpu_count") == 2


def test_memory_of_the_newer_client(tmp_path: Path) -> None:
    heads = '"Consumed for db01","Host consumed % for db01","Ballooned memory for db01"'
    capture = of(tmp_path, heads, '"8388608","61,5","0"', '"8388608","61,5","1024"')
    assert values_of(capture, "memory_consumed_mib", "vm:db01").tolist() == [8192, 8192]
    assert values_of(capture, "memory_active_pct", "vm:db01").tolist() == [61.5, 61.5]
    assert values_of(capture, "memory_balloon_mib", "vm:db01").tolist() == [0, 1]


def test_virtual_disks_by_the_form_of_their_names(tmp_path: Path) -> None:
    heads = "Read latency for scsi0:1,Read rate for scsi0:1,Usage for db01"
    capture = of(tmp_path, heads, "12,2048,9", "13,1024,9")
    disk = "vm:db01/virtual-disk:scsi0:1"
    assert values_of(capture, "virtual_disk_latency_ms_read", disk).tolist() == [12, 13]
    assert values_of(capture, "disk_read_mib_per_s", disk).tolist() == [2, 1]
    assert "raw.vcenter.chart.Usage" in capture.metrics()


def test_luns_of_a_host_by_its_labels(tmp_path: Path) -> None:
    heads = "Kernel command latency for naa.6006,Read latency for naa.6006,VMkernel consumed for esx01"
    capture = of(tmp_path, heads, "1,12,2097152", "2,13,2097152")
    assert values_of(capture, "disk_kernel_latency_ms", "host:esx01/device:naa.6006").tolist() == [1, 2]
    assert values_of(capture, "disk_guest_latency_ms_read", "host:esx01/device:naa.6006").tolist() == [12, 13]
    assert values_of(capture, "host_memory_kernel_mib", "host:esx01").tolist() == [2048, 2048]
    assert "kind" not in codes(capture)


def test_network_cards_of_a_host(tmp_path: Path) -> None:
    heads = "Usage for 10.0.0.5,Data receive rate for vmnic0,Receive packets dropped for vmnic0"
    capture = of(tmp_path, heads, "100,50,40", "100,60,0")
    assert values_of(capture, "net_rx_mbit_per_s", "host:10.0.0.5/nic:vmnic0") == pytest.approx([0.4096, 0.49152])
    assert values_of(capture, "net_rx_dropped_per_s", "host:10.0.0.5/nic:vmnic0").tolist() == [2, 0]


@pytest.mark.parametrize(("name", "kind"), [("10.0.0.5", "host"), ("esx01.example.com", "host"), ("db01", "vm")])
def test_what_an_object_is_taken_for_is_said(tmp_path: Path, name: str, kind: str) -> None:
    capture = of(tmp_path, f"Usage for {name},Usage in MHz for {name}", "50,5000", "60,6000")
    metric = {"host": "host_cpu_used_pct", "vm": "cpu_used_pct"}[kind]
    assert values_of(capture, metric, f"{kind}:{name}").tolist() == [50, 60]
    assert f"{name} is; taken for a {kind}" in capture.sources[0].warnings[0].message


def test_parts_without_their_object_are_left_out_and_said(tmp_path: Path) -> None:
    assert of(tmp_path, "Ready for 0", "100", "100").metrics() == []
    both = of(tmp_path, "Ready for db01,Ready for db02,Ready for 0", "100,100,100", "100,100,100")
    assert {str(entity) for group in both.groups for entity in group.entities} == {"vm:db01", "vm:db02"}
    assert "owner" in codes(both)


def test_hundredths_of_a_per_cent_are_left_out_and_said(tmp_path: Path) -> None:
    capture = of(tmp_path, "Usage for db01,Ready for db01", "4130,100", "4255,100")
    assert "cpu_used_pct" not in capture.metrics()
    assert "unit" in codes(capture)


def test_names_with_for_in_them_and_semicolons(tmp_path: Path) -> None:
    capture = of(tmp_path, "Ready for standby for db01;Active for x", "400,0;2", "400,0;2", sep=";")
    assert values_of(capture, "cpu_ready_pct_sum", "vm:standby for db01").tolist() == [2, 2]


def test_a_label_that_is_not_known_is_raw(tmp_path: Path) -> None:
    capture = of(tmp_path, "Ready for db01,Charm for db01", "400,7", "400,8")
    assert values_of(capture, "raw.vcenter.chart.Charm", "vm:db01").tolist() == [7, 8]


def test_a_column_that_is_there_twice_is_said(tmp_path: Path) -> None:
    capture = of(tmp_path, "Ready for db01,Ready for db01", "400,800", "400,800")
    assert values_of(capture, "cpu_ready_pct_sum", "vm:db01").tolist() == [4, 4]
    assert "twice" in codes(capture)


def test_recognised_among_all_importers() -> None:
    assert chosen(OWN) == "vcenter-chart"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    seeds = [path for path in OWN.parent.iterdir() if path != OWN]
    files = [path for path in [*fixtures.rglob("*"), *seeds] if path.is_file()]
    assert [path.name for path in files if vcenter_chart.sniff(Source("", path))] == []


@pytest.mark.parametrize(
    ("row", "found"),
    [("1,2", "2 cells; expected 7"), ("x" + ",1" * 6, "the time 'x'"), ("2026-11-20 08:00:00" + ",y" * 6, "value 'y'")],
)
def test_bad_rows_are_errors_with_their_line(tmp_path: Path, row: str, found: str) -> None:
    lines = OWN.read_text().splitlines()
    path = tmp_path / "x.csv"
    path.write_text("\n".join([*lines[:2], row, lines[2]]) + "\n")
    with pytest.raises(InputError, match=rf"x\.csv:3: .*{found}"):
        read(path)


@pytest.mark.parametrize("cut", [25, 8])
def test_a_cut_last_row_is_dropped_and_said(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.csv"
    path.write_text(OWN.read_text()[:-cut])
    capture = read(path)
    assert len(values_of(capture, "cpu_used_pct", "vm:db01")) == 2
    assert "cut" in codes(capture)


def test_no_header_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Time,Ready\n1,2\n")
    with pytest.raises(InputError, match="no header of an exported chart"):
        read(path)
