"""The files behind what the user names: files, folders, archives, pipes.

Compressed files, archive members and what comes through pipes are unpacked into a temporary folder that lives as long
as the context, so that every importer can stream from a path, however large the file is. What the user named is opened
or is an error; what lies in a folder or an archive and cannot be opened is left out, with the reason.
"""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from leadline.core.io.compressed import UNREADABLE, decompressor, packing_errors
from leadline.core.io.pipes import STANDARD_INPUT, UNPACKED_BYTES_MAX, is_pipe, pieces_of, write_pieces
from leadline.core.io.shipped import shipped
from leadline.core.io.source import Source, shown_name
from leadline.core.model.errors import InputError, LeadlineError, LimitError
from leadline.core.system.leftovers import scratch_folder

MEMBER_COUNT_MAX = 20_000  # Judgement: a support bundle has thousands of files, an archive bomb millions
DEPTH_MAX = 3  # a .csv.gz in a .tar in a .zip
_PIECE_BYTES = 1 << 20
_ZIP, _TAR = b"PK\x03\x04", b"ustar"
_IS_ENCRYPTED = 0x1  # of a zip member's flags
# Source: ECMA-376 part 1, section 12.3: the part a spreadsheet begins with; .bin in binary workbooks.
_WORKBOOKS = frozenset({"xl/workbook.xml", "xl/workbook.bin"})
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(slots=True)
class OpenedPaths:
    """Files to import, and what in folders and archives could not be opened, with the reasons."""

    sources: list[Source] = field(default_factory=list)
    left_out: list[LeadlineError] = field(default_factory=list)


@contextmanager
def open_sources(paths: Iterable[Path]) -> Iterator[OpenedPaths]:
    """The files behind paths: files themselves, files of folders, members of archives, what comes through pipes.

    Raises:
        InputError: a path does not exist, cannot be read, is a damaged archive or a pipe that nobody writes to.
        LimitError: an archive that was named unpacks to more than the documented limits.
    """
    with scratch_folder("unpacked") as folder:
        opener = _Opener(folder)
        for path in paths:
            opener.open(path)
        yield opener.opened


