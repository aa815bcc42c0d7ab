"""The lock of the one process that writes to a sample store."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from leadline.core.model.errors import UsageError
from leadline.core.system.locks import has_locks, lock_file
from leadline.core.system.portable import NO_LINK, PLAIN_BYTES

NAME = "writer.lock"
_READ_MAX = 200


@dataclass(frozen=True, slots=True)
class WriterLock:
    """A locked file that names the process; the lock ends with it."""

    file: int

    @classmethod
    def take(cls, folder: Path) -> WriterLock:
        """Lock a store for writing.

        Raises:
            UsageError: another process writes to it.
            OSError: the file system has no locks.
        """
        file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | PLAIN_BYTES | NO_LINK, 0o600)
        try:
            if has_locks():
                lock_file(file)
            os.ftruncate(file, 0)
            os.pwrite(file, f"process {os.getpid()}".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(file, _READ_MAX, 0).decode(errors="replace") or "another process"
            os.close(file)
            raise UsageError(
                str(folder),
                found=f"{holder} writes to this store",
                expected="one writer",
                advice="Stop that process, or open the store for reading.",
            ) from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                return cls(file)  # the name is for messages only
            os.close(file)
            raise
        return cls(file)

    def release(self) -> None:
        """Let others write."""
        os.close(self.file)
