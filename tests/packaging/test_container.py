"""The container files: what they say, the steps of the first in a Debian tree, and both built and run by buildah."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts import dist
from tests.conftest import ROOT
from tests.packaging.trees import debian_tree

WHEEL = os.environ.get("LEADLINE_WHEEL", "")  # `make dist` sets it
EXTRAS = "web,parquet"  # what a watch needs
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
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a Debian tree that has pip, and the packages that Leadline needs, for builds without network."""
    folder = tmp_path_factory.mktemp("container")
    tree = folder / "tree"
    debian_tree(tree, "python3-pip")
    for mark in tree.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        mark.unlink()  # the image has none
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = subprocess.run(
        ["chroot", str(tree), "python3", "-c", asked], check=True, capture_output=True, text=True
    ).stdout.strip()
    words = ["-m", "pip", "download", "--quiet", "--dest", str(folder / "packages"), "--only-binary", ":all:"]
    pip = [str(ROOT / ".tools" / "python" / "bin" / "python"), *words, "--python-version", python]
    subprocess.run([*pip, f"leadline[{EXTRAS}] @ {Path(WHEEL).resolve().as_uri()}"], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def root(bare: Path) -> Iterator[Path]:
    """A Debian tree after the steps of the container file; packages come from a folder, as it has no network."""
    folder = bare / "root"
    subprocess.run(["cp", "-a", str(bare / "tree"), str(folder)], check=True)
    (folder / "wheels").mkdir()
    shutil.copy(WHEEL, folder / "wheels")
    shutil.copytree(bare / "packages", folder / "packages")
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


class Buildah:
    """The engine of containers with a store of its own, without a network and without control groups."""

    def __init__(self, folder: Path) -> None:
        places = ["--root", str(folder / "store"), "--runroot", str(folder / "state"), "--storage-driver", "vfs"]
        self._words = ["unshare", "--net", "buildah", *places]

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of its commands, whatever its status is."""
        done = subprocess.run([*self._words, *words], check=False, capture_output=True, text=True, timeout=300)
        sys.stderr.write(f"buildah {' '.join(words)}: {done.returncode}\n")
        return done

    def must(self, *words: str) -> str:
        """Return what a command that may not fail printed."""
        done = self(*words)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr[-2000:]}"
        return done.stdout.strip()

    def base(self, tree: Path) -> None:
        """Make an image of a tree, in which pip takes packages from a folder."""
        container = self.must("from", "scratch")
        self.must("copy", "--quiet", container, str(tree), "/")
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        for variable in (path, "PIP_NO_INDEX=1", "PIP_FIND_LINKS=/packages"):
            self.must("config", "--env", variable, container)
        self.must("commit", "--quiet", "--rm", container, "localhost/python")

    def setting(self, image: str, key: str) -> str:
        """Return what an image says of how it is run."""
        return self.must("inspect", "--type", "image", "--format", f"{{{{.OCIv1.Config.{key}}}}}", image)


@pytest.fixture(scope="module")
def engine(bare: Path) -> Iterator[Buildah]:
    """Buildah with the images of both container files; the base they name cannot be pulled and is a Debian tree."""
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed: apt-get install buildah")
    buildah = Buildah(bare)
    buildah.base(bare / "tree")
    build = ["bud", "--isolation", "chroot"]
    extras = ["--build-arg", f"EXTRAS={EXTRAS}", "--volume", f"{bare / 'packages'}:/packages:ro"]
    context = bare / "context"
    (context / "dist").mkdir(parents=True)
    shutil.copy(WHEEL, context / "dist")
    shutil.copy(ROOT / ".containerignore", context)
    first = ["--from", "localhost/python", "--file", str(ROOT / "Containerfile")]
    buildah.must(*build, *first, *extras, "--tag", "leadline", str(context))
    watch = ["--file", str(ROOT / "examples/watch/Containerfile"), "--tag", "leadline-watch"]
    buildah.must(*build, *watch, str(context))
    yield buildah
    buildah("rm", "--all")
    buildah("rmi", "--all", "--force")


@pytest.fixture
def started(engine: Buildah) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """A function that runs a command in a new container of an image, as the user that the image names."""
    containers: list[str] = []

    def start(image: str, *words: str, mounted: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        container = engine.must("from", "--pull-never", f"localhost/{image}")
        containers.append(container)
        volumes = [word for mount in mounted for word in ("--volume", mount)]
        return engine("run", "--isolation", "chroot", *volumes, container, "--", *words)

    yield start
    for container in containers:
        engine("rm", container)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(not WHEEL or not dist.runs_here(Path(WHEEL)), reason="`make dist` builds a wheel and tests it")
class TestBuilt:
    """Both images as an engine of containers builds them from their files."""

    def test_what_the_images_say(self, engine: Buildah) -> None:
        assert engine.setting("leadline", "User") == "10001:10001"
        assert engine.setting("leadline", "Entrypoint") == "[leadline]"
        assert engine.setting("leadline", "Cmd") == "[--help]"
        assert engine.setting("leadline-watch", "User") == "10001:10001"
        assert engine.setting("leadline-watch", "Entrypoint") == "[leadline watch]"
        assert engine.setting("leadline-watch", "Cmd") == "[run --settings /etc/leadline/watch.yaml]"
        assert engine.setting("leadline-watch", "Volumes") == "map[/store:{}]"
        assert engine.setting("leadline-watch", "ExposedPorts") == "map[7177/tcp:{}]"
        assert engine.setting("leadline-watch", "StopSignal") == "SIGTERM"

    @pytest.mark.parametrize(
        ("words", "shown"),
        [
            (("id", "-u"), "10001"),
            (("leadline", "--version"), "leadline "),
            (("leadline", "diagnose", "/data"), "Yes, it is the disk"),
        ],
        ids=lambda words: words[0] if isinstance(words, tuple) else "",
    )
    def test_it_diagnoses_what_is_mounted(
        self, started: Callable[..., subprocess.CompletedProcess[str]], words: tuple[str, ...], shown: str
    ) -> None:
        recordings = f"{ROOT / 'examples/incidents/throttled-wal-disk'}:/data:ro"
        done = started("leadline", *words, mounted=(recordings,))
        assert done.returncode in (0, 1), done.stderr
        assert shown in done.stdout
        assert "Traceback" not in done.stderr

    def test_a_watch_keeps_its_samples_in_the_store_and_ends_when_asked(
        self, started: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
    ) -> None:
        settings = "sources: [{name: machine, collector: linux}]\npage: {listen: ''}\n"
        (tmp_path / "watch.yaml").write_text(settings)
        tmp_path.chmod(0o755)
        entry, command = "leadline watch", "run --settings /etc/leadline/watch.yaml"
        watch = f"timeout --preserve-status --signal TERM 30 {entry} {command}"
        told = f"{entry} check --settings /etc/leadline/watch.yaml && {watch}"
        files = "find /store -type f -size +0; find / -xdev -user 10001 -not -path '/store*' -not -path '/tmp*' -type f"
        script = f"{told}; echo status $?; {files} 2>/dev/null"
        done = started("leadline-watch", "sh", "-c", script, mounted=(f"{tmp_path}:/etc/leadline:ro",))
        assert "Traceback" not in done.stderr
        assert "status 0\n" in done.stdout, done.stdout + done.stderr
        kept = done.stdout.partition("status 0\n")[2].split()
        assert any(path.startswith("/store/") for path in kept), kept
        assert all(path.startswith(("/store/", "/proc/")) for path in kept), kept
