"""vSAN rules together: who is to blame when a guest waits for a disk that lies on several hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.finding import Diagnosis, Finding
from tests.rule_cases import capture_of

INVENTORY = """
clusters: [{name: c1, hosts: [esx01, esx02]}]
hosts:
  - name: esx01
    vms: [{name: db01, disks: [{name: 'scsi0:1', role: data}]}]
  - {name: esx02, disk_groups: [{name: dg1, capacity_medium: flash}, {name: dg2, capacity_medium: flash}]}
guests: [{name: db01}]
"""
GROUP = "host:esx02/disk-group:dg1"
DISK = "guest:db01/block-device:sdb"
GUEST = [
    (DISK, "guest_disk_await_ms", [[1, 20], [19, 20]]),
    (DISK, "disk_iops", [[500, 40]]),
]
CLIENT = [
    ("host:esx01", "vsan_client_latency_us_write", [[900, 20], [18_000, 20]]),
    ("host:esx01", "vsan_client_iops", [[2000, 40]]),
]


def diagnosed(*series: tuple[str, str, Sequence[Sequence[float]]]) -> Diagnosis:
    case: dict[str, Any] = {
        "interval_s": 30,
        "series": [{"entity": e, "metric": m, "values": v} for e, m, v in series],
        "inventory": yaml.safe_load(INVENTORY),
    }
    return diagnose(capture_of(case))


def found(diagnosis: Diagnosis, rule: str) -> Finding:
    return next(finding for finding in diagnosis.findings if finding.rule == rule)


def test_a_slow_device_on_another_host_explains_congestion_latency_and_the_guest() -> None:
    slow = (GROUP, "vsan_cache_device_latency_us", [[300.0, 20], [30_000.0, 20]])
    pushed = (GROUP, "vsan_disk_group_congestion_count", [[0.0, 20], [60.0, 20]])
    diagnosis = diagnosed(slow, pushed, *CLIENT, *GUEST)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "vsan-disk-latency-high"
    for rule in ("vsan-congestion-high", "vsan-client-latency-high", "guest-disk-await-high"):
        assert found(diagnosis, rule).caused_by == "vsan-disk-latency-high"


def test_a_cpu_short_of_time_is_cleared_before_the_network_is_blamed() -> None:
    ready = ("host:esx01", "vsan_kernel_ready_pct", [[0.1, 20], [8.0, 20]])
    lost = ("host:esx01", "vsan_net_loss_permille", [[0.0, 20], [20.0, 20]])
    diagnosis = diagnosed(ready, lost, *CLIENT, *GUEST)
    for rule in ("vsan-net-drops", "vsan-client-latency-high", "guest-disk-await-high"):
        assert found(diagnosis, rule).caused_by == "vsan-kernel-cpu-ready"


def test_client_latency_says_what_the_backend_took_meanwhile() -> None:
    backend = ("host:esx01", "vsan_backend_latency_us_write", [[700.0, 20], [900.0, 20]])
    finding = found(diagnosed(backend, *CLIENT), "vsan-client-latency-high")
    said = [e for e in finding.evidence if e.metric == "vsan_backend_latency_us_write"]
    assert [(e.value, e.unit, e.statistic) for e in said] == [(900.0, "us", "mean")]


def test_quick_vsan_under_a_slow_guest_is_not_accused() -> None:
    quick = ("host:esx01", "vsan_client_latency_us_write", [[900.0, 40]])
    diagnosis = diagnosed(quick, CLIENT[1], *GUEST)
    assert [f.rule for f in diagnosis.findings if f.layer.value == "datastore"] == []
    assert found(diagnosis, "guest-disk-await-high").caused_by is None


def test_a_full_write_buffer_says_how_long_a_burst_it_takes() -> None:
    # 20 % in 30 s: 70 % of the buffer last for 105 s.
    free = (GROUP, "vsan_write_buffer_free_pct", [[90, 20], [70, 1], [50, 1], [30, 1], [10, 1], [5, 10]])
    finding = found(diagnosed(free), "vsan-write-buffer-low-free")
    said = [e.value for e in finding.evidence if e.statistic == "time to fill"]
    assert said == [105.0]


def test_a_buffer_that_was_full_all_the_time_says_nothing_of_bursts() -> None:
    finding = found(diagnosed((GROUP, "vsan_write_buffer_free_pct", [[5, 20]])), "vsan-write-buffer-low-free")
    assert [e.statistic for e in finding.evidence] == ["median"]
