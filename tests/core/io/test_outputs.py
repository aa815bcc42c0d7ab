"""Files that Leadline writes: what they may replace, what they leave behind, and how temporary ones are called."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.generating import FaultRequest, generate
from leadline.core.io import outputs
from leadline.core.io.outputs import Output, aside_name, check_folder, check_inputs, is_ours, keep, mark
from leadline.core.io.parquet import save
from leadline.core.model.capture import Capture
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.leftovers import Leftover, remove_leftovers
from leadline.generators.host_model import CaptureShape

OURS = b'{\n  "schema": "leadline.run/1"\n}\n'


def held(folder: Path) -> dict[str, object]:
    """Everything in a folder: kind, contents, where links lead."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        kind = stat.S_IFMT(path.lstat().st_mode)
        is_file = stat.S_ISREG(kind)
        found[str(path.relative_to(folder))] = (
            kind,
            path.read_bytes() if is_file else "",
            str(path.readlink()) if path.is_symlink() else "",
        )
    return found


def made(kind: str, folder: Path) -> Path:
    """Something that is no file an output may replace."""
    path = folder / "out"
    if kind == "folder":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as own:
            own.bind(str(path))
    elif kind == "device":
        if os.geteuid() != 0:
            pytest.skip("only root makes device nodes")
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 7))
        except PermissionError:
            pytest.skip("this machine lets nobody make device nodes")
    elif kind == "link to a file":
        (folder / "target").write_bytes(OURS)
        path.symlink_to("target")
    elif kind == "link to nothing":
        path.symlink_to("nothing")
    elif kind == "link to a device":
        path.symlink_to("/dev/null")
    elif kind == "foreign file":
        path.write_text("mine\n")
    return path


@pytest.mark.parametrize(
    "kind", ["folder", "FIFO", "socket", "device", "link to a file", "link to nothing", "link to a device"]
)
@pytest.mark.parametrize("force", [False, True])
def test_only_a_plain_file_is_ever_replaced(kind: str, force: bool, tmp_path: Path) -> None:
    path = made(kind, tmp_path)
    before = held(tmp_path)
    with pytest.raises(UsageError, match=rf"is a {kind.partition(' ')[0]}"):
        Output(path, "-o", force).write(b"new")
    assert held(tmp_path) == before


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_stream_is_no_file(name: str) -> None:
    with pytest.raises(UsageError, match="can be redirected"):
        Output(Path(name)).check()