class _Opener:
    """Unpacks into one folder and counts what it unpacks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened = OpenedPaths()
        self.member_count = 0
        self.byte_count = 0

    def open(self, path: Path) -> None:
        """Open what the user named."""
        name = "standard input" if path == STANDARD_INPUT else shown_name(path)
        try:
            path = shipped(path)
            mode = None if is_pipe(path) else path.stat().st_mode
        except FileNotFoundError as error:
            raise InputError(
                name, found="no such file", expected="a file, folder or archive", advice="Check the path."
            ) from error
        except (OSError, ValueError) as error:
            raise unreadable(name, error) from error
        if mode is None:
            self._top(Source(name, self._spool(pieces_of(path, name), name)))
        elif stat.S_ISDIR(mode):
            self._folder(path)
        elif stat.S_ISREG(mode):
            self._top(Source(name, path))
        else:
            raise _no_file(name, _kind(mode))

    def _folder(self, folder: Path) -> None:
        files, odd = _walk(folder)
        self.opened.left_out.extend(odd)
        for file in files:
            self._top(Source(shown_name(file), file, named=False))

    def _top(self, source: Source) -> None:
        """A file that lies in no archive: all of it is opened, or it is left out and takes no room."""
        members, byte_count, left_out = self.member_count, self.byte_count, len(self.opened.left_out)
        try:
            self.opened.sources.extend(self._expand(source, 0))
        except LeadlineError as error:
            for number in range(members + 1, self.member_count + 1):
                (self.folder / str(number)).unlink(missing_ok=True)
            self.member_count, self.byte_count = members, byte_count
            if source.named:
                raise
            self.opened.left_out[left_out:] = [error]

    def _expand(self, source: Source, depth: int) -> list[Source]:
        try:
            return self._unpacked(source, depth)
        except LeadlineError:
            raise
        except packing_errors() as error:
            raise unreadable(source.name, error) from error

    def _unpacked(self, source: Source, depth: int) -> list[Source]:
        with source.path.open("rb") as stream:
            magic = stream.read(262)
        opened = decompressor(magic)
        is_tar = magic[257:262] == _TAR
        if magic.startswith(_ZIP) and _is_document(source):
            return [source]
        if opened is None and not is_tar and not magic.startswith(_ZIP):
            return [source]
        if depth >= DEPTH_MAX:
            raise InputError(
                source.name,
                found=f"an archive within {DEPTH_MAX} others",
                expected=f"at most {DEPTH_MAX}, one within the other",
                advice="Unpack it by hand and name the files to read.",
            )
        if opened is not None:
            with opened(source.path) as stream:
                path = self._spool(_pieces(stream), source.name)
            return self._expand(Source(_without_suffix(source.name), path, source.named), depth + 1)
        return self._tar(source, depth) if is_tar else self._zip(source, depth)

    def _zip(self, source: Source, depth: int) -> list[Source]:
        sources: list[Source] = []
        with zipfile.ZipFile(source.path) as archive:
            for member in archive.infolist():
                if not member.is_dir():
                    name = f"{source.name}!{shown_name(member.filename)}"
                    self._check_room(name, member.file_size)
                    sources.extend(self._zip_member(archive, member, name, depth))
        return sources

    def _zip_member(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, depth: int) -> list[Source]:
        """A member of a zip archive; each is packed for itself, so that one is damaged without the others."""
        try:
            if member.flag_bits & _IS_ENCRYPTED:
                raise _encrypted(name)
            try:
                with archive.open(member) as stream:
                    path = self._spool(_pieces(stream), name)
            except UNREADABLE as error:
                raise unreadable(name, error) from error
            return self._expand(Source(name, path, named=False), depth + 1)
        except InputError as error:
            self.opened.left_out.append(error)
            return []

    def _tar(self, source: Source, depth: int) -> list[Source]:
        sources: list[Source] = []
        with tarfile.open(source.path) as archive:
            for member in archive:
                name = f"{source.name}!{shown_name(member.name)}"
                if member.isdir() or member.issym() or member.islnk():
                    continue  # what a link points to is read where it lies
                sources.extend(self._tar_member(archive, member, name, depth))
        return sources

    def _tar_member(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, depth: int) -> list[Source]:
        """A member of a tar archive; where its bytes cannot be read, the archive is damaged."""
        is_odd = member.issparse() or not member.isfile()
        stream = None if is_odd else archive.extractfile(member)
        if stream is None:
            kind = "a sparse file" if member.issparse() else "a FIFO" if member.isfifo() else "a device"
            self.opened.left_out.append(_no_file(name, kind))
            return []
        self._check_room(name, member.size)
        path = self._spool(_pieces(stream), name)
        try:
            return self._expand(Source(name, path, named=False), depth + 1)
        except InputError as error:
            self.opened.left_out.append(error)
            return []

    def _spool(self, pieces: Iterable[bytes], name: str) -> Path:
        """Write what comes to a file of our own.

        Raises:
            LimitError: there is more than the documented limits, or no room for it.
        """
        self.member_count += 1
        self._check_room(name, 0)
        path = self.folder / str(self.member_count)
        write_pieces(path, pieces, name, lambda byte_count: self._admit(name, byte_count))
        return path

    def _admit(self, name: str, byte_count: int) -> None:
        self._check_room(name, byte_count)
        self.byte_count += byte_count

    def _check_room(self, name: str, byte_count: int) -> None:
        if self.byte_count + byte_count > UNPACKED_BYTES_MAX or self.member_count > MEMBER_COUNT_MAX:
            raise LimitError(
                name,
                found=f"unpacks to more than {UNPACKED_BYTES_MAX >> 30} GiB or {MEMBER_COUNT_MAX} files",
                expected="an archive within these limits",
                advice="Unpack it by hand and name the files to read.",
            )


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def _walk(folder: Path) -> tuple[list[Path], list[LeadlineError]]:
    """The files of a folder and its folders, in order, and what is none of them or cannot be looked into."""
    files: list[Path] = []
    odd: dict[Path, LeadlineError] = {}

    def closed(error: OSError) -> None:
        odd[Path(error.filename)] = unreadable(shown_name(error.filename), error)

    for parent, folders, names in os.walk(folder, onerror=closed):
        for name in folders:
            path = Path(parent, name)
            if path.is_symlink():
                odd[path] = _no_file(shown_name(path), "a link to a folder")
        for name in names:
            path = Path(parent, name)
            try:
                mode = path.stat().st_mode
            except OSError as error:
                reason = "a broken link" if path.is_symlink() else f"unreadable ({error.strerror})"
                odd[path] = _no_file(shown_name(path), reason)
                continue
            if stat.S_ISREG(mode):
                files.append(path)
            else:
                odd[path] = _no_file(shown_name(path), _kind(mode))
    return sorted(files), [odd[path] for path in sorted(odd)]


def _kind(mode: int) -> str:
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "no file")


def _is_document(source: Source) -> bool:
    """Whether a zip archive is a workbook and not a bundle of recordings.

    Source: ECMA-376 part 2, Open Packaging Conventions: every package holds ``[Content_Types].xml``.

    Raises:
        InputError: it is another kind of document.
    """
    with zipfile.ZipFile(source.path) as archive:
        names = set(archive.namelist())
    if "[Content_Types].xml" not in names:
        return False
    if names.isdisjoint(_WORKBOOKS):
        raise InputError(
            source.name,
            found="an office document without a workbook",
            expected="a workbook, or an archive of recordings",
            advice="Export the tables as .xlsx, or unpack the document and name the files.",
        )
    return True


def _no_file(name: str, reason: str) -> InputError:
    return InputError(
        name,
        found=reason,
        expected="a file with a recording",
        advice="Name the recording itself, or copy it to a plain file.",
    )


def _encrypted(name: str) -> InputError:
    return InputError(
        name,
        found="encrypted",
        expected="an archive without a password",
        advice="Unpack it with its password and name the files.",
    )


def unreadable(name: str, error: BaseException) -> InputError:
    """The error for a file of which a foreign error tells why it cannot be read."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, NotImplementedError):  # of zipfile: deflate64 and others that few programs write
        advice = "Unpack it by hand (7z x FILE) and name the files."
    elif isinstance(error, PermissionError):
        advice = "Give yourself the right to read it, or run the command as a user who may."
    else:
        advice = "Copy it again, or unpack it by hand and name the files."
    return InputError(
        name, found=f"unreadable ({reason})", expected="a readable file or a complete archive", advice=advice
    )


def _without_suffix(name: str) -> str:
    for suffix in (".gz", ".xz", ".zst", ".bz2"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return f"{name.removesuffix('.tgz').removesuffix('.txz')}.tar" if name.endswith((".tgz", ".txz")) else name
