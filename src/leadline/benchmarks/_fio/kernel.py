"""What the running kernel lets us use."""

from __future__ import annotations

import ctypes
import errno
import os
import platform

_IO_URING_SETUP = 425  # the same number on every architecture since Linux 5.1


def io_uring_usable() -> bool:
    """Whether io_uring may be used here: old kernels do not have it, containers often forbid it."""
    if platform.system() != "Linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params, all zero
    descriptor = libc.syscall(_IO_URING_SETUP, 1, parameters)
    if descriptor >= 0:
        os.close(descriptor)
        return True
    return ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM, errno.EACCES, errno.ENOMEM)
