"""What a killed Leadline left behind: temporary folders and files, which the next start finds and removes.

A temporary folder holds a file that its process keeps locked. What is made elsewhere (data files of a load, files
written aside) is noted in a journal before it is made; the process keeps the journal locked, too. The kernel drops both
locks when the process ends, however it ends. A lock that can be taken therefore belongs to a process that is gone, also
when that process ran in another container. A noted file is removed only if it still is the inode that was made and has
``leadline`` in its name.

Source: flock(2), "the lock is released ... when all such file descriptors have been closed"; unlink(2).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from leadline.core.system.locks import has_locks, lock_file
from leadline.core.system.portable import NO_LINK, PLAIN_BYTES, user_id

OWNER = ".leadline-owner"
_PREFIX = "leadline-"
_JOURNALS = "leftovers"
_JOURNAL_SUFFIX = ".jsonl"
_UNLOCKED = ".unlocked"  # ends the name of a journal or folder until its process holds the lock
_NAMES_MAX = 5  # of a line that says what was removed
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_TRIES = 100  # another start removes what is not locked yet; that it does so this often in a row is an error
_journal: _Journal | None = None
_journal_lock = threading.Lock()


def user_folder() -> Path:
    """Return the folder of what Leadline keeps for this user: ``LEADLINE_HOME``, else one in the user's data folder."""
    home = os.environ.get("LEADLINE_HOME")
    if home:
        return Path(home)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "leadline"


def temporary_folder() -> Path:
    """Return the folder of temporary files: ``TMPDIR``, ``TEMP`` or ``TMP`` where it may be written, else the system's.

    `tempfile` tries a folder by writing a file, which a kill at that moment leaves there. This looks at rights only.

    Raises:
        FileNotFoundError: none can be written.
    """
    if tempfile.tempdir is None:
        named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
        places = (os.path.abspath(place) for place in (*named, "/tmp", "/var/tmp", "/usr/tmp") if place)  # noqa: PTH100
        tempfile.tempdir = next((place for place in places if os.access(place, os.W_OK | os.X_OK)), None)
    return Path(tempfile.gettempdir())


