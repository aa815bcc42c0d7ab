"""The disks the incidents are recorded on, and ways to make them bad.

A disk is a file in memory behind nbdkit, which gives each answer its time (``disk.c``), and a throttle group of
qemu-storage-daemon: the block layer and the limiter of a virtual disk of QEMU/KVM. It reaches this kernel as NBD ->
nbdfuse -> loop device with direct I/O -> ext4. (The daemon's own FUSE export would be one step shorter, but up to QEMU
10.0 it corrupts data when several writes are in flight.) What is started is ended in the reverse order when the
``ExitStack`` closes.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from incidents.processes import RigError, run, start, stop, wait_for

SERVER_ROOT = Path("/srv/db")
DISK_BYTES = {"data": 2 << 30, "wal": 3 << 29, "swap": 1 << 29}
# Disks the database does not use, for bystanders.
BYSTANDER_BYTES = {"other": 1 << 29, "second": 1 << 29}
DISK_PROGRAM = Path(__file__).with_name("disk.c")
LOCKING_LIBRARY = Path(__file__).with_name("locked.c")
QMP_TIMEOUT_S = 10.0
# A solid-state disk of a shared array: time of a read, of a write and of a flush.
HEALTHY_US = (300, 250, 400)
# A real disk does not wait for the guest's processors. These programs are the disk, so they go before all others;
# without this, a guest short of processors would seem to have slow disks.
BEFORE_ANYTHING_ELSE = ("chrt", "--fifo", "1")
LIMITS = tuple(f"{unit}-{way}" for unit in ("iops", "bps") for way in ("total", "read", "write"))
DROP_INTERVAL_S = 0.25

PACKAGES = {
    "unshare": "util-linux",
    "chrt": "util-linux",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "gcc": "gcc",
    "nbdkit": "nbdkit",
    "qemu-storage-daemon": "qemu-system-common",
    "nbdfuse": "libnbd-bin",
    "nbdcopy": "libnbd-bin",
    "fusermount3": "fuse3",
    "iostat": "sysstat",
    "mpstat": "sysstat",
    "pidstat": "sysstat",
    "sar": "sysstat",
    "vmstat": "procps",
    "pgbench": "postgresql-contrib",
    "stress-ng": "stress-ng",
    "fio": "fio",
    "faketime": "faketime",
    "nft": "nftables",
    "tc": "iproute2",
    "ip": "iproute2",
    "mariadbd": "mariadb-server",
    "sysbench": "sysbench",
}
NBDKIT_HEADER = Path("/usr/include/nbdkit-plugin.h")


@dataclass
class Disk:
    """One disk: its role, where it is mounted, and what ``iostat`` calls it."""

    role: str
    mount: Path
    control: Path
    device: str = ""


@dataclass
class Rig:
    """The running disks."""

    work: Path
    stack: ExitStack
    disks: dict[str, Disk] = field(default_factory=dict)

    @property
    def qmp_socket(self) -> Path:
        """Where the storage daemon takes its orders."""
        return self.work / "qmp.sock"

    @property
    def locking(self) -> Path:
        """What keeps the memory of the programs that serve the disks from being swapped out."""
        return self.work / "locked.so"

    def device(self, role: str) -> str:
        """The kernel's name of a disk."""
        return self.disks[role].device

    def throttle(self, role: str, **limits: int) -> None:
        """Cap a disk, for example ``iops_total=100`` or ``bps_write=5_000_000``; without limits the cap is lifted.

        Raises:
            RigError: the storage daemon refused.
        """
        # The daemon keeps what is not mentioned.
        value = dict.fromkeys(LIMITS, 0) | {name.replace("_", "-"): limit for name, limit in limits.items()}
        path = f"/objects/limit-{role}"
        _qmp(self.qmp_socket, "qom-set", {"path": path, "property": "limits", "value": value})

    def slow(self, role: str, read_us: int = 0, write_us: int = 0, flush_us: int = 0) -> None:
        """Set what a read, a write and a flush of a disk take; 0 keeps the healthy time."""
        times = (slow or healthy for slow, healthy in zip((read_us, write_us, flush_us), HEALTHY_US, strict=True))
        self._control(role, struct.pack("3I", *times), 0)

    def freeze(self, role: str, *, frozen: bool) -> None:
        """Let a disk stand still, or answer again."""
        self._control(role, struct.pack("I", int(frozen)), 12)

    def _control(self, role: str, words: bytes, offset: int) -> None:
        with self.disks[role].control.open("r+b", buffering=0) as file:
            file.seek(offset)
            file.write(words)

    @contextmanager
    def capped(self, role: str, **limits: int) -> Iterator[None]:
        """A disk's cap, held for a while."""
        self.throttle(role, **limits)
        try:
            yield
        finally:
            self.throttle(role)

    @contextmanager
    def uncached(self, *, every_s: float = DROP_INTERVAL_S, flush: bool = False) -> Iterator[None]:
        """Files of the data disk leave the page cache again and again, as if they were far larger than memory.

        With ``flush`` they are written out first, as a kernel that is short of memory does.
        """
        done = threading.Event()
        arguments = (self.disks["data"].mount, done, every_s, flush)
        dropper = threading.Thread(target=_drop_pages, args=arguments, daemon=True)
        dropper.start()
        try:
            yield
        finally:
            done.set()
            dropper.join()

    def neighbour(self, role: str) -> str:
        """The address of a second disk under the same throttle group: a neighbour on the same datastore."""
        return f"nbd+unix:///neighbour-{role}?socket={self.work}/nbd.sock"


