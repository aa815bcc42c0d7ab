"""The guests' root file system and first file system: built from this machine's own programs, kept, never shipped.

The root is a read-only ext4 image with Python, what Leadline needs of its packages, BusyBox, fio, PostgreSQL and their
libraries. All guests share it; each writes to memory over it. Leadline's own code is in the first file system, which
is made anew every time, so a changed line needs no new root.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import leadline
from leadline.core.model.errors import ToolError
from leadline.core.system.leftovers import scratch_folder
from leadline.core.system.tools import find_program, require_program
from leadline.lab.cpio import CHARACTER, FILE, FOLDER, ArchiveEntry, archive
from leadline.lab.kernel import Kernel

VERSION = "1"  # of what is in the root; another one makes another image
# The modules every guest loads: its root, its channel, and the devices the lab offers.
MODULES = (
    *("virtio_pci", "virtio_blk", "virtio_console", "virtio_rng", "virtio_balloon"),
    *("crc32c_generic", "crc32c_intel", "ext4", "overlay"),
    *("sd_mod", "vmw_pvscsi", "sym53c8xx", "mptsas", "megaraid_sas", "virtio_scsi", "nvme"),
    *("vmxnet3", "virtio_net", "e1000", "e1000e", "libcrc32c", "xfs"),
)
NEEDED = ("busybox", "mke2fs")
# pgbench is not among them: Debian's in the search path is a Perl script, the program is in the server's folder.
PROGRAMS = (
    *("fio", "ioping", "sysbench", "iperf3", "mke2fs", "mkfs.xfs", "lsblk", "findmnt", "blockdev"),
    *("sysctl", "setpriv", "taskset", "numactl", "ethtool", "runuser"),
)
# PostgreSQL of Debian has no time zones of its own; all would make initdb, which compares them, slow.
ZONES = tuple(Path("/usr/share/zoneinfo", name) for name in ("UTC", "Etc/UTC", "GMT", "posixrules"))
SITE = "/leadline/site"
HOME = "/leadline"
WORK_FOLDER = "/tmp/leadline"  # of the Leadline that runs in a guest
_LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "turtledemo", "site-packages")
_LEFT_OUT_FILES = ("*.a", "config-3*", "bitcode", "llvmjit*.so", "dist-packages", "*.pth")
_LINKED = re.compile(r"(?:=> )?(/\S+) \(0x")
_FIRST_MIB = 96  # Judgement: room in the image beside its files, for the file system's own tables
_USERS = "root:x:0:0:root:/root:/bin/sh\npostgres:x:26:26::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
_GROUPS = "root:x:0:\npostgres:x:26:\nnogroup:x:65534:\n"

_INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sysfs /sys; $b mount -t devtmpfs dev /dev
case "$($b cat /proc/cmdline)" in *leadline.proof*) echo leadline-guest-runs; $b poweroff -f;; esac
while read name options; do $b insmod /modules/$name.ko $options 2>/dev/null; done < /modules/order
n=0; while [ ! -b /dev/vda ] && [ $n -lt 200 ]; do $b usleep 20000; n=$((n+1)); done
$b mount -t ext4 -o ro /dev/vda /lower && $b mount -t tmpfs -o size=75% upper /upper
$b mkdir /upper/over /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/over,workdir=/upper/work root /new
$b mkdir -p /new/proc /new/sys /new/dev /new/tmp /new/run /new/mnt /new/leadline/code
$b cp -r /code/. /new/leadline/code; $b rm -r /code /modules
for part in proc sys dev; do $b mount -o move /$part /new/$part; done
exec $b switch_root /new /usr/bin/busybox sh /leadline/start
"""
_START = """export PATH=/usr/bin:/usr/sbin:{postgresql} HOME=/root PYTHONPATH=/leadline/code:{site} LANG=C.UTF-8
b=/usr/bin/busybox
$b chmod 1777 /tmp; $b mkdir -p /dev/pts /dev/shm
$b mount -t devpts devpts /dev/pts; $b mount -t tmpfs -o mode=1777 shm /dev/shm; $b mount -t tmpfs tmp /tmp
$b mkdir -p /sys/fs/cgroup && $b mount -t cgroup2 cgroup /sys/fs/cgroup
for word in $($b cat /proc/cmdline); do
    case $word in leadline.guest=*) $b hostname ${{word#leadline.guest=}};; esac
done
$b ip link set lo up
{python} -m leadline.lab.guest.agent >/dev/console 2>&1
$b poweroff -f
"""


