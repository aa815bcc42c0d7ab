"""Files that Leadline writes: checked before the work, written aside under a name of their own, renamed when whole.

An output never replaces a device, a link or a file that Leadline did not write. What Leadline wrote is known by its
content: pages, JSON, SARIF and Parquet name it, texts begin with `mark`, a generated capture is in its truth file.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.leftovers import forget, identify, note
from leadline.core.system.portable import NO_LINK, NO_WAIT, PLAIN_BYTES, user_id

PREFIX = ".leadline-"
TRUTH = ".truth.yaml"
GENERATED = "generated:"  # key of a truth file: the files beside it with their sizes
RECORDED_BY = "recorded_by"  # last column of settings that Leadline records from a database
EXPORT_HEADER = ("time", "entity", "metric", "unit", "value", "since_boot")
_MARK = "Written by Leadline"
_REGISTRATION = "Windows Registry Editor Version 5.00"  # the line a registration file must begin with
_HEAD_BYTES = 4096
_TRIES = 100
_START_FIELD = 19  # of /proc/PID/stat after the command. Source: proc_pid_stat(5), starttime is the 22nd
_STREAMS = re.compile(r"-|/dev/std(in|out|err)|/dev/fd/[0-9]+|/proc/self/fd/[0-9]+")
_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
    (stat.S_ISFIFO, "is a FIFO"),
    (stat.S_ISSOCK, "is a socket"),
)
# What the beginning of a file looks like when Leadline wrote it.
_OURS = (
    re.compile(rb'\A\s*<!doctype html>.*<meta name="generator" content="Leadline\b', re.DOTALL | re.IGNORECASE),
    re.compile(rb'\A\s*\{\s*("schema":\s*"leadline\.|"leadline_facts":)'),
    re.compile(rb'\A\s*\{.*"runs":.*"driver":\s*\{\s*"name":\s*"Leadline"', re.DOTALL),
    re.compile(rb"\A(\xef\xbb\xbf)?# " + _MARK.encode() + rb"\b"),
    re.compile(rb"\A@rem " + _MARK.encode() + rb"\b"),
    re.compile(rb"\A\xff\xfe" + re.escape(f"{_REGISTRATION}\r\n\r\n; {_MARK}:".encode("utf-16-le"))),
    re.compile(rb"\A[a-z_,]+," + RECORDED_BY.encode() + rb"\n"),
    re.compile(rb"\A" + ",".join(EXPORT_HEADER).encode() + rb"\r?\n"),
)


def mark(verb: str) -> str:
    """The first line of a text that Leadline writes, by which it may replace the file later."""
    return f"# {_MARK}: {verb}.\n"


@dataclass(frozen=True, slots=True)
class Output:
    """A file to write.

    Attributes:
        path: the file.
        option: how the user named it, for messages.
        force: a file that Leadline did not write may be replaced, too.
        advice: what a user may do about a file that Leadline did not write.
    """

    path: Path
    option: str = ""
    force: bool = False
    advice: str = "Name another file or add --force."

    @classmethod
    def of(cls, given: Output | Path, option: str = "") -> Output:
        """An output as it is, or of a path that may only replace what Leadline wrote."""
        return given if isinstance(given, Output) else cls(given, option)

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"{self.option} {self.path}".strip()

    def check(self) -> None:
        """Refuse what cannot or must not be written, before hours of work; nothing is left behind.

        Raises:
            UsageError: it is no plain file, Leadline did not write it, or its folder takes no new file.
        """
        self._check_file()
        _check_folder(self.path.parent, self.where)

    @contextmanager
    def aside(self) -> Iterator[Path]:
        """A file to fill; when the block ends well it takes the output's place, else it is removed.

        Raises:
            UsageError: the output must not be written, as of `check`.
            ToolError: writing failed; what was there before still is.
        """
        self.check()
        try:
            with _aside(self.path, self._check_file) as path:
                yield path
        except OSError as error:
            raise ToolError(
                self.where,
                found=f"cannot be written ({error.strerror or error})",
                expected="a place that takes the whole file",
                advice="Free space there or name another file; what was there before is unchanged.",
            ) from error

    def write(self, data: bytes) -> int:
        """Write it whole or not at all; its size in bytes.

        Raises:
            UsageError: the output must not be written, as of `check`.
            ToolError: writing failed; what was there before still is.
        """
        with self.aside() as path:
            path.write_bytes(data)
        return len(data)

    def _check_file(self) -> None:
        if _STREAMS.fullmatch(str(self.path)):
            problem = "stands for a stream of this process"
            raise self._refused(problem, "a file", "Name a file; what is printed can be redirected with `> FILE`.")
        try:
            state = self.path.lstat()
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise self._refused(f"cannot be used ({why})") from error
        if stat.S_ISLNK(state.st_mode):
            problem = f"is a link to {self.path.readlink()}"
            raise self._refused(problem, "a plain file: links are never followed", "Name the file itself.")
        for is_kind, problem in _KINDS:
            if is_kind(state.st_mode):
                raise self._refused(problem, "a plain file in a folder that can be written")
        if not self.force and state.st_size and not is_ours(self.path):
            problem = "exists and Leadline did not write it"
            raise self._refused(problem, "a new file or one that Leadline wrote", self.advice)

    def _refused(
        self,
        problem: str,
        expected: str = "a file in a folder that can be written",
        advice: str = "Name another file.",
    ) -> UsageError:
        return UsageError(self.where, found=problem, expected=expected, advice=advice)


def check_inputs(outputs: Sequence[Output], inputs: dict[str, Sequence[Path]]) -> None:
    """Refuse outputs that are a file the same command reads, or each other; by device and inode, so links count.

    Args:
        outputs: what is to be written.
        inputs: the files that are read, by how the user named them.

    Raises:
        UsageError: an output is an input or another output.
    """
    read = {key: name for name, paths in inputs.items() for path in paths if (key := _identity(path))}
    written: dict[object, str] = {}
    for output in outputs:
        identity = _identity(output.path) or (_identity(output.path.parent), output.path.name)
        if identity in read:
            raise UsageError(
                output.where,
                found=f"is a file this command reads ({read[identity]})",
                expected="another file: an input is never replaced",
                advice="Name another file.",
            )
        if written.setdefault(identity, output.where) != output.where:
            raise UsageError(
                output.where,
                found=f"is also written by {written[identity]}",
                expected="a file for each",
                advice="Name another file.",
            )


def check_folder(folder: Path, option: str) -> None:
    """Refuse a folder of recordings that cannot be made or written, before anything is recorded.

    Raises:
        UsageError: it is no folder, a link, or takes no new file.
    """
    where = f"{option} {folder}".strip()
    if folder.is_symlink():
        raise UsageError(
            where,
            found=f"is a link to {folder.readlink()}",
            expected="a folder: links are never followed",
            advice="Name the folder itself.",
        )
    absolute = folder.absolute()
    there = next(place for place in (absolute, *absolute.parents) if os.path.lexists(place))
    _check_folder(there, where, "a folder to write to")


def keep(path: Path, data: bytes, *, mode: int | None = None, owner: tuple[int, int] | None = None) -> None:
    """Write a file whose name is Leadline's own; it is there whole and on the disk when this returns.

    Args:
        path: the file, replaced whatever it was; a link itself, never what it leads to.
        data: what it shall hold.
        mode: its permissions; those of new files by default.
        owner: user and group it shall belong to; this process's by default.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    with _aside(path, mode=mode, owner=owner) as aside:
        aside.write_bytes(data)


