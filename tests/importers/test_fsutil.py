"""fsutil fsinfo: the clusters of volumes, wherever their letter is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import fsutil
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "fsutil.txt").read_text()
ONE = SEED.partition("E:\n")[0].removeprefix("D:\n")


def volumes(capture: Capture) -> dict[str, tuple[object, object]]:
    inventory = capture.inventory
    drives = inventory.of_kind(EntityKind.BLOCK_DEVICE)
    return {one.name: (inventory.get(one, "filesystem"), inventory.get(one, "allocation_unit_bytes")) for one in drives}


def read(folder: Path, text: str, command: str = "") -> Capture:
    source = replace(source_of(folder, text), command=command)
    assert fsutil.sniff(source) == 95
    return fsutil.read(source, Request())


def test_the_letter_above_each_volume(tmp_path: Path) -> None:
    capture = read(tmp_path, SEED)
    assert volumes(capture) == {"D:": ("ntfs", 4096), "E:": ("ntfs", 65536)}
    drives = {one.name: capture.inventory.get(one, "size_gib") for one in capture.inventory.facts if ":" in one.name}
    assert drives == {"D:": pytest.approx(26_214_143 * 4096 / 2**30), "E:": pytest.approx(0x3B9ACA * 65536 / 2**30)}
    assert codes(capture) == ["no-guest"]


def test_the_letter_of_the_command(tmp_path: Path) -> None:
    assert volumes(read(tmp_path, ONE, "fsutil fsinfo ntfsinfo f:")) == {"F:": ("ntfs", 4096)}
    text = f"C:\\Windows\\system32>fsutil fsinfo ntfsinfo G:\n{ONE}\nC:\\>FSUTIL FSINFO NTFSINFO h:\\\n{ONE}"
    assert list(volumes(read(tmp_path, text))) == ["G:", "H:"]


def test_a_volume_without_letter(tmp_path: Path) -> None:
    capture = read(tmp_path, ONE)
    assert volumes(capture) == {"volume": ("ntfs", 4096)}
    assert codes(capture) == ["no-guest", "no-drive"]
    assert list(volumes(read(tmp_path, f"D:\n{ONE}{ONE}"))) == ["D:", "volume"]


def test_refs(tmp_path: Path) -> None:
    text = "REFS Volume Serial Number :       0xa8b2c55db2c5310c\nREFS Version   :                  3.4\n"
    text += "Bytes Per Sector  :               512\nBytes Per Cluster :               65536 (64 KB)\n"
    assert volumes(read(tmp_path, text, "fsutil fsinfo refsinfo R:")) == {"R:": ("refs", 65536)}


def test_a_size_that_no_volume_has_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line with the size of a cluster"):
        read(tmp_path, ONE.replace("Cluster :                4096", "Cluster :                4097"))


def test_another_language_is_refused(tmp_path: Path) -> None:
    german = "NTFS-Volumeseriennummer :          0xc42ce3112ce2fcf4\nBytes pro Cluster :                4096\n"
    german += "MFT-gültige Datenlänge :           0x0000000006eb8000\nMFT-Start-LCN :    0x00000000000c0000\n"
    source = source_of(tmp_path, german)
    assert fsutil.sniff(source) == 60
    with pytest.raises(InputError, match="English"):
        fsutil.read(source, Request())


def test_as_powershell_redirects_it(tmp_path: Path) -> None:
    source = source_of(tmp_path, SEED.replace("\n", "\r\n").encode("utf-16"))
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "fsutil"
    assert list(volumes(fsutil.read(source, Request()))) == ["D:", "E:"]


def test_other_texts_are_not_taken(tmp_path: Path) -> None:
    assert fsutil.sniff(source_of(tmp_path, "Bytes Per Cluster : 4096\n")) == 0
    assert fsutil.sniff(source_of(tmp_path, "/dev/sdb1 on /mnt type ntfs (rw)\n")) == 0
