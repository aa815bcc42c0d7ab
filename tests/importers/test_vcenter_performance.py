"""Get-Stat exports; the fixture is written by hand in the shape PowerCLI documents."""

from __future__ import annotations

from datetime import UTC, datetime
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
from leadline.importers import vcenter_performance

OWN = Path(__file__).parent / "seeds" / "get-stat.csv"
NAN = float("nan")
HEADER = "Timestamp,Entity,MetricId,Instance,Value,Unit,IntervalSecs\n"


def read(path: Path, **request: Any) -> Capture:
    return vcenter_performance.read(Source(str(path), path), Request(**request))


def of(tmp_path: Path, text: str, **request: Any) -> Capture:
    path = tmp_path / "x.csv"
    path.write_text(text)
    return read(path, **request)


def values(capture: Capture, metric: str, entity: str) -> list[float]:
    wanted = Entity.parse(entity)
    rows = [row for group in capture.of(metric) if (row := group.row(wanted)) is not None]
    assert len(rows) == 1
    return [float(value) for value in rows[0]]


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("cpu_ready_pct", "vm:db01/vcpu:0", [3.0, 6.9]),
        ("cpu_ready_pct", "vm:db01/vcpu:1", [0.0, 0.1]),
        ("cpu_ready_pct", "vm:db01", [1.5, 3.5]),
        ("cpu_latency_pct", "vm:db01", [1.5, 2.35]),
        ("disk_read_mib_per_s", "vm:db01/virtual-disk:scsi0:1", [NAN, 2.0]),
        ("virtual_disk_latency_ms_read", "vm:db01/virtual-disk:scsi0:1", [2.6]),
        ("virtual_disk_outstanding_count", "vm:db01/virtual-disk:scsi0:1", [10]),
        ("memory_touched_mib", "vm:db01", [1024]),
        ("disk_guest_latency_ms", "host:esx01/device:naa.6006", [31]),
        ("disk_aborts_per_s", "host:esx01/device:naa.6006", [2]),
        ("datastore_latency_ms", "host:esx01/datastore:ds1", [14]),
        ("net_rx_dropped_per_s", "host:esx01/nic:vmnic0", [2]),
        ("host_cpu_used_pct", "host:esx01", [37.5]),
        ("raw.vcenter.disk.numberwrite.summation", "vm:db01/device:naa.6006", [700]),
    ],
)
def test_values(metric: str, entity: str, expected: list[float]) -> None:
    np.testing.assert_allclose(values(read(OWN), metric, entity), expected)


def test_vcpus_are_counted() -> None:
    fact = read(OWN).inventory.fact(Entity.parse("vm:db01"), "vcpu_count")
    assert fact is not None
    assert (fact.value, fact.guessed) == (2, True)


def test_times_in_the_zone_that_is_asked_for() -> None:
    capture = read(OWN, timezone="Europe/Berlin")
    moment = datetime(2026, 11, 20, 7, 30, 20, tzinfo=UTC)
    assert int(capture.of("cpu_latency_pct")[0].times_ns[0]) == int(moment.timestamp()) * 10**9
    assert capture.sources[0].clock_known
    assert [warning.code for warning in read(OWN).sources[0].warnings] == ["no-zone"]


@pytest.mark.parametrize(("unit", "expected"), [("%", 1250.0), ("percent", 12.5), ("", 1250.0)])
def test_per_cent_as_the_unit_says(tmp_path: Path, unit: str, expected: float) -> None:
    capture = of(tmp_path, f"{HEADER}2026-11-20 08:30:20,db01,mem.latency.average,,1250,{unit},20\n")
    assert values(capture, "memory_latency_pct", "vm:db01") == [expected]


def test_german_exports(tmp_path: Path) -> None:
    text = HEADER.replace(",", ";") + "20.11.2026 08:30:20;db01;cpu.latency.average;;2,35;%;20\n"
    assert values(of(tmp_path, text), "cpu_latency_pct", "vm:db01") == [2.35]


