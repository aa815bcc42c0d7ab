"""A file that grows, read on: its head and its last samples are copied, and an importer reads the copy.

What an importer makes of a recording does not depend on how long it is: it needs the head (banners, headings, names)
and, for rates, the sample before. So a copy of the head and the last samples is read again and again, and whoever reads
it keeps what is new. The cost of a step does not grow with the file.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

HEAD_BYTES_MAX = 64 << 10
FIRST_BYTES_MAX = 1 << 20  # of a file that is there already: what was recorded before this is not taken up
KEPT_LOOKS = 3  # looks that are copied again: the sample before each new one is in them
CUT_BYTES = 4 << 20  # a file of our own that is as long is cut to its head: all of it was read


@dataclass(eq=False)
class GrowingFile:
    """A file that is looked at again and again.

    Attributes:
        path: what grows; it may be missing, be replaced (rotated) or cut to nothing.
        copy: where its head and last samples are written for an importer.
        is_own: our own recorder writes it, whole samples between two looks, and nobody else needs what was read.
    """

    path: Path
    copy: Path
    is_own: bool = False
    _head: bytes = b""
    _tail: bytes = b""
    _lengths: deque[int] = field(default_factory=lambda: deque(maxlen=KEPT_LOOKS))
    _file: int = -1
    _place: tuple[int, int] = (0, 0)  # device and inode
    _offset: int = 0

    def look(self) -> bool:
        """Copy what is there now; False where nothing was added since the last look.

        Raises:
            OSError: the file cannot be read, or the copy cannot be written.
        """
        added = self._added()
        if not added:
            return False
        if not self._head:
            self._head = added[: _whole_lines(added, HEAD_BYTES_MAX)]
            added = added[len(self._head) :]
        self._tail += added
        self._lengths.append(len(added))
        self._tail = self._tail[-sum(self._lengths) :] if sum(self._lengths) else b""
        whole = self._head + self._tail
        self.copy.write_bytes(whole if self.is_own else whole[: whole.rfind(b"\n") + 1])
        return True

    def close(self) -> None:
        """Give up the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _added(self) -> bytes:
        """The bytes that are new: the rest of a file that was replaced, then those of the one in its place."""
        rest = self._rest()
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return rest
        if (now.st_dev, now.st_ino) != self._place or now.st_size < self._offset:
            self.close()
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            self._place, self._offset = (now.st_dev, now.st_ino), 0
            if not self._head and not self.is_own and now.st_size > FIRST_BYTES_MAX:
                self._head = _read(self._file, 0, HEAD_BYTES_MAX)
                self._head = self._head[: self._head.rfind(b"\n") + 1]
                self._offset = now.st_size - FIRST_BYTES_MAX
                rest += self._rest().partition(b"\n")[2]  # the first line of a part is not whole
            rest += self._rest()
        if self.is_own and self._head and self._offset > CUT_BYTES and self.path.stat().st_size == self._offset:
            # The head stays: a recorder refuses a file that does not begin as it wrote it.
            with suppress(OSError):
                os.truncate(self.path, len(self._head))
                self._offset = len(self._head)
        return rest

    def _rest(self) -> bytes:
        if self._file < 0:
            return b""
        size = os.fstat(self._file).st_size
        if size <= self._offset:
            return b""
        added = _read(self._file, self._offset, size - self._offset)
        self._offset += len(added)
        return added


def _read(file: int, offset: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.pread(file, size, offset)):
        parts.append(part)
        offset, size = offset + len(part), size - len(part)
    return b"".join(parts)


def _whole_lines(text: bytes, size: int) -> int:
    """How many bytes of the first lines fit into a size; all of it where there is no line's end."""
    if len(text) <= size:
        return len(text)
    return text.rfind(b"\n", 0, size) + 1 or size