def open_to_append(path: Path, beginning: re.Pattern[bytes]) -> IO[bytes]:
    """A file of a recording to append to, unbuffered; made where it is missing, never through a link or to a device.

    Args:
        path: the file.
        beginning: what a recording of this kind begins with when Leadline wrote it.

    Raises:
        UsageError: it is no plain file, cannot be opened, or Leadline did not write what it holds.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | NO_LINK | NO_WAIT | PLAIN_BYTES
    try:
        opened = os.open(path, flags, 0o666)
    except OSError as error:
        raise _not_opened(path, error) from error
    try:
        _check_beginning(path, opened, beginning)
    except BaseException:
        os.close(opened)
        raise
    return os.fdopen(opened, "ab", buffering=0)


def check_to_append(path: Path, beginning: re.Pattern[bytes]) -> None:
    """Refuse a file that `open_to_append` would refuse, before anything is recorded; nothing is made.

    Raises:
        UsageError: it is no plain file, cannot be opened, or Leadline did not write what it holds.
    """
    try:
        opened = os.open(path, os.O_RDONLY | NO_LINK | NO_WAIT | PLAIN_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _not_opened(path, error) from error
    try:
        _check_beginning(path, opened, beginning)
    finally:
        os.close(opened)


def _check_beginning(path: Path, opened: int, beginning: re.Pattern[bytes]) -> None:
    state = os.fstat(opened)
    if not stat.S_ISREG(state.st_mode):
        raise _no_plain_file(path, "is no plain file")
    if state.st_size and beginning.match(_head(opened)) is None:
        raise UsageError(
            str(path),
            found="exists and Leadline did not write it",
            expected="a new file or a recording of the same kind that Leadline wrote",
            advice="Name another folder, or move the file away.",
        )


def _head(opened: int) -> bytes:
    """The first bytes of a file that is open for appending."""
    os.lseek(opened, 0, os.SEEK_SET)
    return os.read(opened, _HEAD_BYTES)


def _not_opened(path: Path, error: OSError) -> UsageError:
    why = "a link" if error.errno == errno.ELOOP else str(error.strerror)
    return _no_plain_file(path, f"cannot be opened ({why})")


def _no_plain_file(path: Path, problem: str) -> UsageError:
    return UsageError(str(path), found=problem, expected="a plain file to append to", advice="Name another folder.")


def is_ours(path: Path) -> bool:
    """Whether Leadline wrote a file, by its content; False when it cannot be read."""
    try:
        opened = os.open(path, os.O_RDONLY | NO_LINK | NO_WAIT | PLAIN_BYTES)
        with os.fdopen(opened, "rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError:
        return False
    if head.startswith(b"PAR1"):
        return _is_our_parquet(path)
    return any(pattern.match(head) for pattern in _OURS) or _is_generated(path)


def _is_our_parquet(path: Path) -> bool:
    try:
        import pyarrow as pa  # noqa: PLC0415 - 0.3 s that only Parquet needs
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        return False  # what cannot be read is not replaced
    try:
        return b"leadline" in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError, ValueError):
        return False


def _is_generated(path: Path) -> bool:
    """Whether a truth file of `leadline generate` lists a file of this name and size.

    A generated capture looks like a real one in every byte, so it cannot carry a mark of its own.
    """
    names = [path.name[:end] for end in range(len(path.name), 0, -1) if end == len(path.name) or path.name[end] == "."]
    for name in names:
        truth = path.with_name(f"{name}{TRUTH}")
        if not truth.is_file() or truth == path:
            continue
        for line in truth.read_text(encoding="utf-8", errors="replace").splitlines()[:2]:
            if line.startswith(f"# {GENERATED} "):
                with suppress(ValueError):
                    sizes = json.loads(line.removeprefix(f"# {GENERATED} "))
                    return isinstance(sizes, dict) and sizes.get(path.name) == path.stat().st_size
    return False


def generated_line(files: Sequence[tuple[str, int]]) -> str:
    """The line of a truth file that lists what was generated: names and sizes in bytes."""
    return f"# {GENERATED} {json.dumps(dict(files))}\n"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_dev, state.st_ino


def _check_folder(folder: Path, where: str, expected: str = "a file in a folder that can be written") -> None:
    if not folder.is_dir():
        raise _unwritable(where, f"there is no folder {folder}", expected)
    try:
        path, opened = _exclusive(folder)
    except OSError as error:
        raise _unwritable(where, f"no right to write into {folder} ({error.strerror})", expected) from error
    try:
        os.write(opened, b"\n")
        is_full = _is_full(opened)
    except OSError as error:
        raise _unwritable(where, f"{folder} takes no data ({error.strerror})", expected) from error
    finally:
        os.close(opened)
        path.unlink(missing_ok=True)
        forget(path)
    if is_full:
        raise _unwritable(where, f"no space is left in {folder}", expected)


def _is_full(opened: int) -> bool:
    """Whether the file system of an open file has no room; False on Windows, where the first writing says so."""
    ask = getattr(os, "fstatvfs", None)
    if ask is None:
        return False
    room = ask(opened)
    return bool(room.f_blocks > 0 and (room.f_bfree if user_id() == 0 else room.f_bavail) == 0)


def _unwritable(where: str, problem: str, expected: str) -> UsageError:
    return UsageError(where, found=problem, expected=expected, advice="Name another place.")


@contextmanager
def _aside(
    path: Path,
    allowed: Callable[[], object] = lambda: None,
    *,
    mode: int | None = None,
    owner: tuple[int, int] | None = None,
) -> Iterator[Path]:
    """A new file beside ``path`` that takes its place at the end, when ``allowed`` still does not object."""
    aside, opened = _exclusive(path.parent)
    try:
        yield aside
        written, now = os.fstat(opened), aside.lstat()
        if (written.st_dev, written.st_ino) != (now.st_dev, now.st_ino):
            raise OSError(errno.EBUSY, "somebody replaced the file while it was written")
        if owner is not None:
            os.fchown(opened, *owner)
        if hasattr(os, "fchmod"):
            os.fchmod(opened, 0o666 & ~_umask() if mode is None else mode)
        os.fsync(opened)
        allowed()
        if os.name == "nt":  # an open file keeps its name there
            os.close(opened)
            opened = -1
        aside.replace(path)
        _sync_folder(path.parent)
    finally:
        if opened >= 0:
            os.close(opened)
        aside.unlink(missing_ok=True)
        forget(aside)


def _exclusive(folder: Path) -> tuple[Path, int]:
    """A new file that was not there before, only for this user, and its descriptor; the caller must `forget` it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINK | PLAIN_BYTES
    for _ in range(_TRIES):
        path = folder / aside_name()
        note(path)
        try:
            opened = os.open(path, flags, 0o600)
        except OSError as error:
            forget(path)
            if isinstance(error, FileExistsError):
                continue
            raise
        identify(path, os.fstat(opened))
        return path, opened
    raise OSError(errno.EEXIST, "no free name", str(folder))


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder is no file there
        return
    opened = os.open(folder, os.O_RDONLY | PLAIN_BYTES)
    try:
        with suppress(OSError):  # some network file systems cannot; the rename is done
            os.fsync(opened)
    finally:
        os.close(opened)


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def aside_name() -> str:
    """A name for a temporary file beside what it becomes; nobody can guess it."""
    return f"{PREFIX}{os.urandom(8).hex()}"


def process_start(process: int) -> str:
    """When a process began, in the kernel's ticks, which tells it from a later one of the same number; empty: none.

    Source: proc(5), /proc/pid/stat field 22.
    """
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[_START_FIELD]
    except (OSError, IndexError):
        return ""