def test_a_whole_vm_without_its_vcpus_is_a_sum(tmp_path: Path) -> None:
    rows = "2026-11-20 08:30:20,db01,cpu.ready.summation,,4000,millisecond,20\n"
    rows += "2026-11-20 08:30:20,db01,cpu.costop.summation,,400,millisecond,20\n"
    capture = of(tmp_path, HEADER + rows)
    assert values(capture, "cpu_ready_pct_sum", "vm:db01") == [20.0]
    assert values(capture, "raw.vcenter.cpu.costop.summation", "vm:db01") == [400]


def test_graphics_processors_of_a_host(tmp_path: Path) -> None:
    rows = "2026-11-20 08:30:20,esx01,gpu.utilization.average,0000:3b:00.0,9500,percent,20\n"
    rows += "2026-11-20 08:30:20,esx01,gpu.mem.usage.average,0000:3b:00.0,41.5,%,20\n"
    rows += "2026-11-20 08:30:20,esx01,gpu.temperature.average,0000:3b:00.0,61,celsius,20\n"
    capture = of(tmp_path, HEADER + rows)
    assert values(capture, "gpu_util_pct", "host:esx01/adapter:0000:3b:00.0") == [95.0]
    assert values(capture, "gpu_memory_used_pct", "host:esx01/adapter:0000:3b:00.0") == [41.5]
    assert values(capture, "raw.vcenter.gpu.temperature.average", "host:esx01/adapter:0000:3b:00.0") == [61.0]


def test_historical_intervals(tmp_path: Path) -> None:
    rows = "".join(f"2026-11-20 0{h}:00:00,db01,cpu.ready.summation,0,180000,millisecond,7200\n" for h in (4, 2))
    assert values(of(tmp_path, HEADER + rows), "cpu_ready_pct", "vm:db01/vcpu:0") == [2.5, 2.5]


def test_intervals_that_are_not_written_are_those_of_the_samples(tmp_path: Path) -> None:
    rows = "".join(f"2026-11-20 08:{m}:00,db01,cpu.ready.summation,0,3000,millisecond,\n" for m in (10, 15, 20))
    assert values(of(tmp_path, HEADER + rows), "cpu_ready_pct", "vm:db01/vcpu:0") == [1.0, 1.0, 1.0]


def test_a_sum_over_an_unknown_interval_is_left_out_and_said(tmp_path: Path) -> None:
    capture = of(tmp_path, HEADER + "2026-11-20 08:30:20,db01,cpu.ready.summation,0,4000,millisecond,\n")
    assert capture.metrics() == []
    assert "no-interval" in [warning.code for warning in capture.sources[0].warnings]


def test_a_unit_of_something_else_is_left_out_and_said(tmp_path: Path) -> None:
    capture = of(tmp_path, HEADER + "2026-11-20 08:30:20,db01,mem.active.average,,4000,ms,20\n")
    assert capture.metrics() == []
    assert "unit" in [warning.code for warning in capture.sources[0].warnings]


def test_newest_first_tells_the_order_of_days(tmp_path: Path) -> None:
    rows = "".join(f"0{d}/03/2026 08:00:00,db01,mem.latency.average,,1,%,20\n" for d in (3, 2, 1))
    capture = of(tmp_path, HEADER + rows)
    assert str(capture.of("memory_latency_pct")[0].times_ns.astype("datetime64[ns]")[-1])[:10] == "2026-03-03"


def test_recognised_among_all_importers() -> None:
    known = recognise(Source(str(OWN), OWN), load_units("importer"))
    assert known is not None
    assert known[0] == "vcenter-performance"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if vcenter_performance.sniff(Source("", path))] == []


def test_other_tools_samples_are_not_mine(samples: Path) -> None:
    files = [path for path in samples.rglob("*") if path.is_file()]
    assert [path.name for path in files if vcenter_performance.sniff(Source("", path))] == []


def test_a_row_of_another_width_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.csv:2: 3 cells; expected 7, as the header has"):
        of(tmp_path, f"{HEADER}a,b,c\n2026-11-20 08:30:20,db01,mem.latency.average,,1,%,20\n")


