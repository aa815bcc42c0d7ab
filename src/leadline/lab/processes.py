"""Which process a lab or guest belongs to: its number and when it began, so that a reused number is not mistaken."""

from __future__ import annotations

from pathlib import Path

PID = "qemu.pid"
_STARTED = 19  # field of /proc/PID/stat after the command. Source: proc_pid_stat(5), starttime is the 22nd


def note_process(file: Path, pid: int) -> None:
    """Write which process something belongs to."""
    file.write_text(f"{pid} {_began(pid)}\n")


def is_alive(file: Path) -> bool:
    """Whether the very process a file names is still there."""
    try:
        pid, began = file.read_text().split()
        return _began(int(pid)) == began
    except (OSError, ValueError, IndexError):
        return False


def _began(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[_STARTED]
