"""What may be loaded: a file that load makes itself, or the very target the user named; never what others depend on.

A mounted device, the system's own folders and the files of a server that runs are refused whatever the user says.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.opened import Identity, descriptor_of, in_use, lock, printable

RESERVE_SHARE = 0.05  # Judgement: of the filesystem, kept free so that other programs go on
_MOUNTS = Path("/proc/self/mountinfo")
_SWAPS = Path("/proc/swaps")
# Themselves and everything below; of /dev its devices and /dev/shm are targets.
_SYSTEM_TREES = (
    *("/bin", "/boot", "/dev", "/efi", "/etc", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/proc", "/sbin", "/sys", "/usr"),
)
# Themselves alone: what lies below may be a disk of its own, and folders of homes are their owners'.
_SYSTEM_ROOTS = ("/", "/home", "/root", "/run", "/var", "/var/cache", "/var/lib", "/var/log", "/var/spool")
_PID_FILE = "postmaster.pid"
_SERVERS = ("postgres", "postmaster")
_LEVELS_BELOW, _ENTRIES_BELOW = 4, 20_000  # Judgement: /var/lib/postgresql/15/main is three below /var/lib


def require_named(path: str, named: str | None) -> None:
    """Refuse to overwrite what is there unless the user named the very same target.

    Raises:
        UsageError: it exists and ``named`` is not it.
    """
    if named is None or os.path.realpath(named) != os.path.realpath(path):
        raise UsageError(
            printable(path),
            found="data that would be overwritten",
            expected=f"--destroy-data {printable(path)}",
            advice="Name another target, or that option with the very same target if its data may go.",
        )


def require_usable(name: str) -> Path:
    """The absolute path of a target that is there, refused where no load may ever work, whatever the user says.

    Raises:
        UsageError: the name is empty or leads to nothing, to the system's own folders or a home folder itself, or to
            the files of a PostgreSQL server that runs.
    """
    if not name or "\0" in name:
        raise UsageError(
            "--on", found="an empty name", expected="a folder, file or device", advice="For example --on /srv/scratch."
        )
    path = Path(name).absolute()  # load tools run in folders of their own
    try:
        path.stat()
    except FileNotFoundError:
        raise UsageError(
            printable(name),
            found="no such folder, file or device",
            expected="a target that is there",
            advice=f"Make the folder first: mkdir -p {shlex.quote(printable(name))}",
        ) from None
    except OSError as error:
        raise UsageError(
            printable(name), found=str(error.strerror), expected="a target that is there", advice="Name another."
        ) from error
    real = Path(os.path.realpath(path))
    _refuse_system(name, real)
    cluster = live_cluster(real)
    if cluster is not None:
        raise UsageError(
            printable(name),
            found=f"the files of a PostgreSQL server that runs ({printable(str(cluster))})",
            expected="a target apart from every server's files",
            advice="Make a folder on the same disk, outside every server's data folder, and name it.",
        )
    return path


def _refuse_system(name: str, real: Path) -> None:
    where = _system_folder(real)
    if where is not None:
        raise UsageError(
            printable(name),
            found=f"a system folder ({where})",
            expected="a target that nothing else depends on",
            advice="Make a folder for the load alone, for example /srv/scratch.",
        )


def _system_folder(real: Path) -> str | None:
    """The folder of the system that a path is or lies in, by identity: a second mount of it is the same."""
    state = real.stat()
    if stat.S_ISBLK(state.st_mode) or stat.S_ISCHR(state.st_mode):
        return None  # a device is judged by who uses it
    real_identity = _identity(real)
    homes = [str(folder) for folder in Path("/home").glob("*")] if Path("/home").is_dir() else []
    with contextlib.suppress(KeyError, ImportError):
        import pwd  # noqa: PLC0415 - Windows has none

        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    for folder in (*_SYSTEM_ROOTS, *homes):
        if real_identity is not None and _identity(Path(folder)) == real_identity:
            return folder
    around = [real_identity, *map(_identity, real.parents)]
    if _identity(Path("/dev/shm")) in around[:-1]:
        return None
    for folder in _SYSTEM_TREES:
        identity = _identity(Path(folder))
        if identity is not None and identity in around:
            return folder
    return None


def system_place(path: str) -> str | None:
    """The system folder that a path on another machine names, judged by the path alone; None for none."""
    plain = posixpath.normpath(f"/{path}") if path.startswith("/") else path
    plain = f"/{plain.lstrip('/')}" if path.startswith("/") else plain
    if plain in _SYSTEM_ROOTS:
        return plain
    if plain.startswith("/dev/"):
        return None  # a device, or memory
    return next((tree for tree in _SYSTEM_TREES if plain == tree or plain.startswith(f"{tree}/")), None)


def _identity(path: Path) -> Identity | None:
    try:
        return Identity.of(path.stat())
    except OSError:
        return None


def live_cluster(real: Path) -> Path | None:
    """The data folder of a PostgreSQL server that runs above, at or below a path; None when there is none.

    A data folder is told by its ``postmaster.pid``, and by the processes of servers, which work in it; the log and
    tablespaces it has elsewhere count as well. Below, four levels and 20,000 entries are looked at.
    """
    for folder in (real, *real.parents):
        if _holds_server(folder):
            return folder
    if real.is_dir():
        cluster = _cluster_below(real)
        if cluster is not None:
            return cluster
    for data in _served_folders():
        for place in (data, *_elsewhere(data)):
            if place == real or place in real.parents or real in place.parents:
                return data
    return None


def _cluster_below(top: Path) -> Path | None:
    """Breadth first, so that what is near is seen however much there is."""
    level, seen = [top], 0
    for _ in range(_LEVELS_BELOW):
        deeper: list[Path] = []
        for folder in level:
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            for entry in entries:
                seen += 1
                if entry.name == _PID_FILE:
                    return folder
                if entry.is_dir(follow_symlinks=False):
                    deeper.append(Path(entry.path))
            if seen > _ENTRIES_BELOW:
                return None
        level = deeper
    return next(filter(_holds_server, level), None)


def _holds_server(folder: Path) -> bool:
    try:
        return (folder / _PID_FILE).exists()
    except OSError:
        return False  # closed to this user, who can then make nothing there


def _served_folders() -> Iterator[Path]:
    """Where processes of PostgreSQL work: the postmaster and its children stay in the data folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text(errors="replace").strip() in _SERVERS:
                data = (process / "cwd").readlink()
                if (process / "cwd" / "PG_VERSION").exists():
                    yield data


