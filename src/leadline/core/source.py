"""Where bytes come from: files, folders, archives. What they mean is the importers' business.

Compressed files and archive members are unpacked into a temporary folder that lives as long as the context, so that
every importer can stream from a path, however large the file is.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, cast

from leadline.core.errors import InputError, LimitError

HEAD_BYTES = 64 * 1024
SHOWN_BYTES = 16  # of a binary file's beginning: its magic number is in them
SHOWN_CHARACTERS = 40
MEMBER_COUNT_MAX = 20_000  # Judgement: a support bundle has thousands of files, an archive bomb millions
UNPACKED_BYTES_MAX = 64 * 1024**3  # Judgement: ten times the largest esxtop recording we know of
DEPTH_MAX = 3  # a .csv.gz in a .tar in a .zip


@dataclass(frozen=True)
class Source:
    """One file to import.

    Attributes:
        name: what the user would call it: the path as given, with ``!member`` for what lies in an archive.
        path: where its bytes are now.
        named: the user named this very file, so failing to recognise it is an error, not a note.
    """

    name: str
    path: Path
    named: bool = True

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB."""
        with self.path.open("rb") as stream:
            return stream.read(HEAD_BYTES)

    @cached_property
    def head_text(self) -> str:
        """The first 64 KiB as text, without a character cut in half at the end."""
        return decode(self.head)

    def text(self) -> str:
        """The whole file as text: by byte-order mark, else UTF-8, else cp1251; line ends as they are."""
        return decode(self.path.read_bytes())

    def lines(self) -> list[str]:
        """The lines of the whole file, whatever its line ends."""
        return self.text().splitlines()

    def beginning(self) -> str:
        """What the file begins with, for messages: its first line, or bytes in hexadecimal where these are no text."""
        if not self.head:
            return "is empty"
        if not is_text(self.head):
            return f"begins with the bytes {self.head[:SHOWN_BYTES].hex(' ')}, which are no text"
        shown = self.head_text.strip().splitlines()[:1]
        return f"begins with {shown[0][:SHOWN_CHARACTERS]!r}" if shown else "holds nothing but blanks"

    @property
    def mtime_ns(self) -> int:
        """When the file was last written, UTC nanoseconds; the best guess for a recording without a date."""
        return self.path.stat().st_mtime_ns


# Every control character but those that texts hold: backspace to carriage return, and the escape of terminals.
_NEVER_IN_TEXT = bytes([*range(0x08), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])


def is_text(head: bytes) -> bool:
    """Whether the beginning of a file may be text: UTF-16 by its mark, or bytes without control characters.

    >>> is_text("Физический диск".encode("cp1251")), is_text(bytes.fromhex("7f454c46 02010100"))
    (True, False)
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    return len(head.translate(None, _NEVER_IN_TEXT)) == len(head)


def decode(data: bytes) -> str:
    """Text of unknown encoding: UTF-16 or UTF-8 by byte-order mark, else UTF-8, else cp1251 (never fails)."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    body = data.removeprefix(b"\xef\xbb\xbf")
    for cut in range(4):  # the head may end inside a character of up to four bytes
        try:
            return body[: len(body) - cut].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start < len(body) - 4:
                break
    return body.decode("cp1251", errors="replace")


@contextmanager
def open_sources(paths: list[Path]) -> Iterator[list[Source]]:
    """The files behind paths: files themselves, files of folders, members of archives, unpacked.

    Raises:
        InputError: a path does not exist, cannot be read, or an archive is damaged.
        LimitError: an archive unpacks to more than the documented limits.
    """
    with tempfile.TemporaryDirectory(prefix="leadline-") as folder:
        opener = _Opener(Path(folder))
        sources: list[Source] = []
        for path in paths:
            if not path.exists():
                raise InputError(
                    str(path), found="no such file", expected="a file, folder or archive", advice="Check the path."
                )
            if path.is_dir():
                files = sorted(file for file in path.rglob("*") if file.is_file())
                for file in files:
                    sources.extend(opener.expand(Source(str(file), file, named=False), 0))
            else:
                sources.extend(opener.expand(Source(str(path), path), 0))
        yield sources


class _Opener:
    """Unpacks into one folder and counts what it unpacks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.member_count = 0
        self.byte_count = 0

    def expand(self, source: Source, depth: int) -> Iterator[Source]:
        try:
            yield from self._expand(source, depth)
        except (OSError, EOFError, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, _zstd_error()) as error:
            raise InputError(
                source.name,
                found=f"unreadable ({error})",
                expected="a readable file or a complete archive",
                advice="Copy it again, or unpack it by hand and name the files.",
            ) from error

    def _expand(self, source: Source, depth: int) -> Iterator[Source]:
        with source.path.open("rb") as stream:
            magic = stream.read(262)
        if depth >= DEPTH_MAX:
            yield source
        elif magic.startswith(b"PK\x03\x04"):
            if _is_office_document(source.path):
                yield source
            else:
                yield from self._zip(source, depth)
        elif magic[257:262] == b"ustar":
            yield from self._tar(source, depth)
        else:
            opened = _decompressor(magic)
            if opened is None:
                yield source
                return
            with opened(source.path) as stream:
                name = _without_suffix(source.name)
                yield from self.expand(Source(name, self._spool(stream, source.name), source.named), depth + 1)

    def _zip(self, source: Source, depth: int) -> Iterator[Source]:
        with zipfile.ZipFile(source.path) as archive:
            for member in archive.infolist():
                if not member.is_dir():
                    name = f"{source.name}!{member.filename}"
                    with archive.open(member) as stream:
                        path = self._spool(stream, name)
                    yield from self.expand(Source(name, path, named=False), depth + 1)

    def _tar(self, source: Source, depth: int) -> Iterator[Source]:
        with tarfile.open(source.path) as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isfile() else None
                if stream is not None:
                    name = f"{source.name}!{member.name}"
                    yield from self.expand(Source(name, self._spool(stream, name), named=False), depth + 1)

    def _spool(self, stream: IO[bytes], name: str) -> Path:
        self.member_count += 1
        path = self.folder / str(self.member_count)
        with path.open("wb") as target:
            while chunk := stream.read(1 << 20):
                self.byte_count += len(chunk)
                if self.byte_count > UNPACKED_BYTES_MAX or self.member_count > MEMBER_COUNT_MAX:
                    raise LimitError(
                        name,
                        found=f"unpacks to more than {UNPACKED_BYTES_MAX >> 30} GiB or {MEMBER_COUNT_MAX} files",
                        expected="an archive within these limits",
                        advice="Unpack it by hand and name the files to read.",
                    )
                target.write(chunk)
        return path


def _is_office_document(path: Path) -> bool:
    """Whether a zip archive is one document, such as a workbook, and not a bundle of recordings.

    Source: ECMA-376 part 2, Open Packaging Conventions: every package holds ``[Content_Types].xml``.
    """
    with zipfile.ZipFile(path) as archive:
        return "[Content_Types].xml" in archive.namelist()


def _decompressor(magic: bytes) -> Callable[[Path], IO[bytes]] | None:
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


def _zstd_error() -> type[Exception]:
    import zstandard  # noqa: PLC0415 - only reached when something failed

    return zstandard.ZstdError


def _without_suffix(name: str) -> str:
    for suffix in (".gz", ".xz", ".zst", ".bz2"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return f"{name.removesuffix('.tgz').removesuffix('.txz')}.tar" if name.endswith((".tgz", ".txz")) else name
