"""What a load works on: opened, identified and locked before a load tool starts, which then sees a plain name of ours.

Load tools read a meaning of their own into paths: fio cuts one at ``#``, ``;``, ``:`` and a newline and expands
``${x}``, so it would write to a file that nobody named. No tool therefore sees a path that a user named. It works in a
private folder, where ``t0`` is a link to ``/proc/self/fd/N``; it inherits descriptor N. What a path names later, after
a rename or behind a planted link, no longer matters.

The last part of a path is never followed as a link when it is opened. A link that the user named is resolved once, in
the plan, and what it leads to is identified there: names of devices (``/dev/disk/by-id``) are links.

Source: proc(5), ``/proc/pid/fd``, ``/proc/pid/fdinfo``; open(2), O_EXCL on block devices and O_NOFOLLOW; flock(2).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.leftovers import forget, identify, note, scratch_folder
from leadline.core.system.locks import lock_file

MARK = "user.leadline"  # extended attribute of a file that was made: its identity, so that no copy has it
LOCK_PATIENCE_S = 1.0  # Judgement: udev locks a block device for milliseconds when it looks at it
_OFTEN_S = 2.0  # Judgement: tools open their files within this time; a look takes 0.2 ms
_SELDOM_S = 1.0
_URI = re.compile(r"[a-z][a-z0-9+]*://")
_CGROUPS = "/sys/fs/cgroup/"  # a limited tool enters its control group before it starts
_HARMLESS = {1, 5, 136}  # major numbers of character devices: memory (null, zero), terminals


@dataclass(frozen=True, slots=True)
class Identity:
    """Which file, folder or device it is, whatever its name: a device by its number, else file system and inode."""

    kind: int
    device: int
    inode: int

    @classmethod
    def of(cls, state: os.stat_result) -> Identity:
        """Of what was looked at."""
        kind = stat.S_IFMT(state.st_mode)
        if kind in (stat.S_IFBLK, stat.S_IFCHR):
            return cls(kind, state.st_rdev, 0)
        return cls(kind, state.st_dev, state.st_ino)

    @property
    def mark(self) -> bytes:
        """As a file that was made carries it."""
        return f"{self.device}:{self.inode}".encode()


def is_uri(name: str) -> bool:
    """Whether a target is named by a scheme; ``./a://b`` is a path."""
    return _URI.match(name) is not None


def printable(name: str) -> str:
    r"""A name whose bytes are no text, as text that every output takes.

    >>> printable("v\udcff2")
    'v\\xff2'
    """
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return ascii(name)