def test_a_link_says_where_it_leads(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a link to target.*Name the file itself"):
        Output(made("link to a file", tmp_path)).check()


@given(st.binary(max_size=200))
def test_a_file_of_somebody_else_stays(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("foreign") / "out"
    path.write_bytes(data)
    if data:
        with pytest.raises(UsageError, match=r"Leadline did not write it.*add --force"):
            Output(path).write(b"new")
        assert path.read_bytes() == data
    assert Output(path, force=True).write(b"new") == 3
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("text", [mark("leadline calibrate") + "leadline_scenario: 1\n", OURS.decode()])
def test_what_leadline_wrote_is_known_until_its_mark_is_gone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    Output(path).write(text.encode())
    assert is_ours(path)
    Output(path).write(text.encode())
    path.write_text(text[3:])
    assert not is_ours(path)


@pytest.mark.parametrize(
    "data",
    [
        b"leadline_inventory: 1\nvms: []\n",  # people write these by hand
        b"leadline_scenario: 1\n",
        b'{"schema": "other/1"}',
        b"<!doctype html><p>Leadline</p>",
        b"PAR1 and then something else",
        b"# A text about Leadline\n",
        b"time,entity,metric,unit,value,mine\n",
    ],
)
def test_what_only_looks_like_it_is_not(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    assert not is_ours(tmp_path / "x")


def test_captures_are_known_by_their_metadata(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    save(Capture(), tmp_path / "ours.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    assert is_ours(tmp_path / "ours.parquet")
    assert not is_ours(tmp_path / "other.parquet")
    with pytest.raises(UsageError, match="did not write"):
        save(Capture(), tmp_path / "other.parquet")


def test_a_generated_capture_is_known_by_its_truth_file_and_size(tmp_path: Path) -> None:
    path, shape = tmp_path / "cap.csv", CaptureShape(vm_count=2, lun_count=2, sample_count=4)
    generate(shape, [], path, guest=0)
    names = {"cap.csv", "cap.csv.truth.yaml", "cap.csv.iostat.txt", "cap.csv.inventory.yaml"}
    assert {own.name for own in tmp_path.iterdir() if is_ours(own)} == names
    generate(CaptureShape(vm_count=3, lun_count=2, sample_count=4), [], path, guest=0)
    assert all(map(is_ours, tmp_path.iterdir()))
    path.write_bytes(path.read_bytes() + b"one more row")
    with pytest.raises(UsageError, match=r"cap\.csv: exists and Leadline did not write it"):
        generate(shape, [], path)


def test_a_failed_generation_leaves_the_old_files(tmp_path: Path) -> None:
    path = tmp_path / "cap.csv"
    generate(CaptureShape(vm_count=2, lun_count=2, sample_count=4), [], path)
    before = held(tmp_path)
    with pytest.raises(UsageError, match="at least"):
        generate(CaptureShape(vm_count=2, lun_count=2, sample_count=4), [FaultRequest("device-slow")], path, columns=10)
    assert held(tmp_path) == before


@pytest.mark.parametrize("link", ["same", "symbolic link", "hard link", "other spelling"])
def test_an_input_is_never_replaced(link: str, tmp_path: Path) -> None:
    read, out = tmp_path / "cap.csv", tmp_path / "out.csv"
    read.write_bytes(OURS)
    (tmp_path / "folder").mkdir()
    if link == "symbolic link":
        out.symlink_to("cap.csv")
    elif link == "hard link":
        out.hardlink_to(read)
    else:
        out = read if link == "same" else tmp_path / "folder" / ".." / "cap.csv"
    with pytest.raises(UsageError, match=r"is a file this command reads \(PATHS\)"):
        check_inputs([Output(out, "-o", force=True)], {"PATHS": [read]})


def test_two_outputs_on_one_file_are_refused(tmp_path: Path) -> None:
    for there in (False, True):
        if there:
            (tmp_path / "x").write_bytes(OURS)
        pair = [Output(tmp_path / "x", "-o"), Output(tmp_path / "." / "x", "--html")]
        with pytest.raises(UsageError, match=r"--html .*: is also written by -o"):
            check_inputs(pair, {})
    check_inputs([Output(tmp_path / "x", "-o"), Output(tmp_path / "y", "--html")], {})


def test_a_planted_name_or_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even somebody who guesses the temporary name gains nothing: it is made anew or not at all."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    names = iter([".leadline-guessed", ".leadline-free"])
    monkeypatch.setattr(outputs, "aside_name", lambda: next(names))
    (tmp_path / ".leadline-guessed").symlink_to(victim)
    keep(tmp_path / "out", b"new")
    assert victim.read_text() == "mine"
    assert (tmp_path / "out").read_bytes() == b"new"
    assert (tmp_path / ".leadline-guessed").is_symlink()


def test_a_file_that_is_swapped_while_it_is_written_ends_the_writing(tmp_path: Path) -> None:
    output = Output(tmp_path / "out")
    with pytest.raises(ToolError, match="somebody replaced the file"), output.aside() as path:
        path.unlink()
        path.symlink_to("/etc/passwd")
    assert list(tmp_path.iterdir()) == []


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    output = Output(tmp_path / "out")
    with pytest.raises(UsageError, match="did not write"), output.aside() as path:
        path.write_bytes(b"new")
        output.path.write_text("mine")
    assert held(tmp_path)["out"] == (stat.S_IFREG, b"mine", "")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_the_mode_is_that_of_any_new_file_and_private_until_then(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        with Output(tmp_path / "out").aside() as path:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            path.write_bytes(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("how", ["error", "interrupt"])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(how: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(OURS)
    raised: BaseException = KeyboardInterrupt() if how == "interrupt" else OSError(errno.ENOSPC, "No space left")
    expected = KeyboardInterrupt if how == "interrupt" else ToolError
    with pytest.raises(expected), Output(path).aside() as aside:
        aside.write_bytes(b"half")
        raise raised
    assert [own.name for own in tmp_path.iterdir()] == ["out"]
    assert path.read_bytes() == OURS


def test_places_that_take_no_file_are_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, part in (
        (tmp_path / "no" / "x", "there is no folder"),
        (Path("/proc/self/x"), "no right to write into|cannot be used"),
        (tmp_path / ("x" * 300), "cannot be used"),
        (tmp_path / "a\0b", "cannot be used"),
        (Path(), "is a folder"),
    ):
        with pytest.raises(UsageError, match=part):
            Output(path).check()
    room = os.statvfs(tmp_path)
    full = os.statvfs_result((*room[:3], 0, 0, *room[5:]))
    monkeypatch.setattr(os, "fstatvfs", lambda _: full)
    with pytest.raises(UsageError, match="no space is left"):
        Output(tmp_path / "x").check()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_recordings_is_checked_without_making_it(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b", "-o")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "file/b", "link"):
        with pytest.raises(UsageError):
            check_folder(tmp_path / name, "-o")


def test_appending_never_follows_a_link_nor_waits_for_a_fifo(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link").symlink_to("victim")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "."):
        for refuse in (outputs.open_to_append, outputs.check_to_append):
            with pytest.raises(UsageError, match="plain file"):
                refuse(tmp_path / name, BEGINNING)
    for part in (b"one\n", b"two\n"):
        with outputs.open_to_append(tmp_path / "own", BEGINNING) as stream:
            stream.write(part)
    assert (tmp_path / "own").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "victim").read_text() == "mine"


def test_appending_refuses_what_leadline_did_not_write(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    outputs.check_to_append(path, BEGINNING)
    assert not path.exists()
    path.write_text("my notes\none\n")
    for refuse in (outputs.open_to_append, outputs.check_to_append):
        with pytest.raises(UsageError, match="exists and Leadline did not write it"):
            refuse(path, BEGINNING)
    assert path.read_text() == "my notes\none\n"
    path.write_text("")
    outputs.open_to_append(path, BEGINNING).close()


def test_temporary_names_are_never_the_same() -> None:
    names = [aside_name() for _ in range(500)]
    assert len(set(names)) == 500
    assert all(name.startswith(".leadline-") for name in names)


BEGINNING = re.compile(b"one\n")
_WRITES = """
import sys, time
from pathlib import Path
from leadline.core.io.outputs import Output
with Output(Path(sys.argv[1]), "-o").aside() as aside:
    aside.write_bytes(b"half of it")
    print(aside, flush=True)
    time.sleep(60)
"""


def test_what_a_kill_leaves_beside_an_output_is_removed_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    place = tmp_path / "place"
    place.mkdir()
    (place / "report.html").write_bytes(OURS)
    command = [sys.executable, "-c", _WRITES, str(place / "report.html")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        aside = Path(process.stdout.readline().strip())
        assert remove_leftovers() == [], "that process still lives"
        assert aside.read_bytes() == b"half of it"
        process.kill()
    assert remove_leftovers() == [Leftover(str(aside), len(b"half of it"))]
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {"report.html": OURS}


def test_a_store_keeps_its_files_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "density.json"
    keep(path, json.dumps({"a": 1}).encode())

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        keep(path, b"other")
    assert json.loads(path.read_text()) == {"a": 1}
    assert [own.name for own in tmp_path.iterdir()] == ["density.json"]
