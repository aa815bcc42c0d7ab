"""virsh domblkstat and info blockstats; the texts are written by hand in the shapes of libvirt and QEMU."""

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
from leadline.importers import qemu_block_counters


def plain(writes: int, disk: str = "vda") -> str:
    return (
        f"{disk} rd_req 100\n{disk} rd_bytes 1048576\n{disk} wr_req {writes}\n{disk} wr_bytes {writes * 8192}\n"
        f"{disk} flush_operations 548\n{disk} rd_total_times 2000000000\n{disk} wr_total_times {writes * 5_000_000}\n"
        f"{disk} flush_total_times 1650339171\n\n"
    )


HUMAN = """\
Device: vda
 number of read operations:      100
 number of bytes read:           349932544
 number of write operations:     50
 number of bytes written:        633525248
 number of flush operations:     548
 total duration of reads (ns):   2000000000
 total duration of writes (ns):  500000000
 total duration of flushes (ns): 1650339171
"""
MONITOR = """\
Entering Qemu Monitor for VM 101 - type 'help' for help
qm> info blockstats
drive-scsi0: rd_bytes=1048576 wr_bytes=819200 rd_operations=100 wr_operations=100 flush_operations=5 \
wr_total_time_ns=500000000 rd_total_time_ns=2000000000 flush_total_time_ns=1 rd_merged=0 wr_merged=0 idle_time_ns=9
ide2: rd_bytes=0 wr_bytes=0 rd_operations=0 wr_operations=0 flush_operations=0 wr_total_time_ns=0 rd_total_time_ns=0
"""


def of(tmp_path: Path, text: str, name: str = "db01.txt", **request: Any) -> Capture:
    path = tmp_path / name
    path.write_text(text)
    source = Source(str(path), path)
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "qemu-block-counters"
    return qemu_block_counters.read(source, Request(**request))


def values(capture: Capture, metric: str, entity: str) -> list[float]:
    wanted = Entity.parse(entity)
    rows = [row for group in capture.groups if group.metric == metric and (row := group.row(wanted)) is not None]
    assert len(rows) == 1
    return [float(value) for value in rows[0]]


def test_rates_between_two_times(tmp_path: Path) -> None:
    text = f"Fri Nov 20 08:30:00 UTC 2026\n{plain(1000)}Fri Nov 20 08:30:10 UTC 2026\n{plain(3000)}"
    capture = of(tmp_path, text)
    assert values(capture, "disk_writes_per_s", "vm:db01/virtual-disk:vda") == [200]
    assert values(capture, "virtual_disk_latency_ms_write", "vm:db01/virtual-disk:vda") == [5]
    assert capture.sources[0].clock_known


@pytest.mark.parametrize(
    ("text", "entity", "expected"),
    [
        (plain(1000), "vm:db01/virtual-disk:vda", 20),
        (plain(1000, ""), "vm:db01/virtual-disk:disk", 20),
        (HUMAN, "vm:db01/virtual-disk:vda", 20),
        (MONITOR, "vm:101/virtual-disk:scsi0", 20),
        (f"root@kvm:~# virsh domblkstat web vda\n{plain(9)}", "vm:web/virtual-disk:vda", 20),
    ],
)
def test_once_is_a_mean_since_the_vm_was_started(tmp_path: Path, text: str, entity: str, expected: float) -> None:
    capture = of(tmp_path, text)
    assert values(capture, "virtual_disk_latency_ms_read", entity) == [expected]
    assert "one-sample" in [warning.code for warning in capture.sources[0].warnings]


def test_two_disks_of_one_vm(tmp_path: Path) -> None:
    text = "".join(f"2026-11-20 08:30:{s}\n{plain(w)}{plain(2 * w, 'vdb')}" for s, w in (("00", 1000), ("10", 2000)))
    assert values(of(tmp_path, text), "disk_writes_per_s", "vm:db01/virtual-disk:vdb") == [200]


def test_several_without_times_are_latencies_only(tmp_path: Path) -> None:
    capture = of(tmp_path, plain(1000) + plain(3000))
    assert values(capture, "virtual_disk_latency_ms_write", "vm:db01/virtual-disk:vda") == [5]
    assert "disk_writes_per_s" not in capture.metrics()


def test_lists_and_sizes_are_facts(tmp_path: Path) -> None:
    text = (
        " Type   Device   Target   Source\n------------------------------------------------\n"
        " file   disk     vda      /var/lib/images/db 01.qcow2\n block  disk     vdb      /dev/vg0/db01\n"
        " file   cdrom    sda      -\n\n# virsh domblkinfo db01 vda\nCapacity:       21474836480\n"
        "Allocation:     4096\nPhysical:       4096\n"
    )
    inventory = of(tmp_path, text).inventory
    assert inventory.get(Entity.parse("vm:db01/virtual-disk:vda"), "file") == "/var/lib/images/db 01.qcow2"
    assert inventory.get(Entity.parse("vm:db01/virtual-disk:vdb"), "device") == "/dev/vg0/db01"
    assert inventory.get(Entity.parse("vm:db01/virtual-disk:vda"), "size_gib") == 20


def test_a_stray_line_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"db01\.txt:3: 'stray'"):
        of(tmp_path, plain(1).replace("vda wr_req", "stray\nvda wr_req"))


def test_a_cut_line_is_left_out_and_said(tmp_path: Path) -> None:
    assert "cut" in [warning.code for warning in of(tmp_path, plain(10)[:-12]).sources[0].warnings]


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if qemu_block_counters.sniff(Source("", path))] == []
