"""Messages of the Linux kernel that tell of trouble: of a disk, a file system, a file server, memory or a CPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from leadline.estate.derived.disks import whole_disk


class Trouble(StrEnum):
    """What a message tells of."""

    DISK_ERROR = "disk-error"
    DISK_ECHO = "disk-error-echo"  # of an error that another line tells too; it counts where none does
    DISK_TIMEOUT = "disk-timeout"
    FILE_SYSTEM = "file-system-error"
    READ_ONLY = "file-system-read-only"
    TASK = "task-stuck"
    KILLED = "process-killed"
    ALLOCATION = "allocation-stalled"
    CPU = "cpu-stuck"
    SERVER_SILENT = "file-server-silent"
    SERVER_BACK = "file-server-back"
    SERVER_GIVEN_UP = "file-server-given-up"
    PATH_LOST = "path-lost"
    PATH_BACK = "path-back"
    DEVICE_LOST = "device-lost"
    DEVICE_BACK = "device-back"
    HARMLESS = "harmless"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of trouble.

    Attributes:
        subject: the disk, path, server or process it is about; empty for the machine.
        text: what a person should read of it.
        seconds: how long it lasted before the line, where the line tells; else 0.
        key: what makes two lines the same event; empty where each line is one.
    """

    trouble: Trouble
    subject: str = ""
    text: str = ""
    seconds: float = 0.0
    key: str = ""


_REMOVABLE = re.compile(r"(?:fd|sr|scd|hd[c-d]$)\d{0,3}")
_ERROR = re.compile(
    r"(?:: |^)([A-Za-z/ -]{3,40}?) error, dev ([\w/.-]{1,40}), sector (\d{1,20})"
    r"(?: op 0x[\da-f]{1,8}:\(([A-Z_]{1,20})\))?"
)
_BUFFER = re.compile(r"Buffer I/O error on (?:dev|device) ([\w/.-]{1,40}),")
_NVME_ERROR = re.compile(r"(nvme\d{1,4}n\d{1,4}): .{0,60}?(?:I/O Error|Error) \(sct ")
_OFFLINE = re.compile(
    r"rejecting I/O to (?:offline|dead) device|Device offlined|device offlined|Medium Error|DISCONNECTED: offline"
)
_SCSI = re.compile(r"\bsd (\d{1,5}:\d{1,5}:\d{1,5}:\d{1,10}):(?: \[(sd[a-z]{1,4})\])? ?(?:tag#\d{1,10} )?(.{0,200})")
_HOST_BYTE = re.compile(r"hostbyte=(DID_(?:TIME_OUT|ABORT|RESET|NO_CONNECT|BUS_BUSY|REQUEUE|TRANSPORT_\w{1,20}))")
_GIVEN_UP = re.compile(
    r"(?:attempting (?:task abort|(?:device|target|bus|host) reset|abort)|task abort on host|abort requested|"
    r"(?:device|bus|Bus|host|target) reset on |timing out command|^abort$|^device reset$|Command timed out|"
    r"ABORT SUCCEEDED|timed out waiting|Abort command issued|"
    r"(?:DEVICE|TARGET|BUS|Adapter) (?:RESET|reset) (?:ISSUED|issued))"
)
_ADAPTER = re.compile(
    r"(?:mpt\w{2,10}|megaraid\w{0,5}|vmw_pvscsi|aacraid|hpsa|smartpqi|qla2xxx|lpfc|virtio_scsi|scsi host\d{1,5})\b"
)
_ATA = re.compile(r"(ata\d{1,4}(?:\.\d{2})?): (?:failed command: ([A-Z /]{3,40})|COMRESET failed)")
_NVME = re.compile(
    r"(nvme\d{1,4}): (?:I/O (?:tag )?\d{1,10} .{0,80}?(timeout, [a-z ]{3,40})|(controller is down; will reset)|"
    r"(Device not ready; aborting \w{3,20})|(Removing after probe failure)|(Disabling device after reset failure))"
)
_STORVSC = re.compile(r"tag#\d{1,10} cmd 0x(28|2a|88|8a|08|0a) status: scsi 0x\w{1,2} srb 0x\w{1,2} hv 0x")
_MULTIPATH = re.compile(r"(Failing|Reinstating) path (\d{1,4}):(\d{1,7})")
_PATHS_LEFT = re.compile(r"([\w.-]{1,80}): remaining active paths: (\d{1,4})")
_ISCSI = re.compile(
    r"\b(?:connection|session)(\d{1,5}(?::\d{1,5})?):? "
    r"(detected conn error|ping timeout|session recovery timed out|is operational)"
)
_REMOTE_PORT = re.compile(r"(rport-\d{1,5}:\d{1,5}-\d{1,5}): blocked FC remote port time ?out")
_FS = re.compile(r"EXT[234]-fs error|EXT[234]-fs \([\w/.-]{1,60}\): error\b(?! count)|BTRFS:? (?:error|critical)")
_FS_DEVICE = re.compile(r"\((?:device )?([\w/.-]{1,60})\)|\bon (?:device )?([\w/.-]{1,60}?)(?:-\d{1,5})?(?:[.,: ]|$)")
_FS_WORDS = (
    "Detected aborted journal",
    "Aborting journal",
    "previous I/O error to superblock",
    "Detected IO errors while flushing",
    "journal commit I/O error",
    "metadata I/O error",
    "log I/O error",
    "writeback error on",
    "xfs_do_force_shutdown",
    "Shutting down filesystem",
    "ilesystem has been shut down",
    "Metadata corruption detected",
    "I/O error while writing superblock",
    "forced readonly",
)
_READ_ONLY = (
    "Remounting filesystem read-only",
    "forced readonly",
    "Filesystem has been shut down",
    "Shutting down filesystem",
)
_NFS = re.compile(r"nfs: server (\S{1,255}) (not responding, still trying|not responding, timed out|OK)")
_CIFS = re.compile(r"(?:Server |\\\\)(\S{1,255}) has not responded in (\d{1,6}) seconds")
_TASK = re.compile(r"INFO: task (.{1,60}):(\d{1,10}) blocked .{0,20}?for more than (\d{1,9}) seconds")
_KILLED = re.compile(r"[Kk]ill(?:ed)? process (\d{1,10}) \((.{1,40}?)\),?(?: UID \d{1,10},?)?(.{0,300})")
_RESIDENT = re.compile(r"(?:anon-rss|file-rss|shmem-rss):(\d{1,15})kB")
_STALLED = re.compile(r"page allocation stalls for (\d{1,10})ms")
_LOCKUP = re.compile(r"BUG: soft lockup - CPU#(\d{1,5}) stuck for (\d{1,9})s! ?(?:\[(.{1,60}?)(?::\d{1,10})?\])?")
_HARD_LOCKUP = re.compile(r"Watchdog detected hard LOCKUP on cpu ?(\d{1,5})")
_RCU = re.compile(r"INFO: rcu_\w{1,20} (?:self-)?detected (?:expedited )?stalls? on")
_READOUT = re.compile(r"clocksource: Long readout interval, .{0,60}?cs_nsec: (\d{1,20})")
_HARMLESS_OPERATIONS = frozenset({"DISCARD", "WRITE_ZEROES", "WRITE_SAME", "SECURE_ERASE"})
_LETTERS = 26
_SCSI_MAJORS = (8, *range(65, 72), *range(128, 136))
_MINORS_PER_DISK = 16
_RCU_TIMEOUT = "for longer than the kernel's limit (21 s unless it was changed)"


