from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.generating import generate
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.generators.esxtop import shape_for_width
from leadline.generators.host_model import CaptureShape

HOST = Entity(EntityKind.HOST, "esx01")
HEADER_START = "(PDH-CSV 4.0) (UTC)(0)"


def write(path: Path, cells: list[str], rows: list[list[str]]) -> Path:
    header = [HEADER_START, *(f"\\\\esx01\\{cell}" for cell in cells)]
    times = [f"04/26/2018 14:06:{5 * i:02d}" for i in range(len(rows))]
    lines = [header, *([time, *row] for time, row in zip(times, rows, strict=True))]
    path.write_text("\n".join(",".join(f'"{cell}"' for cell in line) for line in lines) + "\n")
    return path


def read(path: Path, *metrics: str) -> Capture:
    return import_paths([path], Request(metrics=frozenset(metrics) if metrics else None)).capture


def rows_of(capture: Capture, metric: str) -> dict[str, list[float]]:
    return {str(g.entities[r]): g.values[r].tolist() for g, r in capture.series() if g.metric == metric}


def vcpu(vm: str, number: int) -> str:
    return f"Vcpu(77:{vm}:{100 + number}:vmx-vcpu-{number}:{vm})\\% Ready"


def test_group_values_are_divided_by_the_vcpu_count_and_vcpus_stay_apart(tmp_path: Path) -> None:
    cells = ["Group Cpu(77:db01)\\% Ready", vcpu("db01", 0), vcpu("db01", 1), "Vcpu(77:db01:99:vmx)\\% Ready"]
    capture = read(write(tmp_path / "e.csv", cells, [["12.00", "8.00", "4.00", "0.50"]] * 2), "cpu_ready_pct")
    assert rows_of(capture, "cpu_ready_pct") == {
        "host:esx01/vm:db01": [6.0, 6.0],
        "host:esx01/vm:db01/vcpu:0": [8.0, 8.0],
        "host:esx01/vm:db01/vcpu:1": [4.0, 4.0],
    }
    assert capture.inventory.get(Entity(EntityKind.VM, "db01", HOST), "vcpu_count") == 2


def test_without_vcpu_worlds_the_sum_is_not_passed_off_as_per_vcpu(tmp_path: Path) -> None:
    cells = ["Group Cpu(77:db01)\\% Ready", "Virtual Disk(db01:scsi0:0)\\Reads/sec"]
    capture = read(write(tmp_path / "e.csv", cells, [["12.00", "5.00"]] * 2))
    assert rows_of(capture, "cpu_ready_pct") == {}
    assert rows_of(capture, "cpu_ready_pct_sum") == {"host:esx01/vm:db01": [12.0, 12.0]}
    assert "no-vcpu-count" in {w.code for w in capture.sources[0].warnings}


@pytest.mark.parametrize("vm", ["db (prod)", "a,b", "x:y", "web:1 (old), copy", "тест"])
def test_vm_names_with_odd_characters(tmp_path: Path, vm: str) -> None:
    cells = [
        vcpu(vm, 0),
        f"Virtual Disk({vm}:scsi0:1)\\Reads/sec",
        f"Network Port(vSwitch0:50:{vm}.eth0)\\% Received Packets Dropped",
    ]
    capture = read(write(tmp_path / "e.csv", cells, [["1.00", "2.00", "3.00"]] * 2))
    machine = f"host:esx01/vm:{vm}"
    assert rows_of(capture, "cpu_ready_pct") == {f"{machine}/vcpu:0": [1.0, 1.0]}
    assert rows_of(capture, "disk_reads_per_s") == {f"{machine}/virtual-disk:scsi0:1": [2.0, 2.0]}
    assert list(rows_of(capture, "net_rx_dropped_pct")) == [f"{machine}/port:vSwitch0:50:{vm}.eth0"]


def test_two_vms_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    cells = [vcpu("db", 0), vcpu("db", 0).replace("77", "88")]
    capture = read(write(tmp_path / "e.csv", cells, [["1.00", "2.00"]] * 2), "cpu_ready_pct")
    assert rows_of(capture, "cpu_ready_pct") == {
        "host:esx01/vm:db/vcpu:0": [1.0, 1.0],
        "host:esx01/vm:db (88)/vcpu:0": [2.0, 2.0],
    }


