"""The bundle in trees without Python, without network, without even a C library: use cases run, and how fast."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.trees import busybox_tree, debian_tree

BUNDLE = os.environ.get("LEADLINE_BUNDLE", "")  # `make bundle` sets it
HOME = "/home/me"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not BUNDLE, reason="`make bundle` builds a bundle and tests it"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: other file trees, no network"),
]


@pytest.fixture(scope="module", params=[debian_tree, busybox_tree], ids=["debian", "busybox"])
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tree with the bundle in it, and a home that a user may write."""
    folder = tmp_path_factory.mktemp("tree") / "root"
    request.param(folder)
    shutil.copy(BUNDLE, folder / "leadline.run")
    (folder / HOME[1:]).mkdir(parents=True)
    os.chown(folder / HOME[1:], 1000, 1000)
    assert not list(folder.rglob("python3*"))
    yield folder
    shutil.rmtree(folder)


def run(root: Path, *words: str, user: int = 1000, home: str = HOME) -> subprocess.CompletedProcess[str]:
    """A command in a tree, as a user, without a network."""
    chroot = ["unshare", "--net", "chroot", f"--userspec={user}:{user}", str(root)]
    environment = ["/bin/env", "-i", "PATH=/usr/bin:/bin", f"HOME={home}"]
    began = time.monotonic()
    done = subprocess.run([*chroot, *environment, *words], check=False, capture_output=True, text=True, timeout=120)
    sys.stderr.write(f"{root.parent.name} {' '.join(words)}: {time.monotonic() - began:.2f} s\n")
    assert "Traceback" not in done.stderr
    return done


def test_the_first_verdict_and_the_second(root: Path) -> None:
    for is_first in (True, False):
        done = run(root, "/leadline.run", "diagnose", "examples/incidents/throttled-wal-disk")
        assert done.returncode in (0, 1), done.stderr
        assert "Yes, it is the disk" in done.stdout
        assert ("unpacking into" in done.stderr) == is_first


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("simulate", "iops-cap"), "iops-cap, simulated storage-path"),
        (("plan", "queues", "--set", "iops=40000", "--set", "latency_ms=1"), "outstanding"),
        (("audit", "examples/easy/inventory.yaml"), "rules"),
        (("explain", "docs/guides/sweep.md"), "The sweep"),
        (("doctor",), "leadline"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_a_use_case_runs(root: Path, words: tuple[str, ...], shown: str) -> None:
    done = run(root, "/leadline.run", *words)
    assert done.returncode in (0, 1), done.stderr
    assert shown in done.stdout


def test_unpacked_for_good_and_by_a_link(root: Path) -> None:
    done = run(root, "/leadline.run", "--unpack", "/opt-leadline", user=0)
    assert done.returncode == 0, done.stderr
    (root / "tmp" / "leadline").symlink_to("/opt-leadline/bin/leadline")
    done = run(root, "/tmp/leadline", "plan", "queues", "--set", "iops=40000", "--set", "latency_ms=1")
    assert (done.returncode, done.stderr) == (0, "")
    again = run(root, "/leadline.run", "--unpack", "/opt-leadline", user=0)
    assert (again.returncode, "error: /opt-leadline: exists" in again.stderr) == (4, True)


def test_without_a_home_nothing_stays(root: Path) -> None:
    (root / "tmp").chmod(0o1777)
    before = {path.name for path in (root / "tmp").iterdir()}
    done = run(root, "/leadline.run", "--version", user=1001)
    assert (done.returncode, done.stdout.startswith("leadline ")) == (0, True)
    assert {path.name for path in (root / "tmp").iterdir()} == before


def test_a_cut_copy_says_so(root: Path) -> None:
    cut = root / "cut.run"
    cut.write_bytes((root / "leadline.run").read_bytes()[:1_000_000])
    cut.chmod(0o755)
    done = run(root, "/cut.run", "--version")
    assert done.returncode == 4
    assert "the copy is not complete. Copy the file again" in done.stderr


def test_an_extra_is_brought_by_another_bundle(root: Path) -> None:
    done = run(root, "/leadline.run", "collect", "postgresql", "host=127.0.0.1", "-o", "/tmp/db", "--seconds", "9")
    assert done.returncode == 4
    assert "make bundle EXTRAS=postgresql" in done.stderr
