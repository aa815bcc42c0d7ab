"""What Linux kernels log of trouble."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.events import events_of
from leadline.importers import kernel_log
from leadline.importers._kernel_log.messages import Trouble, disk_by_number, parse
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of

SEEDS = ROOT / "tests" / "importers" / "seeds"
DMESG, SYSLOG = (SEEDS / "dmesg.txt").read_text(), (SEEDS / "kern.log").read_text()
NINE = 1_795_510_800  # 2026-11-24 09:00 UTC


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return kernel_log.read(source_of(folder, text), request or Request())


def total(capture: Capture, metric: str, entity: str) -> float:
    return float(np.sum(group_of(capture, metric, entity).values[0]))


def moments(capture: Capture, metric: str, entity: str) -> list[float]:
    group = group_of(capture, metric, entity)
    return [when - 1 for when, value in zip(seconds(group), group.values[0], strict=True) if value > 0]


def test_dmesg_is_placed_by_the_line_that_tells_both_clocks(tmp_path: Path) -> None:
    capture = read_text(tmp_path, DMESG)
    assert total(capture, "guest_disk_timeouts_per_s", "guest:guest/block-device:sdb") == 2
    assert total(capture, "guest_disk_errors_per_s", "guest:guest/block-device:sdb") == 1  # and its echo
    assert moments(capture, "guest_disk_errors_per_s", "guest:guest/block-device:sdb") == [NINE - 1 + 724]
    stuck = moments(capture, "guest_stuck_on_disk_tasks_count", "guest:guest")
    assert (stuck[0], len(stuck)) == (NINE + 598, 121)
    texts = [event.text for event in events_of(capture.inventory, Entity.parse("guest:guest"), {"task-stuck-disk"})]
    assert texts == ["mysqld (1811) had waited for a disk for more than 120 s in folio_wait_bit_common"]
    assert codes(capture) == ["since-boot"]


def test_syslog_of_a_named_machine(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SYSLOG, Request(date="2026-11-24"))
    disk = "guest:db01/block-device:nvme1n1"
    assert moments(capture, "guest_disk_timeouts_per_s", disk) == [NINE + 11, NINE + 41]
    assert moments(capture, "guest_disk_errors_per_s", disk) == [NINE + 50]
    assert total(capture, "file_server_silent_pct", "guest:db01/datastore:filer1") == 3000
    assert total(capture, "disk_access_lost_pct", "guest:db01/path:sdb") == 1000
    assert total(capture, "guest_processes_killed_per_s", "guest:db01") == 1
    assert total(capture, "guest_cpu_standstills_per_s", "guest:db01") == 1
    assert total(capture, "guest_file_system_errors_per_s", "guest:db01/block-device:dm-3") == 3
    (killed,) = events_of(capture.inventory, Entity.parse("guest:db01"), {"process-killed"})
    assert killed.text == "mysqld (1811, 8 GiB resident)"
    assert codes(capture) == ["no-zone", "no-year", "harmless"]
    assert capture.sources[0].host == "db01"


MESSAGE = "nfs: server filer1 not responding, timed out"


@pytest.mark.parametrize(
    "line",
    [
        f"[Tue Nov 24 09:00:00 2026] {MESSAGE}",
        f"2026-11-24T09:00:00,123456+00:00 {MESSAGE}",
        f"kern  :err   : [Tue Nov 24 09:00:00 2026] {MESSAGE}",
        f"2026-11-24T09:00:00.123456+00:00 db01 kernel: [1234.5678] {MESSAGE}",
        f"2026-11-24T10:00:00+0100 db01 kernel: {MESSAGE}",
        f"Tue 2026-11-24 09:00:00 UTC db01 kernel: {MESSAGE}",
        f"<4>Nov 24 09:00:00 db01 kernel: {MESSAGE}",
        f"Nov 24 09:00:00.123456 db01 kernel: {MESSAGE}",
        f"1795510800.123456 db01 kernel: {MESSAGE}",
        f"[Nov24 09:00] {MESSAGE}",
    ],
)
def test_forms_of_lines(line: str, tmp_path: Path) -> None:
    source = source_of(tmp_path, f"{line}\n")
    assert kernel_log.sniff(source) >= 60
    capture = kernel_log.read(source, Request(date="2026-11-24"))
    guest = "db01" if " db01 " in line else "guest"
    assert moments(capture, "file_server_silent_pct", f"guest:{guest}/datastore:filer1")[0] == NINE


def test_steps_of_dmesg_add_up(tmp_path: Path) -> None:
    text = f"[Nov24 09:00] x\n[  +2.500000] y\n[ +10.000000] {MESSAGE}\n"
    capture = read_text(tmp_path, text, Request(date="2026-11-24"))
    assert moments(capture, "file_server_silent_pct", "guest:guest/datastore:filer1")[0] == NINE + 12


def test_without_an_anchor_the_last_line_is_of_the_file(tmp_path: Path) -> None:
    capture = read_text(tmp_path, f"[  100.000000] x\n[  130.000000] {MESSAGE}\n[  200.000000] y\n")
    last = moments(capture, "file_server_silent_pct", "guest:guest/datastore:filer1")[0]
    assert last == MTIME_NS // 10**9 - 70
    assert not capture.sources[0].clock_known


def test_a_paste_of_a_console_without_times(tmp_path: Path) -> None:
    text = "INFO: task jbd2/sdb1-8:512 blocked for more than 120 seconds.\nCall Trace:\n io_schedule+0x42/0x70\n"
    source = source_of(tmp_path, text)
    assert kernel_log.sniff(source) >= 60
    assert total(kernel_log.read(source, Request()), "guest_stuck_on_disk_tasks_count", "guest:guest") > 100


def test_a_long_log_keeps_the_seconds_of_its_messages(tmp_path: Path) -> None:
    text = (
        "Jan  1 00:00:00 db01 kernel: x\nNov 24 09:00:00 db01 kernel: I/O error, dev sdb, sector 1\n"
        "Nov 24 10:00:00 db01 kernel: y\n"
    )
    capture = kernel_log.read(source_of(tmp_path, text), Request(date="2026-11-24"))
    group = group_of(capture, "guest_disk_errors_per_s", "guest:db01/block-device:sdb")
    assert moments(capture, "guest_disk_errors_per_s", "guest:db01/block-device:sdb") == [NINE]
    assert len(group.times_ns) < 600


@pytest.mark.parametrize(
    ("message", "trouble", "subject"),
    [
        ("end_request: I/O error, dev sda, sector 5", Trouble.DISK_ERROR, "sda"),
        ("print_req_error: critical medium error, dev sda, sector 5", Trouble.DISK_ERROR, "sda"),
        ("sd 3:0:0:1: rejecting I/O to offline device", Trouble.DISK_ERROR, "3:0:0:1"),
        ("sd 11:0:5:0: attempting task abort!scmd(0x00000000ec158cca), outstanding for 30206 ms & timeout 30000 ms",
         Trouble.DISK_TIMEOUT, "11:0:5:0"),
        ("sd 2:0:0:0: [sda] tag#7 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=181s",
         Trouble.DISK_TIMEOUT, "sda"),
        ("ata1.00: failed command: WRITE FPDMA QUEUED", Trouble.DISK_TIMEOUT, "ata1.00"),
        ("nvme nvme0: I/O tag 775 (1007) opcode 0x1 (I/O Cmd) QID 4 timeout, aborting req_op:WRITE(1) size:4096",
         Trouble.DISK_TIMEOUT, "nvme0"),
        ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", Trouble.DISK_TIMEOUT, "nvme0"),
        ("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
         Trouble.FILE_SYSTEM, "sda"),
        ("EXT4-fs (sda1): Remounting filesystem read-only", Trouble.READ_ONLY, "sda"),
        ("Aborting journal on device dm-2-8.", Trouble.FILE_SYSTEM, "dm-2"),
        (" connection1:0: detected conn error (1022)", Trouble.PATH_LOST, "iscsi-session1"),
        ("rport-1:0-4: blocked FC remote port time out: removing target and saving binding", Trouble.PATH_LOST,
         "rport-1:0-4"),
        ("CIFS: VFS: \\\\nas1 has not responded in 180 seconds. Reconnecting...", Trouble.SERVER_GIVEN_UP, "nas1"),
        ("Memory cgroup out of memory: Killed process 77 (java) total-vm:1kB, anon-rss:1kB", Trouble.KILLED, "java"),
        ("Out of memory: Kill process 77 (java) score 900 or sacrifice child", Trouble.KILLED, "java"),
        ("mpatha: remaining active paths: 0", Trouble.DEVICE_LOST, "mpatha"),
        ("mpatha: remaining active paths: 2", Trouble.DEVICE_BACK, "mpatha"),
        ("qla2xxx [0000:05:00.0]-801c:1: Abort command issued nexus=1:0:0 -- 2002.", Trouble.DISK_TIMEOUT, "qla2xxx"),
        ("sd 5:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_NO_CONNECT", Trouble.HARMLESS, ""),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", Trouble.CPU, ""),
        ("INFO: task kworker/u16:9:7088 blocked for more than 241 seconds.", Trouble.TASK, "kworker/u16:9"),
        ("INFO: task dd:7 blocked in I/O wait for more than 122 seconds.", Trouble.TASK, "dd"),
    ],
)  # fmt: skip
def test_messages(message: str, trouble: Trouble, subject: str) -> None:
    parsed = parse(message)
    assert parsed is not None
    assert (parsed.trouble, parsed.subject) == (trouble, subject)


@pytest.mark.parametrize(
    "message",
    [
        "EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro. Quota mode: none.",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: (null)",
        "EXT4-fs (sda1): recovery complete",
        "XFS (dm-0): Mounting V5 Filesystem",
        "XFS (dm-0): Ending clean mount",
        "sd 2:0:0:0: Power-on or device reset occurred",
        "sd 2:0:0:0: [sda] Attached SCSI disk",
        "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "nvme nvme0: 4/0/0 default/read/poll queues",
        "scsi host2: vmw_pvscsi: RingPages 8",
        "clocksource: Switched to clocksource tsc",
        "rcu: \tRCU restricting CPUs from NR_CPUS=8192 to nr_cpu_ids=2.",
        "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
        "ACPI: _OSC: platform does not support [AER LTR]",
        "Kernel command line: root=/dev/sda1 ro crashkernel=auto",
        "nfs: server filer1 mounted",
        "ERST: Error Record Serialization Table (ERST) support is initialized.",
    ],
)
def test_healthy_messages_tell_of_no_trouble(message: str) -> None:
    assert parse(message) is None


def test_names_of_disks() -> None:
    assert [disk_by_number(8, 0), disk_by_number(8, 240), disk_by_number(65, 0)] == ["sda", "sdp", "sdq"]


def test_a_line_of_something_else_is_left_out(tmp_path: Path) -> None:
    lines = DMESG.splitlines()
    text = "\n".join([*lines[:4], "garbage of another tool", *lines[4:]]) + "\n"
    with pytest.raises(InputError, match=r":5"):
        read_text(tmp_path, text)
    path = tmp_path / "dmesg.txt"
    path.write_text(text)
    capture = import_paths([path]).capture
    assert "left-out" in codes(capture)


@pytest.mark.parametrize("name", ["vmkernel.log", "postgresql.log", "vmware.log"])
def test_other_logs_are_not_taken(name: str) -> None:
    path = SEEDS / name
    if not path.is_file():
        pytest.skip(f"{name} is no seed")
    source = Source(name, path)
    assert kernel_log.sniff(source) == 0
    recognised = recognise(source, load_units("importer"))
    assert recognised is not None
    assert recognised[0] != "kernel-log"


@pytest.mark.parametrize("above", ["", "[root@db01 ~]# dmesg\n", "Here is what I see:\n\n```\n"])
@pytest.mark.parametrize("dress", ["> ", "    ", "&gt; "])
def test_times_are_kept_where_each_line_is_quoted(tmp_path: Path, dress: str, above: str) -> None:
    text = (ROOT / "tests" / "importers" / "seeds" / "dmesg.txt").read_text()
    plain, quoted = tmp_path / "plain.txt", tmp_path / "quoted.txt"
    plain.write_text(text)
    quoted.write_text(above + "".join(f"{dress}{line}\n" for line in text.splitlines()))
    counts = [
        {group.metric: group.values.size for group in import_paths([one]).capture.groups} for one in (plain, quoted)
    ]
    assert counts[0] == counts[1]
