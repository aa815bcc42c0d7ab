"""A disk with a real limit: a file behind a throttle group of qemu-storage-daemon, reached over NBD.

With ``as_device`` it becomes a block device of this kernel as well (nbdfuse, then a loop device with direct I/O), so
that the kernel counts what is done to it; that needs root, FUSE and loop devices.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

START_TIMEOUT_S = 15.0


def missing(*, as_device: bool = False) -> str | None:
    """Why there can be no such disk here; None when there can."""
    programs = ["qemu-storage-daemon", *(("nbdfuse", "losetup", "fusermount3") if as_device else ())]
    absent = [name for name in programs if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    if as_device and (os.geteuid() != 0 or not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists()):
        return "needs root, /dev/fuse and /dev/loop-control"
    return None


@contextmanager
def throttled_disk(
    folder: Path, iops: int, size_bytes: int, *, as_device: bool = False, latency_ms: float = 0.0
) -> Iterator[str]:
    """A disk of so many operations per second: its NBD address, or the path of its block device.

    With ``latency_ms`` every request takes that long, however many are under way, and nothing is kept (null-co).
    """
    image, socket = folder / "disk.raw", folder / "nbd.sock"
    with image.open("wb") as stream:
        stream.truncate(size_bytes)
    words = ["qemu-storage-daemon", "--object", f"throttle-group,id=cap,limits.iops-total={iops}"]
    if latency_ms:
        words += ["--blockdev", f"driver=null-co,node-name=f,size={size_bytes},latency-ns={round(latency_ms * 1e6)}"]
    else:
        words += ["--blockdev", f"driver=file,node-name=f,filename={image}"]
    words += ["--blockdev", "driver=raw,node-name=r,file=f"]
    words += ["--blockdev", "driver=throttle,node-name=t,throttle-group=cap,file=r"]
    words += ["--nbd-server", f"addr.type=unix,addr.path={socket}"]
    words += ["--export", "type=nbd,id=e,node-name=t,name=disk,writable=on"]
    with ExitStack() as stack:
        _start(stack, words)
        _wait_for(socket.exists)
        if not as_device:
            yield f"nbd+unix:///disk?socket={socket}"
            return
        bridge = folder / "bridge" / "disk"
        bridge.parent.mkdir()
        _start(stack, ["nbdfuse", str(bridge), f"nbd+unix:///disk?socket={socket}"])
        _wait_for(bridge.exists)
        stack.callback(_run, "fusermount3", "-u", "-z", str(bridge.parent))
        found = ["losetup", "--find", "--show", "--direct-io=on", str(bridge)]
        loop = subprocess.run(found, check=True, capture_output=True, text=True).stdout.strip()
        stack.callback(_run, "losetup", "--detach", loop)
        yield loop


def _run(*words: str) -> None:
    subprocess.run(words, check=False)


def _start(stack: ExitStack, words: list[str]) -> None:
    process = subprocess.Popen(words, start_new_session=True)
    stack.callback(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)
