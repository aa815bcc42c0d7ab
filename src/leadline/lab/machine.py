"""A running guest: QEMU as a process of this user that never outlives Leadline."""

from __future__ import annotations

import base64
import contextlib
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.core.model.errors import ToolError
from leadline.core.model.histogram import Histogram
from leadline.core.system.cgroups import ControlGroup, Groups, InstanceLimits, find
from leadline.core.system.direct_io import takes_direct_io
from leadline.core.system.processes import running
from leadline.core.system.qmp import Qmp, block_counters, connect, latency_histograms, set_latency_boundaries
from leadline.core.system.tools import require_program
from leadline.lab import persistent_memory
from leadline.lab.accelerator import Accelerator, find_qemu
from leadline.lab.channel import Channel
from leadline.lab.file_systems import IN_MEMORY, file_system_of
from leadline.lab.hardware import PORTS_ADDRESS, Files, module_options, options, storage_socket
from leadline.lab.image import first_file_system
from leadline.lab.images import make_image
from leadline.lab.kernel import Kernel
from leadline.lab.processes import PID, note_process
from leadline.lab.specification import Guest, LabDisk

BOOT_S = {"kvm": 30.0, "tcg": 120.0}  # Judgement: ten times what it takes on an idle machine
APPEND = "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on leadline.guest={}"
# So that a slow virtual disk gives latency, not errors: what VMware's tools set in guests. Source: VMware KB 1009465
SCSI_TIMEOUT_S = 180
SECTOR = 512
STORAGE_DEPTH = 16  # QEMU has on their way over one connection. Source: QEMU, MAX_NBD_REQUESTS in block/nbd.c
STORAGE_START_S = 10.0
# Latencies are counted between 10 us and 200 s in buckets a twelfth of an octave wide: a percentile is within 3 %.
BOUNDARIES_NS = tuple(round(10_000 * 2.0 ** (number / 12.0)) for number in range(292))
OUTPUT = "qemu.log"
# A disk's serial number is where its kind of driver shows it; that of SCSI is a page with a binary head.
_SERIALS = (
    "for d in /sys/block/*; do echo ${d##*/} "
    "$(cat $d/serial $d/device/serial $d/device/vpd_pg80 2>/dev/null | base64 -w 0); done"
)


@dataclass(frozen=True, slots=True)
class Grounds:
    """What all guests of a lab stand on."""

    kernel: Kernel
    accelerator: Accelerator
    root: Path
    networks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Machine:
    """A guest that answers."""

    guest: Guest
    files: Files
    process: subprocess.Popen[bytes]
    monitor: Qmp
    channel: Channel
    boot_s: float
    notes: tuple[str, ...]

    def blocks(self) -> dict[str, dict[str, int]]:
        """QEMU's counters of every disk, by the disk's name: operations, bytes, nanoseconds in each direction."""
        return block_counters(self.monitor)

    def count_latencies(self) -> None:
        """Let QEMU count the latency of every request of every disk, from now on and anew."""
        set_latency_boundaries(self.monitor, [disk.name for disk in self.guest.disks], BOUNDARIES_NS)

    def latencies(self) -> dict[str, dict[str, Histogram]]:
        """By disk and direction, since they are counted."""
        return latency_histograms(self.monitor)

    def storage_bytes(self) -> tuple[float, float]:
        """Bytes that QEMU read from and wrote to the storage below the guest's disks.

        NaN where nbdkit does that for QEMU, and where the disks lie in memory: the kernel counts no bytes there.

        Source: proc_pid_io(5), read_bytes and write_bytes: what the page cache answers is not in them.
        """
        if any(disk.storage_latency is not None for disk in self.guest.disks):
            return float("nan"), float("nan")  # nbdkit reads and writes for it
        if file_system_of(self.files.folder) in IN_MEMORY:
            return float("nan"), float("nan")
        lines = Path(f"/proc/{self.process.pid}/io").read_text().splitlines()
        counters = {name: float(value) for name, _, value in (line.partition(": ") for line in lines)}
        return counters["read_bytes"], counters["write_bytes"]

    def place_of(self, disk: LabDisk) -> str:
        """What is worked on in the guest: where the file system is mounted, the partition, or the whole device."""
        if disk.filesystem is not None:
            return f"/mnt/{disk.name}"
        device = self.device_of(disk.name)
        return partition_of(device) if disk.partition_offset else device

    def device_of(self, disk: str) -> str:
        """The guest's name of a disk: found by its serial number, whatever order the guest found it in."""
        listed = self.channel.run(["sh", "-c", _SERIALS]).text
        serials = {name: _printable(rest) for name, *rest in map(str.split, listed.splitlines())}
        devices = [name for name, serial in serials.items() if serial == disk]
        if not devices:
            raise ToolError(
                f"guest {self.guest.name}",
                found=f"no disk {disk}",
                expected="the disk of that name",
                advice=f"Does the guest's kernel know the adapter? See {self.files.console}.",
            )
        return f"/dev/{devices[0]}"