@pytest.mark.parametrize(("old", "found"), [("4000", "the value 'x'"), ("2026-11-20 08:30:20", "the time 'x'")])
def test_bad_cells_are_errors_with_their_line(tmp_path: Path, old: str, found: str) -> None:
    row = "2026-11-20 08:30:20,db01,cpu.ready.summation,0,4000,millisecond,20\n"
    with pytest.raises(InputError, match=rf"x\.csv:3: {found}"):
        of(tmp_path, HEADER + row + row.replace(old, "x") + row)


@pytest.mark.parametrize("cut", ["2026-11-20 08:30:40,db01,cpu.re", "2026-11-20 0"])
def test_a_cut_last_row_is_dropped_and_said(tmp_path: Path, cut: str) -> None:
    capture = of(tmp_path, f"{HEADER}2026-11-20 08:30:20,db01,mem.latency.average,,1,%,20\n{cut}")
    assert values(capture, "memory_latency_pct", "vm:db01") == [1]
    assert "cut" in [warning.code for warning in capture.sources[0].warnings]


def test_no_header_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no header of Get-Stat"):
        of(tmp_path, "a,b\n1,2\n")


TABLE = """
PS C:\\> Get-Stat -Entity db01 -Realtime

   Entity: db01

MetricId                Timestamp                          Value Unit        Instance
--------                ---------                          ----- ----        --------
cpu.ready.summation     11/20/2026 8:30:40 AM               1380 millisecond 0
cpu.ready.summation     11/20/2026 8:30:20 AM                600 millisecond 0
virtualdisk.totalReadL… 11/20/2026 8:30:40 AM                 31 millisecond scsi0:1
virtualdisk.totalReadL… 11/20/2026 8:30:20 AM                  3 millisecond scsi0:1
cpu.latency.average     11/20/2026 8:30:40 AM               2.35 %

"""
LIST = """

Value        : 31
Timestamp    : 20.11.2026 08:30:20
MetricId     : disk.maxTotalLatency.latest
Unit         : millisecond
Description  : Highest latency value across all disks used by
               the host. Latency measures the time
Entity       : db01
EntityId     : VirtualMachine-vm-90
IntervalSecs : 20
Instance     :
Uid          : /VIServer=a@vc/VirtualMachine=VirtualMachine-vm-90/FloatSample/

Value        : 2,5
Timestamp    : 20.11.2026 08:30:40
MetricId     : disk.maxTotalLatency.latest
Unit         : millisecond
Entity       : db01
EntityId     : VirtualMachine-vm-90
IntervalSecs : 20
Instance     :

"""


def named(tmp_path: Path, name: str, text: str, **request: Any) -> Capture:
    path = tmp_path / name
    path.write_text(text)
    source = Source(str(path), path)
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "vcenter-performance"
    return read(path, **request)


def test_the_console_s_table(tmp_path: Path) -> None:
    capture = named(tmp_path, "x.txt", TABLE)
    assert values(capture, "cpu_ready_pct", "vm:db01/vcpu:0") == pytest.approx([3.0, 6.9])
    assert values(capture, "virtual_disk_latency_ms_read", "vm:db01/virtual-disk:scsi0:1") == [3, 31]
    assert values(capture, "cpu_latency_pct", "vm:db01") == [2.35]
    assert "truncated-counter" in [warning.code for warning in capture.sources[0].warnings]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("virtualdisk.totalReadL…", "virtualdisk.total...   ", "the counter"),
        ("11/20/2026 8:30:40 AM               1380", "11/20/2026 8:30...                  1380", "no whole timestamp"),
        ("  1380", "  13xx", "the value"),
    ],
)
def test_cut_cells_of_the_console_are_errors_with_their_line(tmp_path: Path, old: str, new: str, found: str) -> None:
    with pytest.raises(InputError, match=rf"x\.csv:\d+: {found}"):
        of(tmp_path, TABLE.replace(old, new))