def parse(message: str) -> Message | None:
    """The trouble a message tells of; None for all others."""
    for needles, reader in _READERS:
        if any(needle in message for needle in needles):
            parsed = reader(message)
            if parsed is not None:
                return parsed
    return None


def disk_by_number(major: int, minor: int) -> str:
    """The name of a SCSI disk by its device number.

    >>> disk_by_number(8, 16), disk_by_number(65, 176), disk_by_number(253, 2)
    ('sdb', 'sdab', '253:2')
    """
    if major not in _SCSI_MAJORS:
        return f"{major}:{minor}"
    index = _SCSI_MAJORS.index(major) * _MINORS_PER_DISK + minor // _MINORS_PER_DISK
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, _LETTERS)
        letters = chr(ord("a") + rest) + letters
    return f"sd{letters}"


def _error(message: str) -> Message | None:
    match = _ERROR.search(message)
    if match is None:
        return None
    disk, operation = whole_disk(match[2]), match[4] or ""
    if _REMOVABLE.match(disk) or operation in _HARMLESS_OPERATIONS or "not supported" in match[1]:
        return Message(Trouble.HARMLESS)
    verb = {"READ": "read", "WRITE": "write", "FLUSH": "flush"}.get(operation, "request")
    kind = match[1].strip().rpartition(": ")[2]
    return Message(Trouble.DISK_ERROR, disk, f"a {verb} of {disk} at sector {match[3]} failed ({kind} error)")


def _echo(message: str) -> Message | None:
    match = _BUFFER.search(message) or _NVME_ERROR.search(message)
    if match is None:
        return None
    disk = whole_disk(match[1])
    if _REMOVABLE.match(disk):
        return Message(Trouble.HARMLESS)
    return Message(Trouble.DISK_ECHO, disk, f"a request of {disk} failed")


