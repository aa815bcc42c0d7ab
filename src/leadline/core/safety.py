"""What may be overwritten: a file that load makes itself, or the very target the user named, never a mounted device."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from leadline.core.errors import ToolError, UsageError

RESERVE_SHARE = 0.05  # Judgement: of the filesystem, kept free so that other programs go on
_MOUNTS = Path("/proc/self/mountinfo")
_SWAPS = Path("/proc/swaps")


def require_named(path: str, named: str | None) -> None:
    """Refuse to overwrite what is there unless the user named the very same target.

    Raises:
        UsageError: it exists and ``named`` is not it.
    """
    if named is None or os.path.realpath(named) != os.path.realpath(path):
        raise UsageError(
            path,
            found="data that would be overwritten",
            expected=f"--destroy-data {path}",
            advice="Name another target, or that option with the very same target if its data may go.",
        )


def usable_size(path: Path, named: str | None, *, writes: bool) -> tuple[int, bool]:
    """The bytes of a file or device that is there, and whether it is a device; ``named`` is what may be overwritten.

    Raises:
        UsageError: it would be overwritten but nobody named it, is in use, or may not be opened.
    """
    is_device = stat.S_ISBLK(path.stat().st_mode)
    if writes:
        if is_device:
            refuse_mounted(str(path))
        require_named(str(path), named)
    try:  # the way it will be opened: asking for the right alone misses what a sandbox or a mount forbids
        held = os.open(path, (os.O_RDWR if writes else os.O_RDONLY) | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            str(path),
            found=f"it cannot be opened ({error.strerror})",
            expected="a target this user may open",
            advice="Run as root, or name another.",
        ) from error
    try:
        return os.lseek(held, 0, os.SEEK_END), is_device
    finally:
        os.close(held)


def refuse_mounted(path: str) -> None:
    """Refuse a block device that is mounted, swapped to, or holds or is held by one that is.

    Raises:
        UsageError: it is in use.
    """
    device = Path(os.path.realpath(path))
    try:
        number = device.stat().st_rdev
    except OSError as error:
        raise UsageError(path, found=str(error.strerror), expected="a device", advice="Name another.") from error
    used = users_of(number)
    if used is not None:
        raise UsageError(
            path,
            found=f"a device in use ({used})",
            expected="one that nothing uses",
            advice="Leadline never writes to a mounted device; name another.",
        )


def users_of(number: int) -> str | None:
    """Who uses a block device (its major and minor number): a mount, swap or a device made of it; None for nobody."""
    block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    family = {f"{os.major(number)}:{os.minor(number)}"}
    for part in (*block.glob("*/dev"), *block.glob("holders/*/dev"), *block.glob("*/holders/*/dev")):
        family.add(part.read_text().strip())
        if "holders" in part.parts:
            return f"{part.parent.name} is made of it"
    for line in _MOUNTS.read_text().splitlines():
        fields = line.split()
        if fields[2] in family:
            return f"mounted at {fields[4]}"
    for line in _SWAPS.read_text().splitlines()[1:] if _SWAPS.exists() else ():
        name = Path(line.split()[0])
        if name.exists() and stat.S_ISBLK(name.stat().st_mode):
            held = name.stat().st_rdev
            if f"{os.major(held)}:{os.minor(held)}" in family:
                return "swap"
    return None


def usable_space(folder: str) -> int:
    """Bytes that may be written, with a share of the filesystem kept free; not below 0."""
    held = os.statvfs(folder)
    return max(held.f_bavail * held.f_frsize - int(RESERVE_SHARE * held.f_blocks * held.f_frsize), 0)


def require_space(folder: str, needed_bytes: int) -> None:
    """Refuse to write more than fits, with a share of the filesystem kept free.

    Raises:
        ToolError: there is not enough space.
    """
    usable = usable_space(folder)
    if needed_bytes > usable:
        raise ToolError(
            folder,
            found=f"{usable / 2**30:.1f} GiB that may be used",
            expected=f"{needed_bytes / 2**30:.1f} GiB",
            advice="Name another folder, or a smaller working set; a twentieth of the filesystem stays free.",
        )
