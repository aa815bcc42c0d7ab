from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from leadline.app.read.importing import import_paths
from leadline.core.model.errors import InputError
from tests.conftest import ROOT
from tests.importers.load_tools import SEEDS

GOOD = (SEEDS / "perfmon-en.tsv").read_bytes()
CUT = b"".join(
    line[: len(line) // 2 * bool(n) or None] + b"\n" * bool(n) for n, line in enumerate(GOOD.splitlines(True))
)


def test_a_damaged_file_of_a_folder_is_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "good.tsv").write_bytes(GOOD)
    (tmp_path / "cut.tsv").write_bytes(CUT)
    (tmp_path / "notes.txt").write_text("hello")
    imported = import_paths([tmp_path])
    assert [Path(s.name).name for s in imported.capture.sources] == ["good.tsv"]
    assert [error.where for error in imported.left_out] == [f"{tmp_path}/cut.tsv:2"]
    assert imported.unrecognised == [f"{tmp_path}/notes.txt"]


def test_a_damaged_file_that_was_named_ends_the_import(tmp_path: Path) -> None:
    (tmp_path / "good.tsv").write_bytes(GOOD)
    (tmp_path / "cut.tsv").write_bytes(CUT)
    with pytest.raises(InputError, match=r"cut\.tsv:2"):
        import_paths([tmp_path / "good.tsv", tmp_path / "cut.tsv"])


def test_a_folder_of_nothing_but_damage_tells_the_damage(tmp_path: Path) -> None:
    (tmp_path / "cut.tsv").write_bytes(CUT)
    with pytest.raises(InputError, match=r"cut\.tsv:2"):
        import_paths([tmp_path])


def test_progress_names_every_file(tmp_path: Path) -> None:
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_bytes(GOOD)
    told: list[tuple[int, int, str]] = []
    import_paths([tmp_path], progress=lambda *step: told.append(step))
    assert told == [(0, 2, f"{tmp_path}/a.tsv"), (1, 2, f"{tmp_path}/b.tsv"), (2, 2, "")]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "is empty"),
        (b" \n\n", "holds nothing but blanks"),
        (b"\nhello there\nsecond line\n", "begins with 'hello there'"),
        ("привет\n".encode("cp1251"), "begins with 'привет'"),
        ("привет\n".encode("utf-16"), "begins with 'привет'"),
        (b"\x1b[1mbold\x1b[0m", r"begins with '\x1b[1mbold\x1b[0m'"),
        (
            b"\x7fELF\x02\x01\x01" + bytes(9) + "Рa".encode(),
            "begins with the bytes 7f 45 4c 46 02 01 01 00 00 00 00 00 00 00 00 00, which are no text",
        ),
        (b"\x89PNG\r\n\x1a\n", "begins with the bytes 89 50 4e 47 0d 0a 1a 0a, which are no text"),
    ],
)
def test_what_a_file_that_is_not_recognised_begins_with(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        import_paths([path])
    assert caught.value.found == found


@pytest.mark.parametrize("name", ["postgresql.log", "postgresql-2026-11-20.log", "esxtop.csv", "vmstat.txt"])
@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_recording_without_contents_is_said_to_be_empty(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "good.tsv").write_bytes(GOOD)
    (tmp_path / name).write_bytes(content)
    (tmp_path / "lock").touch()
    (tmp_path / "stat_refresh").touch()  # begins like stat.csv, and is a file of /proc in a sosreport
    imported = import_paths([tmp_path])
    (error,) = imported.left_out
    assert error.where == f"{tmp_path}/{name}"
    assert error.found == ("holds nothing but blanks" if content else "is empty")
    assert imported.unrecognised == [f"{tmp_path}/lock", f"{tmp_path}/stat_refresh"]
    with pytest.raises(InputError, match="Record it again"):
        import_paths([tmp_path / name])


def test_a_recording_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "incidents" / "throttled-wal-disk" / "iostat.txt").read_bytes()
    (tmp_path / "iostat.txt").write_bytes(text)
    (tmp_path / "again.txt.gz").write_bytes(gzip.compress(text))
    alone = import_paths([tmp_path / "iostat.txt"])
    both = import_paths([tmp_path])
    assert both.capture.series_count == alone.capture.series_count
    (copy,) = both.left_out
    assert "the same recording as" in copy.found


def test_two_recordings_that_differ_in_one_sample_both_count(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "incidents" / "throttled-wal-disk" / "iostat.txt").read_text()
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.txt").write_text(text.replace("99.", "98.", 1))
    assert len(import_paths([tmp_path]).capture.sources) == 2