@contextmanager
def scratch_folder(kind: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a temporary folder that only this user may enter; it is removed at the end, or by the next start."""
    path, descriptor = _locked_folder(kind, parent or temporary_folder())
    try:
        with contextlib.nullcontext() if parent is None else removed_later(path):
            if parent is not None:
                identify(path)
            try:
                yield path
            finally:
                if parent is None:  # a kill from here on leaves what the next start knows to be ours
                    with suppress(OSError):
                        path = path.rename(path.with_name(path.name + _UNLOCKED))
                shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def scratch_name(kind: str) -> str:
    """Return what the name of a temporary folder begins with; eight random characters follow."""
    return f"{_PREFIX}{kind}-"


def _locked_folder(kind: str, parent: Path) -> tuple[Path, int]:
    """Make a temporary folder that holds a locked file; the descriptor of that file keeps the lock."""
    for _ in range(_TRIES):
        path = Path(tempfile.mkdtemp(prefix=scratch_name(kind), suffix=_UNLOCKED, dir=parent))
        with suppress(FileNotFoundError):
            return _locked(path, path / OWNER)
    raise FileNotFoundError(errno.ENOENT, "it is removed as soon as it is made", str(parent))


def _locked(path: Path, inside: Path) -> tuple[Path, int]:
    """Make a file, lock it and give ``path``, which is it or its folder, the name without `_UNLOCKED`.

    Raises:
        FileNotFoundError: another start took it for left by a killed process, before it was locked.
    """
    descriptor = os.open(inside, os.O_RDWR | os.O_CREAT | os.O_EXCL | PLAIN_BYTES, 0o600)
    try:
        if has_locks():
            lock_file(descriptor, wait=True)
        return path.rename(path.with_name(path.name.removesuffix(_UNLOCKED))), descriptor
    except BaseException:
        os.close(descriptor)
        raise


@contextmanager
def removed_later(path: Path) -> Iterator[None]:
    """Note a file or folder while it exists. The caller makes, identifies and removes it; else the next start does."""
    note(path)
    try:
        yield
    finally:
        forget(path)


def note(path: Path) -> None:
    """Note a file or folder that is about to be made. Until `identify` is called, only an empty one is removed.

    Raises:
        ValueError: its name does not say that it is Leadline's.
    """
    if "leadline" not in path.name:
        message = f"{path.name} does not say whose it is"
        raise ValueError(message)
    _write(path, "planned")


def identify(path: Path, state: os.stat_result | None = None) -> None:
    """Note that this process has made a noted file or folder, before anything is written to it.

    From then on nothing of another inode is removed. ``state`` is that of its open descriptor, if any.

    Raises:
        OSError: it does not exist.
    """
    state = state or path.lstat()
    _write(path, "made", device=state.st_dev, inode=state.st_ino)


def forget(path: Path) -> None:
    """Note that a file or folder is gone, or is to stay."""
    _write(path, "gone")


def _write(path: Path, state: str, **identity: int) -> None:
    """Add a line to this process's journal; a user folder that cannot be written has no journal."""
    global _journal  # noqa: PLW0603 - one journal per process, opened by the first who has something to note
    path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the last link
    with _journal_lock:
        if _journal is None or _journal.process != os.getpid():
            _journal = _Journal.opened()
        _journal.write(path, state, identity)


class _Journal:
    """The journal of this process: a locked file with a JSON line per event."""

    def __init__(self, path: Path | None, descriptor: int) -> None:
        self.process = os.getpid()
        self._path = path
        self._descriptor = descriptor
        self._open_paths: set[Path] = set()

    @classmethod
    def opened(cls) -> _Journal:
        """Make the journal; one that writes nothing where the user folder cannot be written."""
        folder = user_folder() / _JOURNALS
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for _ in range(_TRIES):
                path = folder / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}{_JOURNAL_SUFFIX}{_UNLOCKED}"
                with suppress(FileNotFoundError):
                    return cls(*_locked(path, path))
        except OSError:
            pass
        return cls(None, -1)

    def write(self, path: Path, state: str, identity: dict[str, int]) -> None:
        """Add an event; the journal is removed when nothing that was noted is left."""
        global _journal  # noqa: PLW0603 - see _write
        if self._path is None:
            return
        entry = {"path": os.fsencode(path).hex(), "state": state, **identity}
        if state == "gone":
            self._open_paths.discard(path)
        else:
            self._open_paths.add(path)
        with suppress(OSError):  # a full disk must not end the work that is noted
            os.write(self._descriptor, (json.dumps(entry) + "\n").encode())
        if not self._open_paths:
            with suppress(OSError):
                self._path.unlink()
            os.close(self._descriptor)
            _journal = None


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or folder that was removed, or is about to be.

    Attributes:
        path: where it was.
        size_bytes: of the file, or of all files in the folder.
        names: what the folder held, sorted, without the mark of its owner; None for a file.
    """

    path: str
    size_bytes: int
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, path: Path, state: os.stat_result) -> Leftover:
        """Measure it; what cannot be read counts nothing."""
        if not stat.S_ISDIR(state.st_mode):
            return cls(str(path), state.st_size)
        size_bytes, names = 0, set()
        for folder, _, files in os.walk(path):
            for name in files:
                with suppress(OSError):
                    size_bytes += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - thousands of files
        with suppress(OSError):
            names.update(os.listdir(path))  # noqa: PTH208 - names only
        return cls(str(path), size_bytes, tuple(sorted(names - {OWNER})))

    def __str__(self) -> str:
        if self.names is None:
            return f"{self.path!r} ({_size_text(self.size_bytes)})"
        shown = [repr(name)[1:-1] for name in self.names[:_NAMES_MAX]]
        others = len(self.names) - len(shown)
        listing = " with " + ", ".join([*shown, *([f"{others} more"] if others else [])]) if shown else ", empty"
        return f"{self.path!r} (folder{listing}, {_size_text(self.size_bytes)})"


def removed_line(leftovers: Sequence[Leftover]) -> str:
    """What was removed, as one line: names and sizes, the largest first.

    >>> removed_line([Leftover("/tmp/leadline-a", 3, ("x", "y")), Leftover("/d/leadline-b", 5 * 2**20)])
    "removed what a killed run left behind: '/d/leadline-b' (5 MiB), '/tmp/leadline-a' (folder with x, y, 3 bytes)"
    """
    ordered = sorted(leftovers, key=lambda leftover: (-leftover.size_bytes, leftover.path))
    parts = [str(leftover) for leftover in ordered[:_NAMES_MAX]]
    others = ordered[_NAMES_MAX:]
    if others:
        parts.append(f"and {len(others)} more ({_size_text(sum(leftover.size_bytes for leftover in others))})")
    return f"removed what a killed run left behind: {', '.join(parts)}"


def _size_text(size_bytes: int) -> str:
    """A size for people, in three digits.

    >>> _size_text(1), _size_text(1000), _size_text(2**20), _size_text(1288490189)
    ('1 byte', '1000 bytes', '1 MiB', '1.2 GiB')
    """
    if size_bytes < 1024:
        return "1 byte" if size_bytes == 1 else f"{size_bytes} bytes"
    exponent = min((size_bytes.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{size_bytes / 1024**exponent:.4g} {_UNITS[exponent]}"


def remove_leftovers() -> list[Leftover]:
    """Remove what processes that are gone left behind; what was removed. Never raises."""
    removed: list[Leftover] = []
    journals = user_folder() / _JOURNALS
    with suppress(OSError):
        for path in sorted(journals.glob(f"{_PREFIX}*{_JOURNAL_SUFFIX}")):
            removed += _undo(path)
        for path in journals.glob(f"{_PREFIX}*{_UNLOCKED}"):
            with suppress(OSError), _lock_of(path):
                path.unlink(missing_ok=True)
    with suppress(OSError), os.scandir(temporary_folder()) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                    removed += _remove_abandoned(entry)
    return removed


def _remove_abandoned(entry: os.DirEntry[str]) -> list[Leftover]:
    """Remove a temporary folder that Leadline made and whose process is gone; empty when it is not such a one.

    Raises:
        OSError: its process lives, or it cannot be removed.
    """
    folder, state = Path(entry.path), entry.stat(follow_symlinks=False)
    if state.st_uid != user_id():
        return []
    names = [path.name for path in folder.iterdir()]
    if OWNER in names:
        with _lock_of(folder / OWNER):
            leftover = Leftover.of(folder, state)
            shutil.rmtree(folder)
        return [leftover]
    if not folder.name.endswith(_UNLOCKED):
        return []
    leftover = Leftover.of(folder, state)
    if names:  # ended while it was removed
        shutil.rmtree(folder)
    else:
        folder.rmdir()  # and not more: its process may be about to lock it
    return [leftover]


@contextmanager
def _lock_of(path: Path) -> Iterator[None]:
    """Hold the lock of a file.

    Raises:
        BlockingIOError: its process lives.
    """
    descriptor = os.open(path, os.O_RDWR | PLAIN_BYTES | NO_LINK)
    try:
        lock_file(descriptor)
        yield
    finally:
        os.close(descriptor)


def _undo(journal: Path) -> list[Leftover]:
    """Remove what a journal of a process that is gone lists, the newest first."""
    try:
        descriptor = os.open(journal, os.O_RDWR | PLAIN_BYTES | NO_LINK)
    except OSError:
        return []
    with open(descriptor, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - a descriptor
        try:
            lock_file(descriptor)
        except OSError:
            return []
        identities: dict[str, tuple[int, int] | None] = {}
        for line in stream:
            with suppress(ValueError, KeyError, TypeError, AttributeError):  # the last line may be torn
                entry = json.loads(line)
                identities.pop(entry["path"], None)
                if entry["state"] != "gone":
                    identities[entry["path"]] = (entry["device"], entry["inode"]) if "inode" in entry else None
        tried = [_remove(name, identity) for name, identity in reversed(identities.items())]
        # What children of the killed process still write to cannot be removed yet: the next start tries again.
        if not any(_is_there(name, identity) for name, identity in identities.items()):
            journal.unlink(missing_ok=True)
    return [leftover for leftover in tried if leftover is not None]


def _is_there(name: str, identity: tuple[int, int] | None) -> bool:
    """Whether something of ours that was noted with its inode still exists."""
    try:
        path = Path(os.fsdecode(bytes.fromhex(name)))
        state = path.lstat()
    except (OSError, ValueError):
        return False
    return "leadline" in path.name and identity == (state.st_dev, state.st_ino)


def _remove(name: str, identity: tuple[int, int] | None) -> Leftover | None:
    """Remove a noted file or folder when it still is the one that was made, or holds nothing yet; None if it is not."""
    try:
        path = Path(os.fsdecode(bytes.fromhex(name)))
        state = path.lstat()
        if "leadline" not in path.name or identity not in (None, (state.st_dev, state.st_ino)):
            return None
        leftover = Leftover.of(path, state)
        if stat.S_ISDIR(state.st_mode):
            if identity is None:
                path.rmdir()
            else:
                shutil.rmtree(path)
        elif identity is not None or (stat.S_ISREG(state.st_mode) and state.st_size == 0):
            path.unlink()
        else:
            return None
    except (OSError, ValueError):
        return None
    return leftover
