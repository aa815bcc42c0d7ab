"""The rig the incidents are recorded on: two throttled disks, a PostgreSQL server, and ways to break them.

A disk is a raw file behind a qemu-storage-daemon throttle group, the same block layer and the same limiter a QEMU/KVM
virtual disk goes through. It reaches this kernel as NBD -> nbdfuse -> loop device with direct I/O -> ext4. (The
daemon's own FUSE export would be one step shorter, but up to QEMU 10.0 it corrupts data when several writes are in
flight.) Everything that is started is undone in the reverse order when the ``ExitStack`` closes.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

SERVER_ROOT = Path("/srv/pg")
DATABASE = "bench"
PGBENCH_SCALE = 20  # 300 MB of data: larger than shared_buffers, small enough to record anywhere
DISK_BYTES = {"data": 3 << 30, "wal": 4 << 30}
QMP_TIMEOUT_S = 10.0
# A real disk does not wait for the guest's processors. These programs are the disk, so they go before all others;
# without this, a guest short of processors would seem to have slow disks.
BEFORE_ANYTHING_ELSE = ("chrt", "--fifo", "1")
START_TIMEOUT_S = 15.0

PACKAGES = {
    "unshare": "util-linux",
    "chrt": "util-linux",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "qemu-storage-daemon": "qemu-system-common",
    "nbdfuse": "libnbd-bin",
    "fusermount3": "fuse3",
    "iostat": "sysstat",
    "mpstat": "sysstat",
    "pidstat": "sysstat",
    "sar": "sysstat",
    "vmstat": "procps",
    "pgbench": "postgresql-contrib",
    "stress-ng": "stress-ng",
}


class RigError(Exception):
    """Something the rig needs is missing or did not start; the message says what to do."""


@dataclass
class Disk:
    """One throttled disk: its role, where it is mounted, and what ``iostat`` calls it."""

    role: str
    mount: Path
    device: str = ""


@dataclass
class Rig:
    """The running rig."""

    work: Path
    stack: ExitStack
    disks: dict[str, Disk] = field(default_factory=dict)

    @property
    def qmp_socket(self) -> Path:
        """Where the storage daemon takes its orders."""
        return self.work / "qmp.sock"

    def throttle(self, role: str, iops: int) -> None:
        """Cap a disk at so many operations per second; 0 lifts the cap.

        Raises:
            RigError: the storage daemon refused.
        """
        value = {"iops-total": iops}
        path = f"/objects/limit-{role}"
        _qmp(self.qmp_socket, "qom-set", {"path": path, "property": "limits", "value": value})


def check_tools() -> Path:
    """The directory of the PostgreSQL server programs, once every tool is known to be there.

    Raises:
        RigError: naming the Debian packages that are missing.
    """
    missing = {package for tool, package in PACKAGES.items() if shutil.which(tool) is None}
    servers = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not servers:
        missing.add("postgresql")
    if missing:
        raise RigError(f"tools are missing; run: apt-get install {' '.join(sorted(missing))}")
    for device in (Path("/dev/fuse"), Path("/dev/loop-control")):
        if not device.exists():
            raise RigError(f"{device} is missing; load the fuse and loop kernel modules (modprobe fuse loop)")
    return servers[-1].parent


@dataclass(frozen=True)
class Account:
    """Whom a program runs as."""

    uid: int = 0
    gid: int = 0


ROOT = Account()


def start(
    command: Sequence[str | Path],
    output: IO[bytes] | None = None,
    account: Account = ROOT,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that Ctrl-C reaches only us and we end things in order."""
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        env=environment,
    )


def stop(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM, timeout_s: float = 20.0) -> None:
    """End a program and what it started, politely first."""
    for number in (how, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout_s)
            break


def run(*command: str | Path, account: Account = ROOT) -> str:
    """Run a program to its end; what it printed.

    Raises:
        RigError: it failed, with what it said.
    """
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
    )
    if done.returncode:
        raise RigError(f"{' '.join(map(str, command))} failed ({done.returncode}): {done.stderr.strip()}")
    return done.stdout


