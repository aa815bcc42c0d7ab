"""Which process a lab or guest belongs to: its number and when it began, so that a reused number is not mistaken."""

from __future__ import annotations

from pathlib import Path

from leadline.core.io.outputs import process_start

PID = "qemu.pid"


def note_process(file: Path, pid: int) -> None:
    """Write which process something belongs to."""
    file.write_text(f"{pid} {process_start(pid)}\n")


def is_alive(file: Path) -> bool:
    """Whether the very process a file names is still there."""
    try:
        pid, began = file.read_text().split()
        return process_start(int(pid)) == began
    except (OSError, ValueError, IndexError):
        return False