def _drop_pages(folder: Path, done: threading.Event, every_s: float, flush: bool) -> None:
    while not done.wait(every_s):
        if flush:
            run("sync", "--file-system", folder)
        for parent, _, names in os.walk(folder):
            for name in names:
                try:
                    descriptor = os.open(os.path.join(parent, name), os.O_RDONLY | os.O_NOATIME)  # noqa: PTH118
                except OSError:
                    continue  # gone, or a socket
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)


def check_tools() -> Path:
    """The directory of the PostgreSQL server programs, once every tool is known to be there.

    Raises:
        RigError: naming the Debian packages that are missing.
    """
    missing = {package for tool, package in PACKAGES.items() if shutil.which(tool) is None}
    servers = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not servers:
        missing.add("postgresql")
    if not NBDKIT_HEADER.exists():
        missing.add("nbdkit-plugin-dev")
    if missing:
        raise RigError(f"tools are missing; run: apt-get install {' '.join(sorted(missing))}")
    for device in (Path("/dev/fuse"), Path("/dev/loop-control")):
        if not device.exists():
            raise RigError(f"{device} is missing; load the fuse and loop kernel modules (modprobe fuse loop)")
    return servers[-1].parent


def _qmp(path: Path, command: str, arguments: dict[str, Any]) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(QMP_TIMEOUT_S)
        connection.connect(str(path))
        stream = connection.makefile("rw", encoding="utf-8")
        stream.readline()  # greeting
        for execute, words in (("qmp_capabilities", {}), (command, arguments)):
            stream.write(json.dumps({"execute": execute, "arguments": words}) + "\n")
            stream.flush()
            answer = json.loads(stream.readline())
            if "error" in answer:
                raise RigError(f"qemu-storage-daemon refused {execute}: {answer['error'].get('desc', answer)}")


