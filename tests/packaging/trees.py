"""File trees of other machines, for tests that run programs in them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUSYBOX = shutil.which("busybox")


def debian_tree(root: Path, *packages: str) -> None:
    """A minimal Debian as `debootstrap` installs it, with some packages."""
    program = shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None or os.geteuid() != 0:
        pytest.skip("debootstrap and root are needed to build a Debian tree")
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"]
    asked = subprocess.run(words, check=False, capture_output=True, text=True)
    pairs = [line.split() for line in asked.stdout.splitlines()]
    mirror, release = next(((uri, name) for uri, name in pairs if "-" not in name), ("", ""))
    included = [f"--include={','.join(packages)}"] if packages else []
    command = [program, "--variant=minbase", *included, release, str(root), mirror]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=500)
    if done.returncode:
        pytest.skip(f"debootstrap: {done.stdout.strip().splitlines()[-1:]}")


def busybox_tree(root: Path) -> None:
    """Busybox alone: no C library, no shell but its own."""
    command = ["ldd", str(BUSYBOX)]
    if BUSYBOX is None or "=>" in subprocess.run(command, check=False, capture_output=True, text=True).stdout:
        pytest.skip("busybox-static is needed")
    (root / "bin").mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    for name in subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")
    for name in ("tmp", "dev", "proc", "etc"):
        (root / name).mkdir()
    (root / "tmp").chmod(0o1777)
    subprocess.run(["mknod", "-m", "666", str(root / "dev" / "null"), "c", "1", "3"], check=True)
