from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.read import opening
from leadline.app.read.opening import open_sources
from leadline.core.io.source import decode
from leadline.core.model.errors import InputError, LimitError

TEXT = b"avg-cpu: 1\n" * 10


def tar_of(mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("sub/a.txt")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
        link = tarfile.TarInfo("evil")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        archive.addfile(link)
    return stream.getvalue()


def zip_of(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def workbook() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("[Content_Types].xml", b"<Types/>")
        archive.writestr("xl/workbook.xml", b"<workbook/>")
    return stream.getvalue()


PACKED: dict[str, tuple[str, bytes, str]] = {
    "plain": ("a.txt", TEXT, "a.txt"),
    "gz": ("a.txt.gz", gzip.compress(TEXT), "a.txt"),
    "xz": ("a.txt.xz", lzma.compress(TEXT), "a.txt"),
    "bz2": ("a.txt.bz2", bz2.compress(TEXT), "a.txt"),
    "zst": ("a.txt.zst", zstandard.compress(TEXT), "a.txt"),
    "tar": ("b.tar", tar_of("w"), "b.tar!sub/a.txt"),
    "tgz": ("b.tgz", tar_of("w:gz"), "b.tar!sub/a.txt"),
    "zip": ("b.zip", zip_of("a.txt", TEXT), "b.zip!a.txt"),
    "gz in zip": ("b.zip", zip_of("a.txt.gz", gzip.compress(TEXT)), "b.zip!a.txt"),
}


@pytest.mark.parametrize("kind", PACKED)
def test_whatever_it_is_packed_in(kind: str, tmp_path: Path) -> None:
    name, content, expected = PACKED[kind]
    (tmp_path / name).write_bytes(content)
    with open_sources([tmp_path / name]) as opened:
        sources = opened.sources
        assert [s.name.removeprefix(f"{tmp_path}/") for s in sources] == [expected]
        assert sources[0].path.read_bytes() == TEXT
        unpacked = sources[0].path
    assert unpacked.exists() == (kind == "plain")


def test_an_office_document_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(workbook())
    with open_sources([tmp_path / "a.xlsx"]) as opened:
        sources = opened.sources
        assert [(s.path, s.named) for s in sources] == [(tmp_path / "a.xlsx", True)]


def test_an_office_document_in_an_archive_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(zip_of("a.xlsx", workbook()))
    with open_sources([tmp_path / "b.zip"]) as opened:
        sources = opened.sources
        assert [s.name.removeprefix(f"{tmp_path}/") for s in sources] == ["b.zip!a.xlsx"]


def test_files_of_folders_are_not_named_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    with open_sources([tmp_path]) as opened:
        sources = opened.sources
        assert [s.named for s in sources] == [False]


def test_a_missing_file_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"), open_sources([tmp_path / "none"]):
        pass


@pytest.mark.parametrize("kind", ["gz", "xz", "zst", "tgz", "zip"])
@given(cut=st.integers(8, 60))
def test_a_cut_archive_is_one_error(kind: str, cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    name, content, _ = PACKED[kind]
    path = tmp_path_factory.mktemp("cut") / name
    path.write_bytes(content[: min(cut, len(content) - 9)])
    with pytest.raises(InputError, match="unreadable"), open_sources([path]):
        pass


def test_an_archive_bomb_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "UNPACKED_BYTES_MAX", 1000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"0" * 5000))
    with pytest.raises(LimitError, match="unpacks to more"), open_sources([tmp_path / "a.gz"]):
        pass


@given(st.binary(max_size=200))
def test_decoding_never_fails(data: bytes) -> None:
    assert isinstance(decode(data), str)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1251"])
def test_russian_text_in_every_encoding(encoding: str) -> None:
    assert decode("Физический диск".encode(encoding)) == "Физический диск"


def test_a_character_cut_at_the_end_of_the_head() -> None:
    assert decode("Физический".encode()[:-1]) == "Физически"