def is_text(name: str) -> bool:
    """Whether the bytes of a name are UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def descriptor_of(path: str, *, writes: bool) -> int:
    """A descriptor of the file or device that a path leads to; the last part is not followed as a link any more.

    A block device that is written to is claimed: the kernel refuses one that is mounted, and mounts none that is.

    Raises:
        UsageError: it cannot be opened, or is in use.
    """
    real = os.path.realpath(path)
    flags = (os.O_RDWR if writes else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        if writes and stat.S_ISBLK(os.lstat(real).st_mode):
            flags |= os.O_EXCL
        return os.open(real, flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise in_use(path, "claimed by the kernel, as a mount or an array does") from error
        raise UsageError(
            printable(path),
            found=f"it cannot be opened ({error.strerror})",
            expected="a target this user may open",
            advice="Run as root, or name another.",
        ) from error


def in_use(path: str, user: str) -> UsageError:
    """That a device, or what it is made of, is in use."""
    return UsageError(
        printable(path),
        found=f"a device in use ({user})",
        expected="one that nothing uses",
        advice="Leadline never writes to a mounted device; name another.",
    )


def lock(descriptor: int, path: str) -> None:
    """Lock what was opened, until the descriptor is closed.

    A file system without locks (some network file systems) does not hinder a load.

    Raises:
        UsageError: another run has locked it.
    """
    patience_s = LOCK_PATIENCE_S if stat.S_ISBLK(os.fstat(descriptor).st_mode) else 0.0
    until = time.monotonic() + patience_s
    while True:
        try:
            lock_file(descriptor)
        except BlockingIOError as error:
            if time.monotonic() < until:
                time.sleep(0.05)
                continue
            raise UsageError(
                printable(path),
                found=f"a target that {_locker(descriptor)} has locked",
                expected="a target that no other run uses",
                advice="Wait until the other run ends, or name another target.",
            ) from error
        except OSError:
            return
        return


def _locker(descriptor: int) -> str:
    """Who has locked a file, for people. Source: proc(5), /proc/locks."""
    state = os.fstat(descriptor)
    wanted = f"{os.major(state.st_dev):02x}:{os.minor(state.st_dev):02x}:{state.st_ino}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if wanted in words and "FLOCK" in words and words[words.index(wanted) - 1].isdecimal():
                return f"process {words[words.index(wanted) - 1]}"
    return "another process"


@dataclass(frozen=True, slots=True)
class OpenedTarget:
    """One target: its descriptor, and where it was made, if so."""

    descriptor: int
    identity: Identity
    writes: bool
    link: str
    path: str
    parent: int | None = None  # descriptor of the folder it was made in


@dataclass(slots=True)
class Targets:
    """The targets of one plan while they are loaded; `close` lets them go and removes those that were made."""

    _folder: Path | None = None
    _opened: dict[str, OpenedTarget] = field(default_factory=dict)
    _scratch: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def folder(self) -> Path:
        """The private folder a tool works in; made when it is first needed."""
        if self._folder is None:
            self._folder = self._scratch.enter_context(scratch_folder("run"))
        return self._folder

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The open descriptors that a load tool inherits."""
        return tuple(target.descriptor for target in self._opened.values())

    def descriptor(self, link: str) -> int:
        """Of one target by its plain name."""
        return self._opened[link].descriptor

    def open(self, path: str, link: str, identity: Identity | None, *, writes: bool) -> None:
        """Open what is there, lock it and give it a plain name; a second time is nothing.

        Raises:
            UsageError: it cannot be opened, is locked, or is not what the plan identified.
        """
        if link in self._opened:
            return
        descriptor = descriptor_of(path, writes=writes)
        try:
            actual = Identity.of(os.fstat(descriptor))
            _require_same(path, actual, identity)
            lock(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise
        self._add(OpenedTarget(descriptor, actual, writes, link, path))

    def make(self, path: str, link: str, parent: Identity | None, size_bytes: int) -> None:
        """Make a file that nobody has yet, never through a link, and give it a plain name; a second time is nothing.

        It has its full length from the start: fio replaces files that are too short by new ones.

        Raises:
            UsageError: there is something of that name, or the folder is not what the plan identified.
            ToolError: it cannot be made.
        """
        if link in self._opened:
            return
        folder, name = os.path.split(path)
        base = _folder_of(folder, parent)
        try:
            note(Path(path))
            descriptor = _create(base, name, path)
        except BaseException:
            forget(Path(path))
            os.close(base)
            raise
        identify(Path(path), os.fstat(descriptor))
        identity = Identity.of(os.fstat(descriptor))
        self._add(OpenedTarget(descriptor, identity, True, link, path, base))
        with contextlib.suppress(OSError):  # a file system without attributes: what a killed run leaves stays there
            os.setxattr(descriptor, MARK, identity.mark)
        lock(descriptor, path)
        os.ftruncate(descriptor, size_bytes)

    def make_folder(self, path: str, link: str, parent: Identity | None) -> None:
        """Make a folder of that name, which nobody else may enter; what is in it goes with it.

        Raises:
            UsageError: there is something of that name, or the folder around it is not what the plan identified.
            ToolError: it cannot be made.
        """
        if link in self._opened:
            return
        folder, name = os.path.split(path)
        base = _folder_of(folder, parent)
        note(Path(path))
        try:
            os.mkdir(name, 0o700, dir_fd=base)
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=base)
            identify(Path(path), os.fstat(descriptor))
        except OSError as error:
            forget(Path(path))
            os.close(base)
            raise _cannot_make(path, error) from error
        self._add(OpenedTarget(descriptor, Identity.of(os.fstat(descriptor)), True, link, path, base))

    def _add(self, target: OpenedTarget) -> None:
        self._opened[target.link] = target
        self.relink(target.link)

    def relink(self, link: str) -> None:
        """Give a target its plain name again, which some tools remove at their end."""
        at = self.folder / link
        at.unlink(missing_ok=True)
        at.symlink_to(f"/proc/self/fd/{self._opened[link].descriptor}")

    def require_linked(self) -> None:
        """Refuse what a tool did after it replaced a plain name by a file of its own.

        Raises:
            ToolError: it did.
        """
        for link, target in self._opened.items():
            at = self.folder / link
            if not at.is_symlink() or at.readlink() != Path(f"/proc/self/fd/{target.descriptor}"):
                raise ToolError(
                    printable(target.path),
                    found="the load tool replaced its link to the target",
                    expected="load on the target itself",
                    advice="Nothing that was measured counts. Run `leadline doctor` and look at the tool's version.",
                )

    def guard(self, process: int, *folders: Path) -> Callable[[], None]:
        """Return a check, to be called often, of the files a tool has open; it may also write into ``folders``.

        Raises (when called):
            ToolError: it opened for writing what is neither a target nor in those folders.
        """
        allowed = {target.identity: target.writes for target in self._opened.values()}
        prefixes = tuple(f"{os.path.realpath(folder)}/" for folder in (self.folder, *folders, *self._inside()))
        prefixes += (_CGROUPS,)
        began = time.monotonic()
        last = -float("inf")

        def look() -> None:
            nonlocal last
            now = time.monotonic()
            if now - began > _OFTEN_S and now - last < _SELDOM_S:
                return
            last = now
            for path, identity in opened_for_writing(process):
                if allowed.get(identity, path.startswith(prefixes)):
                    continue
                raise ToolError(
                    printable(path),
                    found="the load tool opened it for writing, and nobody named it",
                    expected="only the target to be open",
                    advice="The run was stopped. Compare that file with a backup, and report this as a fault.",
                )

        return look

    def _inside(self) -> Iterator[Path]:
        """Paths of the folders that were made: every file a tool makes in them is ours."""
        for target in self._opened.values():
            if target.identity.kind == stat.S_IFDIR:
                yield Path(f"/proc/self/fd/{target.descriptor}")

    def close(self) -> list[str]:
        """Remove what was made and is still what it was, close everything; returns what could not be removed.

        Safe to call twice.
        """
        left = []
        for target in self._opened.values():
            if target.parent is not None:
                if not _removed(target):
                    left.append(target.path)
                forget(Path(target.path))
                os.close(target.parent)
            os.close(target.descriptor)
        self._opened.clear()
        self._folder = None
        self._scratch.close()
        return left