def cache_folder() -> Path:
    """Where images are kept: the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "leadline" / "lab"


def root_image(folder: Path | None = None) -> Path:
    """The root file system for this machine's programs, built where it is not kept yet (some ten seconds).

    Raises:
        ToolError: BusyBox or mke2fs is missing, or the image cannot be written.
    """
    for name in NEEDED:
        require_program(name, "what the guests are made with", "busybox-static e2fsprogs")
    contents = list(_contents())
    key = _key(contents)
    kept = (folder or cache_folder()) / f"root-{key}.img"
    if kept.exists():
        return kept
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder("building", kept.parent) as scratch:
            root, image = scratch / "root", scratch / "root.img"
            _fill(root, contents)
            _write_image(root, image, key)
            image.replace(kept)
    except OSError as error:
        raise ToolError(
            str(kept.parent),
            found=str(error.strerror),
            expected="a folder with 1.5 GB to spare",
            advice="Set XDG_CACHE_HOME to another one.",
        ) from error
    for old in kept.parent.glob("root-*.img"):
        if old != kept:
            old.unlink(missing_ok=True)  # a guest that has it open keeps it
    return kept


def first_file_system(
    kernel: Kernel, options: dict[str, str] | None = None, further_modules: tuple[str, ...] = ()
) -> bytes:
    """What the kernel unpacks: modules in loading order with ``options`` of some, BusyBox, Leadline's own code."""
    busybox = find_program("busybox")
    if busybox is None:  # root_image says how to get it
        raise ToolError("busybox", found="not installed", expected="busybox-static", advice="Install it.")
    modules = kernel.with_needed((*MODULES, *further_modules))
    order = "".join(f"{name} {(options or {}).get(name, '')}".rstrip() + "\n" for name in modules)
    folders = ("bin", "dev", "proc", "sys", "new", "lower", "upper", "modules", "code")
    entries = [ArchiveEntry(name, FOLDER | 0o755) for name in folders]
    entries.append(ArchiveEntry("dev/console", CHARACTER | 0o600, device=(5, 1)))
    entries.append(ArchiveEntry("bin/busybox", FILE | 0o755, Path(busybox).read_bytes()))
    entries.append(ArchiveEntry("init", FILE | 0o755, _INIT.encode()))
    entries.append(ArchiveEntry("modules/order", FILE | 0o644, order.encode()))
    entries += [ArchiveEntry(f"modules/{name}.ko", FILE | 0o644, data) for name, data in modules.items()]
    return archive([*entries, *_code()])


def _code() -> Iterator[ArchiveEntry]:
    """Leadline's package as it is here."""
    base = Path(str(leadline.__file__)).parent
    for path in sorted((base, *base.rglob("*"))):
        name = f"code/leadline/{path.relative_to(base)}".removesuffix("/.")
        if "__pycache__" in path.parts:
            continue
        yield (
            ArchiveEntry(name, FOLDER | 0o755) if path.is_dir() else ArchiveEntry(name, FILE | 0o644, path.read_bytes())
        )


def _contents() -> Iterator[tuple[Path, str]]:
    """What is copied and where to: programs, PostgreSQL, Python and the packages Leadline needs."""
    yield Path(str(find_program("busybox"))), "usr/bin/busybox"
    for name in PROGRAMS:
        program = find_program(name)
        if program is not None:
            yield Path(program), f"usr/bin/{name}"
    for path in (*_postgresql(), *(zone for zone in ZONES if zone.exists())):
        yield path, str(path).lstrip("/")
    yield Path(sys.executable).resolve(), _python().lstrip("/")
    for key in ("stdlib", "platstdlib"):
        folder = Path(sysconfig.get_path(key, vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}))
        yield folder, str(folder).lstrip("/")
    for distribution in _distributions("leadline[postgresql]", {}).values():  # guests sample the server they run
        for file in distribution.files or ():
            path = Path(str(file.locate()))
            if ".." not in file.parts and file.suffix != ".pth" and path.is_file():
                yield path, f"{SITE.lstrip('/')}/{file}"


def _postgresql() -> list[Path]:
    """Folders of the newest PostgreSQL server: programs, libraries, and its share."""
    bases = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if not bases:
        return []
    base = bases[-1].parent.parent
    return [base / "bin", base / "lib", Path("/usr/share/postgresql") / base.name]


