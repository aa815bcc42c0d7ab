"""Build one file that runs Leadline where there is neither Python nor a network: ``python -m scripts.bundle``.

`make bundle` calls it. The file is a shell script with a compressed tree behind it: the interpreter that builds it with
its standard library, a new wheel with the packages of the base, the shared libraries of all that, and a C library and
its loader. So it needs nothing of the host but a Linux kernel and a shell; `scripts/bundle.sh` is the script.

Sources: ld.so(8), ``--library-path`` and ``--argv0``; Python documentation, "The initialization of the sys.path module
search path".
"""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from leadline.core.system.extras import BUNDLE_MARK as MARK
from scripts import dist

ROOT = dist.ROOT
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Of the standard library: what is for building, for windows and for teaching.
LEFT_OUT = frozenset(
    "__pycache__ site-packages dist-packages test tests idlelib tkinter turtledemo turtle.py ensurepip lib2to3"
    " pydoc_data EXTERNALLY-MANAGED".split()
)
_MODULES_LEFT_OUT = re.compile(
    r"(_tkinter|_curses|_curses_panel|readline|nis|_dbm|_gdbm|ossaudiodev|spwd|_?xx\w+|_test\w+|_ctypes_test)\."
)
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
_ARGV0_SINCE = (2, 33)
# Loaded by name at run time, so no program names them.
_BY_NAME = ("libgcc_s.so.1",)
_STARTER = """\
#!/bin/sh
# The loader of this folder, so that the host's C library does not matter; children get no variable of it.
self=$(readlink -f "$0")
root=${{self%/*/*}}
unset PYTHONHOME PYTHONPATH PYTHONSTARTUP
PYTHONNOUSERSITE=1 exec "$root/lib/{loader}" --library-path "$root/lib" --argv0 "$root/bin/python3" \\
    "$root/lib/python3.bin" {words}"$@"
"""
_COMMAND = """-c "import sys; sys.argv[0] = 'leadline'; from leadline.faces.cli.main import run; run()" """
_SITE = """\
import site, sys
folder = f"{sys.prefix}/lib/python%d.%d/site-packages" % sys.version_info[:2]
if folder not in sys.path:
    site.addsitedir(folder)
"""


def libraries(programs: Iterable[Path]) -> dict[str, Path]:
    """Name -> file of every shared library outside the bundle that programs or modules need, the loader among them."""
    needed: dict[str, Path] = {}
    for program in programs:
        answer = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        for path in map(Path, _LIBRARY.findall(answer)):
            needed.setdefault(path.name, path.resolve())
    return needed


def fill(tree: Path, wheel: Path, extras: str = "") -> None:
    """Write the tree of the bundle: ``bin``, ``lib``, ``share``, ``licences``."""
    lib = tree / "lib"
    standard = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(standard, lib / PYTHON, ignore=_ignored, symlinks=False)
    packages = lib / PYTHON / "site-packages"
    words = ["pip", "install", "--quiet", "--python", sys.executable, "--target", str(packages)]
    named = f"leadline[{extras}] @ {wheel.resolve().as_uri()}"
    subprocess.run([dist.uv(), *words, named], check=True)
    (tree / MARK).write_text(extras, encoding="utf-8")
    shutil.rmtree(packages / "bin", ignore_errors=True)
    (packages / "share" / "man").rename(_made(tree / "share") / "man")
    for folder in [*packages.rglob("tests"), *packages.rglob("__pycache__")]:
        shutil.rmtree(folder)
    (lib / PYTHON / "sitecustomize.py").unlink(missing_ok=True)
    (lib / PYTHON / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
    interpreter = lib / "python3.bin"
    shutil.copyfile(Path(sys.executable).resolve(), interpreter)
    interpreter.chmod(0o755)
    inside = {path.name for path in lib.rglob("*.so*")}
    shared = libraries([interpreter, *lib.rglob("*.so*")])
    shared |= {name: path for name, path in _named(_BY_NAME).items() if name not in shared}
    for name, path in shared.items():
        if name not in inside:
            shutil.copyfile(path, lib / name)
            (lib / name).chmod(0o755)
    strip = shutil.which("strip")
    if strip:  # the signs for debuggers are two thirds of the interpreter
        subprocess.run([strip, "--strip-debug", interpreter, *lib.glob("libpython*")], check=True)
    (loader,) = (name for name in shared if name.startswith("ld-linux"))
    _write_starters(tree / "bin", loader)
    _copy_licences(tree / "licences", shared)
    compiled = ["-m", "compileall", "-q", "-j", "2", "--invalidation-mode", "unchecked-hash", str(lib / PYTHON)]
    subprocess.run([tree / "bin" / "python3", *compiled], check=True)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _ignored(folder: str, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if name in LEFT_OUT or name.startswith("config-") or name.endswith(".a") or _MODULES_LEFT_OUT.match(name)
    ]


def _named(names: Iterable[str]) -> dict[str, Path]:
    """Name -> file of libraries, as the loader of this machine would take them."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    taken = {}
    for name in names:
        match = re.search(
            rf"^\s{re.escape(name)} .*x86-64\) => (/\S+)$|^\s{re.escape(name)} .*=> (/\S+)$", listed, re.M
        )
        if match:
            taken[name] = Path(match[1] or match[2]).resolve()
    return taken


def _write_starters(folder: Path, loader: str) -> None:
    folder.mkdir()
    for name, words in (("python3", ""), ("leadline", _COMMAND)):
        (folder / name).write_text(_STARTER.format(loader=loader, words=words), encoding="utf-8")
        (folder / name).chmod(0o755)


def _copy_licences(folder: Path, shared: dict[str, Path]) -> None:
    """Copy the licences of what comes from Debian's packages, and of Python; those of the wheels are in the wheels."""
    folder.mkdir()
    for path in shared.values():
        names = [str(path), str(path).removeprefix("/usr")]
        answer = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True, check=False).stdout
        package = answer.partition(":")[0]
        text = Path("/usr/share/doc", package, "copyright")
        if package and text.is_file():
            shutil.copyfile(text, folder / f"{package}.txt")
    python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    if python.is_file():
        shutil.copyfile(python, folder / "python.txt")