def _folder_of(folder: str, wanted: Identity | None) -> int:
    """A descriptor of the folder something is made in."""
    try:
        base = os.open(os.path.realpath(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot_make(folder, error) from error
    try:
        _require_same(folder, Identity.of(os.fstat(base)), wanted)
    except BaseException:
        os.close(base)
        raise
    return base


def _require_same(path: str, actual: Identity, wanted: Identity | None) -> None:
    if wanted is not None and actual != wanted:
        raise UsageError(
            printable(path),
            found="another file, folder or device than when the plan was made",
            expected="the one that the plan names",
            advice="Nothing was written. Look who renames or replaces it, and run again.",
        )


def _create(base: int, name: str, path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for attempt in (1, 2):
        try:
            return os.open(name, flags, 0o600, dir_fd=base)
        except FileExistsError as error:
            if attempt == 2 or not _remove_leftover(base, name, path):
                raise _taken(path) from error
        except OSError as error:
            raise _cannot_make(path, error) from error
    raise _taken(path)


def _cannot_make(path: str, error: OSError) -> ToolError | UsageError:
    if isinstance(error, FileExistsError):
        return _taken(path)
    return ToolError(
        printable(path),
        found=f"it cannot be made ({error.strerror})",
        expected="a folder that this user may write to",
        advice="Name another target.",
    )


def _taken(path: str) -> UsageError:
    return UsageError(
        printable(path),
        found="it is there already",
        expected="a name that is free",
        advice="Remove it, or name another.",
    )


def require_free(folder: str, name: str) -> None:
    """Refuse to make a file where something is, but for what a killed run left.

    Raises:
        UsageError: something is there; another run works on it, or it is not ours.
    """
    path = str(Path(folder) / name)
    with contextlib.suppress(FileNotFoundError):
        os.lstat(path)
        base = _folder_of(folder, None)
        try:
            if not _is_leftover(base, name, path):
                raise _taken(path)
        finally:
            os.close(base)


def _is_leftover(base: int, name: str, path: str) -> bool:
    """Whether a file was made by a run that is gone: it carries its own identity and nobody has locked it."""
    with _looked_at(base, name) as descriptor:
        if descriptor is None:
            return False
        lock(descriptor, path)
        return _is_marked(descriptor)


def _remove_leftover(base: int, name: str, path: str) -> bool:
    with _looked_at(base, name) as descriptor:
        if descriptor is None:
            return False
        lock(descriptor, path)
        if not _is_marked(descriptor):
            return False
        os.unlink(name, dir_fd=base)
        return True


@contextlib.contextmanager
def _looked_at(base: int, name: str) -> Iterator[int | None]:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=base)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_marked(descriptor: int) -> bool:
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1 or state.st_uid != os.geteuid():
        return False
    try:
        return os.getxattr(descriptor, MARK) == Identity.of(state).mark
    except OSError:
        return False


def _removed(target: OpenedTarget) -> bool:
    """Remove what was made, by its identity; True also when its name is gone or is something else's now."""
    name = Path(target.path).name
    try:
        if Identity.of(os.stat(name, dir_fd=target.parent, follow_symlinks=False)) != target.identity:
            return True
        if target.identity.kind == stat.S_IFDIR:
            shutil.rmtree(name, dir_fd=target.parent)
        else:
            os.unlink(name, dir_fd=target.parent)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def opened_for_writing(process: int) -> Iterator[tuple[str, Identity]]:
    """Files and devices that a process and its children have open for writing; what no name leads to is left out."""
    for each in _family(process):
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{each}/fd").iterdir():
                with contextlib.suppress(OSError, ValueError):
                    state = entry.stat()
                    if _is_storage(state) and _writes(each, entry.name):
                        yield str(entry.readlink()), Identity.of(state)


def _is_storage(state: os.stat_result) -> bool:
    if stat.S_ISCHR(state.st_mode):
        return os.major(state.st_rdev) not in _HARMLESS
    return stat.S_ISBLK(state.st_mode) or (stat.S_ISREG(state.st_mode) and state.st_nlink > 0)


def _writes(process: int, number: str) -> bool:
    for line in Path(f"/proc/{process}/fdinfo/{number}").read_text(encoding="ascii").splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _family(process: int) -> Iterator[int]:
    yield process
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):
                words = (task / "children").read_text(encoding="ascii").split()
                for child in words:
                    yield from _family(int(child))