def _scsi(message: str) -> Message | None:
    """A line of one SCSI disk; its subject is the name or the address."""
    match = _SCSI.search(message)
    if match is None:
        return None
    disk, rest = match[2] or match[1], match[3]
    if _OFFLINE.search(rest):
        return Message(Trouble.DISK_ERROR, disk, f"{disk}: {rest[:60].strip()}", key=f"{disk} offline")
    if (given_up := _GIVEN_UP.search(rest)) is not None:
        return Message(Trouble.DISK_TIMEOUT, disk, f"{disk}: {given_up[0].strip()}")
    if (result := _HOST_BYTE.search(rest)) is not None:
        if result[1] == "DID_NO_CONNECT" and "ynchroniz" in rest:  # a disk that was taken away
            return Message(Trouble.HARMLESS)
        return Message(Trouble.DISK_TIMEOUT, disk, f"{disk}: {result[1]}")
    return None


def _adapter(message: str) -> Message | None:
    match = _GIVEN_UP.search(message)
    adapter = _ADAPTER.match(message)
    if match is None or adapter is None:
        return None
    name = adapter[0]
    return Message(Trouble.DISK_TIMEOUT, name, f"{name}: {match[0].strip()}")


def _ata(message: str) -> Message | None:
    match = _ATA.search(message)
    if match is None:
        return None
    return Message(Trouble.DISK_TIMEOUT, match[1], f"{match[1]}: {(match[2] or 'COMRESET').strip()} failed")


def _nvme(message: str) -> Message | None:
    match = _NVME.search(message)
    if match is None:
        return None
    cause = next(group for group in match.groups()[1:] if group is not None)
    return Message(Trouble.DISK_TIMEOUT, match[1], f"{match[1]}: {cause}")


def _storvsc(message: str) -> Message | None:
    match = _STORVSC.search(message)
    if match is None:
        return None
    verb = "read" if match[1] in {"28", "88", "08"} else "write"
    return Message(Trouble.DISK_TIMEOUT, "storvsc", f"Hyper-V's storage failed a {verb}")


def _multipath(message: str) -> Message | None:
    left = _PATHS_LEFT.search(message)
    if left is not None:
        trouble = Trouble.DEVICE_BACK if int(left[2]) else Trouble.DEVICE_LOST
        return Message(trouble, left[1], f"{left[1]}: {left[2]} paths left")
    match = _MULTIPATH.search(message)
    if match is None:
        return None
    path = disk_by_number(int(match[2]), int(match[3]))
    return Message(Trouble.PATH_LOST if match[1] == "Failing" else Trouble.PATH_BACK, path, f"path {path}")


def _iscsi(message: str) -> Message | None:
    match = _ISCSI.search(message)
    if match is None:
        port = _REMOTE_PORT.search(message)
        return None if port is None else Message(Trouble.PATH_LOST, port[1], f"FC port {port[1]} timed out")
    name = f"iscsi-session{match[1].partition(':')[0]}"
    is_back = match[2] == "is operational"
    return Message(Trouble.PATH_BACK if is_back else Trouble.PATH_LOST, name, f"{name}: {match[2]}")


def _file_system(message: str) -> Message | None:
    is_error = any(words in message for words in _FS_WORDS)
    is_read_only = any(words in message for words in _READ_ONLY)
    match = None if is_error or is_read_only else _FS.search(message)
    if not (is_error or is_read_only or match):
        return None
    device = _FS_DEVICE.search(message)
    name = whole_disk((device[1] or device[2]) if device else "")
    trouble = Trouble.READ_ONLY if is_read_only else Trouble.FILE_SYSTEM
    return Message(trouble, name, message.strip()[:100])


def _nfs(message: str) -> Message | None:
    match = _NFS.search(message)
    if match is None:
        return None
    trouble = {"OK": Trouble.SERVER_BACK, "not responding, timed out": Trouble.SERVER_GIVEN_UP}
    return Message(trouble.get(match[2], Trouble.SERVER_SILENT), match[1], f"{match[1]} {match[2]}")


def _cifs(message: str) -> Message | None:
    match = _CIFS.search(message)
    if match is None:
        return None
    name = match[1].strip("\\")
    return Message(Trouble.SERVER_GIVEN_UP, name, f"{name} did not answer for {match[2]} s", float(match[2]))


def _task(message: str) -> Message | None:
    match = _TASK.search(message)
    if match is None:
        return None
    in_wait = " blocked in I/O wait " in message
    return Message(Trouble.TASK, match[1], match[2], float(match[3]), "disk" if in_wait else "")


def _killed(message: str) -> Message | None:
    match = _KILLED.search(message)
    if match is None:
        return None
    resident_kib = sum(int(number) for number in _RESIDENT.findall(match[3]))
    size = f", {resident_kib / (1 << 20):.3g} GiB resident" if resident_kib else ""
    group = " by the limit of its control group" if "emory cgroup" in message else ""
    return Message(Trouble.KILLED, match[2], f"{match[2]} ({match[1]}{size}){group}", key=f"{match[1]} {match[2]}")


