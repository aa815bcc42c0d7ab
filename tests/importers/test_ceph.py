"""What Ceph's commands print; the texts are written by hand in the shapes of several releases."""

from __future__ import annotations

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
from leadline.importers import ceph

PERF = """\
osd  commit_latency(ms)  apply_latency(ms)
  2                 101                102
  0                   1                  1
"""
STATE = """\
  cluster:
    id:     0e6c8b6f-0d32-4cdb-a45d-85f8c7997c17
    health: HEALTH_WARN
            1 nearfull osd(s)
            Degraded data redundancy: 239125/540984 objects degraded (44.202%), 3 pgs degraded
            46 slow ops, oldest one blocked for 1395 sec, daemons [osd.2,osd.5,mon.ceph-1] have slow ops.

  services:
    mon: 3 daemons, quorum a,b,c (age 38m)
    osd: 9 osds: 9 up (since 2m), 9 in (since 3m)

  data:
    pgs:     239125/540984 objects degraded (44.202%)
             51/540984 objects misplaced (0.009%)

  io:
    client:   2.0 MiB/s rd, 1 MiB/s wr, 1.2k op/s rd, 300 op/s wr
    recovery: 50 MiB/s, 12 objects/s

"""
JEWEL = """\
    cluster 1ef84634-9534-434f-a28b-1d6f39cf1d3d
     health HEALTH_WARN
            100 requests are blocked > 32 sec
     osdmap e5: 3 osds: 3 up, 3 in
  client io 1024 kB/s rd, 55 op/s rd, 3 op/s wr
recovery io 129 MB/s, 40 objects/s
"""
HEALTH = """\
HEALTH_WARN 1 nearfull osd(s); 12 slow requests are blocked > 32 sec. Implicated osds 2
[WRN] OSD_NEARFULL: 1 nearfull osd(s)
    osd.3 is near full at 86%
REQUEST_SLOW 12 slow requests are blocked > 32 sec. Implicated osds 2
    12 ops are blocked > 65.536 sec
"""
FILL = """\
ID  CLASS  WEIGHT   REWEIGHT  SIZE     RAW USE  DATA     OMAP    META     AVAIL    %USE   VAR   PGS  STATUS
 1    ssd  0.04880   1.00000   50 GiB   46 GiB   45 GiB   1 KiB  290 MiB   4 GiB   92.10  1.00    8      up
 3    ssd  0.04880   1.00000   50 GiB  291 MiB  616 KiB   1 KiB  290 MiB   50 GiB   0.57  0.10    1      up
                       TOTAL  300 GiB  1.7 GiB  2.3 MiB  10 KiB  1.7 GiB  298 GiB  46.57
MIN/MAX VAR: 0.10/1.00  STDDEV: 0
"""
OLD_FILL = """\
ID CLASS WEIGHT  REWEIGHT SIZE    USE     AVAIL   %USE  VAR  PGS
 0   hdd 0.00780  1.00000 8.00GiB 1.12GiB 6.88GiB 14.00 1.00 242
"""
TREE = """\
ID  CLASS WEIGHT  REWEIGHT SIZE    RAW USE DATA    OMAP    META    AVAIL   %USE  VAR  PGS STATUS TYPE NAME
-7        7.27737        - 7.3 TiB 386 GiB 376 GiB 3.3 GiB 7.5 GiB 6.9 TiB  5.18 1.10   -            host ai04
 2   hdd  3.63869  1.00000 3.6 TiB 150 GiB 144 GiB 1.4 GiB 3.9 GiB 3.5 TiB  4.01 0.85  45     up         osd.2
"""
IMAGES = """\
NAME                     WR    RD   WR_BYTES   RD_BYTES    WR_LAT   RD_LAT
rbd/vm-101-disk-0   8.29k/s   0/s   32 MiB/s     0 B/s  12.84 ms  0.00 ns
"""


def of(tmp_path: Path, text: str, **request: Any) -> Capture:
    path = tmp_path / "x.txt"
    path.write_text(text)
    source = Source(str(path), path)
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "ceph"
    return ceph.read(source, Request(**request))


def values(capture: Capture, metric: str, entity: str) -> list[float]:
    wanted = Entity.parse(entity)
    rows = [row for group in capture.of(metric) if (row := group.row(wanted)) is not None]
    assert len(rows) == 1
    return [float(value) for value in rows[0]]


