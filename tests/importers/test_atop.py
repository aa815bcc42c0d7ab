"""The parseable text of atop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import atop
from tests.conftest import FIXTURES
from tests.importers.damage import chosen
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

GUEST = "guest:db01"
DISK = f"{GUEST}/block-device:sda"
RECORDING = FIXTURES / "atop" / "P.txt"
STAMP = "db01 1795604985 2026/11/25 11:09:45 10"
NEXT = "db01 1795604995 2026/11/25 11:09:55 10"


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return atop.read(source_of(folder, text, "atop.txt"), request or Request())


def test_a_recording() -> None:
    capture = atop.read(Source("P.txt", RECORDING), Request())
    busy = group_of(capture, "guest_cpu_busy_pct", GUEST)
    assert seconds(busy) == [1795604983, 1795604985, 1795604987, 1795604989]
    assert busy.since_boot
    assert busy.values[0] == pytest.approx([49.524, 99.749, 99.75, 99.496], abs=1e-3)
    disk = f"{GUEST}/block-device:vda"
    assert values_of(capture, "disk_reads_per_s", disk)[3] == 85
    assert values_of(capture, "guest_disk_await_ms", disk)[3] == pytest.approx(0.0925, abs=1e-3)
    assert values_of(capture, "guest_pressure_io_some_pct", GUEST)[3] == pytest.approx(0.3817)
    assert values_of(capture, "guest_memory_free_mib", GUEST)[0] == 5180470 * 4096 / 2**20
    assert not group_of(capture, "guest_memory_free_mib", GUEST).since_boot
    assert values_of(capture, "net_tcp_segments_per_s", GUEST)[3] == 1.5
    programs = {str(e) for g in capture.groups for e in g.entities if "process:" in str(e)}
    assert any("process:pytest[" in name for name in programs)
    assert capture.sources[0].host == "db01"
    assert capture.sources[0].clock_known
    assert set(codes(capture)) <= {"processes"}


def test_versions_that_print_less(tmp_path: Path) -> None:
    text = (
        f"CPU {STAMP} 100 2 100 300 0 1500 100 0 0 0\nDSK {STAMP} sda 5000 100 800 300 4800\n"
        f"MEM {STAMP} 4096 1000 500 256 128 64\nNET {STAMP} upper 1 2 3 4 5 6 7 8\n"
        f"NET {STAMP} eth0 10 1000 20 1250000 100 1\nSEP\n"
    )
    capture = read_text(tmp_path, text)
    assert values_of(capture, "guest_cpu_iowait_pct", GUEST).tolist() == [5]
    assert values_of(capture, "guest_disk_util_pct", DISK).tolist() == [50]
    assert values_of(capture, "disk_write_mib_per_s", DISK)[0] == 4800 * 512 / 10 / 2**20
    assert values_of(capture, "net_tx_mbit_per_s", f"{GUEST}/nic:eth0").tolist() == [1]
    assert not {"guest_disk_await_ms", "guest_memory_dirty_mib", "net_tcp_segments_per_s"} & set(capture.metrics())
    assert not group_of(capture, "guest_disk_util_pct", DISK).since_boot


def test_the_wait_of_a_request_is_by_littles_law(tmp_path: Path) -> None:
    text = f"DSK {STAMP} sda 5000 100 800 300 4800 -1 0 3 8.00\nDSK {NEXT} sda 0 0 0 0 0 -1 0 0 0.00\nSEP\n"
    capture = read_text(tmp_path, text)
    wait = values_of(capture, "guest_disk_await_ms", DISK)
    assert wait[0] == 100  # eight at a time for five seconds, four hundred in all
    assert np.isnan(wait[1])
    assert values_of(capture, "guest_disk_queue_count", DISK).tolist() == [4, 0]


def test_a_later_reset_is_no_interval(tmp_path: Path) -> None:
    row = "sda 5000 100 800 300 4800 -1 0 3 8.00"
    later = "db01 1795605005 2026/11/25 11:10:05 99"
    text = f"DSK {STAMP} {row}\nSEP\nDSK {NEXT} {row}\nSEP\nRESET\nDSK {later} {row}\nSEP\n"
    capture = read_text(tmp_path, text)
    group = group_of(capture, "disk_reads_per_s", DISK)
    assert not group.since_boot
    assert np.isnan(group.values[0]).tolist() == [False, False, True]


def test_names_of_processes_with_blanks_and_threads(tmp_path: Path) -> None:
    text = (
        f"PRC {STAMP} 12 (tmux: server (1)) S 100 50 20 0 120 0 0 1 0 12 y 0 - 0\n"
        f"PRC {STAMP} 13 (worker) S 100 500 20 0 120 0 0 1 0 12 n 0 - 0\n"
        f"PRC {STAMP} 14 my_prog R 100 10 20 0 120 0 0 1 0\n"
        f"PRD {STAMP} 14 (my prog) R n y 5 800 5 1600 0 14 n y\nPRD {STAMP} 15 (x) R n n 0 0 0 0 0\nSEP\n"
    )
    capture = read_text(tmp_path, text)
    names = {e.name for g in capture.groups for e in g.entities}
    assert "my_prog[14]" in names
    assert not {name for name in names if "worker" in name}
    assert values_of(capture, "process_write_kib_per_s", f"{GUEST}/process:my prog[14]").tolist() == [80]
    assert "process_cpu_user_pct" in capture.metrics()


def test_a_raw_file_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    raw = bytes.fromhex("efbeedfe0882000000000000e00160006400") + b"\0" * 40 + b"Linux\0"
    source = source_of(tmp_path, raw, "atop_20261125")
    assert chosen(source.path) == "atop"
    with pytest.raises(InputError, match=r"atop -r FILE -P ALL > atop\.txt"):
        atop.read(source, Request())


def test_damage_is_left_out_and_counted(tmp_path: Path) -> None:
    good = f"DSK {STAMP} sda 5000 100 800 300 4800\n"
    other = good.replace("db01", "db02")
    text = good + "what is this\n" + good.replace("5000", "x") + other + f"DSK {NEXT} sda 50"
    capture = read_text(tmp_path, text)
    assert values_of(capture, "guest_disk_util_pct", DISK).tolist() == [50]
    assert codes(capture) == ["foreign", "damaged", "other-host", "cut"]


def test_without_a_sound_line_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line with a label"):
        read_text(tmp_path, f"RESET\nDSK {STAMP} sda\nSEP\n")


def test_it_is_recognised(tmp_path: Path) -> None:
    assert chosen(RECORDING) == "atop"
    assert atop.sniff(source_of(tmp_path, "SEP\nRESET\n")) == 0
