"""What is read: the files of a folder on its own file system, one file, or a block device; opened for reading only."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leadline.app.reduction.blocks import PIECE_BYTES
from leadline.core.model.errors import InputError, UsageError
from leadline.core.system.opened import printable

_NO_ATIME = getattr(os, "O_NOATIME", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(slots=True)
class LeftOut:
    """What was not read, and why, as counts."""

    links: int = 0
    special: int = 0
    other_file_systems: int = 0
    hard_links: int = 0
    unreadable: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class DataPlaces:
    """Files, or one device, cut into pieces of 64 KiB.

    Attributes:
        paths: of each, in the order in which they are read.
        sizes: bytes of each, int64 [file].
        stamps: when each was changed, nanoseconds; 0 of a device, int64 [file].
        starts: the index of the first piece of each, and behind the last the number of all pieces, int64 [file + 1].
    """

    paths: tuple[str, ...]
    sizes: NDArray[np.int64]
    stamps: NDArray[np.int64]
    starts: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", np.r_[0, np.cumsum(-(-self.sizes // PIECE_BYTES))].astype(np.int64))

    @property
    def piece_count(self) -> int:
        """How many pieces there are."""
        return int(self.starts[-1])

    @property
    def total_bytes(self) -> int:
        """Bytes of all."""
        return int(self.sizes.sum())


def places_below(path: Path, without: Path | None = None) -> tuple[DataPlaces, LeftOut]:
    """Return what there is to read at a path; the contents of ``without`` are not listed.

    Raises:
        InputError: it is not there or cannot be read.
        UsageError: it is no file, folder or block device, or nothing is in it.
    """
    left_out = LeftOut()
    path = Path(os.path.realpath(path))  # names of devices are links
    try:
        state = path.stat()
        if stat.S_ISDIR(state.st_mode):
            rows = sorted(_files(path, state.st_dev, left_out, None if without is None else str(without.absolute())))
        elif stat.S_ISREG(state.st_mode):
            rows = [(str(path), state.st_size, state.st_mtime_ns)]
        elif stat.S_ISBLK(state.st_mode):
            rows = [(str(path), _device_bytes(path), 0)]
        else:
            raise _nothing(path, "neither file, folder nor block device")
    except OSError as error:
        raise InputError(
            printable(str(path)),
            found=f"cannot be read ({error.strerror or error})",
            expected="a file, folder or block device that this user may read",
            advice="Check the path; run as a user who may read it.",
        ) from error
    if not any(size for _, size, _ in rows):
        raise _nothing(path, "no data")
    return DataPlaces(
        tuple(name for name, _, _ in rows),
        np.array([size for _, size, _ in rows], np.int64),
        np.array([stamp for _, _, stamp in rows], np.int64),
    ), left_out


def _nothing(path: Path, problem: str) -> UsageError:
    return UsageError(
        printable(str(path)),
        found=problem,
        expected="a file, a folder with files or a block device",
        advice="Name where the data lies, for example /var/lib/postgresql or /dev/sdb.",
    )


def _device_bytes(path: Path) -> int:
    descriptor = os.open(path, _READ)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def _files(root: Path, device: int, left_out: LeftOut, without: str | None) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of change of the plain files below a folder, each inode once; count what is none."""
    folders, seen = [str(root)], set()
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            left_out.unreadable += 1
            continue
        for entry in entries:
            try:
                state = entry.stat(follow_symlinks=False)
            except OSError:
                left_out.unreadable += 1
                continue
            if stat.S_ISLNK(state.st_mode):
                left_out.links += 1
            elif state.st_dev != device:
                left_out.other_file_systems += 1
            elif stat.S_ISDIR(state.st_mode):
                if without is None or os.path.abspath(entry.path) != without:  # noqa: PTH100 - many entries
                    folders.append(entry.path)
            elif not stat.S_ISREG(state.st_mode):
                left_out.special += 1
            elif state.st_nlink > 1 and state.st_ino in seen:
                left_out.hard_links += 1
            else:
                if state.st_nlink > 1:
                    seen.add(state.st_ino)
                yield entry.path, state.st_size, state.st_mtime_ns


class PieceReader:
    """Reads pieces in ascending order; a file stays open until a piece of another is read."""

    def __init__(self, places: DataPlaces, left_out: LeftOut) -> None:
        self._places = places
        self._left_out = left_out
        self._file_index, self._descriptor = -1, -1
        self._unusable: set[int] = set()

    def read(self, piece_index: int) -> tuple[bytes | None, int]:
        """Return the bytes of a piece, and its size; None for bytes of a hole, which are zeros and are not read.

        The size is 0 where it cannot be read any more: the file is gone, was changed, or may not be read.
        """
        file_index = int(np.searchsorted(self._places.starts, piece_index, "right")) - 1
        if file_index != self._file_index:
            self._open(file_index)
        if self._descriptor < 0:
            return b"", 0
        offset = (piece_index - int(self._places.starts[file_index])) * PIECE_BYTES
        size = min(PIECE_BYTES, int(self._places.sizes[file_index]) - offset)
        try:
            if _is_hole(self._descriptor, offset, size):
                return None, size
            data = os.pread(self._descriptor, size, offset)
            while len(data) < size and (more := os.pread(self._descriptor, size - len(data), offset + len(data))):
                data += more
        except OSError:
            self._give_up(file_index, is_change=False)
            return b"", 0
        if len(data) < size:
            self._give_up(file_index, is_change=True)
            return b"", 0
        return data, size

    def close(self) -> None:
        """Close the file that is open."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._file_index, self._descriptor = -1, -1

    def _open(self, file_index: int) -> None:
        self.close()
        self._file_index = file_index
        if file_index in self._unusable:
            return
        stamp = int(self._places.stamps[file_index])
        try:
            self._descriptor = opened(self._places.paths[file_index], is_file=stamp != 0)
            state = os.fstat(self._descriptor)
        except OSError as error:
            self._give_up(file_index, is_change=error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR))
            return
        size = int(self._places.sizes[file_index])
        if stamp and (not stat.S_ISREG(state.st_mode) or (state.st_size, state.st_mtime_ns) != (size, stamp)):
            self._give_up(file_index, is_change=True)

    def _give_up(self, file_index: int, *, is_change: bool) -> None:
        self.close()
        self._file_index = file_index
        self._unusable.add(file_index)
        if is_change:
            self._left_out.changed += 1
        else:
            self._left_out.unreadable += 1


def opened(path: str, *, is_file: bool) -> int:
    """Return a descriptor for reading only; the time of the last access stays where this user may keep it so.

    Raises:
        OSError: it cannot be opened.
    """
    flags = _READ | (_NO_LINK if is_file else 0)
    try:
        return os.open(path, flags | _NO_ATIME)
    except PermissionError:  # only the owner and root may leave the time alone. Source: open(2), O_NOATIME
        return os.open(path, flags)


def _is_hole(descriptor: int, offset: int, size: int) -> bool:
    """Whether a file system says that nothing is stored there. Source: lseek(2), SEEK_DATA."""
    if not hasattr(os, "SEEK_DATA"):
        return False
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA) >= offset + size
    except OSError as error:
        return error.errno == errno.ENXIO
