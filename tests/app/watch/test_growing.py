"""A file that grows is read on: head and last samples are copied, through rotation, emptying and torn lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leadline.app.watch import growing
from leadline.app.watch.growing import GrowingFile
from leadline.core.io.outputs import open_to_append


def lines(first: int, count: int) -> bytes:
    return b"".join(b"line %06d\n" % number for number in range(first, first + count))


def numbers(path: Path) -> list[int]:
    return [int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith("line")]


def test_the_head_and_the_last_looks_are_copied(tmp_path: Path) -> None:
    path, copy = tmp_path / "a", tmp_path / "copy"
    path.write_bytes(b"head\n" + lines(0, 1))
    file = GrowingFile(path, copy)
    assert file.look()
    for number in range(1, 50):
        with path.open("ab") as stream:
            stream.write(lines(number, 1))
        assert file.look()
    assert not file.look()
    assert copy.read_bytes().startswith(b"head\n")
    assert numbers(copy) == [0, 47, 48, 49]
    file.close()


def test_a_line_that_is_not_whole_is_left_out_until_it_is(tmp_path: Path) -> None:
    path, copy = tmp_path / "a", tmp_path / "copy"
    path.write_bytes(b"head\nline 000001\n")
    file = GrowingFile(path, copy)
    file.look()
    with path.open("ab") as stream:
        stream.write(b"line 00")
    file.look()
    assert copy.read_bytes() == b"head\nline 000001\n"
    with path.open("ab") as stream:
        stream.write(b"0002\n")
    file.look()
    assert numbers(copy) == [1, 2]


def test_a_file_that_is_rotated_is_read_to_its_end(tmp_path: Path) -> None:
    path, copy = tmp_path / "a", tmp_path / "copy"
    path.write_bytes(b"head\n" + lines(0, 2))
    file = GrowingFile(path, copy)
    file.look()
    with path.open("ab") as stream:
        stream.write(lines(2, 1))
    path.rename(tmp_path / "a.1")
    path.write_bytes(lines(3, 1))
    file.look()
    assert numbers(copy) == [0, 1, 2, 3]
    path.write_bytes(lines(4, 0))  # emptied in place, as copytruncate does
    file.look()
    with path.open("ab") as stream:
        stream.write(lines(4, 1))
    assert file.look()
    assert numbers(copy)[-1] == 4


def test_a_file_that_is_not_there_yet_is_read_when_it_comes(tmp_path: Path) -> None:
    path, copy = tmp_path / "a", tmp_path / "copy"
    file = GrowingFile(path, copy)
    assert not file.look()
    path.write_bytes(lines(0, 1))
    assert file.look()
    assert numbers(copy) == [0]


def test_our_own_file_is_cut_when_it_was_read(tmp_path: Path) -> None:
    path, copy = tmp_path / "a", tmp_path / "copy"
    file = GrowingFile(path, copy, is_own=True)
    last = -1
    with path.open("ab", buffering=0) as stream:
        for number in range(0, 1_000_000, 2000):
            stream.write(lines(number, 2000))
            assert file.look()
            new = [one for one in numbers(copy) if one > last]
            assert new == list(range(last + 1, number + 2000))
            last = new[-1]
    assert path.stat().st_size < growing.CUT_BYTES + (1 << 16)


def test_a_recorder_goes_on_with_a_file_of_its_own_that_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens its file for each sample, and refuses one that does not begin as it began it."""
    monkeypatch.setattr(growing, "CUT_BYTES", 2000)
    path, copy = tmp_path / "a.csv", tmp_path / "copy.csv"
    file = GrowingFile(path, copy, is_own=True)
    sizes = []
    for number in range(0, 2000, 10):
        with open_to_append(path, re.compile(rb"now,number\n")) as stream:
            stream.write((b"" if number else b"now,number\n") + lines(number, 10))
        assert file.look()
        assert copy.read_bytes().startswith(b"now,number\n")
        assert copy.read_bytes().count(b"now,number") == 1
        assert numbers(copy)[-10:] == list(range(number, number + 10))
        sizes.append(path.stat().st_size)
    assert max(sizes) < 2200
    assert sorted(sizes) != sizes


def test_of_a_long_file_the_end_is_taken_up(tmp_path: Path) -> None:
    path, copy = tmp_path / "a", tmp_path / "copy"
    path.write_bytes(b"head\n" + lines(0, 200_000))
    file = GrowingFile(path, copy)
    file.look()
    assert copy.stat().st_size < growing.FIRST_BYTES_MAX + growing.HEAD_BYTES_MAX + 100
    assert copy.read_bytes().startswith(b"head\n")
    assert numbers(copy)[-1] == 199_999