def pack(tree: Path, target: Path) -> None:
    """Write the script with the compressed tree behind it; the same tree gives the same bytes."""
    with tempfile.TemporaryDirectory() as aside:
        payload = Path(aside) / "payload"
        with payload.open("wb") as stream, gzip.GzipFile("", "wb", 9, stream, 0) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
                for path in sorted(tree.rglob("*")):
                    archive.add(path, path.relative_to(tree).as_posix(), recursive=False, filter=_plain)
        content = payload.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    header = (ROOT / "scripts" / "bundle.sh").read_text(encoding="utf-8")
    fields = {
        "VERSION": version(tree),
        "MACHINE": platform.machine(),
        "NAME": f"bundle-{version(tree)}-{digest}",
        "LINES": str(len(header.splitlines())),
        "MIB": f"{dist.size_mib(tree):.0f}",
    }
    for field, text in fields.items():
        header = header.replace(f"@{field}@", text)
    size = len(header) - len("@SIZE@") + len(content)
    size += len(str(size + len(str(size))))
    aside_file = target.with_suffix(".part")
    aside_file.write_bytes(header.replace("@SIZE@", str(size)).encode() + content)
    aside_file.chmod(0o755)
    aside_file.replace(target)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member without what differs between two builds."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o755 if member.isdir() or member.mode & stat.S_IXUSR else 0o644
    return member


def version(tree: Path) -> str:
    """The version of Leadline in a tree."""
    (metadata,) = (tree / "lib" / PYTHON / "site-packages").glob("leadline-*.dist-info")
    return metadata.name.removeprefix("leadline-").removesuffix(".dist-info")


def build(wheel: Path, extras: str = "", out: Path = dist.OUT) -> Path:
    """Build the bundle of a wheel with the packages of some extras, ``ssh,vcenter``; returns it."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "leadline"
        tree.mkdir()
        fill(tree, wheel, extras)
        target = out / f"leadline-{version(tree)}-linux-{platform.machine()}.run"
        pack(tree, target)
    return target


def main() -> None:
    """Build, test in trees without Python and network, and say how large and how fast."""
    libc = tuple(int(number) for number in platform.libc_ver()[1].split(".")[:2])
    if sys.platform != "linux" or libc < _ARGV0_SINCE:
        sys.exit("bundle: needs Linux with glibc 2.33 or newer to build (to run it needs none)")
    began = time.monotonic()
    bundle = build(dist.build(platform.machine()), ",".join(sys.argv[1:]).replace(" ", ","))
    print(f"dist/{bundle.name}: {bundle.stat().st_size / (1 << 20):.1f} MiB, built in {time.monotonic() - began:.0f} s")
    environment = {**os.environ, "LEADLINE_BUNDLE": str(bundle)}
    pytest = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:randomly", "tests/packaging/test_bundle.py"]
    if subprocess.run(pytest, check=False, cwd=ROOT, env=environment).returncode:
        sys.exit(f"bundle: the tests of {bundle.name} failed")


if __name__ == "__main__":
    main()