def _elsewhere(data: Path) -> Iterator[Path]:
    """The log and tablespaces of a data folder that lie outside."""
    with contextlib.suppress(OSError):
        for link in (data / "pg_wal", *(data / "pg_tblspc").iterdir()):
            if link.is_symlink():
                yield Path(os.path.realpath(link))


@dataclass(frozen=True, slots=True)
class Usable:
    """A file or device that may be loaded: its size, and which it is."""

    size_bytes: int
    identity: Identity

    @property
    def is_device(self) -> bool:
        """Whether it is a block device."""
        return stat.S_ISBLK(self.identity.kind)


def usable(path: Path, named: str | None, *, writes: bool) -> Usable:
    """The file or device that is there; ``named`` is what may be overwritten.

    Raises:
        UsageError: it would be overwritten but nobody named it, is in use or locked, or may not be opened.
    """
    state = path.stat()
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISBLK(state.st_mode)):
        raise UsageError(
            printable(str(path)),
            found="neither file nor block device",
            expected="a folder, file or block device",
            advice="Name another.",
        )
    if writes:
        if stat.S_ISBLK(state.st_mode):
            refuse_mounted(str(path))
        else:
            _refuse_backing(path, state)
        require_named(str(path), named)
    # The way it will be opened: asking for the right alone misses what a sandbox or a mount forbids.
    descriptor = descriptor_of(str(path), writes=writes)
    try:
        lock(descriptor, str(path))
        return Usable(os.lseek(descriptor, 0, os.SEEK_END), Identity.of(os.fstat(descriptor)))
    finally:
        os.close(descriptor)


def _refuse_backing(path: Path, state: os.stat_result) -> None:
    """Refuse a file that is swapped to, or that a loop device is made of: a file system may be mounted from it."""
    users = [(Path(line.split()[0]), "swap") for line in _read(_SWAPS).splitlines()[1:] if line.split()]
    users += [
        (Path(_read(backing).rstrip("\n")), f"/dev/{backing.parts[3]} is made of it")
        for backing in Path("/sys/block").glob("loop*/loop/backing_file")
    ]
    for used, user in users:
        if _identity(used) == Identity.of(state):
            raise in_use(str(path), user)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""


def require_apart(named: Mapping[str, Identity]) -> None:
    """Refuse roles of which two name the same file or device, whatever their names; folders may be shared.

    Raises:
        UsageError: two do.
    """
    seen: dict[Identity, str] = {}
    for role, identity in named.items():
        other = seen.setdefault(identity, role)
        if other != role:
            raise UsageError(
                role, found=f"the same file or device as {other}", expected="one of its own", advice="Name another one."
            )


def refuse_mounted(path: str) -> None:
    """Refuse a block device that is mounted, swapped to, or holds or is held by one that is.

    Raises:
        UsageError: it is in use.
    """
    device = Path(os.path.realpath(path))
    try:
        number = device.stat().st_rdev
    except OSError as error:
        raise UsageError(
            printable(path), found=str(error.strerror), expected="a device", advice="Name another."
        ) from error
    used = users_of(number)
    if used is not None:
        raise in_use(path, used)


def users_of(number: int) -> str | None:
    """Who uses a block device (its major and minor number): a mount, swap or a device made of it; None for nobody."""
    block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    family = {f"{os.major(number)}:{os.minor(number)}"}
    for part in (*block.glob("*/dev"), *block.glob("holders/*/dev"), *block.glob("*/holders/*/dev")):
        family.add(part.read_text().strip())
        if "holders" in part.parts:
            return f"{part.parent.name} is made of it"
    for line in _MOUNTS.read_text().splitlines():
        fields = line.split()
        if fields[2] in family:
            return f"mounted at {fields[4]}"
    for line in _SWAPS.read_text().splitlines()[1:] if _SWAPS.exists() else ():
        name = Path(line.split()[0])
        if name.exists() and stat.S_ISBLK(name.stat().st_mode):
            device = name.stat().st_rdev
            if f"{os.major(device)}:{os.minor(device)}" in family:
                return "swap"
    return None


def usable_space(folder: str) -> int:
    """Bytes that may be written, with a share of the filesystem kept free; not below 0."""
    usage = os.statvfs(folder)
    return max(usage.f_bavail * usage.f_frsize - int(RESERVE_SHARE * usage.f_blocks * usage.f_frsize), 0)


def require_space(folder: str, needed_bytes: int) -> None:
    """Refuse to write more than fits, with a share of the filesystem kept free.

    Raises:
        ToolError: there is not enough space.
    """
    usable = usable_space(folder)
    if needed_bytes > usable:
        raise ToolError(
            folder,
            found=f"{usable / 2**30:.1f} GiB that may be used",
            expected=f"{needed_bytes / 2**30:.1f} GiB",
            advice="Name another folder, or a smaller working set; a twentieth of the filesystem stays free.",
        )
