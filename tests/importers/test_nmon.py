"""nmon of Linux."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import nmon
from tests.conftest import FIXTURES
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

TEXT = (FIXTURES / "nmon" / "db01.nmon").read_text()
GUEST, VDA = "guest:db01", "guest:db01/block-device:vda"
HEAD = "AAA,progname,nmon\nAAA,date,21-NOV-2026\nAAA,interval,5\nDISKBUSY,Disk %Busy x,sda\n"


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return nmon.read(source_of(folder, text), request or Request())


def test_disks_network_and_cpus(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    assert values_of(capture, "disk_write_mib_per_s", VDA)[:2] == pytest.approx([5188.3 / 1024, 168876.5 / 1024])
    assert values_of(capture, "disk_iops", VDA)[:3].tolist() == [123.1, 330.9, 271.9]
    assert values_of(capture, "guest_disk_util_pct", VDA)[1] == 6.0
    size = values_of(capture, "guest_disk_io_size_kib", VDA)
    assert size[1] == 510.5
    assert np.isnan(size[3])
    received = values_of(capture, "net_rx_mbit_per_s", "guest:db01/nic:lo")[:2]
    assert received == pytest.approx([0.9 * 0.008192, 0.008192])
    assert values_of(capture, "net_tx_packets_per_s", "guest:db01/nic:eth0")[5] == 2.0
    assert values_of(capture, "guest_cpu_iowait_pct", "guest:db01/cpu:1")[1] == 5.0
    assert values_of(capture, "guest_cpu_busy_pct", GUEST)[0] == pytest.approx(100 - 94.3 - 0.5)


def test_counts_of_an_interval_are_rates(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    assert values_of(capture, "guest_page_out_kib_per_s", GUEST)[:2].tolist() == [5520, 168960]
    double = TEXT.replace("AAA,interval,1", "AAA,interval,2")
    assert values_of(read_text(tmp_path, double), "guest_page_out_kib_per_s", GUEST)[1] == 84480
    swapping = TEXT.replace("168960,0,0,26342", "168960,3,0,26342")
    assert values_of(read_text(tmp_path, swapping), "guest_swap_in_kib_per_s", GUEST)[1] == 12
    foreign = read_text(tmp_path, swapping.replace("x86_64", "ppc64"))
    assert "guest_swap_in_kib_per_s" not in foreign.metrics()
    assert "page-size" in codes(foreign)


def test_distance_of_stamps_counts_where_snapshots_came_late(tmp_path: Path) -> None:
    late = TEXT.replace("ZZZZ,T0001,00:52:54", "ZZZZ,T0001,00:52:45")
    assert values_of(read_text(tmp_path, late), "guest_page_out_kib_per_s", GUEST)[1] == 16896


def test_what_the_kernel_does_not_report_is_not_measured(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    assert values_of(capture, "guest_memory_free_mib", GUEST)[0] == 22414.2
    assert not {"raw.nmon.MEM.hightotal", "raw.nmon.PROC.syscall"} & set(capture.metrics())
    assert "raw.nmon.VM.nr_dirty" in capture.metrics()
    switches = values_of(capture, "guest_context_switches_per_s", GUEST)
    assert np.isnan(switches[0])
    assert switches[1] == 1408.4
    assert values_of(capture, "guest_run_queue_count", GUEST)[:3].tolist() == [1, 2, 1]


def test_times_and_facts(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT)
    assert seconds(group_of(capture, "disk_iops", VDA))[:2] == [1795222374, 1795222375]
    assert codes(capture) == ["no-zone"]
    assert not capture.sources[0].clock_known
    berlin = read_text(tmp_path, TEXT, Request(timezone="Europe/Berlin"))
    assert seconds(group_of(berlin, "disk_iops", VDA))[0] == 1795222374 - 3600
    assert berlin.sources[0].clock_known
    guest = Entity(EntityKind.GUEST, "db01")
    assert capture.inventory.get(guest, "cpu_count") == 2
    assert capture.inventory.get(guest, "memory_mib") == 24105.6
    assert capture.sources[0].tool_version == "16n"


def test_a_sorted_file_is_the_same(tmp_path: Path) -> None:
    text = "".join(sorted(TEXT.splitlines(keepends=True)))
    capture = read_text(tmp_path, text)
    assert values_of(capture, "disk_iops", VDA)[:3].tolist() == [123.1, 330.9, 271.9]


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    assert read_text(tmp_path, TEXT, Request(metrics=frozenset({"disk_iops"}))).metrics() == ["disk_iops"]


def test_disks_over_several_lines(tmp_path: Path) -> None:
    text = HEAD + "DISKBUSY1,Disk %Busy x,sdb\nZZZZ,T0001,10:00:00\nDISKBUSY,T0001,5.0\nDISKBUSY1,T0001,7.0\n"
    capture = read_text(tmp_path, text)
    assert values_of(capture, "guest_disk_util_pct", "guest:guest/block-device:sdb").tolist() == [7.0]
    assert next(g.interval_s for g in capture.groups) == 5.0


def test_stamps_without_a_date_pass_midnight(tmp_path: Path) -> None:
    rows = "ZZZZ,T0001,23:59:55\nDISKBUSY,T0001,5\nZZZZ,T0002,00:00:05\nDISKBUSY,T0002,6\n"
    capture = read_text(tmp_path, HEAD + rows)
    group = group_of(capture, "guest_disk_util_pct", "guest:guest/block-device:sda")
    assert seconds(group) == [1795305595, 1795305605]
    dateless = read_text(tmp_path, HEAD.replace("AAA,date,21-NOV-2026\n", "") + rows)
    assert codes(dateless) == ["no-zone", "no-date"]


def test_a_disk_added_while_recording(tmp_path: Path) -> None:
    rows = "ZZZZ,T0001,10:00:00\nDISKBUSY,T0001,5\nDISKBUSY,Disk %Busy x,sda,sdb\n"
    capture = read_text(tmp_path, HEAD + rows + "ZZZZ,T0002,10:00:05\nDISKBUSY,T0002,6,7\n")
    late = values_of(capture, "guest_disk_util_pct", "guest:guest/block-device:sdb")
    assert np.isnan(late[0])
    assert late[1] == 7.0


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    cut = read_text(tmp_path, TEXT[: TEXT.index("DISKXFER,T0010") - 3])
    written = values_of(cut, "disk_write_mib_per_s", VDA)
    assert np.isnan(written[9])
    assert "cut" in codes(cut)


def test_snapshots_without_a_stamp_are_left_out(tmp_path: Path) -> None:
    capture = read_text(tmp_path, TEXT.replace("ZZZZ,T0010,00:53:03,21-NOV-2026\n", ""))
    assert len(values_of(capture, "disk_iops", VDA)) == 9
    assert "no-stamp" in codes(capture)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("DISKBUSY,T0003,0.0,", "DISKBUSY,T0003,", "4 values of DISKBUSY, its heading names 5"),
        ("MEM,T0003,24105.6", "MEM,T0003,2x", "'2x' in MEM"),
        ("ZZZZ,T0003,", "ZZZZ,T0002,", "a snapshot a second time, 'T0002'"),
        ("ZZZZ,T0003,00:52:56", "ZZZZ,T0003,25:52:56", "time stamp is none, as '25:52:56'"),
        ("PROC,T0003,1", "nonsense", "'nonsense"),
        ("NET,T0003,", "NET,T0002,", "NET a second time in one snapshot, 'T0002'"),
    ],
)
def test_damage_in_the_middle_is_left_out_and_said(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TEXT
    whole, damaged = read_text(tmp_path, TEXT), read_text(tmp_path, TEXT.replace(old, new))
    (message,) = [w.message for w in damaged.sources[0].warnings if w.code == "left-out"]
    assert says in message
    kept = {(g.metric, e): row for g in damaged.groups for e, row in zip(g.entities, g.values, strict=True)}
    changed = 0
    for group in whole.groups:
        for entity, row in zip(group.entities, group.values, strict=True):
            known = kept[group.metric, entity]
            if len(known) == len(row):
                changed += int(np.sum(~np.isclose(known, row, equal_nan=True)))
    assert changed <= 60  # a row of a section, or what is derived of it


def test_no_snapshot_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no snapshot with a time"):
        read_text(tmp_path, HEAD)


def test_it_is_recognised(tmp_path: Path) -> None:
    known = recognise(source_of(tmp_path, TEXT), load_units("importer"))
    assert known is not None
    assert known[0] == "nmon"


_CELL = st.one_of(
    st.sampled_from(
        ["", " ", "-1.0", "-0.0", "nan", "inf", "1e3", "007", "5.", ".5", "99999999999.25", "0.12345678901"]
    ),
    st.decimals(0, 10**7, places=1).map(str),
)
_HEADINGS = st.lists(
    st.permutations(["sda", "sdb", "sdc", "sdd"]).flatmap(lambda n: st.sampled_from([n, n[:2], n[:3]]))
)


@given(st.data(), _HEADINGS.filter(bool))
def test_one_pass_reads_what_float_reads(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, headings: list[list[str]]
) -> None:
    """Every value is the float of its cell, in the column that the latest heading names."""
    rows, text, number = {}, ["AAA,progname,nmon\nAAA,date,21-NOV-2026\n"], 0
    for names in headings:
        text.append(f"DISKBUSY,Disk %Busy x,{','.join(names)},,\n")
        for _ in range(data.draw(st.integers(0, 3))):
            cells = data.draw(st.lists(_CELL, min_size=len(names), max_size=len(names)))
            number += 1
            text.append(f"ZZZZ,T{number:04},10:00:{number:02}\nDISKBUSY,T{number:04},{','.join(cells)},\n")
            rows[number - 1] = dict(zip(names, cells, strict=True))
    folder = tmp_path_factory.mktemp("nmon")
    if not rows:
        with pytest.raises(InputError, match="no snapshot with a time"):
            read_text(folder, "".join(text))
        return
    capture = read_text(folder, "".join(text))
    read = {
        entity.name: group.values[i]
        for group in capture.of("guest_disk_util_pct")
        for i, entity in enumerate(group.entities)
    }
    for name in ("sda", "sdb", "sdc", "sdd"):
        expected = [_former_number(rows[i].get(name, "")) for i in range(len(rows))]
        if np.isnan(expected).all():
            assert name not in read
        else:
            np.testing.assert_array_equal(read[name], expected)


def _former_number(cell: str) -> float:
    value = float(cell.strip() or "nan")
    return value if np.isfinite(value) and not cell.startswith("-") else float("nan")
