"""Sections of SystemPerformance reports that other tools print, and the facts between them.

Reports are in the shape public readers of them expect; what stands in their sections was printed by the real tools
where these are recorded (tests/fixtures), else written by hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import iostat, pbuttons, sar
from tests.conftest import FIXTURES
from tests.importers.damage import chosen
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

OWN = FIXTURES / "pbuttons"
LINUX, WINDOWS = (OWN / "linux.html").read_text(), (OWN / "windows.html").read_text()
GUEST = Entity(EntityKind.GUEST, "db01")
SHOP = Entity(EntityKind.DATABASE, "SHOP", GUEST)
HEAD = """<a href=#mgstat>mgstat</a>
SHOP on machine db01
Profile run "test" started by user "irisowner" at 22:57:00 on Nov 20 2026.
Run over 4 intervals of 30 seconds.
<div id=mgstat></div>mgstat<br><!-- beg_mgstat --><pre>
Date,       Time,    Glorefs
11/20/2026, 22:57:00,  412000
11/20/2026, 22:57:30,  413000
</pre><!-- end_mgstat -->
"""
START_S = 1795215420  # 2026-11-20 22:57:00 UTC


def read(folder: Path, text: str, request: Request | None = None) -> Capture:
    return pbuttons.read(source_of(folder, text, "report.html"), request or Request())


def report(name: str, title: str, text: str) -> str:
    return f"{HEAD}<div id={name}></div>{title}</font></b><br><pre>\n{text}\n</pre>\n"


def same_series(one: Capture, other: Capture, *prefixes: str) -> int:
    """How many series both have alike; every series of the second is compared."""
    count = 0
    for group, row in other.series():
        if group.metric.startswith(prefixes):
            own = group_of(one, group.metric, str(group.entities[row]))
            np.testing.assert_array_equal(own.times_ns, group.times_ns)
            np.testing.assert_allclose(own.values[0], group.values[row])
            assert own.since_boot == group.since_boot
            count += 1
    return count


@pytest.mark.parametrize("name", ["x-t-en-us.txt", "x-t-de.txt", "x-t-c.txt", "x-t-iso.txt", "x-y-t.txt"])
def test_what_iostat_printed_is_read_as_iostat_reads_it(tmp_path: Path, name: str) -> None:
    text = (FIXTURES / "iostat" / name).read_text()
    capture = read(tmp_path, report("iostat", "iostat", text))
    alone = iostat.read(source_of(tmp_path, text, "iostat.txt"), Request(date="2026-11-20"))
    assert same_series(capture, alone, "") > 30


def test_iostat_without_times_begins_with_the_run(tmp_path: Path) -> None:
    text = (FIXTURES / "iostat" / "x-d-k.txt").read_text()
    capture = read(tmp_path, report("iostat", "iostat", text))
    group = group_of(capture, "disk_writes_per_s", "guest:db01/block-device:vda")
    assert seconds(group)[:3] == [START_S, START_S + 30, START_S + 60]
    assert "no-times" in codes(capture)
    assert not read(tmp_path, report("iostat", "iostat", text), Request(timezone="UTC")).sources[0].clock_known


@pytest.mark.parametrize("name", ["disk-en-us.txt", "disk-de.txt", "disk.txt", "all.txt"])
def test_what_sar_printed_is_read_as_sar_reads_it(tmp_path: Path, name: str) -> None:
    text = (FIXTURES / "sar" / name).read_text()
    capture = read(tmp_path, report("sar-d", "sar -d", text))
    alone = sar.read(source_of(tmp_path, text, "sar.txt"), Request(date="2026-11-20"))
    assert same_series(capture, alone, "guest_", "disk_", "net_") > 5


def test_devices_sar_knows_by_number_have_their_names(tmp_path: Path) -> None:
    text = "Linux 5.14.0 (db01) 11/20/2026 _x86_64_ (8 CPU)\n\n"
    text += "10:57:00 PM DEV tps rkB/s wkB/s areq-sz aqu-sz await %util\n10:57:30 PM dev8-16 9 1 2 8.0 0.1 1.5 3.0"
    names = "<div id=Linuxinfo></div>Linux info<pre>\nmajor minor  #blocks  name\n   8       16  5242 sdb\n</pre>\n"
    capture = read(tmp_path, report("sar-d", "sar -d", text) + names)
    assert values_of(capture, "guest_disk_await_ms", "guest:db01/block-device:sdb").tolist() == [1.5]


def test_sar_of_disks_does_not_repeat_iostat(tmp_path: Path) -> None:
    text = "Linux 5.14.0 (db01) 11/20/2026 _x86_64_ (8 CPU)\n\n22:57:00 DEV tps await\n22:57:30 dev8-16 9 1.5\n"
    capture = read(tmp_path, LINUX.replace("</body>", f"<div id=sar-d></div>sar -d<pre>\n{text}</pre></body>"))
    names = {entity.name for group in capture.groups for entity in group.entities}
    assert "dev8-16" not in names
    assert "iostat shows the same disks" in capture.sources[0].warnings[-1].message


def test_the_first_section_that_shows_a_series_gives_it(tmp_path: Path) -> None:
    capture = read(tmp_path, LINUX)
    assert values_of(capture, "guest_cpu_user_pct", "guest:db01").tolist() == [30, 30]
    assert values_of(capture, "guest_cpu_nice_pct", "guest:db01").tolist() == [0, 0]
    assert values_of(capture, "guest_memory_free_mib", "guest:db01").tolist() == [2048, 2047]
    assert values_of(capture, "guest_memory_available_mib", "guest:db01").tolist() == [11000, 10900]


def test_a_section_without_its_end_ends_where_the_next_begins(tmp_path: Path) -> None:
    group = group_of(read(tmp_path, LINUX), "guest_disk_await_ms_read", "guest:db01/block-device:dm-2")
    assert group.values[0].tolist() == pytest.approx([0.1, 4.0])
    assert seconds(group) == [START_S, START_S + 30]


def test_facts_of_the_machine(tmp_path: Path) -> None:
    held = read(tmp_path, LINUX).inventory.settings(GUEST)
    assert {name: fact.value for name, fact in held.items()} == {
        "cpu_count": 8,
        "numa_node_count": 2,
        "virtualisation": "vmware",
        "kernel_version": "5.14.0-427.el9.x86_64",
        "os_release": "Linux 5.14.0-427.el9.x86_64",
        "guest_os": "Red Hat Enterprise Linux release 9.4 (Plow)",
        "sysctl": {"kernel.sem": "250 32000 100 128", "vm.nr_hugepages": 8400, "vm.swappiness": 30},
        "memory_mib": 32000,
    }


def test_a_damaged_heading_of_free_is_no_memory(tmp_path: Path) -> None:
    assert "Memtotal" in LINUX
    inventory = read(tmp_path, LINUX.replace("Memtotal", "Memtotale")).inventory
    assert inventory.get(GUEST, "memory_mib") is None


def test_facts_of_disks(tmp_path: Path) -> None:
    inventory = read(tmp_path, LINUX).inventory
    held = {disk.name: inventory.settings(disk) for disk in inventory.children(GUEST, EntityKind.BLOCK_DEVICE)}
    assert {name: facts["mount"].value for name, facts in held.items()} == {
        "dm-0": "/",
        "sda1": "/boot",
        "dm-2": "/data",
        "sdb": "/jrn",
    }
    assert held["dm-2"]["filesystem_free_pct"].value == 5.26
    assert held["dm-2"]["mount_options"].value == ["rw", "noatime"]
    assert (held["dm-2"]["role"].value, held["sdb"]["role"].value) == ("data", "wal")


def test_facts_of_the_instance(tmp_path: Path) -> None:
    inventory = read(tmp_path, LINUX).inventory
    assert inventory.get(SHOP, "parameters")["gmheap"] == 307200
    assert inventory.get(SHOP, "mounts") == {
        "install": "/",
        "databases": "/data",
        "wij": "/",
        "journal": "/jrn",
        "alternate-journal": "/",
    }
    assert (inventory.get(SHOP, "data_device"), inventory.get(SHOP, "wal_device")) == ("dm-2", "sdb")


def test_databases_on_a_network_filesystem_are_on_no_disk(tmp_path: Path) -> None:
    text = LINUX.replace("SHOP-DATA=/data/db/shop/,,1\n", "")
    inventory = read(tmp_path, text).inventory
    assert "databases" not in inventory.get(SHOP, "mounts")
    assert inventory.get(SHOP, "data_device") is None


def test_no_secret_is_kept(tmp_path: Path) -> None:
    capture = read(tmp_path, LINUX)
    assert "do-not-keep" not in repr(capture.inventory.facts)
    assert "do-not-keep" in LINUX


def test_lines_of_the_cpf_file_that_are_none_are_said(tmp_path: Path) -> None:
    capture = read(tmp_path, LINUX.replace("gmheap=307200", "gmheap 307200"))
    assert "gmheap" not in capture.inventory.get(SHOP, "parameters")
    assert "cpf" in codes(capture)


def test_a_report_of_windows(tmp_path: Path) -> None:
    capture = read(tmp_path, WINDOWS)
    assert values_of(capture, "disk_reads_per_s", "guest:DB01/block-device:0 C:").tolist() == [5, 6]
    assert values_of(capture, "guest_disk_await_ms_read", "guest:DB01/block-device:1 F:").tolist() == [7, 8]
    assert values_of(capture, "guest_cpu_busy_pct", "guest:DB01").tolist() == [55, 60]
    assert values_of(capture, "db_iris_glorefs_per_s", "guest:DB01/database:SHOP").tolist() == [412000, 413000]
    assert codes(capture) == ["no-zone"]


def test_perfmon_that_was_processed_is_left_out_and_said(tmp_path: Path) -> None:
    lines = ['Date,Time,"Memory\\Available MBytes"', '05/29/2026,06:30:15,"1000"']
    start, end = WINDOWS.index('"(PDH'), WINDOWS.index("</pre><!-- end_win_perfmon")
    capture = read(tmp_path, WINDOWS[:start] + "\n".join(lines) + "\n" + WINDOWS[end:])
    assert "guest_memory_available_mib" not in capture.metrics()
    assert "setperfmonpostproc" in capture.sources[0].warnings[-1].message


@pytest.mark.parametrize(("name", "title"), [("iostat", "iostat"), ("sar-d", "sar -d"), ("sar-u", "sar -u")])
def test_sections_of_other_systems_are_left_out_and_said(tmp_path: Path, name: str, title: str) -> None:
    text = "System configuration: lcpu=8 drives=3 paths=4 vdisks=1\n\nhdisk0  xfer:  %tm_act  bps  tps\n"
    capture = read(tmp_path, report(name, title, text))
    assert capture.metrics() == ["db_iris_glorefs_per_s"]
    assert "section" in codes(capture)


def test_a_tool_that_is_not_installed(tmp_path: Path) -> None:
    capture = read(tmp_path, report("sar-u", "sar -u", "/bin/sh: sar: command not found"))
    assert "section" in codes(capture)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (LINUX, "dm-2           900.00  100.00", "dm-2           900.00"),
        (LINUX, "10:58:00 PM     all     32.00", "10:58:00 PM     all"),
        (LINUX, "11/20/26, 22:57:30, 32000,", "11/20/26, 22:57:30,"),
        (WINDOWS, '"1000","5","0.007","12","55"', '"1000","5","0.007"'),
    ],
)
def test_damage_is_an_error_with_the_line_of_the_report(tmp_path: Path, text: str, old: str, new: str) -> None:
    assert old in text
    damaged = text.replace(old, new)
    line = damaged[: damaged.index(new)].count("\n") + 1
    with pytest.raises(InputError, match=rf"^report\.html:{line}: "):
        read(tmp_path, damaged)


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    capture = read(tmp_path, LINUX, Request(metrics=frozenset({"guest_disk_await_ms_write"})))
    assert capture.metrics() == ["guest_disk_await_ms_write"]


@pytest.mark.parametrize("name", ["linux.html", "windows.html"])
def test_it_is_recognised(name: str) -> None:
    assert chosen(OWN / name) == "pbuttons"
