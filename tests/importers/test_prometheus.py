"""Scrapes of exporters; the fixture is written by hand in their shape."""

from __future__ import annotations

import os
import re
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
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.settings import settings as known_settings
from leadline.importers import prometheus

OWN = Path(__file__).parent / "seeds" / "vmware-exporter.txt"
DB01 = 'host:esx01/vm:db "01"'
NODE = """node_uname_info{nodename="db01",release="6.1"} 1
node_cpu_seconds_total{cpu="0",mode="idle"} 5
node_cpu_seconds_total{cpu="1",mode="idle"} 5
node_load1 2.5
node_procs_blocked 3
node_memory_MemAvailable_bytes 8.589934592e+09
node_memory_MemTotal_bytes 1.7179869184e+10
"""


def read(path: Path, **request: Any) -> Capture:
    return prometheus.read(Source(str(path), path), Request(**request))


def of(tmp_path: Path, text: str, **request: Any) -> Capture:
    path = tmp_path / "x.txt"
    path.write_text(text)
    return read(path, **request)


def facts(capture: Capture, entity: str) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.settings(Entity.parse(entity)).items()}


def value(capture: Capture, metric: str, entity: str) -> float:
    wanted = Entity.parse(entity)
    (row,) = [row for group in capture.of(metric) if (row := group.row(wanted)) is not None]
    assert len(row) == 1
    return float(row[0])


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("cpu_ready_pct", DB01, 2.0),
        ("cpu_used_pct", DB01, 25.5),
        ("memory_balloon_mib", DB01, 2048.0),
        ("host_cpu_used_pct", "host:esx01", 2.56),
        ("raw.prometheus.net.droppedRx.summation", DB01, 5.0),
    ],
)
def test_values(metric: str, entity: str, expected: float) -> None:
    assert value(read(OWN), metric, entity) == pytest.approx(expected)


def test_facts(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(OWN.read_bytes())
    os.utime(path, (864_001, 864_001))
    capture = read(path)
    assert facts(capture, DB01) == {
        "vcpu_count": 4,
        "memory_mib": 16384.0,
        "snapshot_count": 1,
        "snapshot_age_days": 10.0,
        "snapshot_ages_days": {"a": 10.0},
        "power_state": "on",
        "template": False,
        "tools_running_status": "guestToolsRunning",
    }
    assert facts(capture, "host:esx01") == {"version": "8.0.2"}
    assert facts(capture, "datastore:ds1") == {"capacity_gib": 1000.0, "type": "vmfs", "accessible": True}


def test_a_snapshot_without_a_time_has_no_age(tmp_path: Path) -> None:
    text = re.sub(r"(vmware_vm_snapshot_timestamp_seconds{.*}) .*", r"\1 NaN", OWN.read_text())
    assert "NaN" in text
    held = facts(of(tmp_path, text), DB01)
    assert held["snapshot_count"] == 1
    assert not {"snapshot_age_days", "snapshot_ages_days"} & set(held)


def test_every_fact_is_a_setting_of_the_catalogue() -> None:
    for entity, held in read(OWN).inventory.facts.items():
        assert set(held) <= set(known_settings()[entity.kind])


def test_a_scrape_has_the_time_of_its_file_and_says_so(tmp_path: Path) -> None:
    capture = of(tmp_path, NODE)
    assert [warning.code for warning in capture.sources[0].warnings] == ["no-times"]
    assert not capture.sources[0].clock_known
    assert int(capture.groups[0].times_ns[0]) == (tmp_path / "x.txt").stat().st_mtime_ns


@pytest.mark.parametrize("text", ["node_load1 2.5 1795163400000\n", "node_load1 2.5 1795163400.0\n# EOF\n"])
def test_times_of_both_formats(tmp_path: Path, text: str) -> None:
    capture = of(tmp_path, text)
    assert int(capture.groups[0].times_ns[0]) == 1795163400 * 10**9
    assert capture.sources[0].clock_known


def test_node_exporter(tmp_path: Path) -> None:
    capture = of(tmp_path, NODE)
    assert value(capture, "guest_load_1m", "guest:db01") == 2.5
    assert value(capture, "guest_blocked_count", "guest:db01") == 3
    assert value(capture, "guest_memory_available_mib", "guest:db01") == 8192
    assert facts(capture, "guest:db01") == {"cpu_count": 2, "memory_mib": 16384.0}
    assert capture.sources[0].host == "db01"


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    assert of(tmp_path, NODE, metrics=frozenset({"guest_load_1m"})).metrics() == ["guest_load_1m"]


def test_a_real_scrape(samples: Path) -> None:
    path = samples / "vmware_counters" / "performancecopilot__pcp__vmware_exporter.txt"
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "prometheus"
    capture = read(path, metrics=frozenset({"cpu_ready_pct", "host_cpu_used_pct", "memory_consumed_mib"}))
    (host,) = capture.inventory.of_kind(EntityKind.HOST)  # two, which were given one name before they were published
    assert value(capture, "host_cpu_used_pct", str(host)) == pytest.approx(2.55)
    assert "twice" in [warning.code for warning in capture.sources[0].warnings]
    (vm,) = [e for e in capture.inventory.facts if e.kind == "vm" and e.name == "name013"]
    assert value(capture, "memory_consumed_mib", str(vm)) == 7980.0
    assert facts(capture, str(vm))["snapshot_count"] == 3
    assert facts(capture, str(vm))["vcpu_count"] == 8
    assert value(capture, "cpu_ready_pct", str(vm)) == pytest.approx(108 / 20_000 * 100 / 8)


def test_telegraf_s_families(tmp_path: Path) -> None:
    labels = 'esxhostname="esx01",vmname="db01"'
    capture = of(
        tmp_path,
        f'vsphere_vm_cpu_ready_summation{{cpu="0",{labels}}} 1380\n'
        f'vsphere_vm_cpu_usage_average{{cpu="instance-total",{labels}}} 55.5\n'
        f'vsphere_vm_virtualDisk_totalReadLatency_average{{disk="scsi0:1",{labels}}} 14\n'
        'vsphere_datastore_datastore_totalWriteLatency_average{dsname="ds1"} 9\n',
    )
    assert value(capture, "cpu_ready_pct", "host:esx01/vm:db01/vcpu:0") == pytest.approx(6.9)
    assert value(capture, "cpu_used_pct", "host:esx01/vm:db01") == 55.5
    assert value(capture, "virtual_disk_latency_ms_read", "host:esx01/vm:db01/virtual-disk:scsi0:1") == 14
    assert value(capture, "datastore_latency_ms", "datastore:ds1") == 9


def test_recognised_among_all_importers() -> None:
    known = recognise(Source(str(OWN), OWN), load_units("importer"))
    assert known is not None
    assert known[0] == "prometheus"


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if prometheus.sniff(Source("", path))] == []


@pytest.mark.parametrize("line", ["node_load1", "node_load1 x", 'node_load1{a="b} 1', "node_load1 1 99999999999999999"])
def test_a_malformed_line_is_an_error_with_its_place(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"x\.txt:2: .*expected name"):
        of(tmp_path, f"node_load1 1\n{line}\nnode_load5 1\n")


def test_a_cut_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    capture = of(tmp_path, 'node_load1 1\nnode_load5{a="')
    assert capture.metrics() == ["guest_load_1m"]
    assert "cut" in [warning.code for warning in capture.sources[0].warnings]


def test_other_exporters_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no family of vmware_exporter, Telegraf's vSphere input or node_exporter"):
        of(tmp_path, "go_goroutines 7\n")
