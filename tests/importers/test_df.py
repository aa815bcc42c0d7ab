"""df: how full file systems are."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import df
from tests.conftest import ROOT
from tests.importers.recordings import source_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "df.txt").read_text()


def free(folder: Path, text: str) -> dict[str, tuple[str, float]]:
    source = source_of(folder, text)
    assert df.sniff(source) == 90
    inventory = df.read(source, Request()).inventory
    disks = inventory.of_kind(EntityKind.BLOCK_DEVICE)
    return {disk.name: (inventory.get(disk, "mount"), inventory.get(disk, "filesystem_free_pct")) for disk in disks}


def test_the_last_listing_counts(tmp_path: Path) -> None:
    assert free(tmp_path, SEED) == {"sda": ("/", 4.0), "sdb": ("/var/lib/mysql", 75.0)}


def test_letters_kinds_and_long_names(tmp_path: Path) -> None:
    text = "Filesystem                        Type  Size  Used Avail Use% Mounted on\n"
    text += "/dev/mapper/vg_database-lv_mysql\n        xfs   1.5T  900G  100G  90% /var/lib/my sql\n"
    text += "/dev/sdc1                         ext4   10G  8.0G  2.0G  80% /b\n"
    assert free(tmp_path, text) == {"vg_database-lv_mysql": ("/var/lib/my sql", 10.0), "sdc": ("/b", 20.0)}


def test_the_columns_of_macos(tmp_path: Path) -> None:
    text = "Filesystem      Size   Used  Avail Capacity   iused    ifree %iused  Mounted on\n"
    text += "/dev/disk1s1   466Gi  137Gi  326Gi    30%    674413  9223372   0%   /\n"
    text += "devfs          188Ki  188Ki    0Bi   100%       650        0 100%   /dev\n"
    text += "map auto_home    0Bi    0Bi    0Bi   100%         0        0 100%   /home\n"
    ((disk, (point, free_pct)),) = free(tmp_path, text).items()
    assert (disk, point, round(free_pct, 1)) == ("disk1", "/", round(100 * 326 / 463, 1))


def test_a_line_of_something_else_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=":12"):
        free(tmp_path, f"{SEED}df: /mnt: Stale file handle\n")


def test_inodes_are_not_taken(tmp_path: Path) -> None:
    assert df.sniff(source_of(tmp_path, "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/sda 1 1 1 50% /\n")) == 0
