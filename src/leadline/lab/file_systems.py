"""What a path lies on."""

from __future__ import annotations

import os
from pathlib import Path

IN_MEMORY = frozenset({"tmpfs", "ramfs"})
MOUNTS = Path("/proc/self/mountinfo")


def file_system_of(path: Path) -> str:
    """The type of the file system that a path is on, such as ``ext4``; empty where the kernel does not tell.

    Source: proc_pid_mountinfo(5): the device is the third field, the type follows the lone hyphen.
    """
    device = path.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        head, _, tail = line.partition(" - ")
        if head.split()[2] == wanted:
            return tail.split()[0]
    return ""
