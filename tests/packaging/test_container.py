"""The container file: what it says, and its steps done in a Debian tree, as no engine of containers is here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import dist
from tests.conftest import ROOT
from tests.packaging.trees import debian_tree

WHEEL = os.environ.get("LEADLINE_WHEEL", "")  # `make dist` sets it
KNOWN = {"FROM", "ARG", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def steps() -> list[tuple[str, str]]:
    """The instructions of the container file, with their words."""
    text = re.sub(r"\\\n", "", (ROOT / "Containerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_it_runs_as_nobody_in_particular_and_takes_the_wheel_alone() -> None:
    assert {name for name, _ in steps()} <= KNOWN
    told = dict(steps())
    user, group = told["USER"].split(":")
    assert min(int(user), int(group)) > 1000  # a number: engines can then tell that it is not root
    assert steps()[0][0] == "FROM"
    assert json.loads(told["ENTRYPOINT"]) == ["leadline"]
    assert json.loads(told["CMD"]) == ["--help"]
    assert (ROOT / ".containerignore").read_text(encoding="utf-8").split() == ["*", "!dist/*.whl"]
    version = re.search(r":3\.(\d+)-slim$", told["FROM"])
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert version is not None
    assert int(version[1]) >= int(needed.removeprefix(">=3."))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Debian tree after the steps of the container file; packages come from a folder, as it has no network."""
    folder = tmp_path_factory.mktemp("container") / "root"
    debian_tree(folder, "python3-pip")
    for mark in folder.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        mark.unlink()  # the image has none
    (folder / "wheels").mkdir()
    shutil.copy(WHEEL, folder / "wheels")
    (folder / "packages").mkdir()
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = subprocess.run(
        ["chroot", str(folder), "python3", "-c", asked], check=True, capture_output=True, text=True
    ).stdout.strip()
    words = ["-m", "pip", "download", "--quiet", "--dest", str(folder / "packages"), "--only-binary", ":all:"]
    pip = [str(ROOT / ".tools" / "python" / "bin" / "python"), *words, "--python-version", python, WHEEL]
    subprocess.run(pip, check=True)
    offline = ["PIP_NO_INDEX=1", "PIP_FIND_LINKS=/packages", "EXTRAS="]
    shell = ["/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", *offline, "/bin/sh", "-c", dict(steps())["RUN"]]
    done = subprocess.run(
        ["unshare", "--net", "chroot", str(folder), *shell], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not (folder / "wheels").exists()
    (folder / dict(steps())["WORKDIR"][1:]).mkdir()
    yield folder
    shutil.rmtree(folder)


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command as `--read-only --tmpfs /tmp` runs it: the root read-only, the user of the file, no network."""
    mounts = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount -t tmpfs tmpfs "$0/tmp" && exec "$@"'
    told = dict(steps())
    chroot = ["chroot", f"--userspec={told['USER']}", str(root)]
    environment = ["/usr/bin/env", "-i", f"--chdir={told['WORKDIR']}", "PATH=/usr/local/bin:/usr/bin:/bin"]
    entry = [*environment, *told["ENV"].split(), *json.loads(told["ENTRYPOINT"]), *words]
    command = ["unshare", "--net", "--mount", "--propagation", "private", "/bin/sh", "-c", mounts, str(root)]
    done = subprocess.run([*command, *chroot, *entry], check=False, capture_output=True, text=True, timeout=120)
    sys.stderr.write(f"container: leadline {' '.join(words)}: {done.returncode}\n")
    return done


@pytest.mark.real
@pytest.mark.skipif(not WHEEL or not dist.runs_here(Path(WHEEL)), reason="`make dist` builds a wheel and tests it")
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), "Usage: leadline"),
        (("diagnose", "examples/incidents/throttled-wal-disk"), "Yes, it is the disk"),
        (("simulate", "iops-cap"), "iops-cap, simulated storage-path"),
        (("plan", "queues", "--set", "iops=40000", "--set", "latency_ms=1"), "outstanding"),
        (("diagnose", "examples/incidents/throttled-wal-disk", "--html", "/tmp/page.html"), "Yes, it is the disk"),
    ],
    ids=lambda words: " ".join(words[:1]) if isinstance(words, tuple) else "",
)
def test_its_steps_in_a_tree_that_is_read_only(root: Path, words: tuple[str, ...], shown: str) -> None:
    done = run(root, *(words or json.loads(dict(steps())["CMD"])))
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert shown in done.stdout


@pytest.mark.real
@pytest.mark.skipif(not WHEEL or not dist.runs_here(Path(WHEEL)), reason="`make dist` builds a wheel and tests it")
def test_nothing_can_be_written_elsewhere(root: Path) -> None:
    done = run(root, "diagnose", "examples/incidents/throttled-wal-disk", "--html", "/data/page.html")
    assert done.returncode == 2
    assert "/data" in done.stderr