def _printable(encoded: list[str]) -> str:
    """The printable part of what a serial number's file holds."""
    return "".join(chr(byte) for byte in base64.b64decode("".join(encoded)) if 32 < byte < 127)


@dataclass(frozen=True, slots=True)
class Launched:
    """A guest whose QEMU runs, and that is booting."""

    guest: Guest
    files: Files
    process: subprocess.Popen[bytes]
    began: float
    boot_s_max: float
    notes: tuple[str, ...]


@contextlib.contextmanager
def launched(guest: Guest, grounds: Grounds, folder: Path) -> Iterator[Launched]:
    """A guest from the start of its QEMU to its end; its disks are removed with it.

    Raises:
        ToolError: QEMU is missing or there is no space.
    """
    folder.mkdir(parents=True)
    direct = takes_direct_io(folder)
    notes = [] if direct else [f"{folder} cannot bypass the page cache: cache none is writeback here"]
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_disks, folder)
        images = {disk.name: make_image(disk, folder) for disk in guest.disks}
        for disk in guest.disks:
            if disk.storage_latency is not None:
                _serve(disk, images[disk.name], guest.host_queue_depth or STORAGE_DEPTH, stack)
        files = Files(folder, images, grounds.root)
        initrd = folder / "initrd"
        initrd.write_bytes(first_file_system(grounds.kernel, module_options(guest), persistent_memory.modules(guest)))
        words = [find_qemu(), *grounds.accelerator.options]
        words += options(guest, files, direct=direct, networks=grounds.networks)
        words += ["-kernel", str(grounds.kernel.image), "-initrd", str(initrd), "-append", APPEND.format(guest.name)]
        if guest.host_cpus:
            words = ["taskset", "-c", ",".join(map(str, guest.host_cpus)), *words]
        if guest.cpu_quota_pct is not None:
            words = _within_quota(guest, stack).enter(words)
        began = time.monotonic()
        output = folder / OUTPUT
        process = stack.enter_context(running(words, output=output, folder=folder, stop_signal=signal.SIGTERM))
        note_process(folder / PID, process.pid)
        yield Launched(guest, files, process, began, BOOT_S[grounds.accelerator.name], tuple(notes))


def _serve(disk: LabDisk, image: Path, depth: int, stack: contextlib.ExitStack) -> None:
    """Storage of a latency of its own, which works on so many requests at once, until the stack ends.

    Raises:
        ToolError: nbdkit is missing or does not start.
    """
    program = require_program("nbdkit", "what serves storage_latency", "nbdkit")
    delay = f"{(disk.storage_latency or 0.0) * 1e3:.0f}ms"
    path = storage_socket(disk, image.parent)
    words = [program, "--foreground", "--unix", str(path), "--threads", str(depth), "--filter=delay"]
    words += ["file", str(image), f"rdelay={delay}", f"wdelay={delay}"]
    output = image.parent / f"{disk.name}-nbdkit.log"
    process = stack.enter_context(running(words, output=output, folder=image.parent, stop_signal=signal.SIGTERM))
    deadline = time.monotonic() + STORAGE_START_S
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            messages = output.read_text(errors="replace").strip().splitlines()
            raise ToolError(
                f"disk {disk.name}: storage_latency",
                found=messages[-1] if messages else "nbdkit does not start",
                expected="storage served by nbdkit",
                advice="Is its delay filter installed?",
            )
        time.sleep(0.02)


def _within_quota(guest: Guest, stack: contextlib.ExitStack) -> ControlGroup:
    """A control group with the guest's share of the CPU, removed with the stack.

    Raises:
        ToolError: this user may make none.
    """
    limits = InstanceLimits(cpus=(guest.cpu_quota_pct or 100.0) / 100.0)
    where = find(limits)
    try:
        if isinstance(where, str):
            raise OSError(0, where)  # noqa: TRY301 - one way out
        groups = Groups(where, limits)
        stack.callback(groups.remove)
        return groups.make(1)
    except OSError as error:
        raise ToolError(
            f"guest {guest.name}: cpu_quota_pct",
            found=str(error.strerror),
            expected="control groups this user may make",
            advice="Run as root, or leave the key out and set host_cpus.",
        ) from error


@contextlib.contextmanager
def answering(booting: Launched) -> Iterator[Machine]:
    """A launched guest from the moment it answers, set up as its file says.

    Raises:
        ToolError: it does not answer in time, or cannot be set up.
    """
    files, process = booting.files, booting.process
    with contextlib.ExitStack() as stack:
        try:
            monitor = connect(files.monitor)
            stack.callback(monitor.close)
            channel = Channel(files.channel, booting.guest.name)
            stack.callback(channel.close)
            _wait_for_agent(channel, process, booting.began + booting.boot_s_max)
        except ToolError as error:
            raise _did_not_start(booting) from error
        boot_s = time.monotonic() - booting.began
        machine = Machine(booting.guest, files, process, monitor, channel, boot_s, booting.notes)
        set_up(machine)
        yield machine