def test_a_vcpu_with_some_counters_missing_is_left_out(tmp_path: Path) -> None:
    lost = vcpu("web", 0).replace("77", "88").replace("% Ready", "% CoStop")
    path = write(
        tmp_path / "e.csv", [vcpu("db", 0), vcpu("db", 0).replace("% Ready", "% CoStop"), lost], [["1"] * 3] * 2
    )
    capture = read(path, "cpu_ready_pct", "cpu_costop_pct")
    assert rows_of(capture, "cpu_ready_pct") == {"host:esx01/vm:db/vcpu:0": [1.0, 1.0]}
    assert rows_of(capture, "cpu_costop_pct") == {"host:esx01/vm:db/vcpu:0": [1.0, 1.0]}


def test_sentinels_and_blanks_are_not_measured(tmp_path: Path) -> None:
    cells = ["Physical Disk SCSI Device(naa.1)\\Average Driver MilliSec/Command"]
    capture = read(write(tmp_path / "e.csv", cells, [["-1.00"], ["2.50"], [""], ["-3"]]))
    values = rows_of(capture, "disk_device_latency_ms")["host:esx01/device:naa.1"]
    np.testing.assert_array_equal(values, [np.nan, 2.5, np.nan, np.nan])


def test_rows_that_go_back_in_time_are_put_in_order(tmp_path: Path) -> None:
    path = write(tmp_path / "e.csv", [vcpu("db01", 0)], [["1"], ["2"], ["3"]])
    path.write_text(path.read_text().replace("14:06:05", "15:00:00"))
    capture = read(path, "cpu_ready_pct")
    group = capture.groups[0]
    assert np.all(np.diff(group.times_ns) > 0)
    assert group.values.tolist() == [[1, 3, 2]]
    assert "times-out-of-order" in {w.code for w in capture.sources[0].warnings}


def test_host_facts_come_from_the_header(tmp_path: Path) -> None:
    cells = [f"Physical Cpu({i})\\% Util Time" for i in (0, 1, 2, 3, "_Total")]
    cells += [f"Physical Cpu({i})\\% Core Util Time" for i in (0, 1, 2, 3)] + ["Memory\\Machine MBytes"]
    row = ["10.00"] * 5 + ["20.00"] * 4 + ["8083"]
    capture = read(write(tmp_path / "e.csv", cells, [row] * 2))
    assert capture.inventory.get(HOST, "thread_count") == 4
    assert capture.inventory.get(HOST, "memory_mib") == 8083.0
    cores = capture.inventory.fact(HOST, "core_count")
    assert cores is not None
    assert (cores.value, cores.guessed) == (2, True)


def test_everything_is_kept_when_everything_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    generate(CaptureShape(vm_count=3, lun_count=2, sample_count=4), [], path)
    columns = path.read_text().splitlines()[0].count('","')
    assert read(path).series_count == columns


def test_a_generated_width_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    generate(shape_for_width(2900, 3), [], path, columns=2900)
    assert read(path).series_count == 2900


def test_real_captures(samples: Path) -> None:
    folder = samples / "esxtop"
    capture = read(folder / "rach-sharp__esxtopd__small-esxtop-data.csv")
    host = Entity(EntityKind.HOST, "localhost.home")
    vms = {vm.name for vm in capture.inventory.of_kind(EntityKind.VM)}
    assert vms == {"styx", "portunus", "hermes", "ananke", "ouranos", "poseidon"}
    assert rows_of(capture, "host_cpu_load_1m")[str(host)] == pytest.approx([0.06] * 3, abs=0.02)
    device = rows_of(capture, "disk_device_latency_ms")[f"{host}/device:mpx.vmhba0:C0:T5:L0"]
    assert device[1] == pytest.approx(31.53)
    assert capture.series_count == 7630


def test_captures_saved_by_a_spreadsheet(samples: Path) -> None:
    for name in ("1000_origincsvfile.csv", "1001_origincsv.csv"):
        capture = read(samples / "esxtop" / f"gsliu__VisualEsxtopOnline__{name}")
        assert capture.series_count > 0
        assert capture.sources[0].warnings
