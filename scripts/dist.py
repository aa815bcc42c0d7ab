"""Build wheels of Leadline that need no source tree: ``python -m scripts.dist``, which `make dist` calls.

For Linux, Rust is linked by the Zig that PyPI has, so that a wheel runs on every distribution since 2014; elsewhere by
what the machine has. The examples and guides that help and errors name are added as ``leadline/shipped``, and the
manual pages.

Source: PyPA specifications, "Binary distribution format", "The .dist-info directory".
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts import man

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "dist"
TOOLS = ROOT / ".tools" / "dist"
LOCK = ROOT / "requirements-dist.lock"
SHIPPED = (
    *("docs/guides/*.md", "examples/*.yaml", "examples/easy/*", "examples/lab/*.yaml", "examples/scenarios/*.yaml"),
    "examples/incidents/throttled-wal-disk/*",
    "examples/watch/*",
)
LINUX = "manylinux2014"
TARGETS = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
TESTS = ("tests/packaging/test_wheel.py", "tests/packaging/test_container.py")
_MIB = 1 << 20


def shipped_files() -> Iterator[tuple[str, Path]]:
    """Name inside the package, and the file, of every example and guide that a wheel has."""
    for pattern in SHIPPED:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                yield f"leadline/shipped/{path.relative_to(ROOT).as_posix()}", path


def uv() -> str:
    """The program uv: the one installed, or that of `scripts/setup.sh`."""
    program = shutil.which("uv") or shutil.which(ROOT / ".tools" / "python" / "bin" / "uv")
    if program is None:
        sys.exit("dist: uv is not installed: pip install uv")
    return program


def tools() -> Path:
    """The folder of programs that build a wheel, installed by `requirements-dist.lock` and checked by hash."""
    folder = TOOLS / ("Scripts" if os.name == "nt" else "bin")
    mark = TOOLS / "lock"
    if not mark.is_file() or mark.read_bytes() != LOCK.read_bytes():
        subprocess.run([uv(), "venv", "--quiet", "--clear", "--python", sys.executable, str(TOOLS)], check=True)
        words = ["pip", "install", "--quiet", "--python", str(TOOLS), "--require-hashes", "-r", str(LOCK)]
        subprocess.run([uv(), *words], check=True)
        shutil.copyfile(LOCK, mark)
    return folder


def build(machine: str, out: Path = OUT) -> Path:
    """Build the wheel for a kind of machine; returns it.

    Args:
        machine: a key of ``TARGETS`` for Linux; ``native`` for the system this runs on.
        out: the folder it is written to.
    """
    folder = tools()
    words = [str(folder / "maturin"), "build", "--release", "--locked", "--quiet"]
    if machine != "native":
        words += ["--zig", "--target", TARGETS[machine], "--compatibility", LINUX]
    with tempfile.TemporaryDirectory() as built:
        environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run([*words, "--out", built], check=True, cwd=ROOT, env=environment)
        (wheel,) = Path(built).glob("*.whl")
        out.mkdir(exist_ok=True)
        return add_files(wheel, out / wheel.name)


def add_files(wheel: Path, target: Path) -> Path:
    """Write the wheel with the shipped files, the manual pages, and their hashes in its record; returns the target."""
    aside = target.with_suffix(".part")
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as after:
        record = next(name for name in before.namelist() if name.endswith(".dist-info/RECORD"))
        lines = before.read(record).decode()
        for member in before.infolist():
            if member.filename != record:
                after.writestr(member, before.read(member), zipfile.ZIP_DEFLATED)
        data = record.replace(".dist-info/RECORD", ".data/data")
        added = {name: path.read_bytes() for name, path in shipped_files()}
        added |= {f"{data}/share/man/man1/{name}": text.encode() for name, text in man.pages().items()}
        for name, content in added.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines += f"{name},sha256={digest},{len(content)}\n"
            after.writestr(_member(name), content, zipfile.ZIP_DEFLATED)
        after.writestr(_member(record), lines, zipfile.ZIP_DEFLATED)
    aside.replace(target)
    return target


def _member(name: str) -> zipfile.ZipInfo:
    """A file that every user may read, whoever installs it."""
    member = zipfile.ZipInfo(name)
    member.external_attr = (stat.S_IFREG | 0o644) << 16
    return member


def interpreter(version: str) -> Path | None:
    """The Python of a version that this machine has; None where it has none."""
    words = [uv(), "python", "find", "--no-python-downloads", "--no-project", version]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def install(wheel: Path, folder: Path, extras: str = "", python: Path | None = None) -> tuple[Path, float]:
    """Install a wheel into an empty environment; returns the folder of its programs, and the seconds it took."""
    began = time.monotonic()
    subprocess.run([uv(), "venv", "--quiet", "--python", python or sys.executable, folder], check=True)
    named = f"leadline{extras} @ {wheel.resolve().as_uri()}"
    subprocess.run([uv(), "pip", "install", "--quiet", "--python", folder, named], check=True)
    return folder / ("Scripts" if os.name == "nt" else "bin"), time.monotonic() - began


def size_mib(folder: Path) -> float:
    """What the files in a folder take, in MiB."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / _MIB


def runs_here(wheel: Path) -> bool:
    """Whether a wheel is for the kind of processor this runs on."""
    return wheel.stem.endswith((platform.machine(), "universal2"))


def main(words: Sequence[str] | None = None) -> None:
    """Build, test and say how large and how fast."""
    parser = argparse.ArgumentParser(prog="python -m scripts.dist", description="Build wheels into dist/.")
    here = platform.machine() if sys.platform == "linux" and platform.machine() in TARGETS else "native"
    parser.add_argument("machines", nargs="*", metavar="MACHINE", help=", ".join((*TARGETS, "native")))
    for machine in parser.parse_args(words).machines or [here]:
        began = time.monotonic()
        wheel = build(machine)
        took_s = time.monotonic() - began
        print(f"dist/{wheel.name}: {wheel.stat().st_size / _MIB:.1f} MiB, built in {took_s:.0f} s")
        if not runs_here(wheel) and machine != "native":
            continue
        environment = {**os.environ, "LEADLINE_WHEEL": str(wheel)}
        pytest = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:randomly", *TESTS]
        failed = subprocess.run(pytest, check=False, cwd=ROOT, env=environment).returncode
        if failed:
            sys.exit(f"dist: the tests of {wheel.name} failed")


if __name__ == "__main__":
    main()