def _wait_for_agent(channel: Channel, process: subprocess.Popen[bytes], deadline: float) -> None:
    while not channel.is_there(5.0):
        if process.poll() is not None or time.monotonic() > deadline:
            raise ToolError("guest", found="no answer", expected="an agent", advice="")


def _did_not_start(booting: Launched) -> ToolError:
    messages = [path.read_text(errors="replace").strip() for path in _message_files(booting.files) if path.exists()]
    last = next((text.splitlines()[-1] for text in messages if text), "nothing was printed")
    ended = booting.process.poll() is not None
    return ToolError(
        f"guest {booting.guest.name}",
        found=f"{'QEMU ended' if ended else 'it does not answer'}: {last}",
        expected="a guest that boots",
        advice=f"Its console: {booting.files.console}",
    )


def _message_files(files: Files) -> tuple[Path, Path]:
    return files.folder / OUTPUT, files.console


def _remove_disks(folder: Path) -> None:
    for path in (*folder.glob("*.raw"), *folder.glob("*.qcow2"), folder / "initrd", folder / PID):
        path.unlink(missing_ok=True)


def set_up(machine: Machine) -> None:
    """Give disks their queue depth, scheduler and file system, cards their address, and run what the file asks for.

    Raises:
        ToolError: a step fails.
    """
    for disk in machine.guest.disks:
        for step in _disk_steps(disk, machine.device_of(disk.name)):
            _must(machine, step)
    for number, nic in enumerate(machine.guest.nics):
        _must(machine, f"ip addr add {nic.address} dev eth{number} && ip link set eth{number} up")
    if machine.guest.ports:  # the card after the others
        card = f"eth{len(machine.guest.nics)}"
        _must(machine, f"ip addr add {PORTS_ADDRESS}/24 dev {card} && ip link set {card} up")
    for step in (*persistent_memory.steps(machine.guest), *machine.guest.prepare):
        _must(machine, step)


def _disk_steps(disk: LabDisk, device: str) -> Iterator[str]:
    queue = f"/sys/block/{Path(device).name}"
    yield f"[ ! -e {queue}/device/timeout ] || echo {SCSI_TIMEOUT_S} > {queue}/device/timeout"
    if disk.queue_depth is not None:
        yield f"echo {disk.queue_depth} > {queue}/device/queue_depth"
    if disk.scheduler is not None:
        yield f"echo {disk.scheduler} > {queue}/queue/scheduler"
    if disk.partition_offset:
        table = base64.b64encode(partition_table(disk.partition_offset // SECTOR, disk.size // SECTOR)).decode()
        yield f"echo {table} | base64 -d | dd of={device} bs=512 conv=fsync 2>/dev/null && blockdev --rereadpt {device}"
        device = partition_of(device)
        yield f"for i in 1 2 3 4 5 6 7 8; do [ -b {device} ] && break; sleep 0.5; done; [ -b {device} ]"
    if disk.filesystem is not None:
        yield f"mkfs.{disk.filesystem} {'-q -F' if disk.filesystem == 'ext4' else '-q -f'} {device}"
        yield f"mkdir -p /mnt/{disk.name} && mount -t {disk.filesystem} {device} /mnt/{disk.name}"
        yield f"chmod 1777 /mnt/{disk.name}"


def partition_table(first: int, sector_count: int) -> bytes:
    """A master boot record with one Linux partition from a sector to the disk's end; fdisk could not leave it at 63.

    Source: the layout every PC boots from since 1983: entries of 16 bytes at 446, signature at 510.

    >>> partition_table(63, 2048)[446:462].hex()
    '00fffffe83fffefe3f000000c1070000'
    """
    entry = struct.pack("<B3sB3sII", 0, b"\xff\xff\xfe", 0x83, b"\xff\xfe\xfe", first, sector_count - first)
    return bytes(446) + entry + bytes(48) + b"\x55\xaa"


def partition_of(device: str) -> str:
    """The first partition of a device.

    >>> partition_of("/dev/sda"), partition_of("/dev/nvme0n1")
    ('/dev/sda1', '/dev/nvme0n1p1')
    """
    return f"{device}p1" if device[-1].isdigit() else f"{device}1"


def _must(machine: Machine, step: str) -> None:
    answer = machine.channel.run(["sh", "-c", step], timeout_s=300.0)
    if answer.status:
        messages = (answer.err or answer.out).decode(errors="replace").strip().splitlines()
        raise ToolError(
            f"guest {machine.guest.name}: {step}",
            found=messages[-1] if messages else f"exit status {answer.status}",
            expected="exit status 0",
            advice="Correct the lab file.",
        )