def test_the_console_s_list(tmp_path: Path) -> None:
    assert values(named(tmp_path, "x.txt", LIST), "disk_latency_ms_max", "vm:db01") == [31, 2.5]


def test_a_list_that_breaks_off(tmp_path: Path) -> None:
    capture = of(tmp_path, LIST[: LIST.rindex("MetricId")])
    assert values(capture, "disk_latency_ms_max", "vm:db01") == [31]
    assert "cut" in [warning.code for warning in capture.sources[0].warnings]


def test_a_column_per_counter(tmp_path: Path) -> None:
    rows = "".join(f'"20.11.2026 0{h}:00:00";"db01";"31,5";"180000"\n' for h in (2, 4))
    capture = named(tmp_path, "x.csv", f'"Timestamp";"VM";"disk.maxTotalLatency.latest";"cpu.ready.summation"\n{rows}')
    assert values(capture, "disk_latency_ms_max", "vm:db01") == [31.5, 31.5]
    assert values(capture, "cpu_ready_pct_sum", "vm:db01") == [2.5, 2.5]


def test_a_column_per_vm_and_the_counter_in_the_file_s_name(tmp_path: Path) -> None:
    rows = "".join(f"2026-11-20 08:{m}:00,6000,3000\n" for m in (10, 15))
    capture = named(tmp_path, "cpu.ready.summation.csv", f"Timestamp,db01,db02\n{rows}")
    assert values(capture, "cpu_ready_pct_sum", "vm:db01") == [2.0, 2.0]
    assert values(capture, "cpu_ready_pct_sum", "vm:db02") == [1.0, 1.0]


def test_times_and_values_with_the_counter_in_the_file_s_name(tmp_path: Path) -> None:
    rows = '"11/20/2026 8:30:20 AM","31"\n"11/20/2026 8:30:40 AM","33"\n'
    capture = named(tmp_path, "db01-disk.maxTotalLatency.latest.csv", f'"Timestamp","Value"\n{rows}')
    assert values(capture, "disk_latency_ms_max", "vm:db01") == [31, 33]


def test_times_and_values_of_no_counter_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "stat.csv"
    path.write_text('"Timestamp","Value"\n"11/20/2026 8:30:20 AM","31"\n')
    with pytest.raises(
        InputError,
        match=r"of which counter, of which VM.*Select Timestamp,Entity,MetricId,Value,Unit",
    ):
        read(path)


def test_a_host_by_what_only_hosts_have(tmp_path: Path) -> None:
    capture = of(tmp_path, f"{HEADER}2026-11-20 08:30:20,esx01,disk.deviceLatency.average,naa.1,31,ms,20\n")
    assert values(capture, "disk_device_latency_ms", "host:esx01/device:naa.1") == [31]
    assert "kind" in [warning.code for warning in capture.sources[0].warnings]


def test_a_host_by_its_domain(tmp_path: Path) -> None:
    capture = of(tmp_path, f"{HEADER}2026-11-20 08:30:20,esx01.lab.local,disk.maxTotalLatency.latest,,31,ms,20\n")
    assert values(capture, "disk_latency_ms_max", "host:esx01.lab.local") == [31]


def test_intervals_of_two_lengths_in_one_export(tmp_path: Path) -> None:
    rows = "2026-11-20 02:00:00,db01,cpu.ready.summation,0,180000,millisecond,7200\n"
    rows += "2026-11-20 02:05:00,db01,cpu.ready.summation,0,7500,millisecond,300\n"
    assert values(of(tmp_path, HEADER + rows), "cpu_ready_pct", "vm:db01/vcpu:0") == pytest.approx([2.5, 2.5])


def test_a_spreadsheet_drops_seconds(tmp_path: Path) -> None:
    rows = [f"11/20/2026 8:{m} AM,db01,mem.latency.average,,{m},%,300\n" for m in (30, 35)]
    assert values(of(tmp_path, HEADER + "".join(rows)), "memory_latency_pct", "vm:db01") == [30, 35]
    with pytest.raises(InputError, match="the seconds were dropped"):
        of(tmp_path, HEADER + rows[0] * 2)
