"""One odd file never stops a folder or an archive; named alone, it is one error."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import socket
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.app.read import opening
from leadline.app.read.importing import Imported, import_paths
from leadline.core.model.errors import InputError, LeadlineError
from tests.importers.load_tools import SEEDS

GOOD = (SEEDS / "perfmon-en.tsv").read_bytes()


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def marked(packed: bytes, *, flags: int | None = None, method: int | None = None, member: bytes = b"odd") -> bytes:
    """A zip archive whose member says that it is encrypted, or packed with another method."""
    changed = bytearray(packed)
    for signature, flags_at, method_at, name_at in ((b"PK\x03\x04", 6, 8, 30), (b"PK\x01\x02", 8, 10, 46)):
        at = changed.find(signature)
        while at >= 0:
            if changed[at + name_at : at + name_at + len(member)] == member:
                if flags is not None:
                    struct.pack_into("<H", changed, at + flags_at, flags)
                if method is not None:
                    struct.pack_into("<H", changed, at + method_at, method)
            at = changed.find(signature, at + 4)
    return bytes(changed)


def flipped(packed: bytes) -> bytes:
    """With bits turned over inside the compressed data."""
    at = len(packed) // 2
    return packed[:at] + bytes(byte ^ 0xFF for byte in packed[at : at + 8]) + packed[at + 8 :]


def sparse_tar(folder: Path) -> bytes:
    """As GNU tar -S writes it: a file of 1 TiB that is one hole."""
    header = tarfile.TarInfo("odd.csv")
    header.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    struct.pack_into("12s12s", block, 386, b"%011o\0" % (1 << 32), b"%011o\0" % 0)
    struct.pack_into("12s", block, 483, b"\x80" + (1 << 40).to_bytes(11, "big"))
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    path = folder / "sparse.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("good.tsv")
        member.size = len(GOOD)
        archive.addfile(member, io.BytesIO(GOOD))
    plain = path.read_bytes()
    path.unlink()
    data = 512 + -(-len(GOOD) // 512) * 512
    return plain[:data] + bytes(block) + plain[data:]


def nested(depth: int) -> bytes:
    packed = zipped({"deep.tsv": GOOD})
    for level in range(depth):
        packed = zipped({f"{level}.zip": packed})
    return packed


ODD: dict[str, tuple[str, bytes, str]] = {
    "a document without a workbook": (
        "odd.docx",
        zipped({"[Content_Types].xml": b"<Types/>", "word/document.xml": b"<w/>"}),
        "an office document without a workbook",
    ),
    "an encrypted zip": ("odd.zip", marked(zipped({"odd.csv": GOOD}), flags=1), "encrypted"),
    "a zip packed with deflate64": ("odd.zip", marked(zipped({"odd.csv": GOOD}), method=9), "compression method"),
    "a gz that is cut": ("odd.gz", gzip.compress(GOOD)[:-40], "ended before"),
    "a gz with flipped bits": ("odd.gz", flipped(gzip.compress(GOOD)), "unreadable"),
    "an xz with flipped bits": ("odd.xz", flipped(lzma.compress(GOOD)), "unreadable"),
    "a bz2 with flipped bits": ("odd.bz2", flipped(bz2.compress(GOOD)), "unreadable"),
    "a zip with flipped bits": ("odd.zip", flipped(zipped({"odd.csv": GOOD})), "unreadable"),
    "a zip without its end": ("odd.zip", zipped({"odd.csv": GOOD})[:-30], "unreadable"),
    "a zip of 30 zips": ("odd.zip", nested(30), "an archive within 3 others"),
}


def folder_of(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "good.tsv").write_bytes(GOOD)
    return folder


def expect_good_and(imported: Imported, found: str) -> None:
    assert [Path(s.name.rpartition("!")[2]).name for s in imported.capture.sources] == ["good.tsv"]
    assert [error for error in imported.left_out if found in error.found], imported.left_out


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_of_a_folder_is_left_out(kind: str, tmp_path: Path) -> None:
    name, content, found = ODD[kind]
    (folder_of(tmp_path) / name).write_bytes(content)
    expect_good_and(import_paths([tmp_path / "folder"]), found)


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_that_is_named_is_one_error(kind: str, tmp_path: Path) -> None:
    name, content, found = ODD[kind]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LeadlineError) as caught:
        import_paths([tmp_path / name])
    assert found in caught.value.found
    assert caught.value.exit_status == 3
    assert caught.value.where.startswith(str(tmp_path / name))


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_member_of_an_archive_is_left_out(kind: str, tmp_path: Path) -> None:
    name, content, found = ODD[kind]
    (tmp_path / "bundle.zip").write_bytes(zipped({name: content, "good.tsv": GOOD}))
    expect_good_and(import_paths([tmp_path / "bundle.zip"]), found)


def test_members_of_one_zip_are_read_without_the_odd_one(tmp_path: Path) -> None:
    bundle = marked(zipped({"odd.csv": GOOD, "good.tsv": GOOD}), method=9)
    (tmp_path / "bundle.zip").write_bytes(bundle)
    imported = import_paths([tmp_path / "bundle.zip"])
    expect_good_and(imported, "compression method")
    assert imported.left_out[0].where == f"{tmp_path}/bundle.zip!odd.csv"


def test_a_sparse_member_of_a_tar_is_left_out_at_once(tmp_path: Path) -> None:
    (tmp_path / "bundle.tar").write_bytes(sparse_tar(tmp_path))
    expect_good_and(import_paths([tmp_path / "bundle.tar"]), "a sparse file")


def test_a_fifo_in_a_tar_is_left_out(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bundle.tar", "w") as archive:
        member = tarfile.TarInfo("pipe")
        member.type = tarfile.FIFOTYPE
        archive.addfile(member)
        member = tarfile.TarInfo("good.tsv")
        member.size = len(GOOD)
        archive.addfile(member, io.BytesIO(GOOD))
    expect_good_and(import_paths([tmp_path / "bundle.tar"]), "a FIFO")


def plant_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


PLANTED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a broken link": (lambda path: path.symlink_to("nowhere"), "a broken link"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "a broken link"),
    "a link to the folder": (lambda path: path.symlink_to("."), "a link to a folder"),
    "a fifo": (os.mkfifo, "a FIFO"),
    "a socket": (plant_socket, "a socket"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "a device"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_no_file_in_a_folder_is_left_out(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, found = PLANTED[kind]
    monkeypatch.chdir(folder_of(tmp_path))  # a socket's path has at most 107 bytes
    plant(Path("odd"))
    expect_good_and(import_paths([Path()]), found)


@pytest.mark.parametrize("kind", ["a socket", "a link to a device"])
def test_what_is_no_file_and_is_named_is_one_error(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, found = PLANTED[kind]
    monkeypatch.chdir(tmp_path)
    plant(Path("odd"))
    with pytest.raises(InputError) as caught:
        import_paths([Path("odd")])
    assert caught.value.found == found


@pytest.mark.parametrize("odd", ["odd.csv", "odd"])
def test_what_may_not_be_read_is_left_out(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is made where Python asks the system."""
    folder = folder_of(tmp_path)
    (folder / "odd.csv").write_bytes(GOOD.replace(b"12", b"13"))
    (folder / "odd").mkdir()
    real_open, real_scan = Path.open, os.scandir

    def refuse(path: object) -> None:
        if Path(str(path)) == folder / odd:
            raise PermissionError(13, "Permission denied", str(path))

    def opened(self: Path, *args: object, **options: object) -> object:
        refuse(self)
        return real_open(self, *args, **options)  # type: ignore[call-overload]

    def scanned(path: object) -> object:
        refuse(path)
        return real_scan(path)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(os, "scandir", scanned)
    imported = import_paths([folder])
    assert [error.found for error in imported.left_out] == ["unreadable (Permission denied)"]
    assert f"{folder}/good.tsv" in [source.name for source in imported.capture.sources]


