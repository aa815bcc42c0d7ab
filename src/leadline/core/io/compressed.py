"""Compressed files as streams: gzip, xz, bzip2, zstd."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

# What opening and unpacking raise at damaged or foreign bytes, however unlikely: one odd file is no reason to stop.
UNREADABLE: tuple[type[Exception], ...] = (
    *(OSError, EOFError, MemoryError, RuntimeError, ValueError, ArithmeticError, LookupError),
    *(struct.error, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


def decompressor(magic: bytes) -> Callable[[Path], IO[bytes]] | None:
    """What opens a compressed file that begins with these bytes; None when it is none."""
    if magic.startswith(b"\x1f\x8b"):
        return lambda path: cast("IO[bytes]", gzip.open(path, "rb"))
    if magic.startswith(b"\xfd7zXZ\x00"):
        return lambda path: cast("IO[bytes]", lzma.open(path, "rb"))
    if magic.startswith(b"BZh"):
        return lambda path: cast("IO[bytes]", bz2.open(path, "rb"))
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        return lambda path: cast("IO[bytes]", _Zstandard(path))
    return None


class _Zstandard:
    """A zstd file as a stream that notices when the file ends early, which the library's own reader does not."""

    def __init__(self, path: Path) -> None:
        import zstandard  # noqa: PLC0415 - most captures are not compressed

        self._packed = path.open("rb")
        self._frames = zstandard.ZstdDecompressor()
        self._frame = self._frames.decompressobj()

    def __enter__(self) -> _Zstandard:
        return self

    def __exit__(self, *_: object) -> None:
        self._packed.close()

    def read(self, size: int) -> bytes:
        """Some unpacked bytes, none at the end.

        Raises:
            EOFError: the file ends inside a frame.
        """
        while True:
            packed = self._frame.unused_data if self._frame.eof else b""
            packed = packed or self._packed.read(size)
            if not packed:
                if not self._frame.eof:
                    message = "compressed file ended before the end-of-stream marker was reached"
                    raise EOFError(message)
                return b""
            if self._frame.eof:
                self._frame = self._frames.decompressobj()
            if unpacked := self._frame.decompress(packed):
                return bytes(unpacked)


def packing_errors() -> tuple[type[Exception], ...]:
    """What reading a damaged compressed file may raise."""
    import zstandard  # noqa: PLC0415 - only reached when something failed

    return (*UNREADABLE, zstandard.ZstdError)
