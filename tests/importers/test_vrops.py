"""vROps statistics; the fixture is written by hand in the shape of the API's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.estate.knowledge.settings import settings as known_settings
from leadline.importers import vrops

OWN = Path(__file__).parent / "seeds" / "vrops-stats.json"
VM, HOST = "vm:60508ea6-0000", "host:e21f1a97-0000"
PREFIX = "vmware__vrops-export__"


def read(path: Path, **request: Any) -> Capture:
    return vrops.read(Source(str(path), path), Request(**request))


def of(tmp_path: Path, document: object) -> Capture:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    return read(path)


def values(capture: Capture, metric: str, entity: str) -> list[float]:
    wanted = Entity.parse(entity)
    (row,) = [row for group in capture.of(metric) if (row := group.row(wanted)) is not None]
    return [float(value) for value in row]


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("cpu_ready_pct", VM, [0.5, 7.25]),
        ("cpu_costop_pct", VM, [0, 1.5]),
        ("cpu_used_pct", VM, [20, 80]),
        ("virtual_disk_latency_ms_read", f"{VM}/virtual-disk:scsi0:1", [0.6, 14.8]),
        ("disk_read_mib_per_s", f"{VM}/virtual-disk:scsi0:1", [1, 2]),
        ("memory_consumed_mib", VM, [1024, 2048]),
        ("raw.vrops.badge|workload", VM, [100, 101]),
        ("raw.vrops.net|broadcastTx_summation", VM, [0, 0]),
        ("raw.vrops.virtualDisk:Aggregate of all instances|read_average", VM, [1024, 2048]),
        ("host_cpu_used_pct", HOST, [14.5, 15.5]),
        ("host_memory_used_pct", HOST, [56, 57]),
        ("host_memory_swap_read_mib_per_s", HOST, [0, 0.5]),
    ],
)
def test_values(metric: str, entity: str, expected: list[float]) -> None:
    assert values(read(OWN), metric, entity) == pytest.approx(expected)


def test_times_are_utc_and_known() -> None:
    capture = read(OWN)
    assert [int(t) for t in capture.of("cpu_ready_pct")[0].times_ns] == [1795163400 * 10**9, 1795163700 * 10**9]
    assert capture.sources[0].clock_known


def test_only_what_is_asked_for() -> None:
    assert read(OWN, metrics=frozenset({"cpu_ready_pct"})).metrics() == ["cpu_ready_pct"]


def test_real_statistics_of_a_vm(samples: Path) -> None:
    path = samples / "vrops" / f"{PREFIX}vmstats.json"
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "vrops"
    capture = read(path)
    vm = "vm:60508ea6-287b-42be-953c-1554e506cdc1"
    assert values(capture, "cpu_ready_pct", vm)[:2] == pytest.approx([0.3231666684150696, 0.32100000977516174])
    disk = values(capture, "virtual_disk_latency_ms_write", f"{vm}/virtual-disk:scsi0:1")
    assert disk[0] == pytest.approx(6.400000095367432)
    assert values(capture, "memory_consumed_mib", vm)[0] == pytest.approx(7402233.5 / 1024)


def test_real_statistics_of_a_host(samples: Path) -> None:
    capture = read(samples / "vrops" / f"{PREFIX}hoststats.json")
    host = "host:e21f1a97-40a4-4e14-ada8-d7ec659f0cf1"
    assert values(capture, "host_cpu_used_pct", host)[0] == pytest.approx(14.463333129882812)
    assert values(capture, "host_memory_used_pct", host)[0] == pytest.approx(56.764434814453125)


def test_real_properties_of_a_vm(samples: Path) -> None:
    path = samples / "vrops" / f"{PREFIX}vmprops.json"
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "vrops"
    capture = read(path)
    held = {name: fact.value for name, fact in capture.inventory.settings(Entity.parse("vm:vrops-02")).items()}
    assert held == {
        "vcpu_count": 2,
        "socket_count": 2,
        "cores_per_socket": 1,
        "memory_mib": 8192,
        "cpu_reservation_mhz": 0,
        "cpu_shares": 2000,
        "memory_shares": 81920,
        "guest_os": "Other 3.x or later Linux (64-bit)",
        "tools_version": "11.1.0",
        "memory_hot_add": False,
        "cpu_hot_add": False,
        "template": False,
        "hardware_version": 11,
        "vrops_id": "60508ea6-287b-42be-953c-1554e506cdc1",
    }
    assert set(held) <= set(known_settings()[Entity.parse("vm:x").kind])
    assert capture.inventory.vm_of(Entity.parse("guest:vrops-02.pontus.lab")) == Entity.parse("vm:vrops-02")


def test_other_answers_of_the_api_are_not_mine(samples: Path) -> None:
    mine = {f"{PREFIX}{name}.json" for name in ("vmstats", "hoststats", "vmprops", "hostprops")}
    mine |= {f"{PREFIX}{name}" for name in ("compact-output.json", "elastic-output.json", "csv-output.csv")}
    files = [path for path in (samples / "vrops").iterdir() if path.name not in mine]
    assert [path.name for path in files if vrops.sniff(Source("", path))] == []


def test_recognised_among_all_importers() -> None:
    known = recognise(Source(str(OWN), OWN), load_units("importer"))
    assert known is not None
    assert known[0] == "vrops"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if vrops.sniff(Source("", path))] == []


def test_what_is_neither_a_vm_nor_a_host_is_left_out_and_said(tmp_path: Path) -> None:
    document = json.loads(OWN.read_text())
    document["values"][0]["stat-list"]["stat"] = document["values"][0]["stat-list"]["stat"][:1]
    capture = of(tmp_path, document)
    assert [warning.code for warning in capture.sources[0].warnings] == ["kind"]
    assert capture.of("cpu_ready_pct") == []


def test_times_and_values_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    document = json.loads(OWN.read_text())
    document["values"][0]["stat-list"]["stat"][0]["data"] = [1]
    with pytest.raises(InputError, match=r"60508ea6-0000, cpu\|readyPct: times and values that do not fit together"):
        of(tmp_path, document)


@pytest.mark.parametrize("stamp", ["x", -1, 1e300, None])
def test_times_that_are_none_are_an_error(tmp_path: Path, stamp: object) -> None:
    document = json.loads(OWN.read_text())
    document["values"][0]["stat-list"]["stat"][0]["timestamps"][0] = stamp
    with pytest.raises(InputError, match="the time"):
        of(tmp_path, document)


def test_other_documents_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no statistics and no properties"):
        of(tmp_path, {"values": []})


def test_cut_json_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(OWN.read_text()[:300])
    with pytest.raises(InputError, match=r"x\.json:[0-9]+: JSON that breaks"):
        read(path)


COMPACT = {"resourceName": "db01", "properties": [], "metrics": [
    {"name": "cpuReady", "samples": [{"t": "2026-11-20 08:30:00", "v": 1.5}, {"t": "2026-11-20 08:35:00", "v": 9.5}]},
    {"name": "netBytesRx", "samples": []},
]}  # fmt: skip
ELASTIC = [{"resourceName": "db01", "t": "2026-11-20 08:30:00", "cpuReady": 1.5},
           {"resourceName": "db01", "t": "2026-11-20 08:35:00", "cpuReady": 9.5, "guestOS": "Linux"}]  # fmt: skip
CHATTY = [{"t": "2026-11-20 08:30:00", "resourceName": "db01", "metric": "cpuReady", "v": 1.5},
          {"t": "2026-11-20 08:35:00", "resourceName": "db01", "metric": "cpuReady", "v": 9.5}]  # fmt: skip
ROWS = "timestamp,resName,cpuReady,memDemand,guestOS\n"
ROWS += '"2026-11-20 08:30:00","db01","1.5","","Linux"\n"2026-11-20 08:35:00","db01","9.5","","Linux"\n'


@pytest.mark.parametrize("text", [json.dumps({"data": data}) for data in ([COMPACT], ELASTIC, CHATTY)] + [ROWS])
def test_what_vrops_export_writes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    assert vrops.sniff(Source(str(path), path)) == 90
    capture = read(path)
    assert values(capture, "cpu_ready_pct", "vm:db01") == [1.5, 9.5]
    (group,) = capture.of("cpu_ready_pct")
    assert group.interval_s == 300


def test_keys_of_all_metrics_are_those_of_the_api(tmp_path: Path) -> None:
    record = {"resourceName": "db01", "t": "2026-11-20 08:30:00", "virtualDisk:scsi0:1|totalReadLatency_average": 14.5}
    capture = of(tmp_path, {"data": [record]})
    assert values(capture, "virtual_disk_latency_ms_read", "vm:db01/virtual-disk:scsi0:1") == [14.5]
