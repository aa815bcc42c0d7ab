"""xentop and xl list; the texts are written by hand in the shapes of Xen 3 to 4."""

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
from leadline.importers import xentop

HEAD = (
    "      NAME  STATE   CPU(sec) CPU(%)     MEM(k) MEM(%)  MAXMEM(k) MAXMEM(%) VCPUS NETS NETTX(k) NETRX(k) VBDS   "
    "VBD_OO   VBD_RD   VBD_WR  VBD_RSECT  VBD_WSECT SSID\n"
)


def table(cpu: float, reads: int, writes: int) -> str:
    return (
        HEAD + "  Domain-0 -----r        632    0.3   15446944   92.3   no limit       n/a     8    0        0        0"
        "    0        0        0        0          0          0    0\n"
        f"     db 01 --b---          7  {cpu:5.1f}    1048576    6.3    1049600       6.3     2    1      113       34"
        f"    2        0 {reads:8d} {writes:8d} {reads * 16:10d} {writes * 8:10d}    2\n"
    )


TIMED = (
    f"Fri Nov 20 08:30:00 UTC 2026\n{table(0, 1000, 5000)}Fri Nov 20 08:30:10 UTC 2026\n{table(150, 3000, 6000)}"
    f"Fri Nov 20 08:30:20 UTC 2026\n{table(100, 3000, 6000)}"
)


def of(tmp_path: Path, text: str, **request: Any) -> Capture:
    path = tmp_path / "x.txt"
    path.write_text(text)
    source = Source(str(path), path)
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "xentop"
    return xentop.read(source, Request(**request))


def values(capture: Capture, metric: str, entity: str) -> list[float]:
    wanted = Entity.parse(entity)
    rows = [row for group in capture.of(metric) if (row := group.row(wanted)) is not None]
    assert len(rows) == 1
    return [float(value) for value in rows[0]]


@pytest.mark.parametrize(
    ("metric", "entity", "expected"),
    [
        ("cpu_run_pct", "vm:db 01", [75, 50]),
        ("memory_consumed_mib", "vm:db 01", [1024, 1024, 1024]),
        ("disk_reads_per_s", "vm:db 01/virtual-disk:all", [200, 0]),
        ("disk_writes_per_s", "vm:db 01/virtual-disk:all", [100, 0]),
        ("disk_iops", "vm:db 01/virtual-disk:all", [300, 0]),
        ("disk_read_mib_per_s", "vm:db 01/virtual-disk:all", [200 / 128, 0]),
        ("raw.xentop.VBD_OO", "vm:db 01/virtual-disk:all", [0, 0]),
    ],
)
def test_values(tmp_path: Path, metric: str, entity: str, expected: list[float]) -> None:
    assert values(of(tmp_path, TIMED), metric, entity) == pytest.approx(expected)


def test_without_times_there_are_no_rates(tmp_path: Path) -> None:
    capture = of(tmp_path, table(0, 1000, 5000) + table(150, 3000, 6000))
    assert values(capture, "cpu_run_pct", "vm:db 01") == [75]
    assert "disk_iops" not in capture.metrics()
    assert [warning.code for warning in capture.sources[0].warnings] == ["no-times"]


def test_headings_may_come_before_every_domain(tmp_path: Path) -> None:
    text = TIMED.replace("     db 01", f"{HEAD}     db 01")
    assert values(of(tmp_path, text), "disk_reads_per_s", "vm:db 01/virtual-disk:all") == [200, 0]


def test_vcpus_are_facts(tmp_path: Path) -> None:
    fact = of(tmp_path, TIMED).inventory.fact(Entity.parse("vm:db 01"), "vcpu_count")
    assert fact is not None
    assert fact.value == 2


def test_a_screen_with_its_clock(tmp_path: Path) -> None:
    def above(clock: str) -> str:
        return (
            f"xentop - {clock}   Xen 4.17.3\n"
            "2 domains: 1 running, 1 blocked, 0 paused, 0 crashed, 0 dying, 0 shutdown\n"
            "Mem: 16734804k total, 16722744k used, 12060k free    CPUs: 8 @ 2112MHz\n"
        )

    text = above("23:59:55") + table(0, 1000, 5000) + above("00:00:05") + table(150, 3000, 6000)
    capture = of(tmp_path, text, date="2026-11-20")
    assert values(capture, "disk_reads_per_s", "vm:db 01/virtual-disk:all") == [200]
    assert "no-date" in [warning.code for warning in capture.sources[0].warnings]


def test_disks_one_by_one(tmp_path: Path) -> None:
    rows = [
        f"VBD BlkBack 51712  [ca: 0]  OO:        0   RD: {reads:8d}   WR:     6000  RSECT:       10  WSECT:       20\n"
        for reads in (1000, 3000)
    ]
    text = f"2026-11-20 08:30:00\n{table(0, 1, 1)}{rows[0]}2026-11-20 08:30:10\n{table(9, 1, 1)}{rows[1]}"
    assert values(of(tmp_path, text), "disk_reads_per_s", "vm:db 01/virtual-disk:xvda") == [200]


def test_a_domain_that_was_started_again(tmp_path: Path) -> None:
    text = TIMED.replace("    3000     6000      48000      48000", "       5        5         80         40", 1)
    capture = of(tmp_path, text)
    assert "reset" in [warning.code for warning in capture.sources[0].warnings]


def test_list_of_domains(tmp_path: Path) -> None:
    text = (
        "Name                                        ID   Mem VCPUs\tState\tTime(s)\n"
        "Domain-0                                     0 15084     8     r-----     633.6\n"
        "guest-01                                     4  1024     2     -b----       7.7\n"
    )
    inventory = of(tmp_path, text).inventory
    assert inventory.get(Entity.parse("vm:guest-01"), "memory_mib") == 1024
    assert inventory.get(Entity.parse("vm:Domain-0"), "vcpu_count") == 8


def test_a_stray_line_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.txt:3: 'stray'"):
        of(tmp_path, TIMED.replace("  Domain-0", "stray\n  Domain-0", 1))


def test_a_cut_line_is_left_out_and_said(tmp_path: Path) -> None:
    assert "cut" in [warning.code for warning in of(tmp_path, TIMED[:-40]).sources[0].warnings]


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if xentop.sniff(Source("", path))] == []