def _wait_for(what: str, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not ready():
        if time.monotonic() > deadline:
            raise RigError(f"{what} did not come up within {START_TIMEOUT_S:.0f} s")
        time.sleep(0.1)


def _qmp(path: Path, command: str, arguments: dict[str, Any]) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(QMP_TIMEOUT_S)
        connection.connect(str(path))
        stream = connection.makefile("rw", encoding="utf-8")
        stream.readline()  # greeting
        for execute, given in (("qmp_capabilities", {}), (command, arguments)):
            stream.write(json.dumps({"execute": execute, "arguments": given}) + "\n")
            stream.flush()
            answer = json.loads(stream.readline())
            if "error" in answer:
                raise RigError(f"qemu-storage-daemon refused {execute}: {answer['error'].get('desc', answer)}")


def build(work: Path, stack: ExitStack) -> Rig:
    """Start the storage daemon and bring up both disks, mounted under ``SERVER_ROOT``.

    Must run in a private mount namespace: a tmpfs is laid over ``SERVER_ROOT``, so nothing of the host's is touched.
    """
    rig = Rig(work, stack)
    if not SERVER_ROOT.exists():
        SERVER_ROOT.mkdir(parents=True)
        stack.callback(SERVER_ROOT.rmdir)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", SERVER_ROOT)
    stack.callback(run, "umount", SERVER_ROOT)
    command: list[str | Path] = [*BEFORE_ANYTHING_ELSE, "qemu-storage-daemon"]
    command += ["--chardev", f"socket,id=qmp,path={rig.qmp_socket},server=on,wait=off", "--monitor", "chardev=qmp"]
    command += ["--nbd-server", f"addr.type=unix,addr.path={work}/nbd.sock"]
    for role, size in DISK_BYTES.items():
        image = work / f"{role}.raw"
        with image.open("wb") as file:
            file.truncate(size)
        command += ["--object", f"throttle-group,id=limit-{role}"]
        command += ["--blockdev", f"driver=file,node-name=file-{role},filename={image},cache.direct=on,aio=native"]
        command += ["--blockdev", f"driver=throttle,node-name=disk-{role},throttle-group=limit-{role},file=file-{role}"]
        command += ["--export", f"type=nbd,id=export-{role},node-name=disk-{role},name={role},writable=on"]
    daemon = start(command)
    stack.callback(stop, daemon)
    _wait_for("qemu-storage-daemon", rig.qmp_socket.exists)
    for role in DISK_BYTES:
        rig.disks[role] = _attach(rig, role)
    # Unmounting writes; with a cap still on, that would take minutes.
    stack.callback(_lift_all, rig)
    return rig


def _attach(rig: Rig, role: str) -> Disk:
    file = rig.work / f"{role}-nbd" / "disk"
    file.parent.mkdir()
    bridge = start([*BEFORE_ANYTHING_ELSE, "nbdfuse", file, f"nbd+unix:///{role}?socket={rig.work}/nbd.sock"])
    rig.stack.callback(stop, bridge)
    _wait_for("nbdfuse", file.exists)
    rig.stack.callback(run, "fusermount3", "-u", "-z", file.parent)
    loop = run("losetup", "--find", "--show", "--direct-io=on", file).strip()
    rig.stack.callback(run, "losetup", "--detach", loop)
    # Nothing may be left to initialise in the background: it would be load nobody asked for.
    run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop)
    disk = Disk(role, SERVER_ROOT / role, Path(loop).name)
    disk.mount.mkdir(parents=True)
    run("mount", "-o", "noatime", loop, disk.mount)
    rig.stack.callback(run, "umount", disk.mount)
    return disk


def _lift_all(rig: Rig) -> None:
    for role in rig.disks:
        rig.throttle(role, 0)


SETTINGS = {
    "listen_addresses": "",
    "unix_socket_directories": str(SERVER_ROOT),
    "shared_buffers": "256MB",
    "synchronous_commit": "on",
    "checkpoint_timeout": "60s",
    "max_wal_size": "2GB",
    "min_wal_size": "1GB",
    "log_checkpoints": "on",
    "log_line_prefix": "%m [%p] ",
    "log_timezone": "UTC",
    "timezone": "UTC",
    "track_io_timing": "on",
    "track_wal_io_timing": "on",
}


def start_postgresql(rig: Rig, programs: Path, log: Path) -> None:
    """Create a cluster with data and WAL on their own disks, start it and fill it.

    Raises:
        RigError: the server does not come up; the message quotes its log.
    """
    entry = pwd.getpwnam("postgres")
    account = Account(entry.pw_uid, entry.pw_gid)
    for directory in (SERVER_ROOT, *(disk.mount for disk in rig.disks.values())):
        os.chown(directory, account.uid, account.gid)
    data, wal = rig.disks["data"].mount / "main", rig.disks["wal"].mount / "pg_wal"
    # Checksums: should the disks ever return wrong bytes, the server says so.
    run(programs / "initdb", "-D", data, "-X", wal, "-k", "--auth=trust", "--locale=C.UTF-8", account=account)
    options = [part for name, setting in SETTINGS.items() for part in ("-c", f"{name}={setting}")]
    with log.open("wb") as file:
        server = start([programs / "postgres", "-D", data, *options], file, account)
    rig.stack.callback(stop, server, signal.SIGQUIT)  # at once: the cluster is thrown away
    ready = [str(programs / "pg_isready"), "-q", "-h", str(SERVER_ROOT), "-U", "postgres"]
    try:
        _wait_for("PostgreSQL", lambda: subprocess.run(ready, check=False).returncode == 0)
    except RigError as error:
        raise RigError(f"{error}; its log ends: {log.read_text()[-400:]}") from error
    os.environ.update(PGHOST=str(SERVER_ROOT), PGUSER="postgres", PGDATABASE=DATABASE)
    run(programs / "createdb", DATABASE)
    run("pgbench", "--initialize", "--quiet", f"--scale={PGBENCH_SCALE}")
    query("CHECKPOINT")


def query(sql: str) -> str:
    """What one SQL command printed."""
    return run("psql", "-X", "-A", "-t", "-q", "-c", sql)
