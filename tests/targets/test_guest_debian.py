"""Guest optimisation on a real Debian tree: its own tools read what was written, and reverting leaves no trace."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.app.optimising import apply, items_of, plan, revert
from leadline.core.system.tools import TOOLS, examine
from leadline.targets.guest_linux import JOURNAL_FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.real]
PACKAGES = "systemd,udev,kmod,procps,apt"
# What image builders know of a kernel's settings without one running.
SETTINGS = ("vm/swappiness", "vm/overcommit_memory", "vm/dirty_background_bytes", "vm/nr_hugepages")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minimal Debian with systemd, from the mirror the machine itself uses."""
    program = examine(next(tool for tool in TOOLS if tool.name == "debootstrap")).path
    if program is None or os.geteuid() != 0:
        pytest.skip("debootstrap and root are needed to build a Debian tree")
    asked = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"], capture_output=True, text=True, check=False
    )
    release = next((line.split()[1] for line in asked.stdout.splitlines() if "-" not in line.split()[1]), None)
    mirror = next((line.split()[0] for line in asked.stdout.splitlines() if line.split()[1] == release), None)
    if release is None or mirror is None:
        pytest.skip("apt names no Debian mirror")
    root = tmp_path_factory.mktemp("debian") / "root"
    command = [program, "--variant=minbase", f"--include={PACKAGES}", release, str(root), mirror]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    if done.returncode:
        pytest.skip(f"debootstrap: {done.stdout.strip().splitlines()[-1:]}")
    shutil.rmtree(root / "var/cache/apt", ignore_errors=True)
    return root


def picture(root: Path) -> dict[str, str]:
    """Kind, mode, owner and contents of everything in a tree but the journal."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith(("var/lib/leadline", "proc", "sys", "dev", "run/")):
            continue
        held = path.lstat()
        body = str(path.readlink()) if path.is_symlink() else ""
        if stat.S_ISREG(held.st_mode):
            body = hashlib.sha256(path.read_bytes()).hexdigest()
        found[name] = f"{held.st_mode:o} {held.st_uid}:{held.st_gid} {body}"
    return found


@pytest.fixture(autouse=True)
def _the_machine_stays_as_it_is() -> Iterator[None]:
    """None of this may reach the machine the tests run on."""
    before = {name: Path("/proc/sys", name).read_text() for name in SETTINGS}
    yield
    assert {name: Path("/proc/sys", name).read_text() for name in SETTINGS} == before


@pytest.fixture
def applied(tree: Path) -> Iterator[Path]:
    """The tree with every item of the template written that can be; taken back afterwards."""
    for name in SETTINGS:  # as an image has no kernel, its /proc says nothing: here it says the defaults
        path = tree / "proc/sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("0\n")
    (tree / "sys/module/vmw_pvscsi").mkdir(parents=True, exist_ok=True)
    before = picture(tree)
    items = items_of("postgresql", [], [], every=True, values={"huge_pages": 128})
    planned = plan(items, tree)
    entry = apply("postgresql", items, tree)
    assert entry is not None
    added = {f"/{name}" for name, what in picture(tree).items() if before.get(name) != what}
    assert {change.path for change in planned} <= added
    yield tree
    assert revert(tree, None)[1] == []
    assert picture(tree) == before
    assert list((tree / JOURNAL_FOLDER).iterdir()) != []


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


def test_the_trees_own_tools_read_what_was_written(applied: Path) -> None:
    # Not by running sysctl: version 4.0.2 of procps applies what it reads, --dry-run or not, where it sees /proc.
    read = run("systemd-analyze", f"--root={applied}", "cat-config", "sysctl.d")
    for line in ("vm.swappiness = 1", "vm.overcommit_memory = 2", "vm.nr_hugepages = 128"):
        assert line in read
    listed = run("systemd-analyze", f"--root={applied}", "cat-config", "tmpfiles.d")
    assert "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise" in listed
    modules = run("chroot", str(applied), "modprobe", "--showconfig")
    assert "options vmw_pvscsi cmd_per_lun=254 ring_pages=32" in modules
    assert run("chroot", str(applied), "systemctl", "is-enabled", "apt-daily.timer").strip() == "masked"


def test_udev_understands_every_rule(applied: Path) -> None:
    bad = applied / "etc/udev/rules.d/61-bad.rules"
    bad.write_text('KERNELX=="sd*", ATTR{queue/scheduler}="none"\n')
    # The machine's devices, read-only: a test of a rule may write what the rule says.
    mounted = 'mount --bind /sys "$0/sys" && mount -o remount,bind,ro "$0/sys" && exec chroot "$0" "$@"'
    words = ("unshare", "--mount", "sh", "-c", mounted, str(applied), "udevadm", "test", "/sys/class/mem/null")
    said = run(*words).splitlines()
    bad.unlink()
    rules = sorted(path.name for path in bad.parent.glob("60-leadline-*.rules"))
    assert len(rules) == 3
    assert [line for line in said if "61-bad.rules:1 Invalid key" in line] != []  # it does complain
    for rule in rules:
        named = [line for line in said if rule in line]
        assert named == [f"Reading rules file: /etc/udev/rules.d/{rule}"]
