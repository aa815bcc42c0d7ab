"""Targets are opened, identified and locked; what is made is made where nothing is, and removed by its identity."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.following import ToolCommand, started
from leadline.core.system.opened import MARK, Identity, Targets, is_uri, printable, require_free
from leadline.core.system.processes import wait

MIB = 2**20


@pytest.fixture
def targets() -> Iterator[Targets]:
    own = Targets()
    yield own
    own.close()


def identity(path: Path) -> Identity:
    return Identity.of(path.stat())


def held(path: Path, size: int = MIB) -> Path:
    path.write_bytes(b"x" * size)
    return path


def test_a_plain_name_leads_to_what_was_opened_whatever_its_path_is_now(tmp_path: Path, targets: Targets) -> None:
    path = held(tmp_path / "v2#1")
    wanted = identity(path)
    targets.open(str(path), "t0", wanted, writes=True)
    path.rename(tmp_path / "moved")
    held(path, 10)
    words = ["sh", "-c", "stat -L -c %d:%i t0; printf new 1<>t0; ls"]
    output = tmp_path / "said"
    with started(ToolCommand(words, output, targets=targets)) as (process, _):
        assert wait(process, 10.0)
    assert output.read_text().splitlines()[0] == f"{wanted.device}:{wanted.inode}"
    assert (tmp_path / "moved").read_bytes()[:4] == b"newx"
    assert path.read_bytes() == b"x" * 10
    assert stat.S_IMODE(targets.folder.stat().st_mode) == 0o700
    folder = targets.folder
    targets.close()
    assert not folder.exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["moved", "said", "v2#1"]


def test_what_was_replaced_since_the_plan_is_not_opened(tmp_path: Path, targets: Targets) -> None:
    path = held(tmp_path / "target")
    planned = identity(path)
    bystander = held(tmp_path / "bystander")
    path.unlink()
    path.symlink_to(bystander)
    with pytest.raises(UsageError, match="another file, folder or device than when the plan was made"):
        targets.open(str(path), "t0", planned, writes=True)
    (tmp_path / "folder").mkdir()
    parent = identity(tmp_path / "folder")
    (tmp_path / "folder").rename(tmp_path / "away")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="than when the plan was made"):
        targets.make(str(tmp_path / "folder" / "x.dat"), "t0", parent, MIB)
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_link_the_user_named_is_resolved(tmp_path: Path, targets: Targets) -> None:
    path = held(tmp_path / "target")
    (tmp_path / "link").symlink_to(path)
    targets.open(str(tmp_path / "link"), "t0", identity(path), writes=True)
    assert Identity.of(os.fstat(targets.descriptor("t0"))) == identity(path)


@pytest.mark.parametrize("kind", ["file", "link to a file", "link to nothing", "folder"])
def test_nothing_is_made_where_something_is(kind: str, tmp_path: Path, targets: Targets) -> None:
    path, other = tmp_path / "leadline-bench-io.dat", held(tmp_path / "other")
    if kind == "file":
        held(path, 5)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(other if kind == "link to a file" else tmp_path / "nothing")
    before = {entry.name: entry.lstat() for entry in tmp_path.iterdir()}
    with pytest.raises(UsageError, match="there already"):
        targets.make(str(path), "t0", None, MIB)
    with pytest.raises(UsageError, match="there already"):
        require_free(str(tmp_path), path.name)
    assert {entry.name: entry.lstat() for entry in tmp_path.iterdir()} == before


def test_what_was_made_is_removed_only_while_it_is_the_same(tmp_path: Path) -> None:
    for replaced in (False, True):
        targets = Targets()
        path = tmp_path / "leadline-made.dat"
        targets.make(str(path), "t0", identity(tmp_path), MIB)
        assert (path.stat().st_size, stat.S_IMODE(path.stat().st_mode)) == (MIB, 0o600)
        if replaced:
            path.rename(tmp_path / "away")
            held(path, 7)
        assert targets.close() == []
        assert targets.close() == []
        assert path.exists() == replaced
    assert path.read_bytes() == b"x" * 7


def test_a_folder_that_is_made_goes_with_what_is_in_it(tmp_path: Path) -> None:
    targets = Targets()
    path = tmp_path / "leadline-made"
    targets.make_folder(str(path), "t0", identity(tmp_path))
    (path / "deep").mkdir()
    held(path / "deep" / "file")
    (path / "link").symlink_to(held(tmp_path / "bystander"))
    with pytest.raises(UsageError, match="there already"):
        Targets().make_folder(str(path), "t0", None)
    assert targets.close() == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["bystander"]
    with pytest.raises(ToolError, match="cannot be made"):
        targets.make_folder(str(tmp_path / "none" / "leadline-made"), "t0", None)


def test_a_second_run_is_refused_and_told_who_works_there(tmp_path: Path, targets: Targets) -> None:
    path = held(tmp_path / "target")
    targets.open(str(path), "t0", None, writes=True)
    with pytest.raises(UsageError, match=rf"a target that process {os.getpid()} has locked; expected .* Wait until"):
        Targets().open(str(path), "t0", None, writes=False)
    targets.open(str(path), "t0", None, writes=True)
    targets.close()
    other = Targets()
    other.open(str(path), "t0", None, writes=True)
    other.close()


def test_what_a_killed_run_left_is_made_anew_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "leadline-bench-io.dat"
    words = "import sys; from leadline.core.system.opened import Targets\n"
    words += "own = Targets(); own.make(sys.argv[1], 't0', None, 4096); print(own.folder, flush=True); input()"
    killed = subprocess.Popen(
        [sys.executable, "-c", words, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout is not None
    folder = Path(killed.stdout.readline().strip())
    with pytest.raises(UsageError, match=f"process {killed.pid} has locked"):
        require_free(str(tmp_path), path.name)
    killed.kill()
    killed.communicate()
    shutil.rmtree(folder)
    if not os.listxattr(path):
        pytest.skip("this file system has no attributes")
    before = identity(path)
    require_free(str(tmp_path), path.name)
    copy = tmp_path / "copy.dat"
    copy.write_bytes(path.read_bytes())
    os.setxattr(copy, MARK, os.getxattr(path, MARK))
    with pytest.raises(UsageError, match="there already"):  # a copy carries another file's mark
        require_free(str(tmp_path), copy.name)
    targets = Targets()
    targets.make(str(path), "t0", None, MIB)
    assert path.stat().st_size == MIB
    assert identity(path) == Identity.of(os.fstat(targets.descriptor("t0")))
    assert (identity(path) != before) or path.stat().st_blocks == 0
    targets.close()
    assert not path.exists()
    assert copy.exists()


def test_a_tool_that_opens_another_file_for_writing_is_stopped(tmp_path: Path, targets: Targets) -> None:
    path, bystander = held(tmp_path / "target"), held(tmp_path / "v2")
    own = tmp_path / "own"
    own.mkdir()
    targets.open(str(path), "t0", None, writes=True)
    for script in (f"exec 5>>'{bystander}'; sleep 20", f"sh -c \"exec 5>>'{bystander}'; sleep 20\" & wait"):
        with (
            pytest.raises(ToolError, match="v2: the load tool opened it for writing, and nobody named it"),
            started(ToolCommand(["sh", "-c", script], own / "said", targets=targets)) as (process, look),
        ):
            began = time.monotonic()
            wait(process, 10.0, look)
        assert process.poll() is not None
        assert time.monotonic() - began < 5.0
    fine = f"exec 5<>t0 6>>'{own}/log' 7>own 8<'{bystander}' 9>/dev/null; sleep 0.3"
    with started(ToolCommand(["sh", "-c", fine], own / "said", targets=targets)) as (process, look):
        assert wait(process, 10.0, look)


def test_a_target_that_is_only_read_may_not_be_opened_for_writing(tmp_path: Path, targets: Targets) -> None:
    path = held(tmp_path / "target")
    targets.open(str(path), "t0", None, writes=False)
    with (
        pytest.raises(ToolError, match="target: the load tool opened it for writing"),
        started(ToolCommand(["sh", "-c", "exec 5<>t0; sleep 20"], tmp_path / "said", targets=targets)) as (
            process,
            look,
        ),
    ):
        wait(process, 10.0, look)


def test_a_tool_that_replaces_its_link_measured_something_else(tmp_path: Path, targets: Targets) -> None:
    targets.open(str(held(tmp_path / "target")), "t0", None, writes=True)
    targets.require_linked()
    (targets.folder / "t0").unlink()
    with pytest.raises(ToolError, match="replaced its link"):
        targets.require_linked()
    targets.relink("t0")
    targets.require_linked()


def test_a_failure_leaves_no_descriptor_open(tmp_path: Path) -> None:
    path = held(tmp_path / "leadline-target")
    other = os.open(path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for _ in range(3):
        own = Targets()
        with pytest.raises(UsageError):
            own.open(str(path), "t0", None, writes=True)
        with pytest.raises(UsageError):
            own.make(str(path), "t1", None, MIB)
        own.close()
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
    os.close(other)


def test_names_that_are_no_text_are_shown() -> None:
    assert [printable(name) for name in ("v2", "ü", "v\udcff", "\ud800")] == ["v2", "ü", "v\\xff", "'\\ud800'"]
    assert [is_uri(name) for name in ("nbd://h", "nbd+unix:///x", "./a://b", "/a://b", "a:b")] == [
        *(True, True),
        *(False, False, False),
    ]