def _memory(message: str) -> Message | None:
    match = _STALLED.search(message)
    if match is None:
        return None
    return Message(Trouble.ALLOCATION, message.split(":", 1)[0][:40], "", float(match[1]) / 1000)


def _cpu(message: str) -> Message | None:
    if (match := _LOCKUP.search(message)) is not None:
        program = f" in {match[3]}" if match[3] else ""
        return Message(Trouble.CPU, "", f"CPU {match[1]} stood still for {match[2]} s{program}", float(match[2]))
    if (match := _HARD_LOCKUP.search(message)) is not None:
        return Message(Trouble.CPU, "", f"CPU {match[1]} answered no interrupt for 10 s or more", 10.0)
    if (match := _READOUT.search(message)) is not None:
        seconds = float(match[1]) / 1e9
        return Message(Trouble.CPU, "", f"the clock was read {seconds:.3g} s late", seconds) if seconds >= 1 else None
    if _RCU.search(message) is not None:
        return Message(Trouble.CPU, "", f"a CPU did not come by {_RCU_TIMEOUT}")
    return None


Reader = Callable[[str], Message | None]
_READERS: tuple[tuple[tuple[str, ...], Reader], ...] = (
    (("error, dev ",), _error),
    (("Buffer I/O error", "(sct "), _echo),
    (("sd ",), _scsi),
    (
        ("attempting ", "reset on ", "Command timed out", "abort", "Abort command", "RESET ISSUED", "reset issued"),
        _adapter,
    ),
    (("ata",), _ata),
    (("nvme",), _nvme),
    (("tag#",), _storvsc),
    (("ing path ", "remaining active paths"), _multipath),
    (("connection", "session", "rport-"), _iscsi),
    (("not responding", "nfs: server "), _nfs),
    (("has not responded in",), _cifs),
    (("blocked ",), _task),
    (("ill process ", "illed process "), _killed),
    (("allocation stalls",), _memory),
    (("lockup", "LOCKUP", "rcu_", "Long readout"), _cpu),
    (("EXT", "XFS", "BTRFS", "JBD2", "ournal", "xfs", "ilesystem"), _file_system),
)

_FRAME = re.compile(r"^\s*(?:\[<[\da-f]{1,16}>\] ?)?(\? )?([A-Za-z_][\w.]{1,80})\+0x[\da-f]{1,8}/0x[\da-f]{1,8}")
_SCHEDULER = frozenset(
    "__schedule schedule __switch_to __switch_to_asm schedule_timeout schedule_preempt_disabled context_switch "
    "schedule_hrtimeout_range schedule_hrtimeout_range_clock io_schedule io_schedule_timeout".split()
)
_OF_SERVER = ("nfs", "rpc_", "__rpc", "cifs", "smb2", "smb_", "xprt_")
_OF_DISK = (
    *("io_schedule", "blk_", "__blk", "bio_", "submit_bio", "blkdev_", "__blkdev", "get_request", "wbt_", "rq_qos"),
    *("jbd2_", "wait_transaction_locked", "do_get_write_access", "xfs_log_", "xlog_", "_xfs_log", "xfs_buf_"),
    *("wait_on_page", "folio_wait", "__folio_lock", "__lock_page", "wait_on_buffer", "__wait_on_buffer", "sleep_on_"),
    *("dio_", "iomap_dio", "__iomap_dio", "do_blockdev_direct", "balance_dirty_pages", "md_", "raid", "dm_", "swap_"),
    *("read_swap", "wait_for_commit", "btrfs_wait", "wait_on_bit_io", "bit_wait_io", "ext4_sync", "sync_inodes"),
)
_OF_LOCK = ("mutex", "__mutex", "rwsem", "down_", "__down", "call_rwsem", "percpu_rwsem")


def frame_of(message: str) -> str | None:
    """The function of a line of a call trace; None for other lines, and for a function that may only be a remnant."""
    match = _FRAME.match(message)
    return None if match is None or match[1] else match[2]


def wait_of(frames: list[str], from_message: str) -> tuple[str, str]:
    """What a stuck task waits for by its call trace (disk, server, lock or nothing known), and in which function."""
    place = next((frame for frame in frames if frame not in _SCHEDULER), frames[0] if frames else "")
    if any(frame.startswith(_OF_SERVER) for frame in frames):
        return "server", place
    if from_message == "disk" or any(frame.startswith(_OF_DISK) for frame in frames):
        return "disk", place
    return ("lock" if any(frame.startswith(_OF_LOCK) for frame in frames) else ""), place
