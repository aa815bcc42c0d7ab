"""Device DAX: persistent memory as a character device ``/dev/daxN.M``, which programs map and never read or write.

fio's dev-dax engine copies to and from the mapping, so there is one request at a time, no page cache and no direct I/O.
The kernel maps a whole number of the device's alignment only. It lets any number of programs map a device at once.

Source: fio 3.33, ``engines/dev-dax.c`` (size from /sys/dev/char; direct=0 required; a block below a page is refused
with fdatasync; every write is ``pmem_memcpy_persist``); Linux, ``drivers/dax/device.c`` (``check_vma``: start and end
are on the alignment), ABI/testing/sysfs-bus-dax; ndctl-create-namespace(1), modes and --align.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from leadline.core.contracts.benchmark import Place
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import IoSettings, Stream
from leadline.core.system.opened import Identity, descriptor_of, in_use, lock, printable
from leadline.core.system.safety import require_named

ENGINE = "dev-dax"
SYSFS, PROCESSES = Path("/sys"), Path("/proc")
PAGE = mmap.PAGESIZE
USUAL_ALIGN_BYTES = 2 * 1024**2  # of `ndctl create-namespace --mode=devdax` without --align
_NAME = re.compile(r"/dev/dax\d+\.\d+")


@dataclass(frozen=True, slots=True)
class DaxDevice:
    """A device of persistent memory: its size, and what every mapping of it is a multiple of."""

    size_bytes: int
    align_bytes: int

    def working_set_bytes(self, wanted: int) -> int:
        """Return the bytes of a working set that can be mapped: the next multiple of the alignment that is there."""
        whole = self.size_bytes // self.align_bytes
        return min(-(-wanted // self.align_bytes), whole) * self.align_bytes


def is_named(path: str) -> bool:
    """Whether a path on another machine is a DAX device by its name.

    >>> is_named("/dev/dax0.0"), is_named("/dev/sda")
    (True, False)
    """
    return _NAME.fullmatch(path) is not None


def dax_device(path: Path) -> DaxDevice | None:
    """Return the DAX device that a path leads to; None where it leads to something else."""
    state = path.stat()
    if not stat.S_ISCHR(state.st_mode):
        return None
    number = f"{os.major(state.st_rdev)}:{os.minor(state.st_rdev)}"
    device = SYSFS / "dev" / "char" / number
    if (device / "subsystem").resolve().name != "dax":
        return None
    try:
        return DaxDevice(int((device / "size").read_text()), int((device / "align").read_text()))
    except (OSError, ValueError):
        return None  # before Linux 5.10 nothing says the alignment, and nothing can be planned without it


def place(path: Path, device: DaxDevice, wanted: int, named: str | None, *, writes: bool) -> Place:
    """Return where a stream works on a DAX device.

    Args:
        path: of the device.
        device: what it is.
        wanted: bytes of the working set.
        named: what the user named to be overwritten.
        writes: the load overwrites it.

    Raises:
        UsageError: it is too small, would be overwritten but nobody named it, is in use or locked, or may not be
            opened.
    """
    size = device.working_set_bytes(wanted)
    if not size:
        raise UsageError(
            printable(str(path)),
            found=f"{device.size_bytes} bytes",
            expected=f"at least {device.align_bytes} bytes, its alignment",
            advice="Name a larger target.",
        )
    if writes:
        _refuse_mapped(path)
        require_named(str(path), named)
    descriptor = descriptor_of(str(path), writes=writes)
    try:
        lock(descriptor, str(path))
        identity = Identity.of(os.fstat(descriptor))
    finally:
        os.close(descriptor)
    return Place(str(path), size, is_made=False, is_device=True, identity=identity, engine=ENGINE)


def _refuse_mapped(path: Path) -> None:
    """Refuse a device that another process has open or mapped; processes of other users are seen by root alone.

    Raises:
        UsageError: one has.
    """
    number, line_end = path.stat().st_rdev, f" {os.path.realpath(path)}\n"
    for process in PROCESSES.glob("[0-9]*"):
        if process.name != str(os.getpid()) and (_has_open(process, number) or _has_mapped(process, line_end)):
            raise in_use(str(path), f"process {process.name} has it open or mapped")


def _has_open(process: Path, number: int) -> bool:
    with contextlib.suppress(OSError):
        for entry in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                state = entry.stat()
                if stat.S_ISCHR(state.st_mode) and state.st_rdev == number:
                    return True
    return False


def _has_mapped(process: Path, line_end: str) -> bool:
    """Whether a process still maps a file it has closed. Source: proc(5), /proc/pid/maps."""
    with contextlib.suppress(OSError):
        return line_end in (process / "maps").read_text(errors="surrogateescape")
    return False


def refuse_unfit(stream: Stream, settings: IoSettings) -> None:
    """Refuse a stream that cannot run on a mapped device as it asks.

    Raises:
        UsageError: it asks for the page cache or another engine, or flushes blocks smaller than a page.
    """
    if settings.buffered or settings.engine != "auto":
        key = "buffered" if settings.buffered else "engine"
        raise UsageError(
            f"io_settings.{key}",
            found=str(getattr(settings, key)).lower(),
            expected=f"fio's {ENGINE}, as a DAX device is mapped and has no page cache",
            advice=f"Leave {key} out for this target.",
        )
    if stream.sync_every and stream.read_pct < 100.0 and min(stream.block) % PAGE:
        raise UsageError(
            f"stream {stream.name}: block",
            found=f"{min(stream.block)} bytes with sync_every",
            expected=f"a multiple of {PAGE} bytes, which fio asks for on a DAX device",
            advice="Leave sync_every out: every write to a DAX device is persistent when it completes.",
        )
