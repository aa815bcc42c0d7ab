"""pidstat: processes in blocks and in one line, of all locales, with threads and odd names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import pidstat
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

FIO = "guest:db01/process:fio[7827]"
KWORKER = "guest:db01/process:kworker/u8:0[6799]"
BANNER = "Linux 6.1.0 (db01) \t2026-11-20 \t_x86_64_\t(2 CPU)\n\n"
IO_HEAD = "{}      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command\n"
IO_ROW = "{}      0      {}   {}   2400.00      0.00       3  {}\n"


def fixture(fixtures: Path, name: str) -> Source:
    return Source(name, fixtures / "pidstat" / name)


def processes(text: str, folder: Path) -> set[str]:
    capture = pidstat.read(source_of(folder, text), Request())
    return {entity.name for group in capture.groups for entity in group.entities}


def test_blocks(fixtures: Path) -> None:
    capture = pidstat.read(fixture(fixtures, "d-blocks.txt"), Request())
    reads = group_of(capture, "process_read_kib_per_s", FIO)
    assert reads.values[0].tolist() == [3216, 3200, 3192, 3208]
    assert seconds(reads)[0] == 1_795_215_481
    assert not reads.since_boot


def test_process_that_did_nothing_is_not_measured(fixtures: Path) -> None:
    capture = pidstat.read(fixture(fixtures, "d-blocks.txt"), Request())
    reads = values_of(capture, "process_read_kib_per_s", KWORKER)
    assert reads[:2].tolist() == [28, 128]
    assert np.isnan(reads[2:]).all()


@pytest.mark.parametrize("name", ["durh.txt", "durh-iso.txt"])
def test_one_line_form(fixtures: Path, name: str) -> None:
    capture = pidstat.read(fixture(fixtures, name), Request())
    assert values_of(capture, "process_cpu_pct", FIO)[0] == 1.98
    assert values_of(capture, "process_memory_resident_kib", FIO)[0] == 6636
    assert values_of(capture, "guest_page_faults_per_s", FIO)[0] == 0.99
    assert "raw.pidstat.%MEM" in capture.metrics()


def test_decimal_commas(fixtures: Path) -> None:
    capture = pidstat.read(fixture(fixtures, "durh-de.txt"), Request())
    assert values_of(capture, "process_read_kib_per_s", FIO)[:2].tolist() == [3200, 3216]
    assert values_of(capture, "process_cpu_pct", FIO)[:2].tolist() == [2, 3]


def test_threads_are_left_to_their_process(fixtures: Path) -> None:
    capture = pidstat.read(fixture(fixtures, "threads.txt"), Request())
    names = {entity.name for group in capture.groups for entity in group.entities}
    assert names == {"fio[7822]"}
    assert values_of(capture, "process_cpu_pct", "guest:db01/process:fio[7822]").tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("postgres: walwriter   ", "postgres: walwriter[7827]"),
        ("kworker/u8:0-events_unbound", "kworker/u8:0[7827]"),
        ("x" * 500, "x" * 80 + "[7827]"),
        ("/usr/bin/java -Xmx1g 3.5 7", "/usr/bin/java -Xmx1g 3.5 7[7827]"),
    ],
)
def test_names(tmp_path: Path, command: str, name: str) -> None:
    text = BANNER + IO_HEAD.format("10:57:50") + IO_ROW.format("10:57:51", 7827, "1.00", command)
    assert processes(text, tmp_path) == {name}


def test_what_was_not_permitted_is_not_measured(tmp_path: Path) -> None:
    text = BANNER + IO_HEAD.format("10:57:50") + IO_ROW.format("10:57:51", 7827, "-1.00", "fio")
    capture = pidstat.read(source_of(tmp_path, text), Request())
    assert "process_read_kib_per_s" not in capture.metrics()
    assert values_of(capture, "process_io_delay_count", FIO).tolist() == [3]


def test_epoch_times_need_no_zone(tmp_path: Path) -> None:
    head = "#      Time   UID       PID   cswch/s nvcswch/s  Command\n"
    rows = (
        " 1795215481     0      7827      3.00      0.50  fio\n 1795215483     0      7827      5.00      0.50  fio\n"
    )
    capture = pidstat.read(source_of(tmp_path, BANNER + head + rows), Request())
    switches = group_of(capture, "guest_context_switches_per_s", FIO)
    assert switches.values[0].tolist() == [3.5, 5.5]
    assert seconds(switches) == [1_795_215_481, 1_795_215_483]
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_lone_report_in_one_line_may_be_since_boot(tmp_path: Path) -> None:
    head = "# Time        UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command\n"
    text = BANNER + head + IO_ROW.format("10:57:51", 7827, "1.00", "fio")
    capture = pidstat.read(source_of(tmp_path, text), Request())
    assert group_of(capture, "process_read_kib_per_s", FIO).since_boot
    assert "lone-report" in codes(capture)


def test_processes_that_come_and_go_keep_their_own_times(tmp_path: Path) -> None:
    blocks = [
        IO_HEAD.format(f"10:57:{second:02}") + IO_ROW.format(f"10:57:{second + 1:02}", 1000 + second, "8.00", "psql")
        for second in range(50)
    ]
    capture = pidstat.read(source_of(tmp_path, BANNER + "\n".join(blocks)), Request())
    group = group_of(capture, "process_read_kib_per_s", "guest:db01/process:psql[1042]")
    assert group.values[0].tolist() == [8.0]
    assert seconds(group) == [1_795_172_263]
    assert group.interval_s == 1.0


def test_processes_stay_in_order_when_the_clock_goes_back(tmp_path: Path) -> None:
    seconds_of = [*range(30, 50), *range(20, 40)]
    blocks = [
        IO_HEAD.format("10:57:00") + IO_ROW.format(f"10:57:{second:02}", 1000 + index % 17, "8.00", "psql")
        for index, second in enumerate(seconds_of)
    ]
    capture = pidstat.read(source_of(tmp_path, BANNER + "\n".join(blocks)), Request())
    times = group_of(capture, "process_read_kib_per_s", "guest:db01/process:psql[1003]").times_ns
    assert len(times) == 3
    assert (np.diff(times) > 0).all()
    assert "clock-back" in codes(capture)


def test_garbage_in_the_middle_is_refused_with_its_line(tmp_path: Path) -> None:
    text = BANNER + IO_HEAD.format("10:57:50") + "10:57:51 0 x 1 2 3 4 fio\n" + IO_ROW.format("10:57:52", 1, "1", "a")
    with pytest.raises(InputError, match=r"recording\.txt:4"):
        pidstat.read(source_of(tmp_path, text), Request())


def test_cut_last_line_is_left_out(tmp_path: Path) -> None:
    text = BANNER + IO_HEAD.format("10:57:50") + IO_ROW.format("10:57:51", 7827, "1.00", "fio") + "10:57:52  0   78"
    capture = pidstat.read(source_of(tmp_path, text), Request())
    assert len(values_of(capture, "process_read_kib_per_s", FIO)) == 1
    assert "cut" in codes(capture)


SAMPLES = {
    "kellyjonbrazil__jc__centos77_pidstat-hdlrsuw-2-5.out": ("localhost", "rcu_sched[9]", 1.98),
    "kellyjonbrazil__jc__generic_pidstat-ht.out": ("localhost.localdomain", "systemd[1]", None),
    "sysstat__sysstat__expected.pidstat-At-ALL-JSON": ("SYSSTAT.TEST", "gnome-terminal-[8407]", 5.05),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(samples: Path, name: str) -> None:
    source = Source(name, samples / "sysstat" / name)
    host, process, switches = SAMPLES[name]
    chosen = recognise(source, load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "pidstat"
    capture = chosen[1].read(source, Request())
    metric = "process_cpu_pct" if switches is None else "guest_context_switches_per_s"
    value = values_of(capture, metric, f"guest:{host}/process:{process}")[0]
    assert value == pytest.approx(0.08 if switches is None else switches)
