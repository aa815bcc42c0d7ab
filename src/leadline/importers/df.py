"""df: how full the file systems of a Linux guest are.

Reads:
    ``df``, ``df -k``, ``df -h``, ``df -T`` and ``df -P``, once or again and again with a line of time before each (the
    ``-df`` files of pt-stalk). The last listing counts. macOS' listing, with its columns of inodes.

Sample:
    .. code-block:: text

        TS 1795510800.003042017 2026-11-24 09:00:00
        Filesystem     1K-blocks     Used Available Use% Mounted on
        /dev/sda2       51473888 49004120   2453000  96% /
        /dev/sdb1      264212084 20476852  75024412  22% /var/lib/mysql

Lost:
    File systems that are on no disk (tmpfs, network), and images that are always full (loop devices). How they grew.
    Inodes (``df -i``).

Units:
    Any; what is kept is the share that ordinary users may still fill, available / (used + available). With ``-h`` it is
    as exact as the rounded numbers are.

Sources:
    df(1) of GNU coreutils; pt-stalk of Percona Toolkit.
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.linux.listings import by_disk, filesystems
from leadline.formats.linux.sample_stamps import stamp_of

META = ImporterMeta(
    tool="df",
    marks=("mounted on",),
    layers=(Layer.GUEST,),
    record="df -k > df.txt",
)

_HEADING = re.compile(
    r"Filesystem\s+(?:Type\s+)?(?:1K-blocks|1024-blocks|512-blocks|1B-blocks|[KMGT1]{0,4}-?blocks|Size)\s+Used\s+"
    r"Avail(?:able)?\s+(?:Use%|Capacity)\s+(?:iused\s+ifree\s+%iused\s+)?Mounted on"
)
_SIZE = r"(\d{1,18}(?:[.,]\d)?[kKMGTPE]?)(?:i?B?|Bi)"
_ROW = re.compile(
    rf"(\S{{1,200}}|map \S{{1,80}})\s+(?:([a-z][\w.]{{1,30}})\s+)?{_SIZE}\s+{_SIZE}\s+"
    r"(-?\d{1,18}(?:[.,]\d)?[kKMGTPE]?)(?:i?B?|Bi)\s+(?:\d{1,4}%|-)\s+(?:\d{1,20}\s+\d{1,20}\s+\d{1,4}%\s+)?(/.{0,4000})"
)
_LONG_NAME = re.compile(r"[\w/.:@-]{20,400}")  # its numbers are on the next line
_FACTORS = {letter: 1 << (10 * power) for power, letter in enumerate("KMGTPE", 1)}


def sniff(source: Source) -> int:
    """Sure by the heading, first or behind a line of time."""
    lines = [line for line in source.head_text.splitlines()[:6] if line.strip()]
    return 90 if any(_HEADING.fullmatch(line.strip()) for line in lines[:2]) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only: what is free on each disk, or partition where a disk has several file systems.

    Raises:
        InputError: a line is none of df's, or no file system is on a disk.
    """
    builder = CaptureBuilder(source.name, "df", META.tool)
    listings = _listings(source, request)
    listing = next((one for one in reversed(listings) if one), None)
    if listing is None:
        raise _refused(f"{source.name}:1", "no file system")
    mounts = [f"{device} on {point} type {kind} ()" for device, kind, _, point in listing if kind]
    sizes = [f"{device} {size} {point}" for device, _, size, point in listing]
    for disk, filesystem in by_disk(filesystems(mounts, sizes, {})):
        builder.inventory.add(
            Entity(EntityKind.BLOCK_DEVICE, disk, UNNAMED_GUEST),
            source.name,
            mount=filesystem.point,
            filesystem=filesystem.kind,
            filesystem_free_pct=filesystem.free_pct,
        )
    return builder.build()


def _listings(source: Source, request: Request) -> list[list[tuple[str, str, str, str]]]:
    """The rows of each listing: device, kind (empty where not printed), sizes and mount point; those of disks only."""
    listings: list[list[tuple[str, str, str, str]]] = []
    waiting = ""
    for number, line in enumerate(source.lines(), 1):
        text = f"{waiting} {line.strip()}".strip()
        waiting = ""
        row = _ROW.fullmatch(text)
        if _HEADING.fullmatch(text):
            listings.append([])
        elif row is not None and listings:
            if row[1].startswith("/dev/") and not row[1].startswith("/dev/loop"):
                used, free = _whole(row[4]), _whole(row[5])
                listings[-1].append((row[1], row[2] or "", f"{used + max(free, 0)} {used} {free} 0%", row[6]))
        elif listings and _LONG_NAME.fullmatch(text):
            waiting = text
        elif text and stamp_of(text, request) is None:
            raise _refused(f"{source.name}:{number}", f"{text[:60]!r}")
    return listings


def _whole(text: str) -> int:
    """A size as a whole number, with the letters of ``-h`` applied."""
    factor = _FACTORS.get(text[-1].upper(), 0)
    return int(float(text[:-1].replace(",", ".")) * factor) if factor else int(float(text.replace(",", ".")))


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="the heading of df and a line for each file system",
        advice=f"Record it with: {META.record}",
    )
