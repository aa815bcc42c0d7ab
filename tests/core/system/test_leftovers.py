"""What a killed process left is removed by the next start; what lives, was replaced or is not ours is left alone."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from leadline.core.system import leftovers
from leadline.core.system.leftovers import (
    Leftover,
    forget,
    identify,
    note,
    remove_leftovers,
    removed_later,
    removed_line,
    scratch_folder,
)

_MAKES = """
import sys, time
from pathlib import Path
from leadline.core.system.leftovers import identify, note, scratch_folder
place = Path(sys.argv[1])
with scratch_folder("test") as scratch:
    (scratch / "file").write_text("x")
    data = place / "leadline-data.dat"
    note(data)
    data.touch(exist_ok=False)
    identify(data)
    data.write_bytes(b"x" * 1000)
    folder = place / "leadline-folder"
    note(folder)
    folder.mkdir()
    identify(folder)
    (folder / "inside").write_text("x")
    planned = place / "leadline-planned"
    note(planned)
    print(scratch, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user folder and temporary files of the test alone."""
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(leftovers, "_journal", None)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The folder in which a process that was killed has left things; its temporary folder is beside."""
    place = tmp_path / "place"
    place.mkdir()
    process = _start(place)
    process.kill()
    process.wait()
    return place


def _start(place: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", _MAKES, str(place)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert Path(process.stdout.readline().strip()).is_dir()
    process.stdout.close()
    return process


def test_what_a_killed_process_left_is_removed(killed: Path) -> None:
    other = killed / "leadline-other.dat"
    other.write_text("not noted")
    assert len(list(Path(tempfile.gettempdir()).iterdir())) == 1
    removed = {Path(leftover.path).name: leftover for leftover in remove_leftovers()}
    scratch = removed.pop(next(name for name in removed if name.startswith("leadline-test-")))
    assert (scratch.size_bytes, scratch.names) == (1, ("file",))
    assert {name: (own.size_bytes, own.names) for name, own in removed.items()} == {
        "leadline-data.dat": (1000, None),
        "leadline-folder": (1, ("inside",)),
    }
    assert list(killed.iterdir()) == [other]
    assert list(Path(tempfile.gettempdir()).iterdir()) == []
    assert remove_leftovers() == []


def test_what_a_living_process_has_is_left_alone(tmp_path: Path) -> None:
    process = _start(tmp_path)
    try:
        assert remove_leftovers() == []
        assert (tmp_path / "leadline-data.dat").stat().st_size == 1000
    finally:
        process.kill()
        process.wait()


def test_what_took_its_place_is_left_alone(killed: Path) -> None:
    data, folder, planned = (killed / f"leadline-{name}" for name in ("data.dat", "folder", "planned"))
    new = killed / "new"
    new.write_text("the user's")
    new.replace(data)
    folder.rename(killed / "kept")
    folder.symlink_to(killed / "kept")
    planned.write_text("the user's")
    remove_leftovers()
    assert data.read_text() == planned.read_text() == "the user's"
    assert folder.is_symlink()
    assert (killed / "kept" / "inside").exists()


def test_an_empty_planned_file_is_removed(killed: Path) -> None:
    (killed / "leadline-planned").touch()
    assert Leftover(str(killed / "leadline-planned"), 0) in remove_leftovers()


def test_a_torn_or_foreign_journal_does_no_harm(tmp_path: Path) -> None:
    journals = tmp_path / "home" / "leftovers"
    journals.mkdir(parents=True)
    precious = tmp_path / "precious"
    precious.write_text("x")
    found = precious.stat()
    entry = f'{{"path": "{bytes(precious).hex()}", "state": "made", "device": {found.st_dev}, "inode": {found.st_ino}}}'
    for number, text in enumerate(
        ["", "\0", "[]", '{"path": 3}', entry, entry[:20], '{"path": "zz", "state": "made"}']
    ):
        (journals / f"leadline-{number}.jsonl").write_text(text)
    assert remove_leftovers() == []
    assert precious.exists()
    assert list(journals.iterdir()) == []


def test_temporary_folders_that_are_not_ours_stay() -> None:
    base = Path(tempfile.gettempdir())
    unmarked, empty = base / "leadline-unmarked", base / "leadline-bench-database"
    for path in (unmarked, empty):
        path.mkdir()
        os.utime(path, (0, 0))
    (unmarked / "file").touch()
    (base / "leadline-link").symlink_to(unmarked)
    (base / "leadline-link.unlocked").symlink_to(unmarked)
    assert remove_leftovers() == []
    assert (unmarked / "file").exists()
    assert empty.exists()


def test_a_journal_is_gone_with_what_it_lists(tmp_path: Path) -> None:
    journals = tmp_path / "home" / "leftovers"
    path = tmp_path / "leadline-one"
    with removed_later(path):
        path.touch()
        identify(path)
        (journal,) = journals.iterdir()
        with journal.open() as stream, pytest.raises(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert list(journals.iterdir()) == []


def test_what_was_never_locked_is_removed(tmp_path: Path) -> None:
    folder, journals = Path(tempfile.gettempdir()) / "leadline-one-x.unlocked", tmp_path / "home" / "leftovers"
    folder.mkdir()
    journals.mkdir(parents=True)
    unlocked = [folder / ".leadline-owner", journals / "leadline-7-x.jsonl.unlocked"]
    for path in unlocked:
        path.touch()
    locked = [os.open(path, os.O_RDWR) for path in unlocked]
    for descriptor in locked:  # by a process that is about to name it
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert remove_leftovers() == []
    assert all(path.exists() for path in unlocked)
    for descriptor in locked:
        os.close(descriptor)
    assert remove_leftovers() == [Leftover(str(folder), 0, ())]
    assert not any(path.exists() for path in (folder, *unlocked))


@pytest.mark.parametrize("names", [[], ["data"]], ids=["before it was locked", "while it was removed"])
def test_a_folder_of_a_process_that_was_killed_then_is_removed(names: list[str]) -> None:
    folder = Path(tempfile.gettempdir()) / "leadline-one-x.unlocked"
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    assert remove_leftovers() == [Leftover(str(folder), 0, tuple(names))]
    assert not folder.exists()


def test_who_loses_what_is_not_locked_yet_makes_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another start looks around three times just before this process holds its first lock."""
    lock, journals = fcntl.flock, tmp_path / "home" / "leftovers"
    looked: list[list[Leftover]] = []

    def lock_late(descriptor: int, how: int) -> None:
        if how == fcntl.LOCK_EX and len(looked) < 3:
            monkeypatch.setattr(fcntl, "flock", lock)
            looked.append(remove_leftovers())
            monkeypatch.setattr(fcntl, "flock", lock_late)
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with scratch_folder("one") as folder:
        assert looked[2] != []
        assert [Leftover(f"{folder}.unlocked", 0, ())] not in looked
        assert list(folder.parent.iterdir()) == [folder]
        looked.clear()
        (folder / "data").write_text("x")
        with removed_later(tmp_path / "leadline-two"):
            assert looked == [[], [], []]
            assert [path.suffix for path in journals.iterdir()] == [".jsonl"]
        assert (folder / "data").read_text() == "x"
    assert list(folder.parent.iterdir()) == []
    assert list(journals.iterdir()) == []


def test_what_cannot_be_removed_yet_is_tried_again(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a server of the killed process still writes into its folder."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    folder = Leftover(str(killed / "leadline-folder"), 1, ("inside",))
    with monkeypatch.context() as patch:
        patch.setattr("leadline.core.system.leftovers.shutil.rmtree", fail)
        assert folder not in remove_leftovers()
    assert folder in remove_leftovers()
    assert list(killed.iterdir()) == []


def test_a_name_must_say_whose_it_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whose"):
        note(tmp_path / "users.dat")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_user_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o500)
    note(tmp_path / "leadline-x")
    forget(tmp_path / "leadline-x")


def test_a_user_folder_that_cannot_be_made_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    note(tmp_path / "leadline-x")
    forget(tmp_path / "leadline-x")
    assert remove_leftovers() == []


def test_a_scratch_folder_is_gone_after_a_polite_kill(tmp_path: Path) -> None:
    with scratch_folder("one", tmp_path) as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_many_kills_at_random_moments_leave_nothing(tmp_path: Path) -> None:
    """Killed while files are made, identified and removed, again and again."""
    place = tmp_path / "place"
    place.mkdir()
    code = _MAKES.replace("with scratch_folder", "print('.', flush=True)\nwhile True:\n  with scratch_folder")
    code = code.replace("    print(scratch, flush=True)\n    time.sleep(60)\n", "").replace(
        "    note(planned)", "    data.unlink()\n    (folder / 'inside').unlink()\n    folder.rmdir()"
    )
    for number in range(10):
        process = subprocess.Popen([sys.executable, "-c", code, str(place)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(1)
        time.sleep(0.003 * number)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        remove_leftovers()
        assert list(place.iterdir()) == []
    assert list(Path(tempfile.gettempdir()).iterdir()) == []
    assert list((tmp_path / "home" / "leftovers").iterdir()) == []


def test_what_was_removed_is_one_line_with_names_and_sizes() -> None:
    names = tuple(f"part-{number}" for number in range(9))
    many = [Leftover(f"/tmp/leadline-{number}", 1024 * number) for number in range(5)]
    line = removed_line([*many, Leftover("/tmp/leadline-big\nx", 3 * 2**30, names), Leftover("/tmp/leadline-e", 0, ())])
    assert line == (
        r"removed what a killed run left behind: '/tmp/leadline-big\nx' (folder with part-0, part-1, part-2, part-3, "
        "part-4, 4 more, 3 GiB), '/tmp/leadline-4' (4 KiB), '/tmp/leadline-3' (3 KiB), '/tmp/leadline-2' (2 KiB), "
        "'/tmp/leadline-1' (1 KiB), and 2 more (0 bytes)"
    )
