"""vmstat of Linux and vm_stat of macOS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import vm_stat, vmstat
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

GUEST = "guest:guest"
VDA = "guest:guest/block-device:vda"
HEAD = (
    "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
)
ROW = " 2  1      0 2421797   2396 254828    0    4  4954  3993 1714 5732  5  7 80  8  0"
MAC = (
    "2026-11-20 22:57:16.0\tMach Virtual Memory Statistics: (page size of 16384 bytes)\n"
    "2026-11-20 22:57:16.1\t  free   active   faults     copy  pageins  pageout  swapins swapouts\n"
    "2026-11-20 22:57:16.5\t  6400     3200  200500K       10     1234        0     1111     2222\n"
    "2026-11-20 22:57:18.5\t  6336     3264     1000       10       20        4        2        6\n"
)


def fixture(fixtures: Path, name: str) -> Source:
    return Source(name, fixtures / "vmstat" / name)


def test_wide_with_times_gives_every_column(fixtures: Path) -> None:
    capture = vmstat.read(fixture(fixtures, "w-t.txt"), Request())
    assert values_of(capture, "guest_run_queue_count", GUEST).tolist() == [9, 1, 1, 1, 3]
    assert values_of(capture, "guest_memory_free_mib", GUEST)[0] == 24217976 / 1024
    assert values_of(capture, "guest_block_in_kib_per_s", GUEST).tolist() == [4954, 4764, 3200, 3200, 3200]
    assert values_of(capture, "guest_cpu_busy_pct", GUEST).tolist() == [11, 35, 1, 0, 2]
    assert values_of(capture, "guest_cpu_guest_pct", GUEST).tolist() == [0] * 5
    assert seconds(group_of(capture, "guest_cpu_idle_pct", GUEST))[0] == 1_795_215_436
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_only_averages_of_the_first_line_are_since_boot(fixtures: Path) -> None:
    capture = vmstat.read(fixture(fixtures, "w-t.txt"), Request())
    assert group_of(capture, "guest_cpu_idle_pct", GUEST).since_boot
    assert group_of(capture, "guest_swap_in_kib_per_s", GUEST).since_boot
    assert not group_of(capture, "guest_run_queue_count", GUEST).since_boot
    assert not group_of(capture, "guest_memory_free_mib", GUEST).since_boot


def test_active_and_inactive(fixtures: Path) -> None:
    capture = vmstat.read(fixture(fixtures, "w-t-a.txt"), Request())
    assert values_of(capture, "guest_memory_inactive_mib", GUEST)[0] == 213436 / 1024
    assert values_of(capture, "guest_memory_active_mib", GUEST)[0] == 59512 / 1024
    assert "guest_memory_cached_mib" not in capture.metrics()


def test_translated_headings_are_known_by_place(fixtures: Path) -> None:
    capture = vmstat.read(fixture(fixtures, "w-t-de.txt"), Request())
    assert values_of(capture, "guest_memory_free_mib", GUEST)[0] == 24217476 / 1024
    assert values_of(capture, "guest_memory_cached_mib", GUEST)[0] == 254984 / 1024


def test_without_times_they_end_at_the_last_change(tmp_path: Path) -> None:
    capture = vmstat.read(source_of(tmp_path, HEAD + f"{ROW}\n" * 3), Request())
    group = group_of(capture, "guest_blocked_count", GUEST)
    assert group.times_ns.tolist() == [MTIME_NS - 2_000_000_000, MTIME_NS - 1_000_000_000, MTIME_NS]
    assert codes(capture) == ["no-times"]
    assert not capture.sources[0].clock_known


def test_repeated_headings_are_passed_over(fixtures: Path) -> None:
    capture = vmstat.read(fixture(fixtures, "repeated-header.txt"), Request())
    lines = (fixtures / "vmstat" / "repeated-header.txt").read_text().splitlines()
    expected = sum(line.split()[0].isdigit() for line in lines)
    assert len(values_of(capture, "guest_blocked_count", GUEST)) == expected > 20


def test_memory_in_unknown_units_is_left_out(fixtures: Path) -> None:
    capture = vmstat.read(fixture(fixtures, "s-mega.txt"), Request(metrics=frozenset({"guest_memory_free_mib"})))
    assert capture.metrics() == []
    assert "memory-unit" in codes(capture)


def test_zone_of_the_heading_wins_over_the_assumed_one(fixtures: Path) -> None:
    capture = vmstat.read(fixture(fixtures, "t.txt"), Request(timezone="Europe/Berlin"))
    assert seconds(group_of(capture, "guest_blocked_count", GUEST))[0] == 1_795_215_436


@pytest.mark.parametrize(("zone", "hours"), [("PDT", -7), ("CEST", 2), ("-03", -3), ("UTC", 0)])
def test_zone_of_the_heading(tmp_path: Path, zone: str, hours: int) -> None:
    text = HEAD.replace(" st\n", f" st                 {zone}\n") + f"{ROW} 2026-11-20 22:57:16\n"
    capture = vmstat.read(source_of(tmp_path, text), Request())
    assert seconds(group_of(capture, "guest_blocked_count", GUEST)) == [1_795_215_436 - hours * 3600]
    assert capture.sources[0].clock_known


def test_zone_that_means_several_is_not_guessed(tmp_path: Path) -> None:
    text = HEAD.replace(" st\n", " st                 CST\n") + f"{ROW} 2026-11-20 22:57:16\n"
    capture = vmstat.read(source_of(tmp_path, text), Request())
    assert codes(capture) == ["no-zone"]
    assert not capture.sources[0].clock_known
    told = vmstat.read(source_of(tmp_path, text), Request(timezone="America/Chicago"))
    assert seconds(group_of(told, "guest_blocked_count", GUEST)) == [1_795_215_436 + 6 * 3600]
    assert told.sources[0].clock_known


def test_lines_prefixed_with_times(tmp_path: Path) -> None:
    lines = [f"2026-11-20 22:57:1{i}.25\t{line}" for i, line in enumerate((HEAD + f"{ROW}\n{ROW}\n").splitlines())]
    source = source_of(tmp_path, "\n".join(lines) + "\n")
    assert vmstat.sniff(source) == 95
    assert seconds(group_of(vmstat.read(source, Request()), "guest_blocked_count", GUEST)) == [
        1_795_215_432.25,
        1_795_215_433.25,
    ]


def test_two_reports_in_one_second_stay_two(tmp_path: Path) -> None:
    text = HEAD + f"{ROW} 2026-11-20 22:57:16\n" * 2 + f"{ROW} 2026-11-20 22:57:17\n"
    capture = vmstat.read(source_of(tmp_path, text), Request())
    assert np.diff(seconds(group_of(capture, "guest_blocked_count", GUEST))).tolist() == [0.5, 0.5]


def test_clock_set_back_is_put_in_order(tmp_path: Path) -> None:
    rows = [
        ROW.replace(" 2  1", f" {i}  1", 1) + f" 2026-11-20 22:57:{second}\n" for i, second in enumerate((20, 10, 21))
    ]
    capture = vmstat.read(source_of(tmp_path, HEAD + "".join(rows)), Request())
    assert values_of(capture, "guest_run_queue_count", GUEST).tolist() == [1, 0, 2]
    assert "clock-back" in codes(capture)


def test_cut_last_line_is_left_out(tmp_path: Path) -> None:
    capture = vmstat.read(source_of(tmp_path, HEAD + f"{ROW}\n{ROW[:-6]}"), Request())
    assert len(values_of(capture, "guest_blocked_count", GUEST)) == 1
    assert "cut" in codes(capture)


def test_garbage_in_the_middle_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:4: .*2  1  x.*17 numbers") as caught:
        vmstat.read(source_of(tmp_path, HEAD + f"{ROW}\n 2  1  x\n{ROW}\n"), Request())
    assert caught.value.advice


def test_headings_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sample"):
        vmstat.read(source_of(tmp_path, HEAD), Request())


def test_disk_counters_become_rates(fixtures: Path) -> None:
    capture = vmstat.read(fixture(fixtures, "disk.txt"), Request())
    lines = [line.split() for line in (fixtures / "vmstat" / "disk.txt").read_text().splitlines() if "vda" in line]
    reads = np.diff([int(line[1]) for line in lines])
    sectors = np.diff([int(line[3]) for line in lines])
    read_ms = np.diff([int(line[4]) for line in lines])
    measured = group_of(capture, "disk_reads_per_s", VDA)
    assert np.isnan(measured.values[0][0])
    assert measured.values[0][1:].tolist() == reads.tolist()
    assert not measured.since_boot
    assert values_of(capture, "disk_read_mib_per_s", VDA)[1:] == pytest.approx(sectors / 2048)
    await_ms = group_of(capture, "guest_disk_await_ms_read", VDA)
    assert await_ms.since_boot
    assert await_ms.values[0][1:] == pytest.approx(read_ms / reads)
    assert await_ms.values[0][0] == pytest.approx(86319 / 1356535)


def test_disks_without_times_give_averages_only(tmp_path: Path, fixtures: Path) -> None:
    text = (fixtures / "vmstat" / "disk.txt").read_text().replace(" -----timestamp-----", "")
    plain = "\n".join(
        line[:-20] if line[-3:-2] == ":" else line.removesuffix("UTC").rstrip() for line in text.splitlines()
    )
    capture = vmstat.read(source_of(tmp_path, plain + "\n"), Request())
    assert "disk_iops" not in capture.metrics()
    assert "guest_disk_await_ms" in capture.metrics()
    assert "no-interval" in codes(capture)


def test_disk_that_comes_later_has_no_average_since_boot(tmp_path: Path) -> None:
    heads = "disk- ------------reads------------ ------------writes----------- -----IO------\n" + (
        "       total merged sectors      ms  total merged sectors      ms    cur    sec\n"
    )
    row = "{} {} 0 {} {} 0 0 0 0 0 1\n"
    rows = row.format("sda", 10, 80, 5) + row.format("sda", 30, 240, 45) + row.format("sdb", 50, 400, 500)
    capture = vmstat.read(source_of(tmp_path, heads + rows), Request())
    assert values_of(capture, "guest_disk_await_ms_read", "guest:guest/block-device:sda").tolist() == [0.5, 2.0]
    assert "guest:guest/block-device:sdb" not in {str(e) for g in capture.groups for e in g.entities}


def test_mac_pages_and_events(tmp_path: Path) -> None:
    capture = vm_stat.read(source_of(tmp_path, MAC), Request())
    assert values_of(capture, "guest_memory_free_mib", GUEST).tolist() == [100.0, 99.0]
    swapped = values_of(capture, "guest_swap_in_kib_per_s", GUEST)
    assert np.isnan(swapped[0])
    assert swapped[1] == 2 * 16 / 2.0
    assert values_of(capture, "guest_page_faults_per_s", GUEST)[1] == 500


def test_mac_without_times_has_no_rates(tmp_path: Path) -> None:
    bare = "\n".join(line.split("\t", 1)[1] for line in MAC.splitlines()) + "\n"
    capture = vm_stat.read(source_of(tmp_path, bare), Request())
    assert "guest_memory_free_mib" in capture.metrics()
    assert "guest_swap_in_kib_per_s" not in capture.metrics()
    assert codes(capture) == ["no-times"]


def test_mac_garbage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:3"):
        vm_stat.read(source_of(tmp_path, MAC.replace("200500K", "20x500K")), Request())


SAMPLES = {
    "gregs1104__pgbench-tools__pgbenchtools_480_vmstat.log": ("vmstat", "guest_blocked_count", 13, 15),
    "gregs1104__pgbench-tools__pgbenchtools_golden_vmstat.csv": ("vmstat", "guest_run_queue_count", 22, 26),
    "gregs1104__pgbench-tools__pgbenchtools_vmstat.log": ("vmstat", "guest_run_queue_count", 22, 26),
    "gregs1104__pgbench-tools__pgbenchtools_vmstat-darwin.log": (
        "vm-stat",
        "guest_memory_free_mib",
        48898.01,
        48838.30,
    ),
    "kellyjonbrazil__jc__centos77_vmstat-at-5-10.out": ("vmstat", "guest_interrupts_per_s", 41, 41),
    "kellyjonbrazil__jc__ubuntu1804_vmstat-1-long.out": ("vmstat", "guest_context_switches_per_s", 96, 198),
}
ONE_LINERS = ("-a", "-awt", "-d", "-dt", "-w", "")


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(samples: Path, name: str) -> None:
    source = Source(name, samples / "sysstat" / name)
    importer, metric, second, third = SAMPLES[name]
    chosen = recognise(source, load_units("importer"))
    assert chosen is not None
    assert chosen[0] == importer
    values = values_of(chosen[1].read(source, Request()), metric, GUEST)
    assert values[1:3] == pytest.approx([second, third], rel=1e-5)


@pytest.mark.parametrize("option", ONE_LINERS)
def test_samples_of_one_report(samples: Path, option: str) -> None:
    name = f"kellyjonbrazil__jc__centos77_vmstat{option}.out"
    source = Source(name, samples / "sysstat" / name)
    chosen = recognise(source, load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "vmstat"
    capture = chosen[1].read(source, Request())
    metric, entity = ("guest_disk_await_ms_read", "/block-device:sda") if "d" in option else ("guest_cpu_idle_pct", "")
    group = group_of(capture, metric, GUEST + entity)
    assert group.since_boot
    assert group.values[0][0] == pytest.approx(8395 / 15257 if "d" in option else 99)
