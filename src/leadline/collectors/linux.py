"""A Linux guest's own counters, copied from ``/proc`` as they are, sample after sample.

Collects:
    Disks (``diskstats``), CPUs (``stat``), pressure, load, memory, paging (``vmstat``) and network interfaces
    (``net/dev``), with the guest's name. The copies are appended to a text file that the importer psi reads; a shell
    loop can write the same file where Leadline cannot be installed (`leadline explain psi` gives it).
    Of another machine the same, over SSH: ``ssh://user@host:22``. Nothing is installed there. Keys come from the agent,
    from where ``ssh`` has them, or from the file that the option ``identity`` names; the machine's key must be in
    known_hosts. A password logs in where no key is named, else it is the key's passphrase.

Cost:
    About ten small files read per sample, nothing parsed: below 1 ms. The file grows by some 10 KiB per sample.
    Over SSH one connection stays open with a shell behind it. A sample starts one process there (awk): 2 ms of CPU with
    that of sshd, and 4 kB, on a machine with two CPUs.

Late or missing data:
    Files this kernel does not have, such as pressure before 4.20, are left out. A sample is appended whole; whatever
    ends the recording, the samples before are there. Over SSH the times are those of the machine that asks, half way
    between question and answer; no answer within ten seconds ends the recording.

Sources:
    proc(5); Linux kernel documentation, admin-guide/iostats and accounting/psi.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from leadline.collectors._linux_ssh import RemoteLinuxRecorder, expanded
from leadline.core.contracts.collector import CollectorMeta, Recorder
from leadline.core.io.outputs import open_to_append
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import Layer
from leadline.core.system.addresses import Address
from leadline.core.system.extras import require
from leadline.core.system.ssh import SCHEME, Login, parse_login

META = CollectorMeta(tool="Linux", layers=(Layer.GUEST,), privilege="any user")

FILE_NAME = "linux.txt"
PATHS = (
    *("/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory", "/proc/meminfo"),
    *("/proc/diskstats", "/proc/stat", "/proc/vmstat", "/proc/net/dev"),
)
# A recording begins with a time, as this collector writes it, and the guest's name.
_BEGINNING = re.compile(rb"# \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00\n## /proc/sys/kernel/hostname\n")
_ONCE = ("/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease")
# Lines worth keeping of files with hundreds.
_KEPT = {
    "/proc/stat": (b"cpu", b"ctxt", b"procs_"),
    "/proc/vmstat": (b"pgpg", b"pswp", b"pgmajfault"),
}


def record(target: Address, folder: Path, *, identity: str = "") -> Recorder:
    """A recorder of this machine where nothing is named, or of the one that ``ssh://user@host`` names.

    ``identity`` is the file of the key to log in with.

    Raises:
        UsageError: another target was named, or the folder holds a file of that name that Leadline did not write.
        ToolError: the machine is not Linux, cannot be reached, is not known, or refuses the login.
    """
    if target.text.startswith(SCHEME):
        login = replace(_login(target), password=target.secret, identity=expanded(identity))
        require("asyncssh")
        return RemoteLinuxRecorder(login, open_to_append(folder / FILE_NAME, _BEGINNING), PATHS)
    if target.text:
        raise UsageError(
            target.text,
            found="a target",
            expected="none: the machine itself is recorded; or ssh://user@host",
            advice="Leave it out, or write the address with ssh:// before it.",
        )
    if not Path("/proc/stat").exists():
        raise ToolError("/proc/stat", found="not there", expected="a Linux machine", advice="Use its own tools.")
    return LinuxRecorder(folder / FILE_NAME)


def _login(target: Address) -> Login:
    try:
        return parse_login(target.text)
    except ValueError as error:
        raise UsageError(
            target.text, found=str(error), expected="ssh://user@host:22", advice="Correct the address."
        ) from None


class LinuxRecorder:
    """Appends a block per sample; files are opened once and read from their beginning."""

    def __init__(self, path: Path) -> None:
        self.notes: list[str] = []
        self._stream = open_to_append(path, _BEGINNING)
        self._files: dict[str, int] = {}
        for name in PATHS:
            try:
                self._files[name] = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                self.notes.append(f"{name} left out: {error.strerror}")
        self._head = b"".join(b"## %s\n%s" % (name.encode(), Path(name).read_bytes()) for name in _ONCE)

    def sample(self) -> None:
        """Append a block.

        Raises:
            ToolError: the file cannot be written.
        """
        parts = [f"# {datetime.now(UTC).isoformat(timespec='milliseconds')}\n".encode(), self._head]
        self._head = b""  # once is enough
        for name, descriptor in self._files.items():
            try:
                data = _whole(descriptor)
            except OSError:
                continue  # pressure may be switched off, and then cannot be read
            kept = _KEPT.get(name)
            if kept is not None:
                data = b"".join(line for line in data.splitlines(keepends=True) if line.startswith(kept))
            parts.append(b"## %s\n%s" % (name.encode(), data))
        try:
            self._stream.write(b"".join(parts))
        except OSError as error:
            raise ToolError(
                self._stream.name, found=str(error.strerror), expected="space to write to", advice="Free some."
            ) from error

    def close(self) -> None:
        """Give up the files."""
        self._stream.close()
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()


def _whole(descriptor: int) -> bytes:
    """A file of ``/proc`` from its beginning; the kernel gives it in pieces."""
    parts = []
    offset = 0
    while piece := os.pread(descriptor, 1 << 16, offset):
        parts.append(piece)
        offset += len(piece)
    return b"".join(parts)