@pytest.mark.parametrize(
    ("text", "metric", "part", "expected"),
    [
        (PERF, "osd_commit_latency_ms", "/device:osd.2", 101),
        (PERF, "osd_apply_latency_ms", "/device:osd.2", 102),
        (PERF.replace("commit", "fs_commit").replace("apply", "fs_apply"), "osd_apply_latency_ms", "/device:osd.0", 1),
        (STATE, "storage_slow_requests_count", "", 46),
        (STATE, "storage_slow_request_age_s", "", 1395),
        (STATE, "storage_degraded_pct", "", 44.202),
        (STATE, "storage_misplaced_pct", "", 0.009),
        (STATE, "storage_client_mib_per_s", "", 3),
        (STATE, "storage_client_iops", "", 1500),
        (STATE, "storage_recovery_mib_per_s", "", 50),
        (STATE, "osd_near_full_count", "", 1),
        (JEWEL, "storage_slow_requests_count", "", 100),
        (JEWEL, "storage_client_mib_per_s", "", 1),
        (JEWEL, "storage_recovery_mib_per_s", "", 129),
        (HEALTH, "storage_slow_requests_count", "", 12),
        (HEALTH, "storage_slow_request_age_s", "", 65.536),
        (HEALTH, "osd_used_pct", "/device:osd.3", 86),
        (FILL, "osd_used_pct", "/device:osd.1", 92.1),
        (OLD_FILL, "osd_used_pct", "/device:osd.0", 14),
        (TREE, "osd_used_pct", "/device:osd.2", 4.01),
        (IMAGES, "virtual_disk_latency_ms_write", "/virtual-disk:rbd/vm-101-disk-0", 12.84),
        (IMAGES, "disk_writes_per_s", "/virtual-disk:rbd/vm-101-disk-0", 8290),
        (IMAGES, "disk_write_mib_per_s", "/virtual-disk:rbd/vm-101-disk-0", 32),
    ],
)
def test_values(tmp_path: Path, text: str, metric: str, part: str, expected: float) -> None:
    assert values(of(tmp_path, text), metric, f"cluster:ceph{part}") == pytest.approx([expected])


@pytest.mark.parametrize(
    ("text", "metric", "part", "expected"),
    [
        (
            '{"osdstats":{"osd_perf_infos":[{"id":2,"perf_stats":{"commit_latency_ms":101,"apply_latency_ms":101,'
            '"commit_latency_ns":101500000,"apply_latency_ns":101000000}}]}}',
            "osd_commit_latency_ms",
            "/device:osd.2",
            101.5,
        ),
        (
            '{"osd_perf_infos":[{"id":2,"perf_stats":{"commit_latency_ms":7,"apply_latency_ms":9}}]}',
            "osd_apply_latency_ms",
            "/device:osd.2",
            9,
        ),
        (
            '{"fsid":"1","health":{"status":"HEALTH_WARN","checks":{"SLOW_OPS":{"summary":{"message":"3 slow ops, '
            'oldest one blocked for 36 sec, osd.1 has slow ops"}}}},"pgmap":{"recovering_bytes_per_sec":2097152}}',
            "storage_slow_requests_count",
            "",
            3,
        ),
        ('{"nodes":[{"id":4,"utilization":91.5,"kb_avail":1,"name":"osd.4"}]}', "osd_used_pct", "/device:osd.4", 91.5),
        (
            '[{"pool":"rbd","pool_namespace":"","image":"a","write_ops":10.0,"read_ops":0.0,"write_bytes":1048576.0,'
            '"read_bytes":0.0,"write_latency":2500000.0,"read_latency":0.0}]',
            "virtual_disk_latency_ms_write",
            "/virtual-disk:rbd/a",
            2.5,
        ),
    ],
)
def test_documents(tmp_path: Path, text: str, metric: str, part: str, expected: float) -> None:
    assert values(of(tmp_path, text), metric, f"cluster:ceph{part}") == [expected]


def test_runs_with_times(tmp_path: Path) -> None:
    text = f"Fri Nov 20 08:30:00 UTC 2026\n{STATE}{PERF}Fri Nov 20 08:31:00 UTC 2026\n{STATE}{PERF}"
    capture = of(tmp_path, text)
    group = capture.of("osd_commit_latency_ms")[0]
    assert [str(time) for time in group.times_ns.astype("datetime64[ns]").astype("datetime64[s]")] == [
        "2026-11-20T08:30:00",
        "2026-11-20T08:31:00",
    ]
    assert capture.sources[0].clock_known


def test_a_state_that_lost_its_indentation(tmp_path: Path) -> None:
    capture = of(tmp_path, "\n".join(line.removeprefix("  ") for line in STATE.splitlines()) + "\n")
    assert values(capture, "storage_slow_requests_count", "cluster:ceph") == [46]
    assert values(capture, "storage_recovery_mib_per_s", "cluster:ceph") == [50]


def test_runs_without_times_are_said(tmp_path: Path) -> None:
    capture = of(tmp_path, PERF + PERF)
    assert values(capture, "osd_commit_latency_ms", "cluster:ceph/device:osd.2") == [101, 101]
    assert [warning.code for warning in capture.sources[0].warnings] == ["no-times"]


def test_what_is_not_printed_is_zero_and_latency_of_nothing_is_not_measured(tmp_path: Path) -> None:
    calm = STATE.partition("  io:")[0].replace("46 slow ops, oldest one blocked for 1395 sec", "x")
    assert values(of(tmp_path, calm), "storage_slow_requests_count", "cluster:ceph") == [0]
    assert values(of(tmp_path, calm), "storage_recovery_mib_per_s", "cluster:ceph") == [0]
    assert "virtual_disk_latency_ms_read" not in of(tmp_path, IMAGES).metrics()


def test_a_stray_line_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.txt:3: 'stray'"):
        of(tmp_path, PERF.replace("  0 ", "stray\n  0 "))


def test_a_cut_line_is_left_out_and_said(tmp_path: Path) -> None:
    capture = of(tmp_path, PERF + "  1                   1")
    assert "cut" in [warning.code for warning in capture.sources[0].warnings]


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if ceph.sniff(Source("", path))] == []