def test_a_bomb_in_a_folder_is_left_out_and_takes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "UNPACKED_BYTES_MAX", 2 * len(GOOD))
    folder = folder_of(tmp_path)
    (folder / "a.gz").write_bytes(gzip.compress(bytes(3 * len(GOOD))))
    (folder / "b.gz").write_bytes(gzip.compress(GOOD.replace(b"12", b"13")))
    imported = import_paths([folder])
    assert [Path(source.name).name for source in imported.capture.sources] == ["b", "good.tsv"]
    assert [error.code for error in imported.left_out] == ["limit"]


@pytest.mark.parametrize(
    ("failure", "found"),
    [(MemoryError, "unreadable (MemoryError)"), (LookupError, "a fault in Leadline's own reader (LookupError)")],
)
def test_an_importer_that_fails_leaves_the_others(
    failure: type[Exception], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leadline.importers import esxtop

    def fail(*_: object) -> None:
        raise failure

    folder = folder_of(tmp_path)
    (folder / "esx.csv").write_bytes((SEEDS / "esxtop-tiny.csv").read_bytes())
    monkeypatch.setattr(esxtop, "read", fail)
    expect_good_and(import_paths([folder]), found)
    with pytest.raises((InputError, LookupError)):  # named alone, a fault of ours is told as one
        import_paths([folder / "esx.csv"])


@pytest.mark.parametrize(("name", "found"), [("x" * 300, "File name too long"), ("a\0b", "null byte")])
def test_paths_that_cannot_be(name: str, found: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        import_paths([tmp_path / name])
    assert found in caught.value.found


def test_a_name_that_is_no_utf_8_is_shown(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"d\xe9.tsv")
    path.write_bytes(GOOD)
    imported = import_paths([path], clock_offsets={os.fsdecode(b"d\xe9.tsv"): 5.0})
    assert imported.capture.sources[0].name == f"{tmp_path}/d\\xe9.tsv"
    assert imported.capture.sources[0].offset_s == 5.0
