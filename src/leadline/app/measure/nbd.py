"""NBD: an export as a place to write, through libnbd, and servers of our own on a file, by qemu-storage-daemon.

libnbd's C interface is called directly: its Python module is tied to the system's Python. The calls release Python's
lock.

Source: libnbd(3), nbd_connect_uri(3), nbd_pwrite(3), nbd_zero(3); qemu-storage-daemon(1), --export type=nbd.
"""

from __future__ import annotations

import ctypes
import errno
import shutil
import socket
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.core.model.errors import ToolError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

_START_TIMEOUT_S = 10.0
_ZERO_BYTES = 32 * 1024**2  # at most in one request


@cache
def _libnbd() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libnbd.so.0")
    except OSError as error:
        raise ToolError(
            "libnbd", found="not installed", expected="the NBD client library", advice="apt-get install libnbd0"
        ) from error
    handle, size, offset = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
    library.nbd_create.restype = handle
    library.nbd_get_error.restype = ctypes.c_char_p
    library.nbd_get_size.restype = ctypes.c_int64
    for name in ("get_size", "get_errno", "close", "flush"):
        getattr(library, f"nbd_{name}").argtypes = {
            "flush": (handle, ctypes.c_uint32),
            "get_errno": (),
        }.get(name, (handle,))
    library.nbd_connect_uri.argtypes = (handle, ctypes.c_char_p)
    library.nbd_shutdown.argtypes = (handle, ctypes.c_uint32)
    library.nbd_pwrite.argtypes = library.nbd_pread.argtypes = (handle, handle, size, offset, ctypes.c_uint32)
    library.nbd_zero.argtypes = (handle, offset, offset, ctypes.c_uint32)
    return library


class Export:
    """A connection to an NBD export; ``start`` is where a stream's region begins. Not for several threads at once."""

    is_direct = True  # there is no page cache of this machine between; what the server has is its own affair

    def __init__(self, uri: str, start: int = 0) -> None:
        self._library = _libnbd()
        self._handle = self._library.nbd_create()
        self._start = start
        try:
            self._check(self._library.nbd_connect_uri(self._handle, uri.encode()))
            self.size_bytes: int = self._library.nbd_get_size(self._handle)
        except OSError:
            self._library.nbd_close(self._handle)
            raise

    def write(self, offset: int, shard: Bytes) -> None:
        """Write a shard."""
        data = shard.ctypes.data
        self._check(self._library.nbd_pwrite(self._handle, data, shard.nbytes, self._start + offset, 0))

    def read(self, offset: int, shard: Bytes) -> None:
        """Fill a buffer."""
        data = shard.ctypes.data
        self._check(self._library.nbd_pread(self._handle, data, shard.nbytes, self._start + offset, 0))

    def zero(self, offset: int, byte_count: int) -> None:
        """Zero a range, in requests of at most 32 MiB."""
        for at in range(offset, offset + byte_count, _ZERO_BYTES):
            self._check(self._library.nbd_zero(self._handle, min(_ZERO_BYTES, offset + byte_count - at), at, 0))

    def sync(self) -> None:
        """Flush."""
        self._check(self._library.nbd_flush(self._handle, 0))

    def close(self) -> None:
        """End the connection; a dead server is no error."""
        self._library.nbd_shutdown(self._handle, 0)
        self._library.nbd_close(self._handle)

    def _check(self, answer: int) -> None:
        if answer == -1:
            text: bytes = self._library.nbd_get_error() or b"the connection is lost"
            raise OSError(self._library.nbd_get_errno() or errno.ENOTCONN, text.decode(errors="replace"))


class NbdServer:
    """A qemu-storage-daemon that serves one file on a port of this machine, with direct I/O; it dies with us."""

    def __init__(self, name: str, image: Path, size_bytes: int) -> None:
        self.name = name
        self._image = image
        self._size_bytes = size_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        for program in ("qemu-storage-daemon", "setpriv"):
            if shutil.which(program) is None:
                package = {"setpriv": "util-linux"}.get(program, "qemu-system-common")
                raise ToolError(
                    program,
                    found="not installed",
                    expected="the program, for --nbd",
                    advice=f"apt-get install {package}, or give --node nbd://... of a running server.",
                )
        self._make()
        self.start()

    @property
    def uri(self) -> str:
        """Where it listens."""
        return f"nbd://127.0.0.1:{self._port}/disk"

    def _make(self) -> None:
        self._image.unlink(missing_ok=True)
        with self._image.open("xb") as file:
            file.truncate(self._size_bytes)

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            ToolError: it does not.
        """
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        command = [
            *("setpriv", "--pdeathsig", "KILL", "qemu-storage-daemon"),
            *("--blockdev", f"driver=file,node-name=disk,filename={self._image.name},cache.direct=on,discard=unmap"),
            *("--nbd-server", f"addr.type=inet,addr.host=127.0.0.1,addr.port={self._port},max-connections=0"),
            *("--export", "type=nbd,id=disk,node-name=disk,name=disk,writable=on"),
        ]
        # Its own session: Ctrl-C must reach us alone, we end the servers in order.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self._image.parent,  # so that it is given a plain name, and reads nothing of ours into a path
            start_new_session=True,
        )
        end = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < end and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1.0).close()
            except OSError:
                time.sleep(0.01)
            else:
                return
        self._process.kill()
        error_lines = (self._process.communicate()[1] or b"").decode(errors="replace").strip().splitlines()
        raise ToolError(
            "qemu-storage-daemon",
            found=error_lines[-1] if error_lines else "no answer",
            expected="an NBD server",
            advice="Use folders instead: leave --nbd out.",
        )

    def kill(self) -> None:
        """End it as a failing node ends: SIGKILL, nothing flushed."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def empty(self) -> None:
        """A new file in place of the old, served again."""
        self.kill()
        self._make()
        self.start()

    def stored_bytes(self) -> float:
        """Blocks of the file."""
        return float(self._image.stat().st_blocks * 512)

    def remove(self) -> None:
        """Kill it and remove the file."""
        self.kill()
        self._image.unlink(missing_ok=True)
