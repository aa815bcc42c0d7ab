"""cpio archives in the "newc" form, which Linux unpacks as its first file system: the same input, the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

FOLDER, FILE, LINK, CHARACTER = 0o040000, 0o100000, 0o120000, 0o020000
_END = "TRAILER!!!"


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One name of an archive: its mode with its kind, its contents, for a device its numbers."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def archive(entries: Iterable[ArchiveEntry]) -> bytes:
    """The archive of entries, in their order; owned by root, without times.

    Source: Linux kernel documentation, driver-api/early-userspace/buffer-format.

    >>> archive([ArchiveEntry("a", FILE | 0o644, b"hello")])[:6]
    b'070701'
    """
    parts = []
    for number, entry in enumerate((*entries, ArchiveEntry(_END, 0)), 1):
        name = entry.name.encode() + b"\0"
        fields = (number, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % value for value in fields) + name
        parts += [_padded(head), _padded(entry.data)]
    return b"".join(parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