def _python() -> str:
    return str(Path(sys.executable).resolve())


def _distributions(name: str, distributions: dict[str, metadata.Distribution]) -> dict[str, metadata.Distribution]:
    """A distribution and all it requires without extras but those asked for, Leadline itself left out."""
    asked, _, extra = name.partition("[")
    key = re.sub(r"[-_.]+", "-", asked).lower()
    extras = extra.rstrip("]").split(",") if extra else []
    try:
        distribution = metadata.distribution(key)
    except metadata.PackageNotFoundError:
        return distributions
    is_new = key not in distributions
    if is_new and key != "leadline":
        distributions[key] = distribution
    for line in distribution.requires or () if is_new or extras else ():
        required, _, condition = line.partition(";")
        if "extra" in condition and not any(f"'{one}'" in condition or f'"{one}"' in condition for one in extras):
            continue
        match = re.match(r"[\w.-]+(?:\[[\w,-]+\])?", required.strip())
        if match:
            _distributions(match[0], distributions)
    return distributions


def _key(contents: Iterable[tuple[Path, str]]) -> str:
    """Changes when a file that is copied does: names, sizes and times, folders by what is directly in them."""
    digest = hashlib.sha256(VERSION.encode() + _INIT.encode() + _START.encode())
    for path, name in contents:
        for file in (path, *(sorted(path.iterdir()) if path.is_dir() else ())):
            state = file.stat()
            digest.update(f"{name} {file.name} {state.st_size if file.is_file() else 0} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _fill(root: Path, contents: Iterable[tuple[Path, str]]) -> None:
    for name in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "etc", "leadline", "proc", "sys", "dev", "root"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    for path, name in contents:
        _copy(path, root / name)
    _copy_libraries(root)
    link = root / "usr/bin/python3"
    if not link.exists():
        link.symlink_to(_python())
    applets = subprocess.run([root / "usr/bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout
    for applet in applets.split():
        if not (root / "usr/bin" / applet).exists():
            (root / "usr/bin" / applet).symlink_to("busybox")
    if (root / "usr/bin/mke2fs").exists():
        (root / "usr/bin/mkfs.ext4").symlink_to("mke2fs")
    (root / "etc/passwd").write_text(_USERS)
    (root / "etc/group").write_text(_GROUPS)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    if Path("/etc/os-release").exists():
        shutil.copyfile("/etc/os-release", root / "etc/os-release")
    folders = ":".join(str(folder) for folder in _postgresql()[:1])
    start = _START.format(postgresql=folders or "/usr/bin", site=SITE, python=_python())
    (root / "leadline/start").write_text(start)


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        left_out = shutil.ignore_patterns(*_LEFT_OUT, *_LEFT_OUT_FILES)
        shutil.copytree(path, to, symlinks=True, dirs_exist_ok=True, ignore=left_out)
    elif not to.exists():
        shutil.copy2(path.resolve(), to)


def _copy_libraries(root: Path) -> None:
    """The shared libraries of everything copied, under the names they are looked for."""
    programs = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and _is_elf(path)]
    answer = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    wanted = {name for name in _LINKED.findall(answer) if not name.startswith(str(root))}
    for name in sorted(wanted):
        _copy(Path(name), root / name.lstrip("/"))


def _is_elf(path: Path) -> bool:
    if not (os.access(path, os.X_OK) or ".so" in path.name):
        return False
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _write_image(root: Path, image: Path, key: str) -> None:
    """An ext4 image of a folder, by mke2fs, which needs no privilege; the same folder gives the same image."""
    size = sum(path.lstat().st_size + 4096 for path in root.rglob("*"))
    total_mib = int(size * 1.06) // 2**20 + _FIRST_MIB
    identity = f"{key[:8]}-{key[8:12]}-{key[12:16]}-0000-000000000000"
    words = [str(find_program("mke2fs")), "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-U", identity]
    words += ["-E", f"hash_seed={identity},root_owner=0:0", "-d", str(root), str(image), f"{total_mib}m"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **_REPEATABLE})
    if done.returncode:
        raise ToolError(
            "mke2fs",
            found=done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed",
            expected="an image of the guests' root",
            advice="Is there enough space?",
        )


_REPEATABLE = {"SOURCE_DATE_EPOCH": "0"}
