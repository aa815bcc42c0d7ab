"""lsblk, df, mount and what lies below; the texts are written by hand in the shapes of util-linux 2.2x to 2.40."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import InputError
from leadline.importers import block_layout

LSBLK = """\
NAME            MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS
loop0             7:0    0  55.7M  1 loop /snap/core18/2829
sda               8:0    0    40G  0 disk
├─sda1            8:1    0     1G  0 part /boot
└─sda2            8:2    0    39G  0 part
  ├─vg-root     253:0    0    30G  0 lvm  /
  └─vg-swap     253:1    0     9G  0 lvm  [SWAP]
sdb               8:16   0   200G  0 disk
└─vg--d-pgdata  253:2    0   200G  0 lvm  /pgdata
                                          /also here
sdc               8:32   0    20G  0 disk
└─sdc1            8:33   0    20G  0 part /wal
"""
DF = """\
Filesystem                Type      Size  Used Avail Use% Mounted on
tmpfs                     tmpfs      24G  1.4M   24G   1% /dev/shm
/dev/mapper/vg--d-pgdata  ext4      197G  187G     0 100% /pgdata
/dev/sdc1                 xfs        20G   19G  800M  97% /wal
"""
BLOCKS = """\
Filesystem     1K-blocks     Used Available Use% Mounted on
/dev/sdc1       10000000  9000000   1000000  90% /wal
/dev/mapper/some-long-name-of-a-volume
                20000000  5000000  15000000  25% /data
  LV     VG   Attr       LSize
  pgdata vg-d -wi-ao---- <200.00g
"""
MOUNT = """\
proc on /proc type proc (rw,relatime)
/dev/vda on / type ext4 (rw,noatime,errors=remount-ro)
/dev/vdb1 on /pgdata type xfs (rw,relatime,attr2)
"""
TREE = """\
vg-pgdata (253:9)
 └─3600a0980383146354a2b522d53374236 (253:6)
    ├─ (8:176)
    └─ (8:112)
/dev/mapper/vg-pgdata on /pgdata type ext4 (rw)
"""
MACOS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
map auto_home on /home (autofs, automounted, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
"""
AIX = """\
  node       mounted        mounted over    vfs       date        options
-------- ---------------  ---------------  ------ ------------ ---------------
         /dev/hd9var      /var             jfs2   Sep 06 11:46 rw,log=/dev/hd8
remote   /local           /remote          nfs3   Sep 06 11:49 hard,intr,vers=3,sec=sys
"""
MULTIPATH = """\
mpatha (36001405e5bf5c158c4e4a5398ccba2cc) dm-2 LIO-ORG,data-chunk1
size=5.0G features='1 queue_if_no_path' hwhandler='1 alua' wp=rw
|-+- policy='service-time 0' prio=50 status=enabled
| `- 3:0:0:0  sdb 8:16 active ready running
`-+- policy='service-time 0' prio=0 status=enabled
  `- 10:0:0:0 sdd 8:48 failed faulty running
"""
VOLUMES = """\
  PV         VG   Fmt  Attr PSize    PFree
  /dev/sdb   vg-d lvm2 a--  <200.00g    0
  LV     VG   Attr       LSize    Pool Origin Data%  Meta%  Move Log Cpy%Sync Convert
  pgdata vg-d -wi-ao---- <200.00g
"""


def of(tmp_path: Path, text: str) -> Inventory:
    path = tmp_path / "x.txt"
    path.write_text(text)
    source = Source(str(path), path)
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "block-layout"
    return block_layout.read(source, Request()).inventory


def fact(inventory: Inventory, device: str, name: str) -> object:
    return inventory.get(Entity.parse(f"guest:guest/block-device:{device}"), name)


@pytest.mark.parametrize(
    ("text", "device", "name", "expected"),
    [
        (LSBLK, "sda", "size_gib", 40),
        (LSBLK, "sda1", "mount", "/boot"),
        (LSBLK, "dm-0", "mount", "/"),
        (LSBLK, "sdb", "mount", "/pgdata"),
        (LSBLK, "dm-2", "mount", "/pgdata"),
        (LSBLK, "sdc", "mount", "/wal"),
        (LSBLK + DF, "dm-2", "filesystem_free_pct", 0),
        (LSBLK + DF, "sdc", "filesystem_free_pct", 3),
        (LSBLK + DF, "sdc", "filesystem", "xfs"),
        (DF + LSBLK, "dm-2", "filesystem_free_pct", 0),
        (BLOCKS, "sdc", "filesystem_free_pct", 10),
        (BLOCKS, "some-long-name-of-a-volume", "filesystem_free_pct", 75),
        (MOUNT, "vda", "mount_options", ["rw", "noatime", "errors=remount-ro"]),
        (MOUNT, "vdb", "filesystem", "xfs"),
        (TREE, "dm-9", "mount", "/pgdata"),
        (TREE, "sdl", "mount", "/pgdata"),
        (MACOS, "disk3s1s1", "mount", "/"),
        (MACOS, "disk3s1s1", "filesystem", "apfs"),
        (AIX, "hd9var", "mount", "/var"),
        (AIX, "hd9var", "mount_options", ["rw", "log=/dev/hd8"]),
        (MULTIPATH, "dm-2", "size_gib", 5),
        (VOLUMES, "vg--d-pgdata", "size_gib", 200),
    ],
)
def test_facts(tmp_path: Path, text: str, device: str, name: str, expected: object) -> None:
    assert fact(of(tmp_path, text), device, name) == expected


def test_loops_and_file_systems_on_no_disk_are_left_out(tmp_path: Path) -> None:
    names = {entity.name for entity in of(tmp_path, LSBLK + DF).facts}
    assert not names & {"loop0", "tmpfs"}


def test_of_several_mount_points_the_root_counts(tmp_path: Path) -> None:
    bound = MOUNT.replace("/dev/vda on /", "/dev/vda on /run/netns type ext4 (ro)\n/dev/vda on /")
    inventory = of(tmp_path, bound)
    assert fact(inventory, "vda", "mount") == "/"
    assert fact(inventory, "vda", "mount_options") == ["rw", "noatime", "errors=remount-ro"]


def test_df_alone_is_not_mine(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(DF)
    assert block_layout.sniff(Source(str(path), path)) == 0


def test_paths_are_counted(tmp_path: Path) -> None:
    inventory = of(tmp_path, MULTIPATH)
    counts = [
        inventory.get(Entity.parse("device:mpatha"), f"path_{name}") for name in ("count", "active_count", "dead_count")
    ]
    assert counts == [2, 1, 1]


def test_a_stray_line_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.txt:3: 'stray \(line\)'"):
        of(tmp_path, DF.replace("/dev/mapper", "stray (line)\n/dev/mapper") + VOLUMES)


def test_other_tools_files_are_not_mine(fixtures: Path) -> None:
    files = [path for path in fixtures.rglob("*") if path.is_file()]
    assert [path.name for path in files if block_layout.sniff(Source("", path))] == []
