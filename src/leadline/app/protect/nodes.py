"""Storage nodes that shards are written to: folders, which fail by being renamed away, or NBD exports.

Everything is made inside folders of Leadline's own, each with a mark that is locked while its run lives: a run that was
killed leaves a folder whose mark can be locked, and only such a folder is ever removed. An export carries its mark in
its first block.

Source: open(2), O_DIRECT: buffers, lengths and offsets in multiples of the logical block; fdatasync(2); flock(2).
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from leadline.app.measure.nbd import Export, NbdServer
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.leftovers import forget, identify, note
from leadline.core.system.locks import lock_file

if TYPE_CHECKING:
    from leadline.app.measure.nbd import Bytes

PREFIX = "leadline-protect-"
MARK = ".leadline-protect.json"
EXPORT_MARK = b"LEADLINE-PROTECT\n"
MARK_BYTES = 1024**2  # kept free at the start of an export, so that streams stay aligned
_CHUNK_BYTES = 1024**2
_SYNC_BYTES = 16 * 1024**2  # without direct I/O: at most so much per stream and node waits in the page cache


class NodeLane(Protocol):
    """One stream's way to one node."""

    @property
    def is_direct(self) -> bool:
        """Whether writes pass the page cache of this machine by."""

    def write(self, offset: int, shard: Bytes) -> None:
        """Write a shard whole; raises OSError."""

    def read(self, offset: int, shard: Bytes) -> None:
        """Fill a buffer; raises OSError, also when there is less."""

    def sync(self) -> None:
        """Have the node make everything durable."""

    def close(self) -> None:
        """Let go of it; never raises."""


class Node(Protocol):
    """A place for shards that can fail, come back, and be replaced by an empty one."""

    name: str
    overhead_bytes: int  # sent with every write besides the shard

    def prepare(self, region_bytes: int) -> None:
        """Be empty, with so much room for each stream."""

    def open(self, stream: int, *, writing: bool) -> NodeLane:
        """A stream's lane; raises OSError when the node is down."""

    def fail(self) -> None:
        """Go down with everything on it."""

    def heal(self) -> None:
        """Come back with everything on it."""

    def stored_bytes(self) -> float:
        """Bytes allocated; NaN when the node does not say."""

    def remove(self) -> None:
        """Leave nothing behind."""


class FolderNode:
    """A folder; failed while it is renamed away."""

    overhead_bytes = 0

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._away = folder.with_name(f"{folder.name}.failed")
        folder.mkdir()

    def prepare(self, region_bytes: int) -> None:
        """Remove what is there; files grow as they are written."""
        del region_bytes
        self.remove()
        self._folder.mkdir()

    def open(self, stream: int, *, writing: bool) -> _FileLane:
        """A file per stream."""
        return _FileLane(self._folder / f"vm-{stream:04}.shards", writing=writing)

    def fail(self) -> None:
        """Rename the folder away."""
        self._folder.rename(self._away)

    def heal(self) -> None:
        """Rename it back."""
        self._away.rename(self._folder)

    def stored_bytes(self) -> float:
        """Blocks of the files."""
        return float(sum(file.stat().st_blocks * 512 for file in self._folder.iterdir()))

    def remove(self) -> None:
        """Remove the folder, failed or not."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.rmtree(self._away, ignore_errors=True)


class _FileLane:
    """A file, with direct I/O where the file system has it."""

    def __init__(self, path: Path, *, writing: bool) -> None:
        flags = os.O_RDWR | (os.O_CREAT if writing else 0)
        try:
            self._file = os.open(path, flags | os.O_DIRECT, 0o600)
            self.is_direct = True
        except FileNotFoundError:
            raise
        except OSError:
            self._file = os.open(path, flags, 0o600)
            self.is_direct = False
        self._unsynced_bytes = 0
        if not writing and not self.is_direct:
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)

    def write(self, offset: int, shard: Bytes) -> None:
        """One pwrite; a short one is an error: the file system is full."""
        written = os.pwrite(self._file, shard.data, offset)
        if written != shard.nbytes:
            raise OSError(errno.ENOSPC, f"{written} of {shard.nbytes} bytes written")
        if not self.is_direct:
            # Little is left for the end: it must not take long, nor must Ctrl-C wait for it.
            self._unsynced_bytes += written
            if self._unsynced_bytes >= _SYNC_BYTES:
                self.sync()
                self._unsynced_bytes = 0

    def read(self, offset: int, shard: Bytes) -> None:
        """One pread."""
        count = os.preadv(self._file, [shard.data], offset)
        if count != shard.nbytes:
            raise OSError(errno.EIO, f"{count} of {shard.nbytes} bytes read")

    def sync(self) -> None:
        """By fdatasync."""
        os.fdatasync(self._file)

    def close(self) -> None:
        """Close it."""
        os.close(self._file)


class NbdNode:
    """An NBD export: given by address, or served by a process of ours that is killed to make the node fail."""

    overhead_bytes = 28  # a request's header (NBD protocol, "Request message")

    def __init__(self, uri: str, server: NbdServer | None = None) -> None:
        self.name = uri if server is None else server.name
        self._server = server
        self._uri = uri
        self._region_bytes = 0
        self._used_bytes = 0
        self._is_down = False

    @property
    def _address(self) -> str:
        return self._uri if self._server is None else self._server.uri

    def check(self, need_bytes: int, *, destroy: bool) -> None:
        """Refuse an export that holds data, but for one left by a killed run and one that may be destroyed.

        Raises:
            UsageError: it holds data, or is too small.
            ToolError: it cannot be reached.
        """
        try:
            export = Export(self._address)
        except OSError as error:
            raise ToolError(
                self.name, found=str(error), expected="an NBD export", advice="Start the server, or check the address."
            ) from error
        try:
            if export.size_bytes < need_bytes:
                raise UsageError(
                    self.name,
                    found=f"{export.size_bytes / 1e9:.2f} GB",
                    expected=f"at least {need_bytes / 1e9:.2f} GB",
                    advice="Lower --size-per-vm or --vms, or give a larger export.",
                )
            if not destroy and not self._is_ours(export) and _holds_data(export, need_bytes):
                raise UsageError(
                    self.name,
                    found="the export holds data",
                    expected="zeros in all that would be written",
                    advice=f"To lose that data: --destroy-data {self.name}",
                )
        finally:
            export.close()

    def claim(self, need_bytes: int) -> None:
        """Put the mark on the export; from here on what is in its first ``need_bytes`` is ours to overwrite."""
        mark = np.zeros(4096, dtype=np.uint8)
        mark[: len(EXPORT_MARK)] = np.frombuffer(EXPORT_MARK, dtype=np.uint8)
        self._used_bytes = need_bytes
        export = Export(self._address)
        try:
            export.write(0, mark)
            export.sync()
        finally:
            export.close()

    @staticmethod
    def _is_ours(export: Export) -> bool:
        head = np.empty(4096, dtype=np.uint8)
        export.read(0, head)
        return head.tobytes().rstrip(b"\0") == EXPORT_MARK

    def prepare(self, region_bytes: int) -> None:
        """Zero what was written; each stream has a region of its own."""
        if self._is_down:
            self.heal()
        self._region_bytes = region_bytes
        if self._server is not None:
            self._server.empty()
            return
        export = Export(self._address)
        try:
            export.zero(MARK_BYTES, self._used_bytes - MARK_BYTES)
        finally:
            export.close()

    def open(self, stream: int, *, writing: bool) -> Export:
        """A connection of the stream's own."""
        del writing
        if self._is_down:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{self.name} is down")
        return Export(self._address, start=MARK_BYTES + stream * self._region_bytes)

    def fail(self) -> None:
        """Kill the server; one that is not ours is only not spoken to any more."""
        if self._server is None:
            self._is_down = True
        else:
            self._server.kill()

    def heal(self) -> None:
        """Start the server again, or speak to it."""
        self._is_down = False
        if self._server is not None:
            self._server.start()

    def stored_bytes(self) -> float:
        """Blocks of the served file; an export that is not ours does not say."""
        return float("nan") if self._server is None else self._server.stored_bytes()

    def remove(self) -> None:
        """Kill our server and its file; zero what was written to another's export, its mark last."""
        if self._server is not None:
            self._server.remove()
        elif self._used_bytes:
            export = Export(self._address)
            try:
                export.zero(MARK_BYTES, self._used_bytes - MARK_BYTES)
                export.zero(0, MARK_BYTES)
                export.sync()
            finally:
                export.close()