def build(work: Path, stack: ExitStack, *, has_bystanders: bool = False) -> Rig:
    """Start the storage daemon and bring up the disks, mounted under ``SERVER_ROOT``; swap is left unused.

    Must run in a private mount namespace: a tmpfs is laid over ``SERVER_ROOT``, so nothing of the host's is touched.
    """
    rig = Rig(work, stack)
    sizes = DISK_BYTES | (BYSTANDER_BYTES if has_bystanders else {})
    if not SERVER_ROOT.exists():
        SERVER_ROOT.mkdir(parents=True)
        stack.callback(SERVER_ROOT.rmdir)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", SERVER_ROOT)
    stack.callback(run, "umount", SERVER_ROOT)
    images = work / "images"
    images.mkdir()
    run("mount", "-t", "ramfs", "-o", "mode=700", "ramfs", images)  # not tmpfs: that may be swapped out, to itself
    stack.callback(run, "umount", images)
    run("gcc", "-shared", "-fPIC", "-o", rig.locking, LOCKING_LIBRARY)
    command: list[str | Path] = ["qemu-storage-daemon"]
    command += ["--chardev", f"socket,id=qmp,path={rig.qmp_socket},server=on,wait=off", "--monitor", "chardev=qmp"]
    command += ["--nbd-server", f"addr.type=unix,addr.path={work}/nbd.sock,max-connections=32"]
    for role, size in sizes.items():
        rig.disks[role] = _serve(rig, role, size)
        command += ["--object", f"throttle-group,id=limit-{role}"]
        command += _exported(work, role, f"limit-{role}", role)
    # A neighbour's disk: its own blocks, but the throttle group of the data disk.
    _serve(rig, "neighbour-data", 1 << 28)
    command += _exported(work, "neighbour-data", "limit-data", "neighbour-data")
    stack.callback(stop, _start_server(rig, command))
    wait_for("qemu-storage-daemon", rig.qmp_socket.exists)
    for role in sizes:
        _attach(rig, role)
    stack.callback(_heal, rig)  # unmounting writes; with a cap still on, that would take minutes
    return rig


def _serve(rig: Rig, role: str, size: int) -> Disk:
    """Start the nbdkit of a disk of so many bytes."""
    image, control, path = (rig.work / f"{role}{end}" for end in (".raw", ".control", ".nbdkit"))
    image = rig.work / "images" / image.name
    with image.open("wb") as file:
        file.truncate(size)
    control.write_bytes(struct.pack("4I", *HEALTHY_US, 0))
    command = ["nbdkit", "--foreground", "--exit-with-parent", "--threads=64", f"--unix={path}"]
    command += ["cc", str(DISK_PROGRAM), f"image={image}", f"control={control}"]
    rig.stack.callback(stop, _start_server(rig, command))
    wait_for("nbdkit", path.exists)
    return Disk(role, SERVER_ROOT / role, control)


def _start_server(rig: Rig, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
    """Start a program that is the disk: before all others, and never swapped out."""
    environment = {**os.environ, "LD_PRELOAD": str(rig.locking)}
    return start([*BEFORE_ANYTHING_ELSE, *command], environment=environment)


def _exported(work: Path, role: str, group: str, name: str) -> list[str | Path]:
    below = f"driver=nbd,node-name=file-{role},server.type=unix,server.path={work}/{role}.nbdkit"
    return [
        *("--blockdev", below),
        *("--blockdev", f"driver=throttle,node-name=disk-{role},throttle-group={group},file=file-{role}"),
        *("--export", f"type=nbd,id=export-{role},node-name=disk-{role},name={name},writable=on"),
    ]


def _attach(rig: Rig, role: str) -> None:
    disk = rig.disks[role]
    file = rig.work / f"{role}-nbd" / "disk"
    file.parent.mkdir()
    bridge = _start_server(rig, ["nbdfuse", file, f"nbd+unix:///{role}?socket={rig.work}/nbd.sock"])
    rig.stack.callback(stop, bridge)
    wait_for("nbdfuse", file.exists)
    rig.stack.callback(run, "fusermount3", "-u", "-z", file.parent)
    loop = run("losetup", "--find", "--show", "--direct-io=on", file).strip()
    rig.stack.callback(run, "losetup", "--detach", loop)
    disk.device = Path(loop).name
    if role == "swap":
        run("mkswap", loop)
        return
    # Nothing may be left to initialise in the background: it would be load nobody asked for.
    run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop)
    disk.mount.mkdir(parents=True)
    run("mount", "-o", "noatime", loop, disk.mount)
    rig.stack.callback(run, "umount", disk.mount)


def _heal(rig: Rig) -> None:
    for role in rig.disks:
        rig.throttle(role)
        rig.slow(role)
        rig.freeze(role, frozen=False)