def _holds_data(export: Export, need_bytes: int) -> bool:
    """Whether any byte is not zero in what would be written, or in the last block (where partition tables end)."""
    buffer = np.empty(_CHUNK_BYTES, dtype=np.uint8)
    offsets = [*range(0, need_bytes, _CHUNK_BYTES), max(export.size_bytes - _CHUNK_BYTES, 0)]
    for offset in offsets:
        chunk = buffer[: min(_CHUNK_BYTES, export.size_bytes - offset)]
        export.read(offset, chunk)
        if chunk.any():
            return True
    return False


@dataclass(slots=True)
class Workspace:
    """The marked folders of a run; leaving it removes them, and the next start of the same user after a kill."""

    folders: list[Path]
    _locks: list[int]

    @classmethod
    def make(cls, parents: list[Path]) -> Workspace:
        """A marked folder in each parent; those made are removed again when one cannot be.

        Raises:
            UsageError: a parent cannot be written to.
        """
        workspace = cls([], [])
        name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(3)}"
        try:
            for parent in parents:
                folder = parent / name
                note(folder)
                workspace.folders.append(folder)
                folder.mkdir(mode=0o700)
                identify(folder)
                lock = os.open(folder / MARK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                lock_file(lock)
                os.write(lock, json.dumps({"leadline_protect": 1, "pid": os.getpid()}).encode())
                workspace._locks.append(lock)
        except OSError as error:
            workspace.remove()
            raise UsageError(
                str(parent), found=str(error.strerror), expected="a folder to write to", advice="Name another."
            ) from error
        return workspace

    def remove(self) -> None:
        """Remove the folders, each mark with its folder."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
            forget(folder)
        for lock in self._locks:
            os.close(lock)
        self.folders, self._locks = [], []


def left_behind(parent: Path) -> list[Path]:
    """Marked folders in a folder whose run does not live any more."""
    return [folder for folder in sorted(parent.glob(f"{PREFIX}*")) if _is_abandoned(folder)]


def _is_abandoned(folder: Path) -> bool:
    if folder.is_symlink():
        return False
    try:
        mark = os.open(folder / MARK, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        lock_file(mark)
        content = os.read(mark, 4096)
    except OSError:
        return False
    finally:
        os.close(mark)
    # Killed between making the mark and writing it, a folder holds nothing else.
    return b"leadline_protect" in content or not any(entry.name != MARK for entry in folder.iterdir())
